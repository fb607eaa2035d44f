//! What may speak for one signing request: Machines, the Node, and what its kubelet serves with now.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    core::v1::{ConfigMap, Node},
};
use kube::Api;
use machinist_api::Machine;
use machinist_core::{
    approval::{
        Binding, CurrentCertificate, Limits, Observed, Reading, counts_as_pending, read,
        request::{RequestedCertificate, parse_certificate},
    },
    node,
};

use super::Approver;
use crate::{
    context::{Context, Stores},
    engine::store::ObjectKey,
    index,
};

/// Where OpenShift keeps the certificates that sign those of kubelets.
const CA_NAMESPACE: &str = "openshift-config-managed";
const CA_CONFIG_MAP: &str = "csr-controller-ca";
const CA_KEY: &str = "ca-bundle.crt";

/// How long a flood is believed to last before it is counted again.
const FLOOD_BELIEVED: Duration = Duration::from_secs(1);

pub struct Observation {
    request: Arc<CertificateSigningRequest>,
    machines: Vec<Arc<Machine>>,
    node: Option<Arc<Node>>,
    current: CurrentCertificate,
    void_requests: BTreeSet<String>,
    limits: Limits,
    told: Option<&'static str>,
}

impl Observation {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            request: &self.request,
            machines: self.machines.iter().map(|machine| &**machine).collect(),
            node: self.node.as_deref(),
            current: self.current.clone(),
            void_requests: self.void_requests.iter().map(String::as_str).collect(),
            limits: self.limits,
            told: self.told,
        }
    }

    pub async fn ask_kubelet(&mut self, context: &Context, approver: &Approver) {
        let Some(node) = &self.node else { return };
        self.current = match served(context, approver, node).await {
            Ok(certificate) => CurrentCertificate::Trusted(certificate),
            Err(error) => {
                let why = format!("{error:#}");
                tracing::debug!(node = node::name(node), why, "no certificate to be renewed");
                CurrentCertificate::Untrusted(why)
            }
        };
    }
}

pub fn observe(
    context: &Context,
    approver: &Approver,
    request: &Arc<CertificateSigningRequest>,
) -> Observation {
    let stores = &context.stores;
    let (mut machines, mut node) = (BTreeMap::new(), None);
    if let Reading::Client { node: name, .. } | Reading::Serving { node: name, .. } =
        read(request, &approver.policy)
    {
        let by_name =
            stores.machines.by_index(index::MACHINE_BY_INTERNAL_DNS, &name.to_ascii_lowercase());
        let by_node = stores.machines.by_index(index::MACHINE_BY_NODE, &name);
        // One that is found both ways must not look like two.
        for machine in by_name.into_iter().chain(by_node) {
            machines.insert(ObjectKey::of(&*machine), machine);
        }
        node = stores.nodes.get(&ObjectKey::cluster_wide(name));
    }
    let bound = machines.values().filter_map(|machine| Binding::of(machine));
    let void_requests = bound
        .map(|bound| bound.request.to_owned())
        .filter(|uid| {
            let key = index::void_request(uid);
            !stores.requests.by_index(index::REQUEST_BY_STATE, &key).is_empty()
        })
        .collect();
    Observation {
        request: Arc::clone(request),
        machines: machines.into_values().collect(),
        node,
        current: CurrentCertificate::NotAsked,
        void_requests,
        limits: current_limits(context, approver),
        told: approver.memory.told(request),
    }
}

/// The limits, counted anew for each request but in a flood: there the work would grow with the square
/// of its size.
fn current_limits(context: &Context, approver: &Approver) -> Limits {
    let now = context.env.instant();
    if let Some(flood) = approver.memory.flood(now) {
        return flood;
    }
    let limits = limits(&context.stores, context.env.now());
    if limits.pending > limits.max() {
        approver.memory.note_flood(now + FLOOD_BELIEVED, limits);
    }
    limits
}

/// How many requests of kubelets are pending, and how many there can rightly be.
pub fn limits(stores: &Stores, now: jiff::Timestamp) -> Limits {
    let pending = stores.requests.by_index(index::REQUEST_BY_STATE, index::PENDING);
    Limits {
        pending: pending.iter().filter(|request| counts_as_pending(request, now)).count(),
        machines: stores.machines.len(),
        nodes: stores.nodes.len(),
    }
}

/// The certificate that the Node's kubelet serves with, verified.
async fn served(
    context: &Context,
    approver: &Approver,
    node: &Node,
) -> anyhow::Result<RequestedCertificate> {
    let addresses = node::internal_ips(node);
    let address: IpAddr = addresses
        .into_iter()
        .find_map(|address| address.parse().ok())
        .context("the node has no internal address")?;
    let authorities = authorities(context, approver).await?;
    let der =
        approver.kubelets.serving_certificate(node::name(node), address, &authorities).await?;
    Ok(parse_certificate(&der)?)
}

/// The certificates, in PEM, that sign those of kubelets' servers. Read anew each time: they rotate,
/// and are asked for seldom.
async fn authorities(context: &Context, approver: &Approver) -> anyhow::Result<String> {
    if let Some(file) = &approver.kubelet_ca_bundle {
        return std::fs::read_to_string(file)
            .with_context(|| format!("failed to read --kubelet-ca-bundle {}", file.display()));
    }
    let api = Api::<ConfigMap>::namespaced(context.client.clone(), CA_NAMESPACE);
    let config = api.get_opt(CA_CONFIG_MAP).await.with_context(|| {
        format!("failed to read the CA of kubelets, ConfigMap {CA_NAMESPACE}/{CA_CONFIG_MAP}")
    })?;
    let bundle = config.and_then(|config| config.data).and_then(|mut data| data.remove(CA_KEY));
    bundle.with_context(|| {
        format!(
            "the CA of kubelets is not known: neither --kubelet-ca-bundle nor {CA_KEY} of \
             ConfigMap {CA_NAMESPACE}/{CA_CONFIG_MAP} is there"
        )
    })
}
