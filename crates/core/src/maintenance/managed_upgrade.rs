//! What the managed-upgrade-operator's objects mean for maintenance: an upgrade under way holds it
//! back; its windows and freezes of 2020 hold where a cluster still has them.

use machinist_api::managed_upgrade::{
    AdminFreezeWindow, CustomerFreezeWindow, PreferredUpgradeStartTime, UpgradeConfig, UtcTime,
};

use super::{note::Note, policy::Policy};
use crate::calendar::{Freeze, FreezeSpan, FreezeSpec, Window, WindowSpec, YearlyPoint};

/// The object names no duration. The shortest that a managed node pool elsewhere accepts.
const PREFERRED_DURATION: &str = "4h";

/// The windows and freezes of the managed-upgrade-operator's objects.
#[derive(Clone, Debug, Default)]
pub struct Legacy {
    /// Hold for policies without windows of their own.
    windows: Vec<Window>,
    /// Hold always.
    freezes: Vec<Freeze>,
    /// What of them cannot be used.
    pub notes: Vec<Note>,
}

impl Legacy {
    pub fn read(
        admin: &[&AdminFreezeWindow],
        customer: &[&CustomerFreezeWindow],
        preferred: &[&PreferredUpgradeStartTime],
    ) -> Self {
        let mut legacy = Self::default();
        for window in admin {
            let name = title("AdminFreezeWindow", window.metadata.name.as_deref());
            legacy.freeze(name, &window.spec.from_utc, &window.spec.to_utc);
        }
        for window in customer {
            let name = title("CustomerFreezeWindow", window.metadata.name.as_deref());
            legacy.freeze(name, &window.spec.from_utc, &window.spec.to_utc);
        }
        for start in preferred {
            let name = title("PreferredUpgradeStartTime", start.metadata.name.as_deref());
            let spec = &start.spec;
            let window = WindowSpec::preferred_start(
                &name,
                &spec.day_of_week,
                &spec.time_utc,
                PREFERRED_DURATION,
            )
            .and_then(|spec| Window::parse(&spec));
            match window {
                Ok(window) => legacy.windows.push(window),
                Err(error) => legacy.unusable(name, &error.to_string()),
            }
        }
        // The order in which a store lists them must not change a plan.
        legacy.windows.sort_by(|left, right| left.name().cmp(right.name()));
        legacy.freezes.sort_by(|left, right| left.name().cmp(right.name()));
        legacy.notes.sort();
        legacy
    }

    /// The policy with these windows and freezes.
    pub(super) fn applied_to(&self, mut policy: Policy) -> Policy {
        if policy.calendar.windows.is_empty() {
            policy.calendar.windows.clone_from(&self.windows);
        }
        policy.calendar.freezes.extend(self.freezes.iter().cloned());
        policy
    }

    fn freeze(&mut self, name: String, from: &UtcTime, to: &UtcTime) {
        let span = match (&from.timestamp, &to.timestamp) {
            (Some(from), Some(to)) => {
                Ok(FreezeSpan::Dates { from: from.0.to_string(), to: to.0.to_string() })
            }
            (None, None) => match (point(from), point(to)) {
                (Some(from), Some(to)) => Ok(FreezeSpan::Yearly { from, to }),
                (None, _) => Err("fromUtc names a day that no month has".to_owned()),
                (_, None) => Err("toUtc names a day that no month has".to_owned()),
            },
            (Some(_), None) => Err("toUtc has no timestamp, but fromUtc has one".to_owned()),
            (None, Some(_)) => Err("fromUtc has no timestamp, but toUtc has one".to_owned()),
        };
        let freeze = span.and_then(|span| {
            let spec = FreezeSpec { name: name.clone(), span, time_zone: None };
            Freeze::parse(&spec).map_err(|error| error.to_string())
        });
        match freeze {
            Ok(freeze) => self.freezes.push(freeze),
            Err(problem) => self.unusable(name, &problem),
        }
    }

    fn unusable(&mut self, name: String, problem: &str) {
        let message = format!("{name} cannot be used and does not hold: {problem}");
        self.notes.push(Note::warning("InvalidConfiguration", name, message));
    }
}

/// Why an upgrade holds maintenance back, where one is under way.
pub fn upgrade_under_way(configs: &[&UpgradeConfig]) -> Option<String> {
    let mut upgrades: Vec<String> = configs
        .iter()
        .filter_map(|config| {
            let history = &config.status.as_ref()?.history;
            let current =
                history.iter().find(|entry| entry.phase.as_deref() == Some("Upgrading"))?;
            let version = current.version.as_deref().or(config.spec.desired.version.as_deref());
            Some(match version {
                Some(version) => format!("the cluster is being upgraded to {version}"),
                None => "the cluster is being upgraded".to_owned(),
            })
        })
        .collect();
    upgrades.sort();
    upgrades.into_iter().next()
}

fn point(time: &UtcTime) -> Option<YearlyPoint> {
    let small = |number: Option<i32>| number.map(i8::try_from).transpose().ok();
    Some(YearlyPoint {
        month: time.month.clone(),
        week_of_month: small(time.week_of_month)?,
        day_of_week: time.day_of_week.clone(),
        day_of_month: small(time.day_of_month)?,
        time: Some(time.time.clone()).filter(|time| !time.is_empty()),
    })
}

fn title(kind: &str, name: Option<&str>) -> String {
    format!("{kind}/{}", name.unwrap_or_default())
}
