//! What is done for a machine: by the codes of its reasons, by what it is made of, by its role and by
//! policy; and what is done instead when that fails.

use machinist_api::{InstanceTraits, MaintenanceAction, MaintenanceReason, MaintenanceReasonKind};

use super::{
    event::{Code, is_network_only},
    policy::Policy,
};
use crate::cloud::{RebootMigration, RootDevice};

/// What of a machine decides what can be done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub root_device: RootDevice,
    /// Whether it has disks whose content a stop destroys.
    pub has_instance_store: bool,
    /// Whether it is a spot instance, which cannot be stopped.
    pub is_interruptible: bool,
    pub reboot_migration: RebootMigration,
    pub replacement: Replacement,
    /// Why nothing can be done to the instance itself, where nothing can.
    pub out_of_reach: Option<&'static str>,
}

impl Traits {
    /// What is recorded of them, for those who do not ask the provider.
    pub fn as_record(&self) -> InstanceTraits {
        InstanceTraits {
            interruptible: self.is_interruptible,
            local_disks: self.has_instance_store,
            reboot_moves: self.reboot_migration != RebootMigration::Unavailable,
            root_on_host: self.root_device == RootDevice::InstanceStore,
        }
    }
}

/// Who would make another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Its MachineSet.
    Pool,
    /// Another controller that owns it and replaces what is deleted (ControlPlaneMachineSet).
    Owner(String),
    /// We do, by a copy of the Machine: a control-plane machine without an owner.
    Copy,
    /// Another controller, at its own time: it is not ours to take one away. Says who.
    Theirs(String),
    /// Nobody.
    #[default]
    Nobody,
}

/// What is done, and instead of it when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub action: MaintenanceAction,
    pub and_then: Vec<MaintenanceAction>,
    /// Why this and nothing else.
    pub why: String,
}

/// Chooses for the reasons that hold. The one that needs most decides: what heals a retirement heals
/// a reboot.
pub fn choose(reasons: &[MaintenanceReason], traits: &Traits, policy: &Policy) -> Choice {
    let mut best: Option<Choice> = None;
    for reason in reasons {
        let choice = choose_for(reason, traits, policy);
        if best.as_ref().is_none_or(|best| choice.action > best.action) {
            best = Some(choice);
        }
    }
    best.unwrap_or_else(|| nothing("there is no reason"))
}

fn choose_for(reason: &MaintenanceReason, traits: &Traits, policy: &Policy) -> Choice {
    let rule = policy.events.get(&reason.code);
    if let (MaintenanceReasonKind::Request, Some(wish), Some(why)) =
        (reason.kind, reason.action, traits.out_of_reach)
        && is_in_place(wish)
    {
        // Who asks for less must not get more than that.
        return nothing(format!(
            "{} was asked for, and {why}; Replace can be asked for",
            wish.as_str()
        ));
    }
    let (ladder, why) = match (reason.action, rule) {
        (Some(wish), _) => (from(wish), format!("{} was asked for", wish.as_str())),
        (None, Some(rule)) => {
            let mut ladder = vec![rule.action];
            match &rule.escalation {
                Some(escalation) => ladder.extend(escalation),
                None => ladder = from(rule.action),
            }
            let why = format!("{} says so for {}", policy.title(), reason.code);
            (ladder, why)
        }
        (None, None) => usual(reason, traits),
    };
    if ladder.first() == Some(&MaintenanceAction::Nothing) {
        return nothing(why);
    }
    let is_chosen = reason.action.is_some() || rule.is_some();
    let mut refusals = Vec::new();
    let mut possible = Vec::new();
    for action in ladder {
        match refusal(action, traits, is_chosen) {
            None => possible.push(action),
            Some(refusal) => refusals.push(refusal),
        }
    }
    let mut possible = possible.into_iter();
    match possible.next() {
        Some(action) => {
            let why = match refusals.first() {
                Some(refusal) => format!("{why}; {refusal}"),
                None => why,
            };
            Choice { action, and_then: possible.collect(), why }
        }
        None => nothing(refusals.join("; ")),
    }
}

/// What is done where policy and people say nothing, and why.
fn usual(reason: &MaintenanceReason, traits: &Traits) -> (Vec<MaintenanceAction>, String) {
    use MaintenanceAction::{Nothing, Reboot, RebootMigrate, Replace, StopStart};
    let words = |text: &str| text.to_owned();
    let Some(code) = Code::of(&reason.code) else {
        return match reason.kind {
            MaintenanceReasonKind::Request => {
                (vec![Replace], words("a person asks and names no action"))
            }
            MaintenanceReasonKind::Event
            | MaintenanceReasonKind::Drift
            | MaintenanceReasonKind::Outdated => {
                (vec![Nothing], format!("nothing is known to help against {}", reason.code))
            }
        };
    };
    let keeps_data = "a stop would destroy what is on its local disks, and the provider's reboot \
                      does not";
    let description = reason.description.as_deref().unwrap_or_default();
    match code {
        Code::InstanceRetirement => match traits.replacement {
            Replacement::Theirs(_) => (vec![Replace], words("its host is at the end of its life")),
            Replacement::Nobody => {
                (vec![StopStart], words("nobody would make another machine, and a start moves it"))
            }
            Replacement::Pool | Replacement::Owner(_) | Replacement::Copy => {
                (vec![Replace], words("its host is at the end of its life"))
            }
        },
        Code::InstanceStop => {
            (vec![StopStart, Replace], words("a stop and a start move it to another host"))
        }
        Code::InstanceReboot => {
            (vec![Reboot, StopStart, Replace], words("a reboot of our own settles it"))
        }
        Code::SystemReboot if traits.has_instance_store => (vec![Nothing], words(keeps_data)),
        Code::SystemReboot => (
            vec![RebootMigrate, StopStart, Replace],
            words("it must leave its host before that reboots"),
        ),
        Code::SystemMaintenance if is_network_only(description) => {
            (vec![Nothing], words("the network is lost for a short time only"))
        }
        Code::SystemMaintenance if traits.has_instance_store => (vec![Nothing], words(keeps_data)),
        Code::SystemMaintenance => {
            (vec![StopStart, Replace], words("it must leave its host before that loses power"))
        }
    }
}

/// An action and everything that heals more.
fn from(action: MaintenanceAction) -> Vec<MaintenanceAction> {
    if action == MaintenanceAction::Nothing {
        return vec![action];
    }
    let heals_more = |one: &MaintenanceAction| {
        // A migration is only worth a try where it was meant.
        *one >= action && (*one != MaintenanceAction::RebootMigrate || *one == action)
    };
    MaintenanceAction::ALL.into_iter().filter(heals_more).collect()
}

/// Why an action is impossible for a machine. What a person or a policy chose may destroy local data.
fn refusal(action: MaintenanceAction, traits: &Traits, is_chosen: bool) -> Option<String> {
    if let Some(why) = traits.out_of_reach.filter(|_| is_in_place(action)) {
        return Some(why.to_owned());
    }
    let words = match action {
        MaintenanceAction::Nothing | MaintenanceAction::Reboot => return None,
        MaintenanceAction::RebootMigrate => match traits.reboot_migration {
            RebootMigration::Available | RebootMigration::Enabled => return None,
            RebootMigration::Unavailable => "a reboot would not move it to another host",
        },
        MaintenanceAction::StopStart if traits.root_device == RootDevice::InstanceStore => {
            "it cannot be stopped, because its root is on the host"
        }
        MaintenanceAction::StopStart if traits.is_interruptible => {
            "a spot instance cannot be stopped"
        }
        MaintenanceAction::StopStart if traits.has_instance_store && !is_chosen => {
            "a stop would destroy what is on its local disks"
        }
        MaintenanceAction::StopStart => return None,
        MaintenanceAction::Replace => match &traits.replacement {
            Replacement::Pool | Replacement::Owner(_) | Replacement::Copy => return None,
            Replacement::Theirs(why) => return Some(why.clone()),
            Replacement::Nobody => "nobody would make another machine",
        },
    };
    Some(words.to_owned())
}

fn is_in_place(action: MaintenanceAction) -> bool {
    !matches!(action, MaintenanceAction::Nothing | MaintenanceAction::Replace)
}

fn nothing(why: impl Into<String>) -> Choice {
    Choice { action: MaintenanceAction::Nothing, and_then: Vec::new(), why: why.into() }
}
