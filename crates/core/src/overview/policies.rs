//! Which policies are there, and what do they say, in words?

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    MaintenancePolicy,
    maintenance_policy::{
        AfterDrainDeadline, AfterSurgeTimeout, Approval, ControlPlaneMaintenance,
        MaintenanceFreeze, MaintenanceWindow, OnImpaired, OutdatedMachines, WhenNoWindow,
        YearlyMoment,
    },
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{instant::Instant, picture::Picture, windows::machines_by_policy};
use crate::{
    calendar::HORIZON,
    maintenance::{
        plan::duration_in_words,
        policy::{Limit, Policy},
    },
};

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyList {
    pub version: String,
    #[schemars(with = "Instant")]
    pub as_of: Timestamp,
    pub policies: Vec<PolicyView>,
}

/// A policy in words.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    /// None: what holds for machines without a policy.
    pub name: Option<String>,
    /// For how many machines it holds.
    pub machines: usize,
    pub paused: Option<String>,
    /// What is wrong with it, where it cannot be used.
    pub faults: Vec<String>,
    /// Whether it has no windows: every hour that is not frozen is open.
    pub any_hour: bool,
    pub windows: Vec<Named>,
    pub freezes: Vec<Named>,
    #[schemars(with = "Option<Instant>")]
    pub next_opening: Option<Timestamp>,
    pub settings: Vec<Fact>,
    /// As it is stored, but for whom it tells; to begin a trial with.
    pub spec: Option<Value>,
}

/// A window or a freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Named {
    pub name: String,
    pub words: String,
}

/// A line: what, how, and what that means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    pub label: &'static str,
    pub value: Option<String>,
    pub hint: Option<&'static str>,
}

/// All policies, and what holds without one.
pub fn policies(picture: &Picture<'_>) -> PolicyList {
    let machines = machines_by_policy(picture.objects, picture.policies);
    let held = |name: Option<&str>| machines.get(&name.map(str::to_owned)).copied().unwrap_or(0);
    let stored = picture.objects.policies.iter();
    let mut policies: Vec<PolicyView> = stored
        .filter(|policy| policy.metadata.deletion_timestamp.is_none())
        .map(|policy| {
            let name = policy.metadata.name.as_deref();
            view(Some(policy), picture.policies.get(name), held(name), picture)
        })
        .collect();
    policies.push(view(None, picture.policies.get(None), held(None), picture));
    PolicyList { version: String::new(), as_of: picture.now, policies }
}

fn view(
    stored: Option<&MaintenancePolicy>,
    read: Option<&Policy>,
    machines: usize,
    picture: &Picture<'_>,
) -> PolicyView {
    let name = stored.and_then(|policy| policy.metadata.name.as_deref());
    let faults = picture.policies.faults();
    let limit = picture.now.checked_add(HORIZON).unwrap_or(Timestamp::MAX);
    PolicyView {
        name: name.map(str::to_owned),
        machines,
        paused: read.and_then(|policy| policy.paused.clone()),
        faults: name
            .and_then(|name| faults.get(name))
            .map_or_else(Vec::new, |all| all.iter().map(ToString::to_string).collect()),
        any_hour: read.is_some_and(|policy| policy.calendar.windows.is_empty()),
        windows: stored.map_or_else(Vec::new, |policy| {
            policy.spec.windows.iter().map(window_in_words).collect()
        }),
        freezes: stored.map_or_else(Vec::new, |policy| {
            policy.spec.freezes.iter().map(freeze_in_words).collect()
        }),
        next_opening: read
            .and_then(|policy| policy.calendar.next_opening(picture.now, limit))
            .map(|opening| opening.start),
        settings: read.map_or_else(Vec::new, settings),
        spec: stored.and_then(|policy| {
            let mut spec = serde_json::to_value(&policy.spec).ok()?;
            // An address may carry a secret, and no plan depends on whom a policy tells.
            spec.as_object_mut()?.remove("notifications");
            Some(spec)
        }),
    }
}

fn window_in_words(window: &MaintenanceWindow) -> Named {
    let zone = window.time_zone.as_deref().unwrap_or("UTC");
    let rule = match (&window.cron, &window.rrule) {
        (Some(cron), _) => format!("at each {cron} (cron)"),
        (None, Some(rrule)) => format!("by {rrule}"),
        (None, None) => "never".to_owned(),
    };
    let except = match window.except.as_slice() {
        [] => String::new(),
        days => format!(", but not at {}", days.join(", ")),
    };
    let words = format!("opens {rule}, in the time of {zone}, for {}{except}", window.duration);
    Named { name: window.name.clone(), words }
}

fn freeze_in_words(freeze: &MaintenanceFreeze) -> Named {
    let zone = freeze.time_zone.as_deref().unwrap_or("UTC");
    let span = match (&freeze.from, &freeze.to, &freeze.yearly) {
        (Some(from), Some(to), _) => format!("from {from} to {to}"),
        (_, _, Some(yearly)) => format!(
            "every year from {} to {}",
            moment_in_words(&yearly.from),
            moment_in_words(&yearly.to)
        ),
        _ => "never".to_owned(),
    };
    Named { name: freeze.name.clone(), words: format!("{span}, in the time of {zone}") }
}

fn moment_in_words(moment: &YearlyMoment) -> String {
    let day = match (moment.day_of_month, moment.week_of_month, &moment.day_of_week) {
        (Some(day), _, _) => format!("{day} {}", moment.month),
        (None, Some(week), Some(day)) => {
            let which = if week < 0 { "last".to_owned() } else { format!("{week}.") };
            format!("the {which} {day} of {}", moment.month)
        }
        (None, Some(week), None) => format!("week {week} of {}", moment.month),
        (None, None, _) => moment.month.clone(),
    };
    moment.time.as_ref().map_or_else(|| day.clone(), |time| format!("{day} {time}"))
}

fn settings(policy: &Policy) -> Vec<Fact> {
    let fact = |label, value: String, hint| Fact { label, value: Some(value), hint: Some(hint) };
    let budgets = &policy.budgets;
    let mut facts = vec![
        fact(
            "Approval",
            match policy.approval {
                Approval::Automatic => "not needed".to_owned(),
                Approval::Manual => "a person approves each maintenance".to_owned(),
            },
            "Whether a person must approve before work begins.",
        ),
        fact(
            "When no window fits",
            match policy.when_no_window {
                WhenNoWindow::ActAnyway => "work begins outside the windows",
                WhenNoWindow::Ask => "a person is asked",
                WhenNoWindow::MoveEvent => "the provider is asked to move its event",
                WhenNoWindow::LetProviderAct => "the provider acts by itself",
            }
            .to_owned(),
            "What follows when no window lies before the deadline.",
        ),
        fact("At once, of a pool", limit(budgets.pool), "How many machines may be out of work."),
    ];
    for (label, budget) in
        [("At once, of a zone", budgets.zone), ("At once, of the cluster", budgets.cluster)]
    {
        let value = budget.map_or_else(|| "no limit".to_owned(), limit);
        facts.push(fact(label, value, "How many machines may be out of work."));
    }
    facts.push(fact(
        "Cool-down",
        duration(budgets.cool_down),
        "How long a finished machine keeps its place in the budgets.",
    ));
    facts.push(fact(
        "Surplus machine",
        if policy.surge.is_wanted {
            let after = match policy.surge.after_timeout {
                AfterSurgeTimeout::Abandon => "then it is given up",
                AfterSurgeTimeout::Proceed => "then it goes on without",
                AfterSurgeTimeout::Wait => "then it waits on",
            };
            format!("one, ready within {}, {after}", duration(policy.surge.timeout))
        } else {
            "none".to_owned()
        },
        "Whether a pool has a machine more while one of its machines is replaced.",
    ));
    facts.push(fact(
        "Drain",
        format!(
            "at most {}, {}",
            duration(policy.drain.deadline),
            match policy.drain.after_deadline {
                AfterDrainDeadline::Abandon => "then the node is given back",
                AfterDrainDeadline::Force => "then pods are removed whatever protects them",
                AfterDrainDeadline::Wait => "then it goes on trying",
            }
        ),
        "How long emptying a node may take, and what follows then.",
    ));
    facts.push(fact(
        "Margin",
        duration(policy.margin),
        "How much earlier than the deadline work is to be over.",
    ));
    facts.push(fact(
        "Control plane",
        match policy.control_plane {
            ControlPlaneMaintenance::ReportOnly => "only reported on",
            ControlPlaneMaintenance::OneAtATime => "maintained, one machine at a time",
        }
        .to_owned(),
        "What happens to machines of the control plane.",
    ));
    facts.push(fact(
        "Outdated machines",
        match policy.outdated {
            OutdatedMachines::Report => "reported",
            OutdatedMachines::Replace => "replaced",
        }
        .to_owned(),
        "What follows when a machine differs from its pool's template.",
    ));
    facts.push(fact(
        "Failing checks",
        format!(
            "{} after {}",
            match policy.on_impaired {
                OnImpaired::Report => "reported",
                OnImpaired::Reboot => "the machine is rebooted",
                OnImpaired::StopStart => "the machine is stopped and started",
                OnImpaired::Replace => "the machine is replaced",
            },
            duration(policy.impaired_grace)
        ),
        "What follows when the provider's checks of an instance fail.",
    ));
    for (code, rule) in &policy.events {
        let approval = match rule.approval {
            Some(Approval::Manual) => ", after an approval",
            Some(Approval::Automatic) | None => "",
        };
        facts.push(Fact {
            label: "Event",
            value: Some(format!("{code}: {}{approval}", rule.action.as_str())),
            hint: Some("What is done for one of the provider's event codes."),
        });
    }
    facts
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Number(number) => number.to_string(),
        Limit::Percent(percent) => format!("{percent}%"),
    }
}

fn duration(duration: SignedDuration) -> String {
    if duration.is_zero() { "none".to_owned() } else { duration_in_words(duration) }
}
