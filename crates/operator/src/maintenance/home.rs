//! In which cluster are the Node and the pods of a machine, and what is on its Node there?
//!
//! Those of the OpenShift API are in this one, whose pods and budgets are watched anyway. Those of Cluster API are in workload
//! clusters: there they are asked for, and only while a maintenance is near or under way. One that does not answer
//! keeps nobody else waiting.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::Client;
use machinist_core::cluster_api::maintained;

use super::{closer_look, memory::Memory};
use crate::{context::Context, engine::store::ObjectKey};

/// How long a workload cluster may take to answer, and how soon one that did not is asked again.
const PATIENCE: Duration = Duration::from_secs(5);
const ASKED_AGAIN: Duration = Duration::from_secs(30);

/// The cluster that a machine works in.
pub struct Home {
    /// Of its Cluster; `None` for this one.
    pub key: Option<ObjectKey>,
    pub client: Client,
}

/// What is on a Node of a workload cluster.
#[derive(Clone, Default)]
pub struct Occupants {
    pub pods: Vec<Arc<Pod>>,
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
}

impl Home {
    /// Of a machine, or where that is gone, of its pool.
    ///
    /// # Errors
    /// Fails where a workload cluster does not answer.
    pub fn of(context: &Context, machine: &str, pool: Option<&str>) -> anyhow::Result<Self> {
        if maintained::parts(machine).is_none() {
            return Ok(Self { key: None, client: context.client.clone() });
        }
        let known = context.stores.cluster_api.get();
        let known = known.ok_or_else(|| anyhow::anyhow!("Cluster API is not looked after"))?;
        let (key, client) = known.reach(machine, pool)?;
        Ok(Self { key: Some(key), client })
    }
}

/// The pods on a Node of a workload cluster, and the budgets there.
///
/// # Errors
/// Fails, for a while without asking, where the cluster does not answer in time.
pub async fn occupants(
    context: &Context,
    memory: &Memory,
    machine: &str,
    node: &str,
    within: Duration,
) -> anyhow::Result<Occupants> {
    let home = Home::of(context, machine, None)?;
    let Some(key) = home.key.clone() else { return Ok(Occupants::default()) };
    let env = &context.env;
    if let Some(why) = memory.silent.known(env, &key, ASKED_AGAIN) {
        anyhow::bail!("{why}");
    }
    let asked = async {
        let ask = async {
            let found = closer_look::budgets_in(&home).await?;
            Ok(found.into_iter().map(Arc::new).collect())
        };
        let budgets = memory.budgets_elsewhere.get(env, key.clone(), within, ask).await?;
        let ask = async { Ok(closer_look::pruned(closer_look::pods_on(&home, node).await?)) };
        let place = (key.clone(), node.to_owned());
        let pods = memory.pods_elsewhere.get(env, place, within, ask).await?;
        anyhow::Ok(Occupants { pods: pods.to_vec(), budgets: budgets.to_vec() })
    };
    let why = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(error)) => format!("the pods of Cluster {key} cannot be listed: {error:#}"),
        Err(_) => format!("Cluster {key} does not say within {PATIENCE:?} which pods it has"),
    };
    memory.silent.put(env, key, why.clone());
    anyhow::bail!("{why}")
}
