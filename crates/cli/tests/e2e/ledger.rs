//! What the cloud's own books say after a test: they cannot be talked out of a doubled launch.

use std::collections::BTreeMap;

use machinist_testbed::cloud::model::{InstanceState, LedgerInstance, LedgerQuery};
use serde_json::Value;

use crate::arena::Arena;

impl Arena {
    /// Every instance ever launched for this test's cluster id.
    pub fn launched(&self) -> Vec<LedgerInstance> {
        let tag = format!("kubernetes.io/cluster/{}", self.name);
        let ledger = self.cluster.cloud().ledger(&LedgerQuery::default());
        ledger.instances.into_iter().filter(|one| one.tags.contains_key(&tag)).collect()
    }

    pub fn live(&self) -> Vec<LedgerInstance> {
        let launched = self.launched();
        launched.into_iter().filter(|one| one.state != InstanceState::Terminated).collect()
    }

    /// How many calls of an action touched one of these instances.
    pub fn calls_on(&self, action: &str, ids: &[String]) -> usize {
        let query = LedgerQuery { action: Some(action.to_owned()), after: None };
        let calls = self.cluster.cloud().ledger(&query).calls;
        calls.iter().filter(|call| call.instance_ids.iter().any(|id| ids.contains(id))).count()
    }

    /// Never two instances for a Machine uid; none without its Machine.
    pub async fn check_instances(&self) {
        let mut by_uid: BTreeMap<String, Vec<LedgerInstance>> = BTreeMap::new();
        for instance in self.launched() {
            let uid = instance.tags.get("machinist.dev/machine-uid");
            let uid = uid.unwrap_or_else(|| panic!("instance {} has no uid tag", instance.id));
            by_uid.entry(uid.clone()).or_default().push(instance);
        }
        for (uid, instances) in &by_uid {
            assert_eq!(instances.len(), 1, "machine {uid} has had {instances:?}");
        }
        // Before and after: one may come or go in between.
        let mut machines = self.machines().await;
        let live = self.live();
        machines.extend(self.machines().await);
        for instance in live {
            let uid = &instance.tags["machinist.dev/machine-uid"];
            let owner = machines.iter().find(|one| one.metadata.uid.as_ref() == Some(uid));
            let owner = owner.unwrap_or_else(|| panic!("instance {} is an orphan", instance.id));
            let finalizers = owner.metadata.finalizers.as_ref().unwrap();
            assert!(finalizers.contains(&"machine.machine.openshift.io".to_owned()));
        }
    }

    /// The same, and no launch before the finalizer was written. That it was durable is held by the
    /// simulator, whose clock is exact: the API server may note the end of a write after its answer.
    pub async fn check_ledger(&self) {
        self.check_instances().await;
        // Of every instance ever launched, also those that are gone with their Machines.
        let first_writes = first_writes(self);
        for instance in self.launched() {
            let name = &instance.tags["Name"];
            assert!(
                first_writes[name] <= instance.launch_time,
                "instance {} was launched before the finalizer of {name} was written",
                instance.id
            );
        }
    }
}

/// When the operator's first write to each Machine object itself that succeeded was received, by the
/// API server's audit log. That write is the creation with the finalizer, or the one that adds it: nothing else is
/// written to the object before a launch.
fn first_writes(arena: &Arena) -> BTreeMap<String, jiff::Timestamp> {
    let log = std::fs::read_to_string(arena.cluster.audit_log().unwrap()).unwrap();
    let mut created = BTreeMap::new();
    let mut left_by_client = BTreeMap::new();
    let mut patched = BTreeMap::new();
    // The last line may be half written.
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for entry in lines {
        let object = &entry["objectRef"];
        let is_ours = entry["stage"] == "ResponseComplete"
            && entry["user"]["username"] == arena.name.as_str()
            && object["resource"] == "machines"
            && object["subresource"].is_null()
            && object["namespace"] == arena.name.as_str();
        let Some(name) = object["name"].as_str().filter(|_| is_ours) else { continue };
        let writes = match (entry["verb"].as_str(), entry["responseStatus"]["code"].as_u64()) {
            (Some("create"), Some(200..300)) => &mut created,
            // The operator was killed before it had the answer. Where no other creation of that name
            // succeeded, this one did: the Machine was there to be launched for.
            (Some("create"), Some(504)) => &mut left_by_client,
            (Some("patch"), Some(200..300)) => &mut patched,
            _ => continue,
        };
        let at: jiff::Timestamp =
            entry["requestReceivedTimestamp"].as_str().unwrap().parse().unwrap();
        writes.entry(name.to_owned()).or_insert(at);
    }
    let mut first = patched;
    first.extend(left_by_client);
    first.extend(created);
    first
}
