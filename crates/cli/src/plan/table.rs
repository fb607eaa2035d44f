//! What does the plan look like in rows, and what stands above and below them?

use clap::builder::styling::{AnsiColor, Style};
use machinist_api::names::maintenance_reason as reason;
use machinist_core::maintenance::{
    Plan, PlanEntry,
    plan::{Standing, duration_in_words},
};

use super::Trial;
use crate::{
    fleet::Picture,
    screen::{Layout, counted, joined, shortened, wrapped},
    snapshot::Snapshot,
    table::{self, Cell, Row},
};

/// kubectl's word for a cell without a value.
const NONE: &str = "<none>";
/// A machine's name is not cut to less than this.
const NAME_MIN: usize = 12;

pub(super) fn heading(plan: &Plan, trial: &Trial, layout: &Layout<'_>) -> String {
    let title = format!("Plan as of {}", layout.zone.whole(plan.as_of));
    let mut text = joined(&wrapped("", &title, layout.text_width()));
    let mut tried = Vec::new();
    if !trial.policies.is_empty() {
        tried.push(format!("policy {} from a file", trial.policies.join(", ")));
    }
    if !trial.events.is_empty() {
        tried.push(counted(trial.events.len(), "supposed event"));
    }
    if !tried.is_empty() {
        let tried = format!("With {}. Nothing was changed.", tried.join(" and "));
        text.push_str(&joined(&wrapped("", &tried, layout.text_width())));
    }
    text + "\n"
}

pub(super) fn nothing(snapshot: &Snapshot, layout: &Layout<'_>) -> String {
    let text = format!(
        "Nothing is planned: no machine in namespace {} needs maintenance ({} looked at).",
        snapshot.namespace,
        snapshot.machines.len()
    );
    joined(&wrapped("", &text, layout.text_width()))
}

/// One row for each machine. On a terminal what there is to say of it is below it; elsewhere it is the
/// last column, so that one line says everything of a machine.
pub(super) fn table(picture: &Picture<'_>, layout: &Layout<'_>) -> String {
    let plan = picture.plan;
    let Some(width) = layout.width.filter(|_| !layout.is_wide) else {
        return joined(&table::lines(&rows(picture, layout, Columns::All), None));
    };
    let whole = usize::MAX;
    let fits = |columns: &Columns| table::width(&rows(picture, layout, *columns)) <= width;
    let roomy = [Columns::Usual, Columns::WithoutWindow];
    let columns = roomy.into_iter().find(fits).unwrap_or_else(|| {
        let needed = table::width(&rows(picture, layout, Columns::Few { name: whole }));
        let longest = plan.entries.iter().map(|entry| entry.machine.chars().count()).max();
        let name = longest.unwrap_or(0).saturating_sub(needed.saturating_sub(width));
        Columns::Few { name: name.max(NAME_MIN) }
    });
    joined(&table::lines(&rows(picture, layout, columns), Some(width)))
}

/// Which columns there are. What has none is said below the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// For files, other programs and wide output.
    All,
    Usual,
    WithoutWindow,
    /// Neither window nor deadline; names have at most so many letters.
    Few {
        name: usize,
    },
}

impl Columns {
    fn have_window(self) -> bool {
        matches!(self, Self::All | Self::Usual)
    }

    fn have_deadline(self) -> bool {
        !matches!(self, Self::Few { .. })
    }
}

fn rows(picture: &Picture<'_>, layout: &Layout<'_>, columns: Columns) -> Vec<Row> {
    let mut titles = vec!["WHEN", "MACHINE", "WHAT"];
    titles.extend(columns.have_window().then_some("WINDOW"));
    titles.extend(columns.have_deadline().then_some("DEADLINE"));
    if columns == Columns::All && layout.is_wide {
        titles.extend(["LAST SAFE START", "TAKES", "POOL", "ZONE", "POLICY"]);
    }
    if columns == Columns::All {
        titles.push("WHY");
    }
    let bold = Style::new().bold();
    let mut rows: Vec<Row> =
        vec![titles.into_iter().map(|title| Cell::styled(title, bold)).collect::<Vec<_>>().into()];
    let entries = picture.plan.entries.iter();
    rows.extend(entries.map(|entry| row(picture, entry, layout, columns)));
    rows
}

fn row(picture: &Picture<'_>, entry: &PlanEntry, layout: &Layout<'_>, columns: Columns) -> Row {
    let plan = picture.plan;
    let name = match columns {
        Columns::All | Columns::Usual | Columns::WithoutWindow => entry.machine.clone(),
        Columns::Few { name } => shortened(&entry.machine, name),
    };
    let mut cells =
        vec![when(plan, entry, layout), Cell::plain(name), Cell::plain(entry.action.as_str())];
    cells.extend(columns.have_window().then(|| window(entry)));
    cells.extend(columns.have_deadline().then(|| deadline(plan, entry, layout)));
    if columns == Columns::All {
        if layout.is_wide {
            let word = |text: Option<&String>| text.map_or_else(none, Cell::plain);
            cells.push(
                entry
                    .latest_safe_start
                    .map_or_else(none, |at| Cell::plain(layout.zone.column(at, plan.as_of))),
            );
            cells.push(Cell::plain(duration_in_words(entry.expected)));
            cells.extend(
                [entry.pool.as_ref(), entry.zone.as_ref(), entry.policy.as_ref()].map(word),
            );
        }
        cells.push(Cell::plain(sayings(picture, entry, layout).join("; ")));
        return cells.into();
    }
    let mut sayings = sayings(picture, entry, layout);
    // Why then mostly names the window.
    let window = Some(window(entry).text).filter(|text| {
        !columns.have_window() && text != NONE && !entry.why.contains(&format!("window {text} "))
    });
    let deadline = entry.deadline.filter(|_| !columns.have_deadline());
    let below: Vec<String> = [
        window.map(|window| format!("window {window}")),
        deadline.map(|at| format!("deadline {}", layout.zone.words(at, plan.as_of))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !below.is_empty() {
        sayings.insert(0, below.join(", "));
    }
    let style = if entry.is_late || entry.standing == Standing::Blocked {
        attention()
    } else {
        Style::new()
    };
    let notes =
        sayings.into_iter().map(|saying| Cell::styled(format!("    {saying}"), style)).collect();
    Row { cells, notes }
}

/// Why it is done, why then, and what else is in the way.
fn sayings(picture: &Picture<'_>, entry: &PlanEntry, layout: &Layout<'_>) -> Vec<String> {
    let plan = picture.plan;
    let mut sayings = Vec::new();
    if let Standing::UnderWay { phase, since } = &entry.standing {
        let since = layout.zone.words(*since, plan.as_of);
        sayings.push(format!("{} since {since}", phase.as_str()));
    }
    let is_under_way = matches!(entry.standing, Standing::UnderWay { .. });
    let recorded = picture.held_up.get(entry.machine.as_str()).copied().unwrap_or_default();
    let by_whom = if is_under_way { "" } else { "the operator waits: " };
    sayings.extend(recorded.iter().map(|wait| format!("{by_whom}{}", wait.message)));
    let mut why = entry.because.clone();
    if !entry.why.is_empty() && !is_under_way {
        let colon = if why.is_empty() { "" } else { ": " };
        why.push_str(&format!("{colon}{}", entry.why));
    }
    if !why.is_empty() {
        sayings.push(why);
    }
    // That a window opens when it does is said by the time itself.
    let is_said = |word: &str| {
        entry.standing == Standing::Planned && word == reason::OUTSIDE_WINDOW && !entry.is_late
    };
    let waits = entry.waits_on.iter().filter(|wait| !is_said(wait.reason));
    sayings.extend(waits.map(|wait| wait.message.clone()));
    sayings.iter().map(|text| layout.zone.localize(text, plan.as_of)).collect()
}

fn when(plan: &Plan, entry: &PlanEntry, layout: &Layout<'_>) -> Cell {
    let green = AnsiColor::Green.on_default();
    match (&entry.standing, entry.start) {
        (Standing::UnderWay { .. }, _) => Cell::styled("under way", green),
        (Standing::Due, _) if entry.is_late => Cell::styled("now, late", attention()),
        (Standing::Due, _) => Cell::styled("now", green),
        (Standing::Planned | Standing::MovesEvent { .. }, Some(start)) => {
            Cell::plain(layout.zone.column(start, plan.as_of))
        }
        (Standing::Planned | Standing::MovesEvent { .. }, None) => Cell::plain("later"),
        (Standing::Blocked, _) if entry.is_late => Cell::styled("blocked, late", attention()),
        (Standing::Blocked, _) => Cell::styled("blocked", attention()),
        (Standing::LeftAlone, _) => Cell::plain("left alone"),
    }
}

fn window(entry: &PlanEntry) -> Cell {
    match (&entry.window, entry.start) {
        (Some(window), _) => Cell::plain(window),
        (None, None) => none(),
        (None, Some(_)) if matches!(entry.standing, Standing::UnderWay { .. }) => none(),
        (None, Some(_)) if matches!(entry.standing, Standing::MovesEvent { .. }) => none(),
        (None, Some(_)) if entry.is_late => Cell::styled("(outside)", attention()),
        (None, Some(_)) => Cell::plain("(any hour)"),
    }
}

fn deadline(plan: &Plan, entry: &PlanEntry, layout: &Layout<'_>) -> Cell {
    let Some(deadline) = entry.deadline else { return none() };
    let style = if entry.is_late { attention() } else { Style::new() };
    Cell::styled(layout.zone.column(deadline, plan.as_of), style)
}

pub(super) fn summary(plan: &Plan, layout: &Layout<'_>) -> String {
    let count =
        |is: fn(&Standing) -> bool| plan.entries.iter().filter(|entry| is(&entry.standing)).count();
    let late = plan.entries.iter().filter(|entry| entry.is_late).count();
    let parts: Vec<String> = [
        (count(|one| matches!(one, Standing::UnderWay { .. })), "under way"),
        (count(|one| matches!(one, Standing::Due)), "due now"),
        (count(|one| matches!(one, Standing::Planned)), "planned"),
        (count(|one| matches!(one, Standing::MovesEvent { .. })), "after its event is moved"),
        (count(|one| matches!(one, Standing::Blocked)), "blocked"),
        (count(|one| matches!(one, Standing::LeftAlone)), "left alone"),
        (late, "late"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{count} {words}"))
    .collect();
    let text = format!("{}: {}", counted(plan.entries.len(), "machine"), parts.join(", "));
    joined(&wrapped("", &text, layout.text_width()))
}

fn none() -> Cell {
    Cell::styled(NONE, Style::new().dimmed())
}

const fn attention() -> Style {
    AnsiColor::Yellow.on_default()
}
