//! How does a command go on looking? It reads anew when something changed that its answer depends on, and
//! now and then because time goes on; on a terminal the picture is redrawn in place.

use std::{
    io::{IsTerminal, Write},
    pin::pin,
    time::Duration,
};

use anyhow::Context;
use futures::{
    StreamExt,
    stream::{BoxStream, SelectAll},
};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Config, watcher},
    },
};
use machinist_api::{Machine, MachineMaintenance, MachineSet, MaintenancePolicy};
use tokio::time::{Instant, sleep_until};

use crate::{
    args::{FleetArgs, Output},
    document::Notation,
    failure,
    kubeconfig::{Access, Connection, connect},
    screen,
    snapshot::{self, Extent, Snapshot},
};

/// Reading a large fleet costs the API server something: not sooner after the last time.
const SOONEST: Duration = Duration::from_secs(3);
/// Times draw near even when nothing changes.
const LATEST: Duration = Duration::from_secs(30);

/// Prints an answer once, or whenever it is another one until Ctrl-C.
pub async fn show(
    fleet: &FleetArgs,
    extent: Extent,
    output: Output,
    go_on: bool,
    text: impl Fn(&mut Snapshot, Notation) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let notation = if go_on { Notation::Stream } else { Notation::Indented };
    // The first answer fails at once and with a clear word where later ones are tried again.
    let first = text(&mut snapshot::read(fleet, extent).await?, notation)?;
    if !go_on {
        return screen::ignore_closed_pipe(anstream::stdout().write_all(first.as_bytes()));
    }
    let mut paper = Paper::new(output);
    paper.show(&first)?;
    let connection = connect(&fleet.cluster, Access::Read).await?;
    let mut changes = changes(&connection, &fleet.namespace);
    let mut stop = pin!(tokio::signal::ctrl_c());
    let mut read_at = Instant::now();
    let mut is_stale = false;
    loop {
        let wait = if is_stale { SOONEST } else { LATEST };
        tokio::select! {
            biased;
            stopped = &mut stop => {
                paper.leave();
                return stopped.context("cannot listen for Ctrl-C");
            }
            // A watch that is lost is begun again by itself; what may not be watched is read now and then.
            Some(change) = changes.next() => is_stale |= change.is_ok(),
            () = sleep_until(read_at + wait) => {
                is_stale = false;
                let answer = match snapshot::read(fleet, extent).await {
                    Ok(mut snapshot) => text(&mut snapshot, notation),
                    Err(error) => Err(error),
                };
                read_at = Instant::now();
                match answer {
                    Ok(answer) => paper.show(&answer)?,
                    Err(error) => failure::print(&error.context("trying again")),
                }
            }
        }
    }
}

type Changes = SelectAll<BoxStream<'static, Result<(), watcher::Error>>>;

/// Says that something is another, and not what: of the objects only the metadata is sent.
fn changes(connection: &Connection, namespace: &str) -> Changes {
    let mut changes = SelectAll::new();
    changes.push(of_kind::<Machine>(connection, Some(namespace)));
    changes.push(of_kind::<MachineSet>(connection, Some(namespace)));
    changes.push(of_kind::<MachineMaintenance>(connection, Some(namespace)));
    changes.push(of_kind::<MaintenancePolicy>(connection, None));
    changes.push(of_kind::<Node>(connection, None));
    changes
}

fn of_kind<K: Resource<DynamicType = ()>>(
    connection: &Connection,
    namespace: Option<&str>,
) -> BoxStream<'static, Result<(), watcher::Error>> {
    let resource = ApiResource::erase::<K>(&());
    let client = connection.client.clone();
    let api: Api<PartialObjectMeta<DynamicObject>> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let objects = watcher(api, Config::default()).default_backoff();
    objects.map(|event| event.map(|_| ())).boxed()
}

/// Where the answers go.
enum Paper {
    Terminal,
    /// A file or another program: each answer that is another one, below the one before.
    Roll {
        last: String,
        is_text: bool,
    },
}

impl Paper {
    fn new(output: Output) -> Self {
        let is_text = matches!(output, Output::Table | Output::Wide);
        if is_text && std::io::stdout().is_terminal() {
            screen::clear();
            return Self::Terminal;
        }
        Self::Roll { last: String::new(), is_text }
    }

    fn show(&mut self, answer: &str) -> anyhow::Result<()> {
        let mut stdout = anstream::stdout().lock();
        match self {
            Self::Terminal => screen::draw_over(&mut stdout, answer)?,
            Self::Roll { last, .. } if last == answer => {}
            Self::Roll { last, is_text } => {
                if *is_text && !last.is_empty() {
                    writeln!(stdout)?;
                }
                write!(stdout, "{answer}")?;
                answer.clone_into(last);
            }
        }
        Ok(stdout.flush()?)
    }

    /// The shell's prompt belongs below the picture.
    fn leave(&self) {
        if matches!(self, Self::Terminal) {
            println!();
        }
    }
}
