//! What do the conditions of many Machines say together?
//!
//! The words are Cluster API's: at most three different messages, each with at most three names, then how many more there are.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use machinist_api::cluster_api::{
    Machine,
    condition::{self, FALSE, TRUE, UNKNOWN},
};

const MESSAGES_MAX: usize = 3;
const NAMES_MAX: usize = 3;

/// What many conditions say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    pub status: &'static str,
    pub message: String,
}

/// Sums up the conditions of one type. A Machine without it counts as unknown.
pub fn of_machines(machines: &[&Machine], type_: &str) -> Aggregate {
    let mut issues: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut unknown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for machine in machines {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        let conditions = machine.status.as_ref().map_or(&[][..], |status| &status.conditions);
        match condition::find(conditions, type_) {
            Some(known) if known.status == TRUE => {}
            Some(known) if known.status == FALSE => {
                issues.entry(words_of(known)).or_default().push(name);
            }
            Some(known) => unknown.entry(words_of(known)).or_default().push(name),
            None => {
                let words = format!("Condition {type_} not yet reported");
                unknown.entry(words).or_default().push(name);
            }
        }
    }
    let status = match (issues.is_empty(), unknown.is_empty()) {
        (false, _) => FALSE,
        (true, false) => UNKNOWN,
        (true, true) => TRUE,
    };
    let mut lines = lines(&issues, "with other issues", MESSAGES_MAX);
    let left = MESSAGES_MAX.saturating_sub(issues.len());
    lines.extend(self::lines(&unknown, "with status unknown", left));
    Aggregate { status, message: lines.join("\n") }
}

fn words_of(condition: &Condition) -> String {
    match condition.message.is_empty() {
        true => format!("* {}: {}", condition.type_, condition.reason),
        false => condition.message.clone(),
    }
}

/// The messages that most Machines have come first.
fn lines(groups: &BTreeMap<String, Vec<&str>>, others: &str, most: usize) -> Vec<String> {
    let mut ordered: Vec<_> = groups.iter().collect();
    ordered
        .sort_by(|left, right| right.1.len().cmp(&left.1.len()).then_with(|| left.0.cmp(right.0)));
    let mut lines: Vec<String> =
        ordered.iter().take(most).map(|(words, names)| line(words, names)).collect();
    let rest: usize = ordered.iter().skip(most).map(|(_, names)| names.len()).sum();
    match rest {
        0 => {}
        1 => lines.push(format!("And 1 Machine {others}")),
        _ => lines.push(format!("And {rest} Machines {others}")),
    }
    lines
}

fn line(words: &str, names: &[&str]) -> String {
    let who = format!("* {} {}:", plural("Machine", names.len()), listed(names));
    if words.starts_with("* ") || words.contains('\n') {
        let inner: Vec<String> = words.lines().map(|one| format!("  {one}")).collect();
        return format!("{who}\n{}", inner.join("\n"));
    }
    format!("{who} {words}")
}

/// The names in order, at most three, and how many more there are.
pub fn listed(names: &[&str]) -> String {
    let mut ordered = names.to_vec();
    ordered.sort_unstable();
    let more = ordered.len().saturating_sub(NAMES_MAX);
    let shown: Vec<&str> = ordered.into_iter().take(NAMES_MAX).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{}, ... ({more} more)", shown.join(", ")),
    }
}

pub fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, status: &str, message: &str) -> Machine {
        let mut machine = Machine::new(name, Default::default());
        let at = jiff::Timestamp::from_second(1).unwrap();
        let ready = condition::new("Ready", status, "R", message, at);
        machine.status.get_or_insert_default().conditions.push(ready);
        machine
    }

    fn of(machines: &[Machine]) -> Aggregate {
        of_machines(&machines.iter().collect::<Vec<_>>(), "Ready")
    }

    #[test]
    fn equal_words_are_said_once_and_names_are_cut() {
        let machines: Vec<_> =
            ["e", "d", "c", "b", "a"].map(|name| machine(name, FALSE, "bad")).into();
        let aggregate = of(&machines);
        assert_eq!(aggregate.status, FALSE);
        assert_eq!(aggregate.message, "* Machines a, b, c, ... (2 more): bad");
    }

    #[test]
    fn issues_come_before_what_is_unknown() {
        let mut silent = machine("s", TRUE, "");
        silent.status = None;
        let machines = [machine("a", TRUE, ""), silent, machine("b", FALSE, "* X: y\n* Z: w")];
        let aggregate = of(&machines);
        assert_eq!(
            aggregate.message,
            "* Machine b:\n  * X: y\n  * Z: w\n* Machine s: Condition Ready not yet reported"
        );
        assert_eq!(of(&[machine("a", TRUE, "")]).status, TRUE);
        assert_eq!(of(&[machine("a", UNKNOWN, "?")]).status, UNKNOWN);
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let machines: Vec<_> = (0..5)
            .map(|number| machine(&format!("m{number}"), FALSE, &format!("w{number}")))
            .collect();
        let aggregate = of(&machines);
        assert!(
            aggregate.message.ends_with("And 2 Machines with other issues"),
            "{}",
            aggregate.message
        );
    }
}
