//! How the upkeep is put together.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::Client;

use super::{COMPONENT, Facts, NAME, Upkeep, execute::take_over, reconcile, stores::UpkeepStores};
use crate::{
    args::Args,
    context::Context,
    engine::{queue::Queue, store::ObjectKey, supervisor::Spawner},
    tls::trust::CaBundle,
};

/// How often the controllers before us are looked for while they hold leases.
const TAKE_OVER_LOOK: Duration = Duration::from_secs(15);

/// Starts the upkeep. `ca_bundle` is that of the webhooks' server.
pub fn start(
    args: &Args,
    client: &Client,
    spawner: &Spawner,
    context: &Arc<Context>,
    facts: &Arc<Facts>,
    ca_bundle: CaBundle,
) {
    let (env, metrics) = (&context.env, &context.metrics);
    let queue: Queue<ObjectKey> = Queue::new(NAME, env, metrics);
    let stores = UpkeepStores::new();
    let to = queue.clone();
    stores.on_change(&context.stores, move || to.add(Upkeep::key()));
    stores.watch(args, client, env, metrics, spawner);
    let (mut bundle, to) = (ca_bundle.clone(), queue.clone());
    spawner.spawn("news of the webhooks' CA", async move {
        loop {
            bundle.changed().await;
            to.add(Upkeep::key());
        }
    });
    let upkeep = Arc::new(Upkeep {
        args: args.upkeep.clone(),
        namespace: args.namespace.clone(),
        stores,
        ca_bundle,
        events: context.events.for_component(COMPONENT),
        facts: Arc::clone(facts),
        history: Mutex::default(),
    });
    queue.add(Upkeep::key());
    let way = clear_the_way(Arc::clone(context), Arc::clone(&upkeep));
    spawner.spawn("take-over from the old controllers", way);
    let (context, stopping) = (Arc::clone(context), spawner.stopping());
    spawner.spawn_graceful(format!("{NAME} controller"), async move {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(()),
            () = upkeep.stores.synced(&upkeep.args, &context.stores) => {}
        }
        let handler = |_| {
            let (context, upkeep) = (Arc::clone(&context), Arc::clone(&upkeep));
            async move { reconcile(&context, &upkeep).await }
        };
        queue.run(context.leadership.clone(), stopping, 1, handler).await
    });
}

/// Takes the controllers before us away, whose leases we wait for. The operator's own lease is enough for
/// that, and for nothing else.
async fn clear_the_way(context: Arc<Context>, upkeep: Arc<Upkeep>) -> anyhow::Result<()> {
    let mut leadership = context.leadership.clone();
    upkeep.stores.synced(&upkeep.args, &context.stores).await;
    while !leadership.is_held() {
        if leadership.is_first_held() {
            if let Err(error) = take_over(&context, &upkeep).await {
                tracing::warn!(error = format!("{error:#}"), "the old controllers are still there");
            }
            context.env.sleep(TAKE_OVER_LOOK).await;
        } else {
            leadership.first_changed().await;
        }
    }
    // From here on it is part of the upkeep.
    std::future::pending().await
}
