//! What is wrong with an installation, how was it seen, and what is to be done about it?
//!
//! `observed` is what a look at a cluster brings; each other file is one part of the examination. What only
//! the operator can know, such as whether a cloud takes its credentials, comes from what it says of itself.

mod clocks;
mod cloud;
mod definitions;
mod leases;
mod observed;
mod quotas;
mod report;
mod rights;
mod webhooks;

pub use observed::{
    Asked, Clocks, Definition, DefinitionState, Deployed, FullQuota, LeaseState, Observed,
    OwnRights, Reach, Right, Rights, SaidQuota, Stamp, WebhookState,
};
pub use report::{Check, Code, Finding, Level, Report};

/// Examines. The checks are always the same ones in the same order, well or not.
pub fn examine(observed: &Observed) -> Report {
    let leases = leases::look(observed);
    let checks = vec![
        definitions::check(observed),
        rights::own(observed),
        rights::operators(observed),
        leases::operator(observed, &leases),
        leases::check(observed, &leases),
        clocks::check(observed, &leases),
        cloud::credentials(observed, &leases),
        cloud::permissions(observed, &leases),
        cloud::endpoints(observed, &leases),
        quotas::check(observed),
        webhooks::check(observed),
    ];
    Report::of(checks)
}

#[cfg(test)]
mod tests;
