//! Who issues certificates? The controllers of the cluster that sign what is approved, and remove what
//! is long over.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use serde_json::json;

use super::{Actor, Scene, earliest, later, text, time};
use crate::{
    api_server::{ObjectRef, Subresource},
    certificates,
    invariants::condition_of,
};

pub(super) const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");
const WHO: &str = "signer";
/// How long a request that was approved is kept, and one that nobody decided about.
const KEPT: Duration = Duration::from_secs(3600);
const KEPT_PENDING: Duration = Duration::from_secs(24 * 3600);

/// Signs and cleans.
#[derive(Debug)]
pub struct Signer {
    /// Whether it approves whatever is asked for, as clusters do that let every kubelet in.
    approves_all: bool,
    /// Requests that were signed, by uid.
    signed: BTreeSet<String>,
    /// What it has seen, and when it wants to look whatever happens.
    seen: u64,
    next: Option<Timestamp>,
}

impl Signer {
    #[must_use]
    pub const fn new(approves_all: bool) -> Self {
        Self { approves_all, signed: BTreeSet::new(), seen: 0, next: None }
    }
}

impl Actor for Signer {
    fn step(&mut self, scene: &Scene, now: Timestamp) -> Option<Timestamp> {
        let requests = scene.hub.weather().requests;
        if requests == self.seen && self.next.is_none_or(|next| now < next) {
            return self.next;
        }
        self.seen = requests;
        let mut next = None;
        for request in scene.objects(REQUESTS.0, REQUESTS.1) {
            let is_approved = condition_of(request.value(), "Approved").is_some();
            if self.approves_all && !is_approved {
                let approved = json!([{ "type": "Approved", "status": "True" }]);
                let body = json!({ "status": { "conditions": approved } });
                scene.patch(WHO, Subresource::Approval, REQUESTS, ("", request.name()), body);
            }
            let kept = if is_approved { KEPT } else { KEPT_PENDING };
            let created = time(request.value(), "/metadata/creationTimestamp").unwrap_or(now);
            let over = later(created, kept);
            if over <= now {
                scene.delete(WHO, REQUESTS, ("", request.name()), serde_json::Value::Null);
                self.signed.remove(request.uid());
                continue;
            }
            earliest(&mut next, over);
            if is_approved && self.signed.insert(request.uid().to_owned()) {
                sign(scene, &request);
            }
        }
        self.next = next;
        next
    }
}

fn sign(scene: &Scene, request: &ObjectRef) {
    let Some(certificate) = certificates::issue(text(request.value(), "/spec/request")) else {
        return;
    };
    let body = json!({ "status": { "certificate": &*certificate } });
    scene.patch(WHO, Subresource::Status, REQUESTS, ("", request.name()), body);
}
