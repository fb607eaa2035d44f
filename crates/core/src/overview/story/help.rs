//! What can a person do about what holds a machine up?

use machinist_api::names::{annotation, maintenance_reason as reason, reason as condition_reason};

use super::Story;

/// One sentence for each thing that can be done, without the same one twice.
pub fn of(story: &Story) -> Vec<String> {
    let mut help: Vec<String> = Vec::new();
    let mut add = |sentence: Option<String>| {
        if let Some(sentence) = sentence
            && !help.contains(&sentence)
        {
            help.push(sentence);
        }
    };
    let name = story.name.as_str();
    let is_held = story
        .conditions
        .iter()
        .any(|one| one.reason.as_deref() == Some(condition_reason::DISRUPTION_HELD));
    if is_held {
        add(Some(format!(
            "machinist approve machine/{name}, once it is clear that the pool bears it"
        )));
    }
    if let Some(maintenance) = &story.maintenance {
        let policy = maintenance.policy.as_deref();
        for wait in &maintenance.waits {
            if wait.reason == reason::PAUSED {
                story.pauses.iter().for_each(|pause| add(Some(resume(pause, &story.name))));
            }
            add(for_wait(&wait.reason, story, policy));
        }
    }
    help
}

fn for_wait(word: &str, story: &Story, policy: Option<&str>) -> Option<String> {
    let name = &story.name;
    let of_policy = |field: &str| match policy {
        Some(policy) => format!("{field} of MaintenancePolicy {policy}"),
        None => format!("{field} of a MaintenancePolicy that selects it"),
    };
    let sentence = match word {
        reason::ON_HOLD => format!(
            "take it off hold: kubectl annotate machine {name} -n {} {}-",
            story.namespace,
            annotation::HOLD
        ),
        reason::APPROVAL_MISSING => format!("machinist approve machine/{name}"),
        reason::CONTROL_PLANE_REPORT_ONLY => {
            format!("{}: OneAtATime lets it be done", of_policy("spec.controlPlane"))
        }
        reason::CONTROL_PLANE_NOT_READY => {
            "bring the other members of the control plane back first: machinist explain \
             machine/NAME tells of each"
                .to_owned()
        }
        reason::OUTSIDE_WINDOW | reason::FROZEN | reason::NOT_YET => {
            "nothing needs to be done: it begins by itself then; `machinist plan --policy FILE` \
             tries another calendar"
                .to_owned()
        }
        reason::WINDOW_TOO_SHORT => {
            format!("a longer window: {}", of_policy("spec.windows[].duration"))
        }
        reason::NO_WINDOW_IN_TIME => {
            format!("an earlier window, or another answer: {}", of_policy("spec.whenNoWindow"))
        }
        reason::NO_WINDOW => format!("a window that opens: {}", of_policy("spec.windows")),
        reason::BUDGET_EXHAUSTED => {
            format!(
                "nothing needs to be done: it begins when others are back; {} allows more at once",
                of_policy("spec.budgets")
            )
        }
        reason::DO_NOT_DISRUPT => format!(
            "let those pods end, or take {} from them; it begins at the latest safe start anyway",
            annotation::DO_NOT_DISRUPT
        ),
        reason::DRAIN_IMPOSSIBLE | reason::DRAIN_BLOCKED => format!(
            "give the workload another replica or loosen its disruption budget; {}: Force goes on \
             without them",
            of_policy("spec.drain.afterDeadline")
        ),
        reason::POLICY_INVALID => {
            let policy = policy.unwrap_or_default();
            format!("correct the fields: kubectl edit maintenancepolicy {policy}")
        }
        reason::NO_ACTION => {
            format!("where something helps all the same, name it: {}", of_policy("spec.events"))
        }
        reason::GATE_HOLDS => {
            format!("machinist approve machine/{name}, once it is clear that the pool bears it")
        }
        reason::CLOUD_UNKNOWN => {
            "look at the operator's credentials and its reach of the cloud: its metrics and its log \
             say more"
                .to_owned()
        }
        reason::SURGE_NOT_READY | reason::SURGE_NOT_ALLOWED => {
            let pool = story.pool.as_deref().unwrap_or_default();
            format!("see what holds the new machine up: machinist explain machineset/{pool}")
        }
        reason::EVENT_STILL_PRESENT | reason::REASON_DOUBTFUL => {
            "nothing needs to be done: the provider is asked again".to_owned()
        }
        _ => return None,
    };
    Some(sentence)
}

/// How a pause is ended that is told as `pool x: why`.
fn resume(pause: &str, machine: &str) -> String {
    let place = pause.split_once(':').map_or(pause, |(place, _)| place);
    let flag = match place.split_once(' ') {
        Some(("this", _)) => format!(" --machine {machine}"),
        Some(("policy", name)) => format!(" --policy {name}"),
        Some(("pool", name)) => format!(" --pool {name}"),
        _ => String::new(),
    };
    format!("machinist maintenance resume{flag}")
}
