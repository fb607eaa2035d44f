//! How does what is wished come into a world? Pools first, for their Machines belong to them.

use std::collections::BTreeMap;

use machinist_api::names::{annotation, label};
use machinist_core::drift::policy::is_hold_of_maintenance;
use machinist_testbed::cloud::model::{WorldIds, instance_type};
use serde_json::{Map, Value, json};

use super::{Dump, cluster_of};
use crate::{actors::text, template, world::World};

const GROUP: &str = "machine.openshift.io";
const WHO: &str = "installer";

/// Annotations that mark something under way, which is not under way in the world.
const MARKS: [&str; 5] = [
    annotation::CLIENT_CERTIFICATE_REQUEST,
    annotation::INSTANCE_STATE,
    annotation::REPLACES_FOR,
    annotation::SURGE,
    annotation::TAKEN_OVER,
];

impl Dump {
    /// Creates pools, Machines and health checks. All before anybody looks: nobody makes up for Machines
    /// that only come a little later.
    pub(super) fn load_wishes(&self, world: &World) -> Result<(), String> {
        let scene = &world.scene;
        let translation = Translation::of(self, &world.ids);
        let mut owners: BTreeMap<&str, String> = BTreeMap::new();
        for set in self.of(GROUP, "MachineSet") {
            let name = text(set, "/metadata/name");
            let made = scene.create(WHO, GROUP, "machinesets", translation.set(set));
            let made = made.ok_or_else(|| format!("machineset {name} is refused"))?;
            owners.insert(name, made.uid().to_owned());
        }
        for machine in self.of(GROUP, "Machine") {
            let name = text(machine, "/metadata/name");
            let object = translation.machine(machine, &owners);
            scene
                .create(WHO, GROUP, "machines", object)
                .ok_or_else(|| format!("machine {name} is refused"))?;
        }
        for check in self.of(GROUP, "MachineHealthCheck") {
            let name = text(check, "/metadata/name");
            let object = json!({
                "metadata": { "name": name, "namespace": template::NAMESPACE },
                "spec": translation.in_this_cluster(&check["spec"]),
            });
            scene
                .create(WHO, GROUP, "machinehealthchecks", object)
                .ok_or_else(|| format!("machinehealthcheck {name} is refused"))?;
        }
        Ok(())
    }
}

/// From the real cluster and cloud to the simulated ones.
struct Translation<'a> {
    world: &'a WorldIds,
    /// The id of the real cluster.
    cluster: Option<&'a str>,
    /// Real zones by the order of their names.
    zones: Vec<&'a str>,
}

impl<'a> Translation<'a> {
    fn of(dump: &'a Dump, world: &'a WorldIds) -> Self {
        let machines = dump.of(GROUP, "Machine").map(|machine| &machine["spec"]);
        let sets = dump.of(GROUP, "MachineSet").map(|set| &set["spec"]["template"]["spec"]);
        let mut zones: Vec<&str> = machines.chain(sets).map(zone_of).collect();
        zones.sort_unstable();
        zones.dedup();
        Self { world, cluster: cluster_of(dump), zones }
    }

    fn set(&self, set: &Value) -> Value {
        let mut spec = self.in_this_cluster(&set["spec"]);
        let real = &set["spec"]["template"]["spec"];
        let template = &mut spec["template"];
        template["spec"]["providerSpec"] = json!({ "value": self.provider_spec(real) });
        template["metadata"]["labels"][label::CLUSTER] = json!(self.world.infrastructure_name);
        json!({ "metadata": self.metadata(set), "spec": spec })
    }

    fn machine(&self, machine: &Value, owners: &BTreeMap<&str, String>) -> Value {
        let mut metadata = self.metadata(machine);
        metadata["labels"][label::CLUSTER] = json!(self.world.infrastructure_name);
        let references = machine.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let of_pool = references.into_iter().flatten().find_map(|owner| {
            let name = text(owner, "/name");
            owners.get(name).map(|uid| (name, uid))
        });
        if let Some((name, uid)) = of_pool {
            metadata["ownerReferences"] = json!([{
                "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": name,
                "uid": uid, "controller": true, "blockOwnerDeletion": true,
            }]);
        }
        let mut spec = self.in_this_cluster(&machine["spec"]);
        if let Some(fields) = spec.as_object_mut() {
            // The instance is another one.
            fields.remove("providerID");
        }
        spec["providerSpec"] = json!({ "value": self.provider_spec(&machine["spec"]) });
        json!({ "metadata": metadata, "spec": spec })
    }

    fn metadata(&self, object: &Value) -> Value {
        let metadata = &object["metadata"];
        let annotations = metadata["annotations"].as_object();
        let kept: Map<String, Value> = annotations
            .into_iter()
            .flatten()
            .filter(|(key, value)| {
                let is_mark = MARKS.contains(&key.as_str());
                let text = value.as_str().unwrap_or_default();
                let is_ours = *key == annotation::HOLD && is_hold_of_maintenance(text);
                !is_mark && !is_ours
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let labels = match &metadata["labels"] {
            Value::Object(_) => self.in_this_cluster(&metadata["labels"]),
            _ => json!({}),
        };
        json!({
            "name": metadata["name"],
            "namespace": template::NAMESPACE,
            "labels": labels,
            "annotations": kept,
        })
    }

    /// Of the same size, in the zone that stands for the real one.
    fn provider_spec(&self, spec: &Value) -> Value {
        let real = &spec["providerSpec"]["value"];
        let zone = self.zones.iter().position(|zone| *zone == zone_of(spec)).unwrap_or(0);
        let is_spot = real.get("spotMarketOptions").is_some_and(|options| !options.is_null());
        let mut value = template::provider_spec(self.world, zone, is_spot);
        let size = text(real, "/instanceType");
        if instance_type(size).is_some_and(|known| known.architecture == "x86_64") {
            value["instanceType"] = json!(size);
        }
        value
    }

    /// The same with the id of the simulated cluster.
    fn in_this_cluster(&self, value: &Value) -> Value {
        match (value, self.cluster) {
            (Value::String(text), Some(cluster)) if text == cluster => {
                json!(self.world.infrastructure_name)
            }
            (Value::Array(items), _) => {
                items.iter().map(|item| self.in_this_cluster(item)).collect()
            }
            (Value::Object(fields), _) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.in_this_cluster(value)))
                .collect::<Map<String, Value>>()
                .into(),
            (other, _) => other.clone(),
        }
    }
}

fn zone_of(spec: &Value) -> &str {
    text(spec, "/providerSpec/value/placement/availabilityZone")
}
