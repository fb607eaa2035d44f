//! What disturbs the world's actors right now?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use crate::{actors::Disturbance, faults::FaultKind};

/// Set by whoever injects faults, read by the actors.
#[derive(Debug, Default)]
pub struct Weather {
    /// None means that guests recover.
    pub disturbance: Option<Disturbance>,
    /// How many objects were deleted or marked so: the garbage collector's reason to look.
    pub deletions: u64,
    /// How often a request for a certificate was made or changed: the signer's reason to look.
    pub requests: u64,
    /// Faults that the cloud's model draws by itself: counted at each call while they are on.
    pub standing: Vec<FaultKind>,
    /// Instances whose kubelets are to ask anew for the certificate that they serve with.
    pub renewals: BTreeSet<String>,
    /// The certificates, as `status.certificate` holds them, that living kubelets serve with, by Node.
    pub served: BTreeMap<String, Arc<str>>,
    /// Until when no operator reaches a workload cluster of Cluster API.
    pub workloads_away_until: Option<Timestamp>,
    /// Until when the providers of Cluster API do nothing.
    pub providers_away_until: Option<Timestamp>,
    /// The instances that had a Node's name, in the order in which they first asked under it.
    bearers: BTreeMap<String, Vec<String>>,
    node_troubles: BTreeMap<String, (FaultKind, Duration)>,
}

impl Weather {
    /// As so manieth the instance has the name; from 0.
    pub fn bearer(&mut self, node: &str, instance: &str) -> usize {
        let bearers = self.bearers.entry(node.to_owned()).or_default();
        bearers.iter().position(|known| known == instance).unwrap_or_else(|| {
            bearers.push(instance.to_owned());
            bearers.len() - 1
        })
    }

    /// Lets the guest of an instance fall ill for a while.
    pub fn trouble_node(&mut self, instance: &str, kind: FaultKind, lasting: Duration) {
        self.node_troubles.insert(instance.to_owned(), (kind, lasting));
    }

    pub fn take_node_trouble(&mut self, instance: &str) -> Option<(FaultKind, Duration)> {
        self.node_troubles.remove(instance)
    }
}
