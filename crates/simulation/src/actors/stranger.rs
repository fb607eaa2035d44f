//! Who asks for certificates that are not theirs? Whoever got hold of the bootstrapper's token or of a
//! Node's identity, and whoever has neither. None of it may be approved, whatever happens.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Scene, signer::REQUESTS, text};
use crate::{
    api_server::ObjectRef,
    certificates::{self, Asked, BOOTSTRAPPER, Purpose, user_of},
    chance::Chance,
    faults::FaultKind,
};

/// What a stranger asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stranger {
    /// To be a Node of which there is no Machine.
    Unknown,
    /// To be the Node that a Machine has become already.
    Joined,
    /// To be the Node of a Machine whose own request was approved.
    Second,
    /// To serve, as one Node, under the name and address of another.
    OtherName,
    /// To serve as another Node than the one that asks.
    Impostor,
    /// To be a Machine's Node, without the bootstrapper's token.
    NotBootstrapper,
    /// To be a Machine's Node and an administrator.
    Administrator,
    /// To serve, with nothing but the bootstrapper's token.
    NotNode,
}

impl Stranger {
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Joined,
        Self::Second,
        Self::OtherName,
        Self::Impostor,
        Self::NotBootstrapper,
        Self::Administrator,
        Self::NotNode,
    ];

    /// Whether it would be right once the Machine that it aims at is gone and another has its name.
    const fn depends_on_machine(self) -> bool {
        matches!(self, Self::Joined | Self::Second)
    }
}

/// Requests that are taken back when the Machine that they aim at is gone: its name may be another's
/// then, and nobody could tell whose they are.
#[derive(Debug, Default)]
pub struct Strangers {
    /// Name of the request and uid of the Machine.
    aimed: Vec<(String, String)>,
    asked: u32,
}

impl Strangers {
    /// Asks, if there is somebody to be asked for. Says whether there was.
    pub fn ask(
        &mut self,
        scene: &Scene,
        chance: &mut Chance,
        stranger: Stranger,
        about: Option<&str>,
    ) -> bool {
        let machines = scene.objects("machine.openshift.io", "machines");
        let fitting: Vec<&ObjectRef> = machines
            .iter()
            .filter(|machine| about.is_none_or(|name| name == machine.name()))
            .filter(|machine| !machine.is_being_deleted() && fits(scene, stranger, machine))
            .collect();
        let aim = chance.pick(&fitting).copied();
        // A name that is used again is the own of both.
        let differs = |one: &ObjectRef, aim: &ObjectRef, type_: &str| {
            !internal(one, type_).is_empty() && internal(one, type_) != internal(aim, type_)
        };
        let other = machines.iter().find(|one| {
            aim.is_some_and(|aim| {
                differs(one, aim, "InternalDNS") && differs(one, aim, "InternalIP")
            })
        });
        let asked = match (stranger, aim) {
            (Stranger::Unknown, _) => {
                let number = chance.between(1, 250);
                let asked = Asked::client(&format!("ip-10-99-0-{number}.ec2.internal"));
                Some((BOOTSTRAPPER.to_owned(), Purpose::Client, asked))
            }
            (_, Some(aim)) => request_about(stranger, aim, other),
            (_, None) => None,
        };
        let Some((who, purpose, asked)) = asked else { return false };
        self.asked += 1;
        let metadata = json!({ "name": format!("stranger-{}", self.asked) });
        let object = certificates::object(metadata, purpose, &asked.by_stranger());
        let Some(made) = scene.create(&who, REQUESTS.0, REQUESTS.1, object) else { return false };
        let aim = aim.filter(|_| stranger.depends_on_machine());
        scene.hub.judge().must_not_be_approved(made.uid(), aim.map(|aim| aim.uid()));
        scene.hub.count_fault(FaultKind::F73, None);
        if let Some(aim) = aim {
            self.aimed.push((made.name().to_owned(), aim.uid().to_owned()));
        }
        true
    }

    /// Takes back what aims at a Machine that is gone.
    pub fn withdraw(&mut self, scene: &Scene) {
        if self.aimed.is_empty() {
            return;
        }
        let machines = scene.objects("machine.openshift.io", "machines");
        self.aimed.retain(|(request, uid)| {
            let is_there = machines.iter().any(|one| one.uid() == uid && !one.is_being_deleted());
            if !is_there {
                scene.delete("stranger", REQUESTS, ("", request), Value::Null);
            }
            is_there
        });
    }
}

/// Whether a Machine can be aimed at so.
fn fits(scene: &Scene, stranger: Stranger, machine: &ObjectRef) -> bool {
    let is_named = !internal(machine, "InternalDNS").is_empty();
    let is_linked = !text(machine.value(), "/status/nodeRef/name").is_empty();
    match stranger {
        Stranger::Unknown => true,
        Stranger::Joined | Stranger::OtherName | Stranger::Impostor => is_named && is_linked,
        Stranger::Second => is_named && scene.hub.judge().may_join(machine.uid()),
        Stranger::NotBootstrapper | Stranger::Administrator | Stranger::NotNode => is_named,
    }
}

fn request_about(
    stranger: Stranger,
    machine: &ObjectRef,
    other: Option<&ObjectRef>,
) -> Option<(String, Purpose, Asked)> {
    let name = internal(machine, "InternalDNS");
    let address: Option<IpAddr> = internal(machine, "InternalIP").parse().ok();
    let bootstrapper = BOOTSTRAPPER.to_owned();
    Some(match stranger {
        Stranger::Unknown | Stranger::Joined | Stranger::Second => {
            (bootstrapper, Purpose::Client, Asked::client(name))
        }
        Stranger::OtherName => {
            let other = other?;
            let dns = internal(other, "InternalDNS");
            let ip = internal(other, "InternalIP").parse().ok();
            (user_of(name), Purpose::Serving, Asked::serving(name, dns, ip))
        }
        Stranger::Impostor => {
            let other = internal(other?, "InternalDNS");
            (user_of(other), Purpose::Serving, Asked::serving(name, name, address))
        }
        Stranger::NotBootstrapper => ("user".to_owned(), Purpose::Client, Asked::client(name)),
        Stranger::Administrator => {
            let mut asked = Asked::client(name);
            asked.organizations.push("system:masters".to_owned());
            (bootstrapper, Purpose::Client, asked)
        }
        Stranger::NotNode => (bootstrapper, Purpose::Serving, Asked::serving(name, name, address)),
    })
}

/// The first address of a kind that a Machine shows.
fn internal<'a>(machine: &'a ObjectRef, type_: &str) -> &'a str {
    let shown = machine.value().pointer("/status/addresses").and_then(Value::as_array);
    let found = shown.into_iter().flatten().find(|one| text(one, "/type") == type_);
    found.map(|one| text(one, "/address")).unwrap_or_default()
}
