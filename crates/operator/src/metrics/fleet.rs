//! What does the fleet look like right now?
//!
//! The gauges of the original operator about Machines and MachineSets, computed from plain rows at each scrape. The rows come
//! from a closure, so that nothing here knows the stores.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

/// All machines and machine sets; `None` for what is not known yet.
#[derive(Clone, Debug, Default)]
pub struct FleetSnapshot {
    /// The machines.
    pub machines: Option<Vec<MachineRow>>,
    /// The machine sets.
    pub machine_sets: Option<Vec<MachineSetRow>>,
}

/// One machine.
#[derive(Clone, Debug, Default)]
pub struct MachineRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.providerID`, or empty.
    pub spec_provider_id: String,
    /// The name of its node, or empty.
    pub node: String,
    /// Group and version.
    pub api_version: String,
    /// Its phase; a machine without one is counted, and otherwise left out.
    pub phase: String,
    /// When it was created.
    pub created: Option<Timestamp>,
}

/// One machine set.
#[derive(Clone, Debug, Default)]
pub struct MachineSetRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Group and version.
    pub api_version: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// `status.replicas`.
    pub replicas: i32,
    /// `status.availableReplicas`.
    pub available_replicas: i32,
    /// `status.readyReplicas`.
    pub ready_replicas: i32,
}

pub(super) struct Fleet {
    snapshot: Box<dyn Fn() -> FleetSnapshot + Send + Sync>,
}

impl Fleet {
    pub(super) fn new(snapshot: impl Fn() -> FleetSnapshot + Send + Sync + 'static) -> Self {
        Self { snapshot: Box::new(snapshot) }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fleet").finish_non_exhaustive()
    }
}

impl Collector for Fleet {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let FleetSnapshot { machines, machine_sets } = (self.snapshot)();
        encode_up(&mut encoder, machines.is_some(), machine_sets.is_some())?;
        if let Some(machines) = machines {
            encode_machines(&mut encoder, &machines)?;
        }
        if let Some(machine_sets) = machine_sets {
            encode_machine_sets(&mut encoder, &machine_sets)?;
        }
        Ok(())
    }
}

fn encode_up(encoder: &mut DescriptorEncoder, machines: bool, machine_sets: bool) -> fmt::Result {
    let help = "Whether the objects behind the metric could be read";
    let mut metric =
        encoder.encode_descriptor("mapi_mao_collector_up", help, None, MetricType::Gauge)?;
    for (kind, up) in [("mapi_machine_items", machines), ("mapi_machineset_items", machine_sets)] {
        metric.encode_family(&[("kind", kind)])?.encode_gauge(&u32::from(up))?;
    }
    Ok(())
}

fn encode_machines(encoder: &mut DescriptorEncoder, machines: &[MachineRow]) -> fmt::Result {
    encoder
        .encode_descriptor("mapi_machine_items", "Machines", None, MetricType::Gauge)?
        .encode_gauge(&machines.len())?;
    let name = "mapi_machine_created_timestamp_seconds";
    let help = "When the machine was created";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for machine in machines.iter().filter(|machine| !machine.phase.is_empty()) {
        let Some(created) = machine.created else { continue };
        let labels = [
            ("name", machine.name.as_str()),
            ("namespace", machine.namespace.as_str()),
            ("spec_provider_id", machine.spec_provider_id.as_str()),
            ("node", machine.node.as_str()),
            ("api_version", machine.api_version.as_str()),
            ("phase", machine.phase.as_str()),
        ];
        metric.encode_family(&labels)?.encode_gauge(&created.as_second())?;
    }
    Ok(())
}

type CountOf = fn(&MachineSetRow) -> i32;

fn encode_machine_sets(encoder: &mut DescriptorEncoder, sets: &[MachineSetRow]) -> fmt::Result {
    encoder
        .encode_descriptor("mapi_machineset_items", "Machine sets", None, MetricType::Gauge)?
        .encode_gauge(&sets.len())?;
    let name = "mapi_machineset_created_timestamp_seconds";
    let help = "When the machine set was created";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for set in sets {
        let Some(created) = set.created else { continue };
        let labels = [
            ("name", set.name.as_str()),
            ("namespace", set.namespace.as_str()),
            ("api_version", set.api_version.as_str()),
        ];
        metric.encode_family(&labels)?.encode_gauge(&created.as_second())?;
    }
    let counts: [(&str, &str, CountOf); 3] = [
        ("mapi_machine_set_status_replicas", "Machines of the set", |set| set.replicas),
        ("mapi_machine_set_status_replicas_available", "Available machines of the set", |set| {
            set.available_replicas
        }),
        ("mapi_machine_set_status_replicas_ready", "Ready machines of the set", |set| {
            set.ready_replicas
        }),
    ];
    for (name, help, count) in counts {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for set in sets {
            let labels = [("name", set.name.as_str()), ("namespace", set.namespace.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&count(set))?;
        }
    }
    Ok(())
}
