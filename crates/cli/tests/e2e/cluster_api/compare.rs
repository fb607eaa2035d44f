//! In what do the results of two controllers differ, apart from uids, times and names?

use std::collections::{BTreeMap, BTreeSet};

use machinist_testbed::cluster_api::objects::CONTROL_PLANE;
use serde_json::{Map, Value};

use super::{
    accepted::ACCEPTED,
    stage::{Stage, text},
};

/// How often each value occurs at each place: kind and path, values as JSON. Machines of one set are alike,
/// so objects need not be paired; their number shows in the counts.
type Places = BTreeMap<(String, String), BTreeMap<String, usize>>;

/// What a script left behind at its moments.
#[derive(Default)]
pub struct Outcome {
    moments: Vec<(&'static str, Places)>,
}

impl Outcome {
    /// Notes the objects of the stage as they are now.
    pub async fn note(&mut self, moment: &'static str, stage: &Stage) {
        let mut objects = Vec::new();
        for kind in ["Cluster", "MachineDeployment", "MachineSet", "Machine"] {
            objects.extend(stage.list(kind).await.into_iter().map(|one| (kind, one)));
        }
        objects.extend(stage.provided().await.into_iter().map(|one| ("DevMachine", one)));
        objects.extend(stage.nodes().await.into_iter().map(|one| ("Node", one)));
        self.note_objects(moment, &stage.name, objects);
    }

    /// Notes objects whose names were given: each is compared with the one of its name.
    pub fn note_each(
        &mut self,
        moment: &'static str,
        stage: &str,
        objects: Vec<(&'static str, Value)>,
    ) {
        let names = Names(vec![(stage.to_owned(), "<stage>".to_owned())]);
        let named = |(kind, object): (&str, Value)| {
            (format!("{kind} {}", text(&object["metadata"]["name"])), object)
        };
        self.moments.push((moment, places(&names, objects.into_iter().map(named))));
    }

    fn note_objects(
        &mut self,
        moment: &'static str,
        stage: &str,
        objects: Vec<(&'static str, Value)>,
    ) {
        let names = Names::of(stage, &objects);
        // The control plane's own things are apart from the workers'.
        let called = |(kind, object): (&str, Value)| match text(&object["metadata"]["name"]) {
            CONTROL_PLANE => (format!("{kind} {CONTROL_PLANE}"), object),
            _ => (kind.to_owned(), object),
        };
        self.moments.push((moment, places(&names, objects.into_iter().map(called))));
    }
}

fn places(names: &Names, objects: impl Iterator<Item = (String, Value)>) -> Places {
    let mut places = Places::new();
    for (who, object) in objects {
        let mut found = Vec::new();
        flatten("", &without_incidentals(&object), &mut found);
        for (path, value) in found {
            let (path, value) = (names.replace(&path), names.replace(&value));
            let values = places.entry((who.clone(), path)).or_default();
            *values.entry(value).or_default() += 1;
        }
    }
    places
}

/// Fails with every difference that is not accepted.
pub fn assert_same(script: &str, core: &Outcome, machinist: &Outcome) {
    let mut lines = Vec::new();
    assert_eq!(core.moments.len(), machinist.moments.len());
    for ((moment, core), (_, machinist)) in core.moments.iter().zip(&machinist.moments) {
        let places: BTreeSet<_> = core.keys().chain(machinist.keys()).collect();
        for place in places {
            let (kind, path) = place;
            let (one, other) = (core.get(place), machinist.get(place));
            if one != other && !is_accepted(kind, path) {
                lines.push(format!(
                    "{moment}: {kind}{path}\n  core:      {one:?}\n  machinist: {other:?}"
                ));
            }
        }
    }
    assert!(lines.is_empty(), "{script}: {} differences:\n{}", lines.len(), lines.join("\n"));
}

fn is_accepted(kind: &str, path: &str) -> bool {
    ACCEPTED.iter().any(|one| {
        let is_kind = one.kind == "*" || kind.starts_with(one.kind);
        is_kind && one.path.is_match(path)
    })
}

/// The names that were drawn at random, and what they stand for.
struct Names(Vec<(String, String)>);

impl Names {
    fn of(stage: &str, objects: &[(&'static str, Value)]) -> Self {
        let mut names = Vec::new();
        for (kind, object) in objects {
            let name = text(&object["metadata"]["name"]).to_owned();
            match *kind {
                "MachineSet" => {
                    let hash = &object["metadata"]["labels"]["machine-template-hash"];
                    names.push((text(hash).to_owned(), "<hash>".to_owned()));
                    names.push((name, "<set>".to_owned()));
                }
                "Machine" | "DevMachine" | "Node" if name != CONTROL_PLANE => {
                    names.push((name, "<machine>".to_owned()));
                }
                "Cluster" => {
                    let port = &object["spec"]["controlPlaneEndpoint"]["port"];
                    names.push((port.to_string(), "<port>".to_owned()));
                }
                _ => {}
            }
        }
        names.push((stage.to_owned(), "<stage>".to_owned()));
        names.retain(|(name, _)| name.len() > 3 && name != "null");
        // A Machine's name begins with its set's.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names.dedup();
        Self(names)
    }

    fn replace(&self, text: &str) -> String {
        let replaced = |text: String, (name, stand_in): &(String, String)| {
            if text.contains(name) { text.replace(name, stand_in) } else { text }
        };
        self.0.iter().fold(text.to_owned(), replaced)
    }
}

/// An object without what is each object's own and says nothing about who made it.
fn without_incidentals(object: &Value) -> Value {
    let mut object = object.clone();
    let generation = object["metadata"]["generation"].clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"]
        {
            metadata.remove(field);
        }
    }
    steady(&mut object, &generation);
    object
}

/// Times, in texts too, and uids are named as such; an observed generation is either the present one or not.
fn steady(value: &mut Value, generation: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "uid" => *value = "<uid>".into(),
                    "observedGeneration" => {
                        *value = if value == generation { "<present>" } else { "<past>" }.into();
                    }
                    _ => steady(value, generation),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, generation)),
        Value::String(text) => {
            let words: Vec<_> = text.split([' ', '(', ')', ',', '\n']).map(str::to_owned).collect();
            for word in words.iter().map(|word| word.trim_end_matches(':')) {
                if word.parse::<jiff::Timestamp>().is_ok() {
                    *text = text.replace(word, "<time>");
                }
            }
        }
        _ => {}
    }
}

/// Every leaf with its path. What a list is keyed by takes the place of the index.
fn flatten(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let key = item.as_object().and_then(key_of).unwrap_or_else(|| index.to_string());
                flatten(&format!("{path}[{key}]"), item, found);
            }
        }
        leaf => found.push((path.to_owned(), leaf.to_string())),
    }
}

fn key_of(item: &Map<String, Value>) -> Option<String> {
    ["type", "kind", "key"].iter().find_map(|field| item.get(*field)?.as_str().map(str::to_owned))
}
