//! How well are the clouds known right now, and what are we not permitted to do there?
//!
//! Computed from plain rows at each scrape; the rows come from a closure, so that nothing here knows
//! the views.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

/// All views and permissions.
#[derive(Clone, Debug, Default)]
pub struct CloudsSnapshot {
    /// The views.
    pub views: Vec<CloudViewRow>,
    /// What is missing.
    pub missing_permissions: Vec<PermissionRow>,
}

/// One view of a cloud.
#[derive(Clone, Debug, Default)]
pub struct CloudViewRow {
    /// The provider.
    pub provider: String,
    /// The region.
    pub region: String,
    /// How old what we know is.
    pub age_seconds: f64,
    /// Whether the last list failed.
    pub is_failing: bool,
}

/// One permission that the credentials lack.
#[derive(Clone, Debug, Default)]
pub struct PermissionRow {
    /// The provider.
    pub provider: String,
    /// The provider's name of it, such as `ec2:StartInstances`.
    pub permission: String,
}

pub(super) struct Clouds {
    snapshot: Box<dyn Fn() -> CloudsSnapshot + Send + Sync>,
}

impl Clouds {
    pub(super) fn new(snapshot: impl Fn() -> CloudsSnapshot + Send + Sync + 'static) -> Self {
        Self { snapshot: Box::new(snapshot) }
    }
}

impl fmt::Debug for Clouds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Clouds").finish_non_exhaustive()
    }
}

impl Collector for Clouds {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let CloudsSnapshot { views, missing_permissions } = (self.snapshot)();
        let worst = worst_by_region(&views);
        let name = "machinist_cloud_view_age_seconds";
        let help = "Age of what is known of the cloud";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for ((provider, region), view) in &worst {
            let labels = [("provider", *provider), ("region", *region)];
            metric.encode_family(&labels)?.encode_gauge(&view.age_seconds)?;
        }
        let name = "machinist_cloud_view_failing";
        let help = "Whether the last list of the cloud's instances failed";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for ((provider, region), view) in &worst {
            let labels = [("provider", *provider), ("region", *region)];
            metric.encode_family(&labels)?.encode_gauge(&u32::from(view.is_failing))?;
        }
        let name = "machinist_cloud_permission_missing";
        let help = "Permissions that calls have shown to be missing";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for row in &missing_permissions {
            let labels =
                [("provider", row.provider.as_str()), ("permission", row.permission.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&1_u32)?;
        }
        Ok(())
    }
}

/// Several views may share provider and region, and a series must be there once: the worst counts.
fn worst_by_region(views: &[CloudViewRow]) -> BTreeMap<(&str, &str), CloudViewRow> {
    let mut worst: BTreeMap<(&str, &str), CloudViewRow> = BTreeMap::new();
    for view in views {
        let entry = worst.entry((&view.provider, &view.region)).or_default();
        entry.age_seconds = entry.age_seconds.max(view.age_seconds);
        entry.is_failing |= view.is_failing;
    }
    worst
}
