//! What does a story look like on a person's screen?

use jiff::Timestamp;
use machinist_api::MaintenanceReasonState;
use machinist_core::{
    maintenance::{
        PlanEntry,
        plan::{Standing, duration_in_words},
    },
    overview::{
        seen::{NodeState, NodeView},
        story::{
            ConditionStory, Story,
            maintenance::{MaintenanceStory, ReasonStory},
        },
    },
};

use super::pool::PoolStory;
use crate::{age, screen::wrapped, zone::Zone};

/// For whom it is laid out.
pub(super) struct Layout<'a> {
    pub zone: &'a Zone,
    pub width: usize,
    pub now: Timestamp,
}

/// How far in values begin, behind their titles.
const TITLE: usize = 18;

/// Lines one below the other.
struct Page<'a> {
    layout: &'a Layout<'a>,
    lines: Vec<String>,
}

impl Page<'_> {
    fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.lines.push(String::new());
        }
        let text = self.localized(text);
        self.lines.extend(wrapped("", &text, self.layout.width));
    }

    fn field(&mut self, title: &str, value: &str) {
        let begin = format!("  {title:<width$}", width = TITLE - 2);
        let value = self.localized(value);
        self.lines.extend(wrapped(&begin, &value, self.layout.width));
    }

    /// A field with several values: the title stands before the first.
    fn fields(&mut self, title: &str, values: impl IntoIterator<Item = String>) {
        for (index, value) in values.into_iter().enumerate() {
            self.field(if index == 0 { title } else { "" }, &value);
        }
    }

    fn item(&mut self, text: &str) {
        let text = self.localized(text);
        self.lines.extend(wrapped("  - ", &text, self.layout.width));
    }

    fn localized(&self, text: &str) -> String {
        self.layout.zone.localize(text, self.layout.now)
    }

    /// An instant, and how far away it is.
    fn when(&self, at: Timestamp) -> String {
        let words = self.layout.zone.words(at, self.layout.now);
        if at > self.layout.now {
            format!("{words} (in {})", age::human(at.duration_since(self.layout.now)))
        } else {
            format!("{words} ({} ago)", age::since(at, self.layout.now))
        }
    }

    fn finish(self) -> String {
        self.lines.join("\n") + "\n"
    }
}

pub(super) fn machine(story: &Story, layout: &Layout<'_>) -> String {
    let mut page = Page { layout, lines: Vec::new() };
    page.heading(&format!("Machine {} as of {}", story.name, layout.zone.whole(layout.now)));
    let phase = if story.phase.is_empty() { "none yet" } else { &story.phase };
    page.field("Phase", phase);
    if let Some(at) = story.deleted_at {
        let when = page.when(at);
        page.field("Deleted", &when);
    }
    let place = [
        story.role.as_ref().map(|role| format!("role {role}")),
        story
            .pool
            .as_ref()
            .map_or_else(|| Some("no pool".to_owned()), |pool| Some(format!("pool {pool}"))),
        story.zone.as_ref().map(|zone| format!("zone {zone}")),
    ];
    page.field("Place", &place.into_iter().flatten().collect::<Vec<_>>().join(", "));
    match &story.instance {
        None => page.field("Instance", "none"),
        Some(instance) => {
            let parts = [Some(instance.id.clone()), instance.state.clone(), instance.type_.clone()];
            page.field("Instance", &parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
    }
    page.field("Node", &story.node.as_ref().map_or_else(|| "none".to_owned(), node));
    if let Some(waiting) = &story.waiting {
        let since = waiting.since.map(|since| format!(", for {}", age::since(since, layout.now)));
        page.field(
            "Waits for",
            &format!("{} ({}{})", waiting.message, waiting.reason, since.unwrap_or_default()),
        );
    }
    if let Some(drift) = &story.drift {
        let words = drift.words.unwrap_or("is not as it was");
        let since = page.when(drift.since);
        let failure =
            drift.failure.as_ref().map(|failure| format!("; the last attempt failed: {failure}"));
        let text = format!(
            "the instance {words} ({}), since {since}: {}{}",
            drift.class,
            drift.response,
            failure.unwrap_or_default()
        );
        page.field("Drift", &text);
    }
    if let Some(hold) = &story.hold {
        page.field(
            "On hold",
            if hold.is_empty() || hold == "true" { "nobody said why" } else { hold },
        );
    }
    page.fields("Paused", story.pauses.iter().cloned());
    if !story.outdated.is_empty() {
        page.field(
            "Outdated",
            &format!("differs from its pool's template in {}", story.outdated.join(", ")),
        );
    }
    page.fields("Health check", story.health.iter().cloned());
    page.fields("Hooks", story.hooks.iter().cloned());
    if let Some(problems) = &story.control_plane {
        if problems.is_empty() {
            page.field("Control plane", "its node is ready and its etcd member runs");
        }
        page.fields("Control plane", problems.iter().cloned());
    }
    conditions(&mut page, &story.conditions);
    match &story.maintenance {
        None => page.heading("Maintenance: none is needed"),
        Some(story) => maintenance(&mut page, story),
    }
    if !story.help.is_empty() {
        page.heading("What would help");
        for sentence in &story.help {
            page.item(sentence);
        }
    }
    page.finish()
}

fn node(node: &NodeView) -> String {
    let state = match node.state {
        NodeState::Ready => "ready",
        NodeState::NotReady => "not ready",
        NodeState::Unknown => "silent",
        NodeState::Missing => "gone",
        NodeState::NotVisible => "not visible to this user",
    };
    let cordoned = if node.is_cordoned { ", cordoned" } else { "" };
    format!("{}, {state}{cordoned}", node.name)
}

fn conditions(page: &mut Page<'_>, conditions: &[ConditionStory]) {
    if conditions.is_empty() {
        return;
    }
    page.heading("Conditions that are not well");
    for one in conditions {
        let since = one.since.map(|since| format!(" since {}", page.when(since)));
        let reason = one.reason.as_ref().map(|reason| format!(" ({reason})"));
        let message = one.message.as_ref().filter(|words| !words.is_empty());
        let text = format!(
            "{} {} is {}{}{}{}",
            one.of,
            one.type_,
            one.status,
            reason.unwrap_or_default(),
            since.unwrap_or_default(),
            message.map_or_else(String::new, |words| format!(": {words}")),
        );
        page.item(&text);
    }
}

fn maintenance(page: &mut Page<'_>, story: &MaintenanceStory) {
    let standing = story.plan.as_ref().map(|entry| &entry.standing);
    let title = match (standing, &story.phase) {
        (Some(Standing::UnderWay { phase, .. }), _) => format!("under way ({})", phase.as_str()),
        (Some(Standing::Due), _) => "due now".to_owned(),
        (Some(Standing::Planned), _) => "planned".to_owned(),
        (Some(Standing::MovesEvent { .. }), _) => "planned, after its event is moved".to_owned(),
        (Some(Standing::Blocked), _) => "blocked".to_owned(),
        (Some(Standing::LeftAlone), _) => "left alone".to_owned(),
        (None, Some(phase)) => phase.clone(),
        (None, None) => "none is needed".to_owned(),
    };
    page.heading(&format!("Maintenance: {title}"));
    if story.plan.is_none()
        && let Some(message) = &story.message
    {
        page.field("Record", message);
    }
    let reasons: Vec<String> = story.reasons.iter().map(|one| reason(page, one)).collect();
    page.fields("Why", reasons);
    if let Some(entry) = &story.plan {
        planned(page, entry);
    }
    page.field("Policy", story.policy.as_deref().unwrap_or("none selects it: the defaults hold"));
    page.fields("Drain", story.drain.iter().cloned());
    page.fields(
        "Waits for",
        story.waits.iter().map(|wait| format!("{} ({})", wait.message, wait.reason)),
    );
    if !story.timeline.is_empty() {
        page.heading("What happened");
        for entry in &story.timeline {
            let time = page.layout.zone.column(entry.time.0, page.layout.now);
            let begin = format!("  {time}  {:<10} ", entry.phase.as_str());
            let message = page.localized(&entry.message);
            page.lines.extend(wrapped(&begin, &message, page.layout.width));
        }
    }
    if !story.history.is_empty() {
        page.heading("Earlier maintenances");
        for entry in &story.history {
            page.item(entry);
        }
    }
}

fn reason(page: &Page<'_>, reason: &ReasonStory) -> String {
    let state = match reason.state {
        MaintenanceReasonState::Active => "",
        MaintenanceReasonState::Completed => ", completed",
        MaintenanceReasonState::Cancelled => ", cancelled",
        MaintenanceReasonState::Vanished => ", not shown by the provider any more",
    };
    let words = reason.description.as_ref().map(|words| format!(": {words}"));
    let movable = reason.not_before_deadline.map(|until| {
        format!("; may be moved up to {}", page.layout.zone.words(until, page.layout.now))
    });
    format!(
        "{}{}{state}; known since {} by {}{}",
        reason.title,
        words.unwrap_or_default(),
        page.layout.zone.words(reason.since, page.layout.now),
        reason.sources.join(", "),
        movable.unwrap_or_default()
    )
}

fn planned(page: &mut Page<'_>, entry: &PlanEntry) {
    let mut what = entry.action.as_str().to_owned();
    if !entry.why_action.is_empty() {
        what.push_str(&format!(", because {}", entry.why_action));
    }
    if !entry.and_then.is_empty() {
        let then: Vec<&str> = entry.and_then.iter().map(|action| action.as_str()).collect();
        what.push_str(&format!("; if that fails: {}", then.join(", then ")));
    }
    page.field("What", &what);
    let is_under_way = matches!(entry.standing, Standing::UnderWay { .. });
    if let Some(start) = entry.start {
        let mut when = page.when(start);
        if let Some(window) = &entry.window {
            when.push_str(&format!(", in window {window}"));
        }
        let takes = duration_in_words(entry.expected);
        when.push_str(&format!(", takes about {takes}"));
        page.field(if is_under_way { "Began" } else { "Begins" }, &when);
        if !entry.why.is_empty() && !is_under_way {
            page.field("Why then", &entry.why);
        }
    }
    if let Some(at) = entry.latest_safe_start.filter(|_| !is_under_way) {
        let when = page.when(at);
        page.field("Last safe start", &when);
    }
    if let Some(at) = entry.deadline {
        let late = if entry.is_late { "; it will be late, or against the calendar" } else { "" };
        let when = format!("{}{late}", page.when(at));
        page.field("Deadline", &when);
    }
}

pub(super) fn pool(story: &PoolStory, layout: &Layout<'_>) -> String {
    let mut page = Page { layout, lines: Vec::new() };
    page.heading(&format!("Pool {} as of {}", story.name, layout.zone.whole(layout.now)));
    let surplus = if story.surplus > 0 {
        format!(", {} of them above its size for maintenance", story.surplus)
    } else {
        String::new()
    };
    page.field(
        "Machines",
        &format!(
            "{} wanted, {} there, {} ready{surplus}",
            story.desired, story.current, story.ready
        ),
    );
    if let Some(waiting) = &story.waiting {
        page.field("Waits for", &format!("{} ({})", waiting.message, waiting.reason));
    }
    if let Some(paused) = &story.paused {
        page.field(
            "Paused",
            if paused.is_empty() || paused == "true" { "nobody said why" } else { paused },
        );
    }
    page.field(
        "Gate",
        story
            .gate
            .as_deref()
            .unwrap_or("a machine may be taken out of work by the operator's own choice"),
    );
    for member in &story.machines {
        page.heading(&format!("  {} ({})", member.name, member.phase));
        if let Some(waiting) = &member.waiting {
            page.field("Waits for", waiting);
        }
        if let Some(maintenance) = &member.maintenance {
            page.field("Maintenance", maintenance);
        }
    }
    page.finish()
}
