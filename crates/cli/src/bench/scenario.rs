//! Under which circumstances is measured? Each scenario has a fresh cluster and a name.

use std::time::Duration;

use jiff::SignedDuration;
use machinist_testbed::cloud::model::Faults;
use serde::Serialize;

/// One fleet and one mood of the cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    pub name: &'static str,
    pub machines: u16,
    /// Every EC2 answer comes this much later.
    pub ec2_latency_milliseconds: u32,
    /// Whether the cloud refuses calls by AWS's published token buckets.
    pub is_throttled: bool,
    pub list_period_seconds: u64,
    pub steady_seconds: u64,
}

/// What `make bench` runs.
pub fn all() -> Vec<Scenario> {
    let usual = |name, machines| Scenario {
        name,
        machines,
        ec2_latency_milliseconds: 0,
        is_throttled: false,
        list_period_seconds: 30,
        steady_seconds: 60,
    };
    vec![
        usual("small", 100),
        usual("usual", 300),
        // Six hundred looks: a call that comes only now and then shows.
        Scenario {
            ec2_latency_milliseconds: 100,
            list_period_seconds: 1,
            steady_seconds: 600,
            ..usual("slow-cloud", 300)
        },
        Scenario { steady_seconds: 30, ..usual("unthrottled", 500) },
        Scenario { is_throttled: true, steady_seconds: 30, ..usual("throttled", 500) },
    ]
}

impl Scenario {
    /// Plain scenarios of other sizes.
    pub fn sized(machines: u16, steady_seconds: u64) -> Self {
        Self {
            name: "sized",
            machines,
            ec2_latency_milliseconds: 0,
            is_throttled: false,
            list_period_seconds: 30,
            steady_seconds,
        }
    }

    /// What distinguishes it, for the head of a column.
    pub fn label(&self) -> String {
        let mut label = format!("{} machines", self.machines);
        if self.ec2_latency_milliseconds > 0 {
            label.push_str(&format!(", EC2 +{} ms", self.ec2_latency_milliseconds));
        }
        if self.list_period_seconds != 30 {
            label.push_str(&format!(", a look each {} s", self.list_period_seconds));
        }
        if self.is_throttled {
            label.push_str(", throttled");
        }
        label
    }

    pub fn faults(&self) -> Faults {
        let latency = SignedDuration::from_millis(i64::from(self.ec2_latency_milliseconds));
        Faults {
            throttling: self.is_throttled,
            latency: (!latency.is_zero()).then_some(latency),
            ..Faults::default()
        }
    }

    pub fn operator_flags(&self) -> Vec<String> {
        vec![
            format!("--cloud-list-period={}s", self.list_period_seconds),
            format!("--cloud-report-period={}s", 2 * self.list_period_seconds),
        ]
    }

    pub fn steady(&self) -> Duration {
        Duration::from_secs(self.steady_seconds)
    }

    /// How many complete looks at the cloud fit into the steady state.
    pub fn polls(&self) -> u64 {
        self.steady_seconds / self.list_period_seconds.max(1)
    }
}
