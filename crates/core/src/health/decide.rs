//! What to do for a MachineHealthCheck: judge its machines, count them, remediate, and say so.

use jiff::{SignedDuration, Timestamp};
use machinist_api::{
    Condition, ConditionSeverity, MachineHealthCheck, MachineHealthCheckStatus, condition,
    names::{annotation, condition_type, event, reason},
};

use super::{
    count::Tally,
    observed::{Memory, Observed, Target, TargetNode, Template},
    policy::Policy,
    remediate::{Action, Choice, Chooser},
    verdict::{Verdict, judge},
};
use crate::decision::{Announcement, Decision, Wait};

/// How often the gate, or a template that is not there, is asked again: neither wakes a check.
const HELD_RECHECK: SignedDuration = SignedDuration::from_secs(30);
/// How soon doubtful sight is looked through again.
const DOUBT_RECHECK: SignedDuration = SignedDuration::from_secs(10);
/// A clock that jumped must not put the next look off for ever.
const LONGEST_RECHECK: SignedDuration = SignedDuration::from_hours(1);
/// Mere counts are written at most this often; three hundred Nodes that become Ready at once are
/// then a handful of writes.
const STATUS_SPACING: SignedDuration = SignedDuration::from_secs(2);

/// What to do for one check, and what to say of it and of its machines.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a decision that nobody carries out is lost"]
pub struct HealthDecision {
    pub decision: Decision<Action, MachineHealthCheckStatus>,
    /// What people are to be told on Machines, once the status is stored.
    pub machine_events: Vec<MachineEvent>,
    /// `None`: as they are.
    pub gauges: Option<Gauges>,
    /// Whether the template is needed and was not asked for: then read it and decide again.
    pub wants_template: bool,
    /// For the next decision about this check, once what is told was told.
    pub memory: Memory,
}

/// An event on a Machine of the check's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineEvent {
    pub name: String,
    pub uid: String,
    pub announcement: Announcement,
}

/// What is measured of one check, by the names of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// `mapi_machinehealthcheck_nodes_covered`
    pub nodes_covered: usize,
    /// `mapi_machinehealthcheck_short_circuit`
    pub short_circuit: bool,
}

pub fn decide(observed: &Observed<'_>, now: Timestamp) -> HealthDecision {
    let check = observed.check;
    if check.metadata.deletion_timestamp.is_some() {
        return as_it_is(observed, None);
    }
    if check.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(annotation::PAUSED)) {
        let words = format!("annotation {} is set", annotation::PAUSED);
        return as_it_is(observed, Some(Wait::on(condition_type::PAUSED, words)));
    }
    let policy = match Policy::read(check) {
        Ok(policy) => policy,
        Err(fault) => return invalid(observed, &fault.to_string(), now),
    };
    if let Some(doubt) = observed.doubt {
        let words = format!("nothing is remediated: {doubt}");
        let mut answer = as_it_is(observed, Some(Wait::on("ObservationDoubtful", words)));
        answer.decision.recheck_by(later(now, DOUBT_RECHECK));
        return answer;
    }
    let mut targets: Vec<&Target<'_>> = observed
        .machines
        .iter()
        .filter(|target| policy.selects(target.machine.metadata.labels.as_ref()))
        .collect();
    targets.sort_by(|left, right| left.name().cmp(right.name()));
    let judged: Vec<(&Target<'_>, Verdict)> = targets
        .into_iter()
        .map(|target| (target, judge(target, &policy, observed.memory, now)))
        .collect();
    Pass::new(observed, &policy, &judged, now).run()
}

/// One pass over a check that can be read.
struct Pass<'a> {
    observed: &'a Observed<'a>,
    policy: &'a Policy,
    judged: &'a [(&'a Target<'a>, Verdict)],
    tally: Tally,
    now: Timestamp,
    answer: HealthDecision,
    held: Vec<String>,
    unusable_template: Option<String>,
}

impl<'a> Pass<'a> {
    fn new(
        observed: &'a Observed<'a>,
        policy: &'a Policy,
        judged: &'a [(&'a Target<'a>, Verdict)],
        now: Timestamp,
    ) -> Self {
        let mut answer = as_it_is(observed, None);
        answer.memory = Memory::default();
        Self {
            observed,
            policy,
            judged,
            tally: Tally::of(judged.iter().map(|(_, verdict)| verdict)),
            now,
            answer,
            held: Vec::new(),
            unusable_template: None,
        }
    }

    fn run(mut self) -> HealthDecision {
        let allowed = self.tally.remediations_allowed(self.policy.max_unhealthy);
        self.remember_and_tell();
        if allowed.is_some() {
            self.remediate();
        }
        self.take_requests_back();
        self.say(allowed);
        self.space_out();
        if let Some(at) = self.answer.decision.recheck {
            self.answer.decision.recheck = Some(at.min(later(self.now, LONGEST_RECHECK)));
        }
        self.answer
    }

    /// What is true of single machines whether or not anything may be remediated.
    fn remember_and_tell(&mut self) {
        for (target, verdict) in self.judged {
            if let TargetNode::Missing(_) = target.node {
                let known = self.observed.memory.missing_since.get(target.uid());
                let since = known.copied().unwrap_or(self.now);
                self.answer.memory.missing_since.insert(target.uid().to_owned(), since);
            }
            match verdict {
                Verdict::Starting { until } => self.answer.decision.recheck_by(*until),
                Verdict::Suspect { cause, until } => {
                    self.answer.decision.recheck_by(*until);
                    let words = format!(
                        "Machine {} has unhealthy node: {}; it counts as failed at {until} unless \
                         that changes",
                        target.describe(self.observed.check),
                        cause.words(),
                    );
                    self.tell(target, Announcement::normal(event::DETECTED_UNHEALTHY, words));
                }
                Verdict::Healthy
                | Verdict::Deleting
                | Verdict::NeverTimesOut
                | Verdict::InRepair
                | Verdict::Unhealthy(_) => {}
            }
        }
    }

    fn remediate(&mut self) {
        let mut chooser = Chooser::new(self.observed, self.policy, self.now);
        for (target, verdict) in self.judged {
            let Verdict::Unhealthy(cause) = verdict else { continue };
            match chooser.choose(target, cause) {
                Choice::Act(action) => self.answer.decision.actions.push(*action),
                Choice::InProgress => {}
                Choice::Leave { reason, words } => {
                    let words = format!("{}, but {words}", cause.words());
                    let wait = Wait::on(reason, format!("machine {}: {words}", target.name()));
                    self.answer.decision.waiting.push(wait);
                    self.tell(target, Announcement::normal(reason, words));
                }
                Choice::Held(why) => self.held.push(format!("machine {}: {why}", target.name())),
                Choice::WantsTemplate => self.answer.wants_template = true,
                Choice::TemplateUnusable(why) => self.unusable_template = Some(why),
            }
        }
    }

    /// Takes back the requests of machines that are healthy again. That is no remediation, so
    /// nothing restricts it.
    fn take_requests_back(&mut self) {
        let (Some(reference), Some(requests)) = (&self.policy.template, self.observed.requests)
        else {
            return;
        };
        for (target, verdict) in self.judged {
            let Some(request) = requests.get(target.name()) else { continue };
            let is_ours = request.owner_uids.iter().any(|uid| uid == target.uid());
            if *verdict == Verdict::Healthy && is_ours && !request.is_deleting {
                self.answer.decision.actions.push(Action::DeleteRequest {
                    api_version: reference.api_version.clone(),
                    kind: reference.request_kind().to_owned(),
                    name: target.name().to_owned(),
                    uid: request.uid.clone(),
                    resource_version: request.resource_version.clone(),
                });
            }
        }
    }

    fn say(&mut self, allowed: Option<usize>) {
        let figures = self.tally.figures(self.policy.max_unhealthy);
        let restriction = match (allowed, self.held.first()) {
            (None, _) => Some(Restriction {
                reason: reason::TOO_MANY_UNHEALTHY,
                condition: format!(
                    "Remediation is not allowed, the number of not started or unhealthy machines \
                     exceeds maxUnhealthy {figures}"
                ),
                event: format!(
                    "Remediation restricted due to exceeded number of unhealthy machines {figures}"
                ),
            }),
            (Some(_), Some(first)) => {
                let others = self.held.len() - 1;
                let others =
                    if others == 0 { String::new() } else { format!("; and {others} more") };
                Some(Restriction {
                    reason: reason::DISRUPTION_HELD,
                    condition: format!("Remediation is held: {first}{others}"),
                    event: format!("Remediation is held: {first}{others}"),
                })
            }
            (Some(_), None) => None,
        };
        let allowed_by_check = allowed;
        let allowed = if restriction.is_some() { 0 } else { allowed.unwrap_or(0) };
        self.answer.gauges = Some(Gauges {
            nodes_covered: self.tally.expected,
            // The gate's own share is not the user's maxUnhealthy, which the original's alert is about.
            short_circuit: allowed_by_check.is_none(),
        });
        let status = &mut self.answer.decision.status;
        status.expected_machines = i64::try_from(self.tally.expected).ok();
        status.current_healthy = i64::try_from(self.tally.healthy).ok();
        status.remediations_allowed = Some(i32::try_from(allowed).unwrap_or(i32::MAX));
        match restriction {
            Some(restriction) => self.restrict(restriction),
            None => condition::set(
                &mut self.answer.decision.status.conditions,
                Condition::holds(condition_type::REMEDIATION_ALLOWED, self.now),
            ),
        }
        self.say_of_template();
        self.say_of_requests();
    }

    fn restrict(&mut self, restriction: Restriction) {
        let decision = &mut self.answer.decision;
        // Told when it begins, and not again while the figures move.
        let stored =
            condition::find(&decision.status.conditions, condition_type::REMEDIATION_ALLOWED);
        if stored.and_then(|stored| stored.reason.as_deref()) != Some(restriction.reason) {
            let reason = match restriction.reason {
                reason::DISRUPTION_HELD => event::DISRUPTION_HELD,
                _ => event::REMEDIATION_RESTRICTED,
            };
            decision.announcements.push(Announcement::warning(reason, restriction.event));
        }
        decision.waiting.push(Wait::on(restriction.reason, &restriction.condition));
        if restriction.reason == reason::DISRUPTION_HELD {
            decision.recheck_by(later(self.now, HELD_RECHECK));
        }
        condition::set(
            &mut decision.status.conditions,
            Condition::fails(
                condition_type::REMEDIATION_ALLOWED,
                ConditionSeverity::Warning,
                restriction.reason,
                restriction.condition,
                self.now,
            ),
        );
    }

    fn say_of_template(&mut self) {
        let conditions = &mut self.answer.decision.status.conditions;
        if self.policy.template.is_none() {
            conditions.retain(|condition| {
                condition.type_ != condition_type::EXTERNAL_TEMPLATE_AVAILABLE
                    && condition.type_ != condition_type::EXTERNAL_REQUEST_AVAILABLE
            });
            return;
        }
        match &self.unusable_template {
            Some(why) => {
                condition::set(
                    conditions,
                    Condition::fails(
                        condition_type::EXTERNAL_TEMPLATE_AVAILABLE,
                        ConditionSeverity::Error,
                        reason::EXTERNAL_TEMPLATE_NOT_FOUND,
                        why,
                        self.now,
                    ),
                );
                let wait = Wait::on(reason::EXTERNAL_TEMPLATE_NOT_FOUND, why);
                self.answer.decision.waiting.push(wait);
                self.answer.decision.recheck_by(later(self.now, HELD_RECHECK));
            }
            None if matches!(self.observed.template, Template::Found(_)) => {
                take_back(conditions, condition_type::EXTERNAL_TEMPLATE_AVAILABLE, self.now);
            }
            // Nobody needs it, so nothing is known of it.
            None if !self.answer.wants_template => conditions
                .retain(|condition| condition.type_ != condition_type::EXTERNAL_TEMPLATE_AVAILABLE),
            None => {}
        }
    }

    fn say_of_requests(&mut self) {
        let decision = &mut self.answer.decision;
        let requests_some =
            decision.actions.iter().any(|action| matches!(action, Action::CreateRequest { .. }));
        let conditions = &mut decision.status.conditions;
        match self.observed.request_failure {
            Some(why) if requests_some => {
                condition::set(
                    conditions,
                    Condition::fails(
                        condition_type::EXTERNAL_REQUEST_AVAILABLE,
                        ConditionSeverity::Error,
                        reason::EXTERNAL_REQUEST_CREATION_FAILED,
                        why,
                        self.now,
                    ),
                );
                let wait = Wait::on(reason::EXTERNAL_REQUEST_CREATION_FAILED, why);
                decision.waiting.push(wait);
            }
            // With nothing left to request, nothing fails any more, whatever happened before.
            Some(_) | None if !self.answer.wants_template && self.unusable_template.is_none() => {
                take_back(conditions, condition_type::EXTERNAL_REQUEST_AVAILABLE, self.now);
            }
            Some(_) | None => {}
        }
    }

    /// Tells something of one machine, unless it was told last.
    fn tell(&mut self, target: &Target<'_>, announcement: Announcement) {
        let uid = target.uid().to_owned();
        if self.observed.memory.told.get(&uid) != Some(&announcement.message) {
            self.answer.machine_events.push(MachineEvent {
                name: target.name().to_owned(),
                uid: uid.clone(),
                announcement: announcement.clone(),
            });
        }
        self.answer.memory.told.insert(uid, announcement.message);
    }

    /// Holds back a status in which only figures moved, when one was written a moment ago.
    fn space_out(&mut self) {
        let stored = self.observed.check.status.clone().unwrap_or_default();
        let decision = &mut self.answer.decision;
        let due = self.observed.status_written_at.map(|at| later(at, STATUS_SPACING));
        let due = due.filter(|due| *due > self.now);
        if let Some(due) = due
            && decision.status != stored
            && says_the_same(&stored, &decision.status)
        {
            decision.status = stored;
            decision.recheck_by(due);
        }
    }
}

/// Why nothing, or not everything, is remediated.
struct Restriction {
    reason: &'static str,
    condition: String,
    event: String,
}

/// Whether two statuses differ in figures only.
fn says_the_same(left: &MachineHealthCheckStatus, right: &MachineHealthCheckStatus) -> bool {
    let words = |status: &MachineHealthCheckStatus| -> Vec<_> {
        let of = |condition: &Condition| {
            (
                condition.type_.clone(),
                condition.status,
                condition.severity,
                condition.reason.clone(),
            )
        };
        status.conditions.iter().map(of).collect()
    };
    words(left) == words(right)
}

/// Says that what failed no longer does. What never failed is not spoken of.
fn take_back(conditions: &mut Vec<Condition>, type_: &str, now: Timestamp) {
    if condition::find(conditions, type_).is_some() {
        condition::set(conditions, Condition::holds(type_, now));
    }
}

fn as_it_is(observed: &Observed<'_>, wait: Option<Wait>) -> HealthDecision {
    let mut decision = Decision::settled(stored_status(observed.check));
    decision.waiting.extend(wait);
    HealthDecision {
        decision,
        machine_events: Vec::new(),
        gauges: None,
        wants_template: false,
        memory: observed.memory.clone(),
    }
}

fn invalid(observed: &Observed<'_>, message: &str, now: Timestamp) -> HealthDecision {
    let wait = Wait::on(reason::INVALID_CONFIGURATION, message);
    let mut answer = as_it_is(observed, Some(wait));
    let status = &mut answer.decision.status;
    let before = status.conditions.clone();
    condition::set(
        &mut status.conditions,
        Condition::fails(
            condition_type::REMEDIATION_ALLOWED,
            ConditionSeverity::Error,
            reason::INVALID_CONFIGURATION,
            message,
            now,
        ),
    );
    status.remediations_allowed = Some(0);
    if status.conditions != before {
        let told = Announcement::warning(event::RECONCILE_ERROR, message);
        answer.decision.announcements.push(told);
    }
    answer
}

fn stored_status(check: &MachineHealthCheck) -> MachineHealthCheckStatus {
    check.status.clone().unwrap_or_default()
}

fn later(at: Timestamp, pause: SignedDuration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}
