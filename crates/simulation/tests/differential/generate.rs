//! Which requests are sent? Those that clients of the operator's kind send, and their mistakes.

use machinist_simulation::certificates::{self, Asked, Purpose};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::step::{
    BUDGET, Body, CONFIG_MAP, EVENT, HEALTH_CHECK, JSON_PATCH, LEASE, MACHINE, MACHINE_SET, MERGE,
    NEW_EVENT, NODE, PARTS, POD, Part, SECRET, SIGNING_REQUEST, Step,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Draws steps from a seed.
pub struct Generator {
    random: ChaCha12Rng,
    /// The kinds of this sequence: few, so that requests meet.
    parts: Vec<Part>,
    scales: u64,
}

/// The body that creates an object which every server takes.
pub fn create_body(part: Part, name: &str, labelled: bool) -> Value {
    let mut metadata = json!({ "name": name });
    if labelled {
        metadata["labels"] = json!({ "app": "a" });
    }
    let mut body =
        json!({ "apiVersion": part.api_version, "kind": part.kind, "metadata": metadata });
    let rest = if part == MACHINE {
        json!({ "spec": { "providerSpec": { "value": { "instanceType": "m5.large", "n": 1 } } } })
    } else if part == MACHINE_SET {
        json!({ "spec": { "selector": { "matchLabels": { "set": name } } } })
    } else if part == HEALTH_CHECK {
        json!({ "spec": {
            "selector": { "matchLabels": { "set": name } },
            "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "300s" }],
        } })
    } else if part == SIGNING_REQUEST {
        signing_request(name)
    } else if part == POD {
        json!({ "spec": {
            "nodeName": "a",
            "automountServiceAccountToken": false,
            "containers": [{ "name": "main", "image": "example.test/main:1" }],
        } })
    } else if part == CONFIG_MAP {
        json!({ "data": { "key": "value" } })
    } else if part == SECRET {
        json!({ "stringData": { "key": "value" } })
    } else if part == LEASE {
        json!({ "spec": { "holderIdentity": "me", "leaseDurationSeconds": 30 } })
    } else if part == BUDGET {
        json!({ "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } } })
    } else {
        json!({ "spec": { "unschedulable": true } })
    };
    json_patch::merge(&mut body, &rest);
    body
}

/// Nobody signs for this signer, and its names are the server's own business.
fn signing_request(name: &str) -> Value {
    let mut object = certificates::object(json!({}), Purpose::Client, &Asked::client(name));
    object["spec"]["signerName"] = json!("example.test/signer");
    json!({ "spec": object["spec"] })
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let first = PARTS[(random.next_u64() % PARTS.len() as u64) as usize];
        let second = PARTS[(random.next_u64() % PARTS.len() as u64) as usize];
        let mut parts = vec![first, second];
        // Evictions need both.
        if parts.contains(&POD) || parts.contains(&BUDGET) {
            parts = vec![POD, BUDGET, first];
        }
        Self { random, parts, scales: 0 }
    }

    pub fn choose_watched(&mut self) -> Vec<Part> {
        let mut parts = self.parts.clone();
        parts.sort_by_key(|part| part.plural);
        parts.dedup();
        parts
    }

    /// The next steps: mostly one, sometimes a few that belong together.
    pub fn next_steps(&mut self) -> Vec<Step> {
        let part = *self.pick_from(&self.parts.clone());
        let name = *self.pick(&NAMES);
        match self.below(20) {
            0..=4 => vec![self.create(part, name)],
            5 => vec![Step::new("GET", part, format!("/{name}"))],
            6 => vec![self.list(part)],
            7..=8 => vec![self.update(part, name)],
            9..=11 => vec![self.merge_patch(part, name)],
            12..=13 => vec![self.json_patch(part, name)],
            14..=15 => self.status(part, name),
            16..=17 => vec![self.delete(part, name)],
            18 => self.special(part, name),
            _ => vec![self.mistake(part, name)],
        }
    }

    fn create(&mut self, part: Part, name: &str) -> Step {
        let labelled = self.chance(50);
        let mut body = create_body(part, name, labelled);
        if self.chance(30) {
            body["metadata"]["finalizers"] = json!(["example.test/hold"]);
        }
        let edit = match self.below(12) {
            0 => {
                json!({ "metadata": { "finalizers": ["example.test/hold", "example.test/more"] } })
            }
            1 => json!({ "status": { "phase": "Ignored" } }),
            2 => json!({ "metadata": { "annotations": { "note": "x" }, "generation": 7 } }),
            3 => json!({ "unknown": { "field": 1 } }),
            4 => json!({ "metadata": { "uid": "$uid:machines/a" } }),
            5 if part == MACHINE => json!({ "spec": { "providerID": "aws:///a/i-1", "junk": 1 } }),
            5 if part == MACHINE_SET => json!({ "spec": { "replicas": 3, "template": {} } }),
            5 if part == POD => json!({ "spec": { "nodeName": null } }),
            6 if part == POD => json!({ "spec": { "terminationGracePeriodSeconds": 0 } }),
            6 => json!({ "metadata": { "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                "uid": "11111111-1111-4111-8111-111111111111",
            }] } }),
            _ => json!({}),
        };
        json_patch::merge(&mut body, &edit);
        if part == CONFIG_MAP && self.chance(15) {
            let metadata = body["metadata"].as_object_mut().unwrap();
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), json!("zz-"));
        }
        Step::new("POST", part, "").json(body)
    }

    fn list(&mut self, part: Part) -> Step {
        // Not with resourceVersion=0, whose answer may be as old as the real server's cache.
        let tail = match self.below(9) {
            0 => "?labelSelector=app%3Da".to_owned(),
            1 => "?labelSelector=app+notin+(b%2Cc)%2C!other".to_owned(),
            2 => "?fieldSelector=metadata.name%3Da".to_owned(),
            3 if part == POD => "?fieldSelector=spec.nodeName%3Da".to_owned(),
            4 => "?fieldSelector=spec.strange%3Da".to_owned(),
            6 => format!("?resourceVersionMatch=Exact&resourceVersion=$rv:{}/a", part.plural),
            7 if part != CONFIG_MAP => {
                let mut step = Step::new("GET", part, "?limit=1");
                step.pages = true;
                return step;
            }
            _ => String::new(),
        };
        Step::new("GET", part, tail)
    }

    /// A change of the object's own fields.
    fn change(&mut self, part: Part) -> Value {
        let number = self.below(3);
        match self.below(4) {
            0 => json!({ "metadata": { "labels": { "app": self.pick(&["a", "b"]) } } }),
            1 => json!({ "metadata": { "annotations": { "note": number.to_string() } } }),
            _ if part == MACHINE => {
                json!({ "spec": { "providerID": format!("aws:///a/i-{number}") } })
            }
            _ if part == MACHINE_SET => json!({ "spec": { "replicas": number } }),
            _ if part == HEALTH_CHECK => {
                let most = [json!(number), json!("40%"), Value::Null];
                let startup = [json!("5m"), Value::Null];
                json!({ "spec": {
                    "maxUnhealthy": self.pick(&most), "nodeStartupTimeout": self.pick(&startup),
                } })
            }
            // What is asked for stays as it is.
            _ if part == SIGNING_REQUEST => json!({ "spec": { "usages": ["any"] } }),
            _ if part == POD => json!({ "spec": { "containers": [
                { "name": "main", "image": format!("example.test/main:{number}") },
            ] } }),
            _ if part == CONFIG_MAP => json!({ "data": { "key": number.to_string() } }),
            _ if part == SECRET => json!({ "stringData": { "key": number.to_string() } }),
            _ if part == LEASE => json!({ "spec": { "leaseTransitions": number } }),
            _ if part == BUDGET => json!({ "spec": { "minAvailable": number } }),
            _ => json!({ "spec": { "taints": [{ "key": "x", "effect": "NoSchedule" }] } }),
        }
    }

    fn status_change(&mut self, part: Part) -> Value {
        let number = self.below(3);
        if part == POD {
            let phase =
                *self.pick(&["Pending", "Running", "Running", "Running", "Succeeded", "Failed"]);
            let ready = *self.pick(&["True", "True", "False"]);
            json!({ "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] } })
        } else if part == BUDGET {
            let healthy = self.below(3);
            json!({ "status": {
                "observedGeneration": 1 + self.below(2),
                "disruptionsAllowed": number,
                "currentHealthy": healthy,
                "desiredHealthy": 1,
                "expectedPods": 2,
            } })
        } else if part == NODE {
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } })
        } else if part == HEALTH_CHECK {
            json!({ "status": {
                "expectedMachines": number,
                "currentHealthy": self.below(3),
                "conditions": [{
                    "type": "RemediationAllowed", "status": "True",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "junk": 1,
            } })
        } else if part == SIGNING_REQUEST {
            let type_ = *self.pick(&["Failed", "Odd", "Approved"]);
            json!({ "status": { "conditions": [{ "type": type_, "status": "True" }] } })
        } else if part == MACHINE_SET {
            json!({ "status": { "replicas": number, "labelSelector": "a=b", "junk": 1 } })
        } else {
            json!({ "status": {
                "phase": format!("Phase{number}"),
                "providerStatus": { "instanceId": number },
                "conditions": [{
                    "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
                "junk": 1,
            } })
        }
    }

    fn update(&mut self, part: Part, name: &str) -> Step {
        let mut edit = self.change(part);
        let more = match self.below(8) {
            0 => json!({ "metadata": { "resourceVersion": null } }),
            1 => {
                json!({ "metadata": { "resourceVersion": format!("$old-rv:{}/{name}", part.plural) } })
            }
            2 => json!({ "metadata": { "uid": "$old-uid:machines/none" } }),
            3 => json!({ "metadata": { "finalizers": null } }),
            4 => json!({ "metadata": { "uid": null } }),
            5 => self.status_change(part),
            _ => json!({}),
        };
        json_patch::merge(&mut edit, &more);
        let mut step = Step::new("PUT", part, format!("/{name}"));
        step.body = Body::Seen { name: name.to_owned(), edit };
        step
    }

    /// What a merge patch can carry besides the change.
    fn preconditions(&mut self, part: Part, name: &str) -> Value {
        let plural = part.plural;
        match self.below(8) {
            0 => json!({ "metadata": { "uid": format!("$uid:{plural}/{name}") } }),
            1 => json!({ "metadata": { "uid": "$old-uid:machines/none" } }),
            2 => json!({ "metadata": { "resourceVersion": format!("$rv:{plural}/{name}") } }),
            3 => json!({ "metadata": { "resourceVersion": format!("$old-rv:{plural}/{name}") } }),
            4 => json!({ "metadata": {
                "uid": format!("$uid:{plural}/{name}"),
                "resourceVersion": format!("$rv:{plural}/{name}"),
            } }),
            _ => json!({}),
        }
    }

    fn merge_patch(&mut self, part: Part, name: &str) -> Step {
        let mut patch = match self.below(10) {
            0 => json!({ "metadata": { "finalizers": null } }),
            1 => json!({ "metadata": { "finalizers": ["example.test/hold"] } }),
            2 => json!({ "metadata": { "finalizers": ["example.test/other"] } }),
            3 => json!({}),
            4 => self.status_change(part),
            5 => json!({ "metadata": { "labels": null } }),
            6 if part == NODE => json!({ "spec": { "providerID": self.pick(&["one", "two"]) } }),
            6 if part == POD => json!({ "spec": { "nodeName": "b" } }),
            _ => self.change(part),
        };
        json_patch::merge(&mut patch, &self.preconditions(part, name));
        Step::new("PATCH", part, format!("/{name}")).json(patch).content(MERGE)
    }

    fn json_patch(&mut self, part: Part, name: &str) -> Step {
        let plural = part.plural;
        let label = json!({ "op": "add", "path": "/metadata/labels", "value": { "app": "b" } });
        let operations = match self.below(8) {
            0 => json!([
                { "op": "test", "path": "/metadata/uid", "value": format!("$uid:{plural}/{name}") },
                label,
            ]),
            1 => json!([
                { "op": "test", "path": "/metadata/uid", "value": "$old-uid:machines/none" },
                label,
            ]),
            2 => json!([
                { "op": "test", "path": "/metadata/finalizers/0", "value": "example.test/hold" },
                { "op": "remove", "path": "/metadata/finalizers/0" },
            ]),
            3 => json!([{ "op": "remove", "path": "/metadata/annotations/absent" }]),
            4 => json!([{ "op": "replace", "path": "/metadata/labels/app", "value": "a" }]),
            5 => json!([{
                "op": "test", "path": "/metadata/resourceVersion",
                "value": format!("$rv:{plural}/{name}"),
            }]),
            6 => {
                json!([{ "op": "add", "path": "/metadata/finalizers", "value": ["example.test/x"] }])
            }
            _ => json!([label]),
        };
        Step::new("PATCH", part, format!("/{name}")).json(operations).content(JSON_PATCH)
    }

    fn status(&mut self, part: Part, name: &str) -> Vec<Step> {
        let kinds = [POD, BUDGET, NODE, MACHINE, MACHINE_SET, HEALTH_CHECK, SIGNING_REQUEST];
        if !kinds.contains(&part) {
            return vec![self.merge_patch(part, name)];
        }
        let mut patch = self.status_change(part);
        let tail = format!("/{name}/status");
        let mut step = match self.below(6) {
            0 => {
                json_patch::merge(&mut patch, &self.change(part));
                Step::new("PATCH", part, tail).json(patch).content(MERGE)
            }
            1 => {
                let mut step = Step::new("PUT", part, tail);
                step.body = Body::Seen { name: name.to_owned(), edit: patch };
                return vec![step];
            }
            2 => {
                let status = &patch["status"];
                let operations = json!([
                    { "op": "test", "path": "/metadata/uid",
                      "value": format!("${}:{}/{name}", self.pick(&["uid", "old-uid"]), part.plural) },
                    { "op": "add", "path": "/status", "value": status },
                ]);
                return vec![Step::new("PATCH", part, tail).json(operations).content(JSON_PATCH)];
            }
            _ => Step::new("PATCH", part, tail).json(patch).content(MERGE),
        };
        if let Body::Json(patch) = &mut step.body {
            json_patch::merge(patch, &self.preconditions(part, name));
        }
        vec![step]
    }

    fn delete(&mut self, part: Part, name: &str) -> Step {
        let plural = part.plural;
        let step = Step::new("DELETE", part, format!("/{name}"));
        let options = match self.below(10) {
            0 => json!({ "preconditions": { "uid": format!("$uid:{plural}/{name}") } }),
            1 => json!({ "preconditions": { "uid": "$old-uid:machines/none" } }),
            2 => json!({ "preconditions": { "resourceVersion": format!("$rv:{plural}/{name}") } }),
            3 => {
                json!({ "preconditions": { "resourceVersion": format!("$old-rv:{plural}/{name}") } })
            }
            4 => json!({ "propagationPolicy": self.pick(&["Foreground", "Orphan", "Background"]) }),
            5 => json!({ "gracePeriodSeconds": 0 }),
            6 => json!({ "gracePeriodSeconds": self.pick(&[5, 60, 100]) }),
            _ => return step,
        };
        step.json(options)
    }

    /// What only some kinds have.
    fn special(&mut self, part: Part, name: &str) -> Vec<Step> {
        if self.chance(10) {
            return vec![Step::new("DELETE", part, "?labelSelector=app%3Da")];
        }
        if part == POD && self.chance(30) {
            let target = json!({ "kind": "Node", "name": "a" });
            let binding = json!({ "metadata": { "name": name }, "target": target });
            return vec![
                Step::new("POST", POD, format!("/{name}/binding")).json(binding),
                Step::new("GET", POD, format!("/{name}")),
            ];
        }
        if part == POD || part == BUDGET {
            return self.eviction(name);
        }
        if part == SIGNING_REQUEST {
            return self.approval(name);
        }
        if part == MACHINE_SET {
            // Never what is there already: the real server notes who set it, and that is a new version.
            self.scales += 1;
            let number = 10 + self.scales;
            return vec![match self.below(3) {
                0 => Step::new("GET", part, format!("/{name}/scale")),
                _ => Step::new("PATCH", part, format!("/{name}/scale"))
                    .json(json!({ "spec": { "replicas": number } }))
                    .content(MERGE),
            }];
        }
        let event = json!({
            "metadata": { "name": format!("event-{name}") },
            "involvedObject": {
                "kind": "Machine",
                "name": name,
                "namespace": self.pick(&["$namespace:", "$namespace:", "$namespace:", "elsewhere"]),
            },
            "reason": "Tested",
            "message": "a test",
            "type": "Normal",
            "source": { "component": "test" },
            "count": 1,
        });
        vec![
            Step::new("POST", EVENT, "").json(event),
            Step::new("GET", NEW_EVENT, format!("/event-{name}")),
            Step::new("PATCH", EVENT, format!("/event-{name}"))
                .json(json!({ "count": 2 }))
                .content(MERGE),
            Step::new("GET", EVENT, "?fieldSelector=involvedObject.name%3Da"),
        ]
    }

    fn approval(&mut self, name: &str) -> Vec<Step> {
        let type_ = *self.pick(&["Approved", "Approved", "Denied", "Odd"]);
        let status = *self.pick(&["True", "True", "True", "False", "Strange"]);
        let condition = json!({ "type": type_, "status": status, "reason": "Tested" });
        let patch = json!({ "status": { "conditions": [condition], "certificate": "AAAA" } });
        let tail = format!("/{name}/approval");
        let step = if self.chance(30) {
            let mut step = Step::new("PUT", SIGNING_REQUEST, tail);
            step.body = Body::Seen { name: name.to_owned(), edit: patch };
            step
        } else {
            Step::new("PATCH", SIGNING_REQUEST, tail).json(patch).content(MERGE)
        };
        let mut steps = vec![step, Step::new("GET", SIGNING_REQUEST, format!("/{name}/approval"))];
        let object = signing_request(name);
        let request = object["spec"]["request"].as_str().unwrap_or_default();
        if let Some(certificate) = certificates::issue(request).filter(|_| self.chance(50)) {
            let patch = json!({ "status": { "certificate": &*certificate } });
            let tail = format!("/{name}/status");
            steps.push(Step::new("PATCH", SIGNING_REQUEST, tail).json(patch).content(MERGE));
        }
        steps
    }

    fn eviction(&mut self, name: &str) -> Vec<Step> {
        let mut eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name },
        });
        let options = match self.below(6) {
            0 => json!({ "preconditions": { "uid": format!("$uid:pods/{name}") } }),
            1 => json!({ "preconditions": { "uid": "$old-uid:machines/none" } }),
            2 => json!({ "gracePeriodSeconds": self.pick(&[0, 7]) }),
            3 => json!({ "preconditions": { "resourceVersion": format!("$rv:pods/{name}") } }),
            _ => Value::Null,
        };
        if !options.is_null() {
            eviction["deleteOptions"] = options;
        }
        let evict = Step::new("POST", POD, format!("/{name}/eviction")).json(eviction);
        if self.chance(50) {
            return vec![evict];
        }
        // A pod that runs, and a budget that has been counted.
        let running = json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": self.pick(&["True", "False"]) }],
        } });
        let budget = self.status_change(BUDGET);
        let budget_name = *self.pick(&NAMES);
        vec![
            Step::new("POST", POD, "").json(create_body(POD, name, true)),
            Step::new("PATCH", POD, format!("/{name}/status")).json(running).content(MERGE),
            Step::new("POST", BUDGET, "").json(create_body(BUDGET, budget_name, false)),
            Step::new("PATCH", BUDGET, format!("/{budget_name}/status"))
                .json(budget)
                .content(MERGE),
            evict,
            Step::new("GET", POD, format!("/{name}")),
            Step::new("GET", BUDGET, format!("/{budget_name}")),
        ]
    }

    /// What a server refuses.
    fn mistake(&mut self, part: Part, name: &str) -> Step {
        let named = format!("/{name}");
        match self.below(13) {
            0 => Step::new("GET", part, "/absent"),
            1 => Step::new("PATCH", part, named)
                .json(json!({ "metadata": { "name": "z" } }))
                .content(MERGE),
            2 => Step::new("PATCH", part, named).json(json!({})).content("application/unknown"),
            3 => {
                let mut body = create_body(part, "fresh", false);
                let labels = json!({ "labels": { "a": "not valid!" } });
                let name = json!({ "name": "Wrong_Name" });
                json_patch::merge(&mut body["metadata"], self.pick(&[labels, name]));
                Step::new("POST", part, "").json(body)
            }
            4 => {
                let mut body = create_body(part, name, false);
                body["metadata"]["namespace"] = json!("elsewhere");
                Step::new("POST", part, "").json(body)
            }
            5 => {
                let mut body = create_body(part, "fresh", false);
                body["metadata"]["resourceVersion"] = json!("17");
                Step::new("POST", part, "").json(body)
            }
            6 => {
                let mut body = create_body(part, "fresh", false);
                body["kind"] = json!("Other");
                Step::new("POST", part, "").json(body)
            }
            7 => {
                let mut step = Step::new("POST", part, "");
                step.body = Body::Text("{ not json");
                step
            }
            8 => Step::new("PUT", part, "/absent").json(create_body(part, "absent", false)),
            9 => Step::new("PATCH", part, "/absent").json(json!({})).content(MERGE),
            10 => Step::new("DELETE", part, named).json(json!({ "propagationPolicy": "Strange" })),
            11 if part == MACHINE => {
                let mut body = create_body(part, "fresh", false);
                body["spec"]["providerID"] = json!(3);
                body["spec"]["taints"] = json!([{ "key": "x" }]);
                Step::new("POST", part, "").json(body)
            }
            11 if part == MACHINE_SET => Step::new("PATCH", part, named)
                .json(json!({ "spec": { "deletePolicy": "Never", "minReadySeconds": "many" } }))
                .content(MERGE),
            // Of a signing request the real server says it twice, in other words.
            _ if part == SIGNING_REQUEST => Step::new("GET", part, "/absent"),
            _ => Step::new("PATCH", part, named)
                .json(json!({ "metadata": { "finalizers": ["not valid!"] } }))
                .content(MERGE),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, options: &'a [T]) -> &'a T {
        self.pick_from(options)
    }

    fn pick_from<'a, T>(&mut self, options: &'a [T]) -> &'a T {
        let index = self.below(options.len() as u64) as usize;
        &options[index]
    }
}
