//! What does the API look like, for programs? An OpenAPI document, made of the types that are sent.

use std::sync::LazyLock;

use machinist_core::overview::{
    calendar_view::CalendarView,
    delta::Change,
    drift_view::DriftList,
    fleet::{FleetView, PoolList},
    machine::MachineDetail,
    plan_view::PlanView,
    policies::PolicyList,
    query::{FleetMap, MachineList},
    timeline_view::Timeline,
    what_if::{WhatIf, WhatIfAnswer},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::{
    answer::ErrorBody,
    reads::Me,
    writes::{Approve, Done, Pause, Postpone, Resume},
};

/// The document.
pub(super) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(make);
    &DOCUMENT
}

struct Paths {
    generator: SchemaGenerator,
    paths: serde_json::Map<String, Value>,
}

fn make() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut paths = Paths { generator: settings.into_generator(), paths: serde_json::Map::new() };
    paths.get::<Me>("/me", "Who asks, and what they may.", &[]);
    paths.get::<FleetView>("/fleet", "The whole fleet in short.", &[]);
    paths.get::<PoolList>("/pools", "All pools.", &[]);
    paths.get::<FleetMap>("/map", "All machines that match, as short as can be.", &FILTERS);
    let listed: Vec<&str> = FILTERS.iter().chain(&PAGING).copied().collect();
    paths.get::<MachineList>("/machines", "Machines, filtered, sorted and in pages.", &listed);
    paths.get::<MachineDetail>("/machines/{name}", "All of one machine.", &[]);
    paths.get::<Timeline>("/machines/{name}/timeline", "What happened to one machine.", &[]);
    paths.get::<PlanView>("/plan", "When which machine is maintained.", &[]);
    paths.get::<CalendarView>("/calendar", "Windows, freezes and bars.", &["from", "to"]);
    paths.get::<PolicyList>("/policies", "The MaintenancePolicies in words.", &[]);
    paths.get::<DriftList>("/drift", "What happened behind the cluster's back.", &[]);
    paths.get::<Value>("/openapi.json", "This document.", &[]);
    paths.get::<Change>(
        "/events",
        "A stream of events, resumed by the header Last-Event-ID. Each `change` is one of these.",
        &[],
    );
    paths.post::<WhatIf, WhatIfAnswer>("/what-if", "How the plan would change; saves nothing.");
    paths.post::<Approve, Done>("/machines/{name}/approve", "Approves what waits for a person.");
    paths.post::<Postpone, Done>("/machines/{name}/postpone", "Puts a maintenance off.");
    paths.post::<Pause, Done>("/pause", "Keeps maintenance from beginning.");
    paths.post::<Resume, Done>("/resume", "Lets maintenance begin again.");
    paths.finish()
}

const FILTERS: [&str; 6] = ["search", "pool", "zone", "state", "role", "attention"];
const PAGING: [&str; 4] = ["sort", "order", "limit", "cursor"];

impl Paths {
    fn get<Answer: JsonSchema>(&mut self, path: &str, summary: &str, query: &[&str]) {
        let answer = self.generator.subschema_for::<Answer>();
        let operation = self.operation(path, summary, query, &answer);
        self.add(path, "get", operation);
    }

    fn post<Content: JsonSchema, Answer: JsonSchema>(&mut self, path: &str, summary: &str) {
        let content = self.generator.subschema_for::<Content>();
        let answer = self.generator.subschema_for::<Answer>();
        let mut operation = self.operation(path, summary, &[], &answer);
        if let Value::Object(fields) = &mut operation {
            let content = json!({ "application/json": { "schema": content } });
            let body = json!({ "required": true, "content": content });
            fields.insert("requestBody".to_owned(), body);
        }
        self.add(path, "post", operation);
    }

    fn operation(&mut self, path: &str, summary: &str, query: &[&str], answer: &Schema) -> Value {
        let error = self.generator.subschema_for::<ErrorBody>();
        let mut parameters: Vec<Value> = Vec::new();
        if path.contains("{name}") {
            parameters.push(json!({
                "name": "name", "in": "path", "required": true, "schema": { "type": "string" },
            }));
        }
        for name in query {
            let name = *name;
            parameters.push(json!({
                "name": name, "in": "query", "required": false, "schema": { "type": "string" },
            }));
        }
        let kind = if path == "/events" { "text/event-stream" } else { "application/json" };
        json!({
            "summary": summary,
            "parameters": parameters,
            "responses": {
                "200": { "description": "The answer.", "content": { kind: { "schema": answer } } },
                "default": {
                    "description": "Why there is none.",
                    "content": { "application/json": { "schema": error } },
                },
            },
        })
    }

    fn add(&mut self, path: &str, method: &str, operation: Value) {
        self.paths.insert(format!("/api/v1{path}"), json!({ method: operation }));
    }

    fn finish(mut self) -> Value {
        let schemas = self.generator.take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Machinist",
                "version": "v1",
                "description": "What is shown of the fleet, and what may be changed. Names are never \
                                changed, only added; times are in UTC.",
            },
            "security": [{ "token": [] }],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            },
        })
    }
}
