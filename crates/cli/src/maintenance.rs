//! How does a person keep maintenance from beginning, and let it begin again?
//!
//! A pause is an annotation whose value says why, and who paused it when; a policy has fields for it.

#[cfg(test)]
mod tests;

use std::io::Write;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, api::PostParams};
use machinist_core::overview::wish::pause::{self, Place, Signature, Wish};

use crate::{
    annotate::{self, Effect},
    args::{FleetArgs, MaintenanceArgs, MaintenanceCommand, PausedArgs},
    done::Done,
    failure::Hinted,
    kubeconfig::{Access, connect},
    plan, screen,
    snapshot::{self, Extent, Snapshot},
    zone::Zone,
};

pub async fn run(args: MaintenanceArgs) -> anyhow::Result<()> {
    let (wish, of) = match args.command {
        MaintenanceCommand::Pause(args) => {
            (Wish::Pause { reason: args.reason.unwrap_or_default() }, args.of)
        }
        MaintenanceCommand::Resume(args) => (Wish::Resume, args.of),
    };
    let zone = Zone::choose(of.zone.zone.as_deref())?;
    let now = plan::now(&zone, None)?;
    let fleet = FleetArgs {
        cluster: of.cluster.clone(),
        namespace: of.namespace.clone(),
        filename: Vec::new(),
    };
    let snapshot = snapshot::read(&fleet, Extent::Calendars).await?;
    let place = place(&of);
    let connection = connect(&of.cluster, Access::Write).await?;
    let by = match &wish {
        Wish::Pause { .. } => who(&connection.client).await,
        Wish::Resume => String::new(),
    };
    let signature = Signature { by, at: now };
    let change = pause::decide(&wish, &place, &snapshot.objects(), &signature);
    let change = change.map_err(|refusal| Hinted::refused(refusal, &zone, now))?;
    let effect = Effect::of(of.dry_run);
    if let Some(write) = &change.write {
        annotate::send(&connection.client, write, effect).await.map_err(|error| {
            connection.explain(&format!("cannot change {}", place.title()), error)
        })?;
    }
    let done = Done::of(&change, effect, others(&place, &snapshot));
    let text = done.text(of.output, &zone, now)?;
    screen::ignore_closed_pipe(std::io::stdout().write_all(text.as_bytes()))
}

fn place(args: &PausedArgs) -> Place {
    match (&args.machine, &args.pool, &args.policy) {
        (Some(name), _, _) => Place::Machine(name.clone()),
        (_, Some(name), _) => Place::Pool(name.clone()),
        (_, _, Some(name)) => Place::Policy(name.clone()),
        (None, None, None) => Place::Cluster,
    }
}

/// The pauses that there are besides.
fn others(place: &Place, snapshot: &Snapshot) -> Vec<String> {
    let all = pause::all(&snapshot.objects()).into_iter();
    all.filter(|(other, _)| other != place)
        .map(|(other, why)| format!("maintenance of {} is paused as well: {why}", other.title()))
        .collect()
}

/// Who asks, as the API server knows them; else as this machine does.
async fn who(client: &Client) -> String {
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = answer.ok().and_then(|review| review.status?.user_info?.username);
    let local = || std::env::var("USER").ok().filter(|name| !name.is_empty());
    user.or_else(local).unwrap_or_else(|| "somebody".to_owned())
}
