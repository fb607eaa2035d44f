//! How the upkeep is put together.

use std::sync::{Arc, Mutex};

use kube::Client;

use super::{COMPONENT, Facts, NAME, Upkeep, observe::Bundle, reconcile, stores::UpkeepStores};
use crate::{
    args::Args,
    context::Context,
    engine::{queue::Queue, store::ObjectKey, supervisor::Spawner},
};

/// Starts the upkeep. `bundle` is the CA bundle of the webhooks' server, for as long as this process
/// makes it.
pub fn start(
    args: &Args,
    client: &Client,
    spawner: &Spawner,
    context: &Arc<Context>,
    facts: &Arc<Facts>,
    bundle: Option<Bundle>,
) {
    let (env, metrics) = (&context.env, &context.metrics);
    let queue: Queue<ObjectKey> = Queue::new(NAME, env, metrics);
    let stores = UpkeepStores::new();
    let to = queue.clone();
    stores.on_change(&context.stores, move || to.add(Upkeep::key()));
    stores.watch(args, client, env, metrics, spawner);
    if let Some(mut bundle) = bundle.clone() {
        let to = queue.clone();
        spawner.spawn("news of the webhooks' CA", async move {
            while bundle.changed().await.is_ok() {
                to.add(Upkeep::key());
            }
            std::future::pending().await
        });
    }
    let upkeep = Arc::new(Upkeep {
        args: args.upkeep.clone(),
        namespace: args.namespace.clone(),
        stores,
        bundle,
        events: context.events.for_component(COMPONENT),
        facts: Arc::clone(facts),
        history: Mutex::default(),
    });
    queue.add(Upkeep::key());
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
