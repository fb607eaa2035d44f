//! Are the pages of conditions, events and annotations those of the names on the wire?

use crate::{
    golden::{self, cell},
    source::{Constant, constants, file},
};

const HEADER: &str = "Written by `make reference` from the names in the code.";

const ON_THE_WIRE: &str = "crates/api/src/names.rs";
const OF_THE_OPERATOR: &str = "crates/core/src/operator_status.rs";

/// A page, its title, what is said before the tables, and its tables: file and module of the constants,
/// heading, first column.
struct Page {
    file: &'static str,
    title: &'static str,
    words: &'static str,
    tables: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

const PAGES: [Page; 3] = [
    Page {
        file: "reference/conditions.md",
        title: "Conditions, their reasons, and phases",
        words: "Conditions are in `status.conditions` of the object. A condition that waits for something has one of the\n\
                [reasons to wait](../operate/waiting.md), each with its page; an instance that was changed behind the\n\
                cluster's back has one of those in [drift](../operate/drift.md).",
        tables: &[
            (ON_THE_WIRE, "condition_type", "Conditions", "type"),
            (ON_THE_WIRE, "reason", "Reasons", "reason"),
            (ON_THE_WIRE, "maintenance_reason", "Reasons of a maintenance", "reason"),
            (ON_THE_WIRE, "phase", "Phases of a Machine", "phase"),
            (
                OF_THE_OPERATOR,
                "condition_type",
                "Conditions of the operator, in the ConfigMap `machinist-operator-status`",
                "type",
            ),
            (OF_THE_OPERATOR, "reason", "Their reasons", "reason"),
            (
                ON_THE_WIRE,
                "error_reason",
                "`status.errorReason` of a Machine or MachineSet",
                "value",
            ),
        ],
    },
    Page {
        file: "reference/events.md",
        title: "Events",
        words: "Events are recorded on the object that they are about. Besides these, an instance that was changed behind\n\
                the cluster's back is an event with the reason of [drift](../operate/drift.md).",
        tables: &[(ON_THE_WIRE, "event", "Reasons", "reason")],
    },
    Page {
        file: "reference/annotations.md",
        title: "Annotations, labels, taints, finalizers and tags",
        words: "What Machinist reads and writes on objects besides their fields. What it only reads is yours to set.",
        tables: &[
            (ON_THE_WIRE, "annotation", "Annotations", "annotation"),
            (ON_THE_WIRE, "label", "Labels", "label"),
            (ON_THE_WIRE, "taint", "Taints", "taint"),
            (ON_THE_WIRE, "finalizer", "Finalizers", "finalizer"),
            (ON_THE_WIRE, "tag", "Tags on instances", "tag"),
        ],
    },
];

#[test]
fn the_pages_of_names_are_those_of_the_code() {
    for page in PAGES {
        let mut text = format!("# {}\n\n{HEADER}\n\n{}\n", page.title, page.words);
        for (source, module, heading, column) in page.tables {
            text.push_str(&format!("\n## {heading}\n\n| {column} | meaning |\n|---|---|\n"));
            let names = constants(&file(source));
            let rows: Vec<&Constant> = names.iter().filter(|one| one.module == *module).collect();
            assert!(!rows.is_empty(), "{source} has no module {module}");
            text.extend(rows.into_iter().map(row));
        }
        golden::assert_is(page.file, &text);
    }
}

fn row(one: &Constant) -> String {
    assert!(!one.words.is_empty(), "{}::{} has no doc comment", one.module, one.name);
    format!("| `{}` | {} |\n", one.value, cell(&one.words))
}
