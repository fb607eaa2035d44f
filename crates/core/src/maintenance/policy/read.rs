//! How a MaintenancePolicy is read: every field that cannot be used is named.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::Selector;
use machinist_api::{
    MaintenanceAction, MaintenancePolicy, MaintenancePolicySpec,
    maintenance_policy::{
        self as wire, EventSettings, MaintenanceFreeze, MaintenanceWindow, YearlyMoment,
    },
};

use super::{Budgets, Drain, EventRule, Limit, Policy, Surge};
use crate::{
    calendar::{
        Calendar, CalendarError, FreezeSpan, FreezeSpec, Schedule, WindowSpec, YearlyPoint,
    },
    decision::FieldError,
    drift::policy::{DriftDefaults, OnStopped, OnTerminated},
};

/// A year. A longer wait is a mistake of the unit.
const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Reads a policy.
///
/// # Errors
/// All that is wrong, each with its field. There is no policy of the rest: without a window that
/// cannot be read it might be open at any hour.
pub fn read(policy: &MaintenancePolicy) -> Result<Policy, Vec<FieldError>> {
    let spec = &policy.spec;
    let mut faults = Faults::default();
    let usual = Policy::default();
    let calendar = faults.calendar(spec);
    if let Err(fault) = selector(policy) {
        faults.0.push(fault);
    }
    let read = Policy {
        name: policy.metadata.name.clone(),
        calendar,
        events: spec
            .events
            .iter()
            .enumerate()
            .map(|(index, event)| (event.code.clone(), faults.event(index, event)))
            .collect(),
        budgets: faults.budgets(spec.budgets.as_ref(), usual.budgets),
        surge: faults.surge(spec.surge.as_ref(), usual.surge),
        drain: faults.drain(spec.drain.as_ref(), usual.drain),
        approval: spec.approval.unwrap_or(usual.approval),
        when_no_window: spec.when_no_window.unwrap_or(usual.when_no_window),
        margin: faults.duration("spec.margin", spec.margin.as_deref(), usual.margin),
        control_plane: spec.control_plane.unwrap_or(usual.control_plane),
        outdated: spec.outdated.unwrap_or(usual.outdated),
        on_impaired: drift(spec).on_impaired.unwrap_or(usual.on_impaired),
        impaired_grace: faults.duration(
            "spec.drift.impairedGracePeriod",
            drift(spec).impaired_grace_period.as_deref(),
            usual.impaired_grace,
        ),
        drift: faults.drift(&drift(spec)),
        paused: (spec.paused == Some(true)).then(|| spec.pause_reason.clone().unwrap_or_default()),
        retention: faults.duration("spec.retention", spec.retention.as_deref(), usual.retention),
        verification: faults.nonzero(
            "spec.verificationTimeout",
            spec.verification_timeout.as_deref(),
            usual.verification,
        ),
        webhook: spec.notifications.clone().and_then(|notifications| notifications.webhook),
    };
    faults.webhook(&read);
    if faults.0.is_empty() { Ok(read) } else { Err(faults.0) }
}

/// The labels that a policy selects Machines by; `None` where it selects by none.
pub fn selector(policy: &MaintenancePolicy) -> Result<Option<Selector>, FieldError> {
    let labels = policy.spec.selector.as_ref().and_then(|selector| selector.machines.clone());
    labels.map(Selector::try_from).transpose().map_err(|error| {
        FieldError::new("spec.selector.machines", format!("Invalid value: {error}"))
    })
}

fn drift(spec: &MaintenancePolicySpec) -> wire::DriftSettings {
    spec.drift.clone().unwrap_or_default()
}

#[derive(Default)]
struct Faults(Vec<FieldError>);

impl Faults {
    fn add(&mut self, path: impl Into<String>, problem: impl std::fmt::Display) {
        self.0.push(FieldError::new(path, format!("Invalid value: {problem}")));
    }

    fn calendar(&mut self, spec: &MaintenancePolicySpec) -> Calendar {
        let before = self.0.len();
        self.unique("windows", spec.windows.iter().map(|window| window.name.as_str()));
        self.unique("freezes", spec.freezes.iter().map(|freeze| freeze.name.as_str()));
        let windows: Vec<Option<WindowSpec>> = spec
            .windows
            .iter()
            .enumerate()
            .map(|(index, window)| self.window(index, window))
            .collect();
        let freezes: Vec<Option<FreezeSpec>> = spec
            .freezes
            .iter()
            .enumerate()
            .map(|(index, freeze)| self.freeze(index, freeze))
            .collect();
        if self.0.len() > before {
            return Calendar::default();
        }
        let windows: Vec<WindowSpec> = windows.into_iter().flatten().collect();
        let freezes: Vec<FreezeSpec> = freezes.into_iter().flatten().collect();
        match Calendar::parse(&windows, &freezes) {
            Ok(calendar) => calendar,
            Err(errors) => {
                for CalendarError { field, problem } in errors {
                    self.add(format!("spec.{}", at_yearly(&field, spec)), problem);
                }
                Calendar::default()
            }
        }
    }

    fn unique<'a>(&mut self, list: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = std::collections::BTreeSet::new();
        for (index, name) in names.enumerate() {
            if name.is_empty() {
                self.0.push(FieldError::new(
                    format!("spec.{list}[{index}].name"),
                    "Required value: plans call it by its name",
                ));
            } else if !seen.insert(name) {
                self.0.push(FieldError::new(
                    format!("spec.{list}[{index}].name"),
                    format!("Duplicate value: {name:?}"),
                ));
            }
        }
    }

    fn window(&mut self, index: usize, window: &MaintenanceWindow) -> Option<WindowSpec> {
        let path = format!("spec.windows[{index}]");
        let schedule = match (&window.cron, &window.rrule) {
            (Some(cron), None) => {
                if window.start.is_some() || !window.except.is_empty() {
                    self.add(&path, "start and except belong to rrule");
                }
                Schedule::Cron(cron.clone())
            }
            (None, Some(rule)) => Schedule::Rrule {
                rule: rule.clone(),
                start: window.start.clone(),
                except: window.except.clone(),
            },
            (None, None) | (Some(_), Some(_)) => {
                self.add(&path, "give either cron or rrule");
                return None;
            }
        };
        Some(WindowSpec {
            name: window.name.clone(),
            schedule,
            duration: window.duration.clone(),
            time_zone: window.time_zone.clone(),
        })
    }

    fn freeze(&mut self, index: usize, freeze: &MaintenanceFreeze) -> Option<FreezeSpec> {
        let path = format!("spec.freezes[{index}]");
        let span = match (&freeze.from, &freeze.to, &freeze.yearly) {
            (Some(from), Some(to), None) => {
                FreezeSpan::Dates { from: from.clone(), to: to.clone() }
            }
            (None, None, Some(yearly)) => FreezeSpan::Yearly {
                from: self.point(format!("{path}.yearly.from"), &yearly.from)?,
                to: self.point(format!("{path}.yearly.to"), &yearly.to)?,
            },
            _ => {
                self.add(&path, "give either from and to, or yearly");
                return None;
            }
        };
        Some(FreezeSpec { name: freeze.name.clone(), span, time_zone: freeze.time_zone.clone() })
    }

    fn point(&mut self, path: String, moment: &YearlyMoment) -> Option<YearlyPoint> {
        let mut small = |field: &str, number: Option<i32>| match number.map(i8::try_from) {
            None => Some(None),
            Some(Ok(number)) => Some(Some(number)),
            Some(Err(_)) => {
                let number = number.unwrap_or_default();
                self.add(format!("{path}.{field}"), format!("{number}: no month has so many"));
                None
            }
        };
        Some(YearlyPoint {
            month: moment.month.clone(),
            week_of_month: small("weekOfMonth", moment.week_of_month)?,
            day_of_week: moment.day_of_week.clone(),
            day_of_month: small("dayOfMonth", moment.day_of_month)?,
            time: moment.time.clone(),
        })
    }

    fn event(&mut self, index: usize, event: &EventSettings) -> EventRule {
        let path = format!("spec.events[{index}]");
        if event.code.trim().is_empty() {
            self.0.push(FieldError::new(
                format!("{path}.code"),
                "Required value: the provider's code, such as instance-retirement",
            ));
        }
        let escalation = event.escalation.clone();
        let mut last = event.action;
        for (step, action) in escalation.iter().flatten().enumerate() {
            if *action <= last || *action == MaintenanceAction::Nothing {
                self.add(
                    format!("{path}.escalation[{step}]"),
                    format!("{} does not heal more than {}", action.as_str(), last.as_str()),
                );
            }
            last = *action;
        }
        EventRule {
            action: event.action,
            escalation,
            approval: event.approval,
            lead_time: event.lead_time.as_deref().map(|text| {
                self.duration(&format!("{path}.leadTime"), Some(text), SignedDuration::ZERO)
            }),
        }
    }

    fn budgets(&mut self, budgets: Option<&wire::Budgets>, usual: Budgets) -> Budgets {
        let Some(budgets) = budgets else { return usual };
        Budgets {
            pool: self.limit("spec.budgets.pool", budgets.pool.as_ref()).unwrap_or(usual.pool),
            zone: self.limit("spec.budgets.zone", budgets.zone.as_ref()),
            cluster: self.limit("spec.budgets.cluster", budgets.cluster.as_ref()),
            cool_down: self.duration(
                "spec.budgets.coolDown",
                budgets.cool_down.as_deref(),
                usual.cool_down,
            ),
        }
    }

    fn limit(&mut self, path: &str, value: Option<&IntOrString>) -> Option<Limit> {
        let text = match value? {
            IntOrString::Int(number) => match usize::try_from(*number) {
                Ok(number) => return Some(Limit::Number(number)),
                Err(_) => number.to_string(),
            },
            IntOrString::String(text) => text.clone(),
        };
        let digits = text.strip_suffix('%').unwrap_or(&text);
        match (digits.parse::<usize>(), text.ends_with('%')) {
            (Ok(percent), true) if percent <= 100 => Some(Limit::Percent(percent)),
            (Ok(number), false) => Some(Limit::Number(number)),
            _ => {
                self.add(path, format!("{text:?}: must be a number or a share such as \"10%\""));
                None
            }
        }
    }

    fn surge(&mut self, surge: Option<&wire::SurgeSettings>, usual: Surge) -> Surge {
        let Some(surge) = surge else { return usual };
        if let Some(number) = surge.machines.filter(|number| !(0..=1).contains(number)) {
            self.add("spec.surge.machines", format!("{number}: must be 0 or 1"));
        }
        Surge {
            is_wanted: surge.machines != Some(0),
            timeout: self.nonzero("spec.surge.timeout", surge.timeout.as_deref(), usual.timeout),
            after_timeout: surge.after_timeout.unwrap_or(usual.after_timeout),
        }
    }

    fn drain(&mut self, drain: Option<&wire::DrainSettings>, usual: Drain) -> Drain {
        let Some(drain) = drain else { return usual };
        Drain {
            deadline: self.duration(
                "spec.drain.deadline",
                drain.deadline.as_deref(),
                usual.deadline,
            ),
            after_deadline: drain.after_deadline.unwrap_or(usual.after_deadline),
        }
    }

    fn drift(&mut self, drift: &wire::DriftSettings) -> DriftDefaults {
        let grace = drift.stopped_grace_period.as_deref();
        DriftDefaults {
            on_stopped: drift.on_stopped.map(|word| match word {
                wire::OnStopped::Start => OnStopped::Start,
                wire::OnStopped::Replace => OnStopped::Replace,
                wire::OnStopped::Report => OnStopped::Report,
            }),
            on_terminated: drift.on_terminated.map(|word| match word {
                wire::OnTerminated::Replace => OnTerminated::Replace,
                wire::OnTerminated::Report => OnTerminated::Report,
            }),
            grace: grace.map(|text| {
                self.duration("spec.drift.stoppedGracePeriod", Some(text), SignedDuration::ZERO)
            }),
        }
    }

    fn webhook(&mut self, policy: &Policy) {
        let Some(webhook) = &policy.webhook else { return };
        let rest = ["https://", "http://"].iter().find_map(|scheme| {
            let rest = webhook.url.strip_prefix(scheme)?;
            (!rest.is_empty() && !rest.contains(char::is_whitespace)).then_some(rest)
        });
        if rest.is_none() {
            // The address may carry a secret (Rule 13), so it is not repeated.
            self.add("spec.notifications.webhook.url", "must be an http or https address");
        }
    }

    fn duration(
        &mut self,
        path: &str,
        text: Option<&str>,
        usual: SignedDuration,
    ) -> SignedDuration {
        let Some(text) = text else { return usual };
        match text.trim().parse::<SignedDuration>() {
            Ok(duration) if !duration.is_negative() && duration <= LONGEST => duration,
            Ok(_) => {
                self.add(path, format!("{text:?}: must be between 0s and 8784h (a year)"));
                usual
            }
            Err(_) => {
                self.add(path, format!("{text:?}: must be a duration such as 30m or PT30M"));
                usual
            }
        }
    }

    fn nonzero(&mut self, path: &str, text: Option<&str>, usual: SignedDuration) -> SignedDuration {
        let duration = self.duration(path, text, usual);
        if duration.is_zero() {
            self.add(path, "must be longer than nothing");
        }
        duration
    }
}

/// The calendar knows no `yearly` around the ends of a freeze.
fn at_yearly(field: &str, spec: &MaintenancePolicySpec) -> String {
    let index = field
        .strip_prefix("freezes[")
        .and_then(|rest| rest.split_once(']'))
        .and_then(|(index, _)| index.parse::<usize>().ok());
    match index.and_then(|index| spec.freezes.get(index)) {
        Some(freeze) if freeze.yearly.is_some() && !field.ends_with(".timeZone") => {
            field.replacen("].", "].yearly.", 1)
        }
        Some(_) | None => field.to_owned(),
    }
}
