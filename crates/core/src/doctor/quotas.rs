//! Is there room? In the namespace, and in the cloud's account as far as machines have met its limits.

use super::{
    observed::Observed,
    report::{Check, Code, Finding},
};

pub(super) const NAME: &str = "quotas";

pub(super) fn check(observed: &Observed) -> Check {
    let (quotas, said) = match (&observed.quotas, &observed.said_quotas) {
        (Ok(quotas), Ok(said)) => (quotas, said),
        (Err(why), _) | (_, Err(why)) => return Check::not_made(NAME, why),
    };
    let namespace = &observed.namespace;
    let of_namespace = quotas.iter().map(|quota| {
        Finding::warning(
            Code::QuotaUsedUp,
            format!("ResourceQuota {} leaves no room for {}", quota.name, quota.resource),
            format!("{} of {} are used in {namespace}", quota.used, quota.hard),
            format!("raise it: kubectl -n {namespace} edit resourcequota {}", quota.name),
        )
    });
    let of_cloud = said.iter().map(|said| {
        Finding::failed(
            Code::QuotaUsedUp,
            format!("a quota of the cloud keeps {} from running", said.object),
            said.message.clone(),
            "ask the provider for a higher quota, or remove what is not needed; it is tried again by itself"
                .to_owned(),
        )
    });
    let findings = of_namespace.chain(of_cloud).collect();
    Check::of(NAME, "nothing has met one".to_owned(), findings)
}
