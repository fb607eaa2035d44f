//! The certificate controller: lets machines become Nodes, and Nodes serve, by approving what their
//! kubelets ask for. Nothing is ever denied: what is not approved stays pending, and says why.
//!
//! The same steps as every controller. Where no Machine speaks for a request, the kubelet is asked
//! for the certificate that it serves with now, and then it is decided once more.

mod execute;
pub mod kubelets;
mod memory;
mod observe;

use std::{path::PathBuf, sync::Arc, time::Duration};

use machinist_core::approval::{Policy, Reading, Verdict, counts_as_pending, decide, read};

use self::{kubelets::Kubelets, memory::Memory};
use crate::{
    context::Context,
    engine::{events::EventTarget, queue::Outcome, store::ObjectKey},
    machine::{superseded_or_failed, until},
};

pub use self::observe::limits;

#[cfg(test)]
pub(crate) mod tests;

pub const NAME: &str = "certificates";

/// How soon a kubelet is asked again that did not answer, or not as it should: nothing wakes us when
/// it would.
const KUBELET_RETRY: Duration = Duration::from_secs(60);

/// How soon to look again while another approver is at work; its change wakes us sooner.
const STANDBY_LOOK: Duration = Duration::from_secs(60);

/// What the approval of certificates works with.
pub struct Approver {
    policy: Policy,
    kubelets: Arc<dyn Kubelets>,
    /// A file of the certificates that sign those of kubelets' servers, instead of the cluster's.
    kubelet_ca_bundle: Option<PathBuf>,
    memory: Memory,
}

impl Approver {
    pub fn new(
        policy: Policy,
        kubelets: Arc<dyn Kubelets>,
        kubelet_ca_bundle: Option<PathBuf>,
    ) -> Self {
        Self { policy, kubelets, kubelet_ca_bundle, memory: Memory::default() }
    }
}

pub async fn reconcile(context: &Context, approver: &Approver, key: ObjectKey) -> Outcome {
    let Some(request) = context.stores.requests.get(&key) else {
        approver.memory.forget(&key);
        context.note_waiting(NAME, &key, &[]);
        return Outcome::Settled;
    };
    if let Some(wait) = context.stores.openshift.approval_standby() {
        let is_pending = counts_as_pending(&request, context.env.now())
            && matches!(
                read(&request, &approver.policy),
                Reading::Client { .. } | Reading::Serving { .. }
            );
        if !is_pending {
            context.note_waiting(NAME, &key, &[]);
            return Outcome::Settled;
        }
        context.note_waiting(NAME, &key, &[wait]);
        return Outcome::RecheckAfter(STANDBY_LOOK);
    }
    let mut observation = observe::observe(context, approver, &request);
    let now = context.env.now();
    let mut answer = decide(&observation.observed(), &approver.policy, now);
    let asked_kubelet = answer.wants_current_certificate;
    if asked_kubelet {
        observation.ask_kubelet(context, approver).await;
        answer = decide(&observation.observed(), &approver.policy, now);
    }

    context.note_waiting(NAME, &key, &answer.decision.waiting);
    // There is no status of ours to publish: an approval is its own, and a refusal is an event.
    context.announce(&EventTarget::of(&*request), "Approve", &answer.decision.announcements);
    match &answer.verdict {
        Verdict::Refuse(refusal) | Verdict::Wait(refusal) => {
            if !answer.decision.announcements.is_empty() {
                approver.memory.note_told(&key, &request, refusal.reason());
            }
        }
        Verdict::NotOurs | Verdict::Decided | Verdict::Approve(_) => approver.memory.forget(&key),
    }
    if let Err(error) = execute::execute(context, &request, &answer.decision.actions).await {
        return superseded_or_failed(error);
    }
    if let Verdict::Approve(grounds) = &answer.verdict {
        tracing::info!(request = %key, %grounds, "approved a certificate");
        context.metrics.count_certificate_approved(grounds.reason());
    }
    let is_waiting = matches!(answer.verdict, Verdict::Wait(_));
    match answer.decision.recheck {
        Some(at) => Outcome::RecheckAfter(until(now, at)),
        // A kubelet makes another request after a quarter of an hour: old ones are nobody's any more.
        None if asked_kubelet && is_waiting && counts_as_pending(&request, now) => {
            Outcome::RecheckAfter(KUBELET_RETRY)
        }
        None => Outcome::Settled,
    }
}
