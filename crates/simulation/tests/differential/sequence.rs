//! How is a sequence run on both servers, and what is reported?

use std::sync::Arc;

use jiff::Timestamp;
use machinist_simulation::api_server::{ApiServer, Config};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::compare::{Names, differences};
use crate::generate::{Generator, create_body};
use crate::real::Real;
use crate::side::{Side, Watch};
use crate::step::{NAMESPACE, NODE, PARTS, POD, Part, SIGNING_REQUEST, Step};

/// Requests in a sequence, its beginning and end apart.
const STEPS: usize = 30;
/// Differences after which a run stops.
const DIFFERENCES_MAX: usize = 8;
const SENTINEL: &str = "zz-sentinel";

pub struct Report {
    pub text: String,
    pub differences: usize,
}

/// One watch on both servers.
struct Pair {
    part: Part,
    query: &'static str,
    real: Watch,
    memory: Watch,
}

pub async fn run_all(seeds: &[u64]) -> Report {
    let real = Real::start().await.unwrap_or_else(|error| panic!("no control plane: {error:#}"));
    let server = server_in_memory();
    let mut report = Report { text: String::new(), differences: 0 };
    let mut requests = 0;
    for seed in seeds {
        let run = Run::new(*seed, &real, &server);
        let outcome = run.run().await;
        requests += outcome.requests;
        for difference in outcome.differences {
            report.differences += 1;
            println!("{difference}");
        }
        if report.differences >= DIFFERENCES_MAX {
            break;
        }
    }
    real.stop().await;
    report.text = format!(
        "differential: {} sequences, {requests} requests, {} differences",
        seeds.len(),
        report.differences
    );
    report
}

#[expect(clippy::disallowed_methods, reason = "both servers stamp objects with the machine's time")]
fn server_in_memory() -> ApiServer {
    let mut random = ChaCha12Rng::seed_from_u64(1);
    ApiServer::new(
        &Config::default(),
        Arc::new(Timestamp::now),
        Box::new(move || random.next_u64()),
    )
}

struct Run {
    seed: u64,
    real: Side,
    memory: Side,
    names_real: Names,
    names_memory: Names,
    log: Vec<String>,
    differences: Vec<String>,
    requests: usize,
}

struct Outcome {
    differences: Vec<String>,
    requests: usize,
}

impl Run {
    fn new(seed: u64, real: &Real, server: &ApiServer) -> Self {
        let namespace = format!("sequence-{seed}");
        Self {
            seed,
            real: Side::new("kube-apiserver", real.client.clone(), &namespace),
            memory: Side::new("in memory", server.client("differential"), &namespace),
            names_real: Names::default(),
            names_memory: Names::default(),
            log: Vec::new(),
            differences: Vec::new(),
            requests: 0,
        }
    }

    async fn run(mut self) -> Outcome {
        let namespace = self.real.namespace.clone();
        let create =
            Step::new("POST", NAMESPACE, "").json(json!({ "metadata": { "name": namespace } }));
        self.step(&create).await;
        self.create_service_account().await;
        let mut generator = Generator::new(self.seed);
        let watches = self.open_watches(&mut generator).await;
        for _ in 0..STEPS {
            for step in generator.next_steps() {
                self.step(&step).await;
                if !self.differences.is_empty() {
                    self.remove_shared().await;
                    return self.outcome();
                }
            }
        }
        for watch in watches {
            self.compare_watch(watch).await;
        }
        self.remove_shared().await;
        self.outcome()
    }

    fn outcome(self) -> Outcome {
        Outcome { differences: self.differences, requests: self.requests }
    }

    /// Pods need one, and nobody but the controllers makes it.
    async fn create_service_account(&mut self) {
        let accounts = Part { plural: "serviceaccounts", kind: "ServiceAccount", ..POD };
        let body = json!({ "metadata": { "name": "default" } });
        let answers = self.real.send(&Step::new("POST", accounts, "").json(body)).await;
        assert_eq!(answers[0].code, 201, "{answers:?}");
    }

    async fn step(&mut self, step: &Step) {
        let real = self.real.send(step).await;
        let memory = self.memory.send(step).await;
        self.requests += real.len();
        self.log.push(step.to_string());
        let real: Vec<Value> =
            real.iter().map(|answer| self.names_real.answer(step, answer)).collect();
        let memory: Vec<Value> =
            memory.iter().map(|answer| self.names_memory.answer(step, answer)).collect();
        if real != memory {
            self.report(&step.to_string(), &json!(real), &json!(memory));
        }
    }

    fn report(&mut self, what: &str, real: &Value, memory: &Value) {
        let before = self.log.iter().rev().skip(1).take(6).rev().cloned().collect::<Vec<_>>();
        self.differences.push(format!(
            "== seed {}: {what}\n  before it:\n    {}\n{}  replay: cargo test -p machinist-simulation \
             --test differential -- --seed {}",
            self.seed,
            before.join("\n    "),
            differences(real, memory),
            self.seed
        ));
    }

    async fn open_watches(&self, generator: &mut Generator) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for part in generator.choose_watched() {
            for query in watched_queries(part) {
                let real = self.real.watch(part, query).await;
                let memory = self.memory.watch(part, query).await;
                pairs.push(Pair { part, query, real, memory });
            }
        }
        pairs
    }

    async fn compare_watch(&mut self, pair: Pair) {
        // Another watch of the same kind may have made it; then it is there, on both.
        let body = create_body(pair.part, SENTINEL, true);
        self.real.send(&Step::new("POST", pair.part, "").json(body.clone())).await;
        self.memory.send(&Step::new("POST", pair.part, "").json(body)).await;
        let real = pair.real.until(SENTINEL).await;
        let memory = pair.memory.until(SENTINEL).await;
        let real: Vec<Value> =
            real.iter().map(|event| self.names_real.event(pair.part, event)).collect();
        let memory: Vec<Value> =
            memory.iter().map(|event| self.names_memory.event(pair.part, event)).collect();
        if real != memory {
            let index = real.iter().zip(&memory).position(|(one, other)| one != other);
            let index = index.unwrap_or_else(|| real.len().min(memory.len()));
            let what = format!("event {index} of the watch of {} {}", pair.part.plural, pair.query);
            let types = |events: &[Value]| {
                events
                    .iter()
                    .map(|event| {
                        format!("{} {}", event["type"], event["object"]["metadata"]["name"])
                    })
                    .collect::<Vec<_>>()
            };
            self.report(
                &what,
                &json!({ "all": types(&real), "event": real.get(index) }),
                &json!({ "all": types(&memory), "event": memory.get(index) }),
            );
        }
    }

    /// What is not in the sequence's namespace would be seen by the next.
    async fn remove_shared(&mut self) {
        for side in [&mut self.real, &mut self.memory] {
            for part in [NODE, SIGNING_REQUEST] {
                for name in ["a", "b", "c", "Wrong_Name", SENTINEL] {
                    let patch = json!({ "metadata": { "finalizers": null } });
                    let step = Step::new("PATCH", part, format!("/{name}"));
                    side.send(&step.json(patch).content(crate::step::MERGE)).await;
                    side.send(&Step::new("DELETE", part, format!("/{name}"))).await;
                }
            }
        }
    }
}

fn watched_queries(part: Part) -> Vec<&'static str> {
    assert!(PARTS.contains(&part));
    let mut queries = vec!["", "&labelSelector=app%3Da"];
    if part == POD {
        queries.push("&fieldSelector=spec.nodeName%3Da");
    }
    queries
}
