//! Whether a machine may become a Node, and a Node may serve: which certificates of kubelets are
//! approved, and why others are not.
//!
//! `request` reads the certificate that is asked for out of untrusted bytes, `reading` says whose
//! request it is and whether it could ever be right, `decide` holds it against the Machines and the
//! Node. What is not approved is left pending, never denied: the facts may come later, and a person
//! or another approver may know more. `standby` says when all of it is left to such a one.

pub mod binding;
pub mod decide;
mod encode;
pub mod observed;
pub mod reading;
pub mod refusal;
pub mod request;
pub mod standby;
#[cfg(test)]
mod tests;

pub use binding::{Binding, is_void};
pub use decide::{Action, ApprovalDecision, Grounds, Verdict, approved_condition, decide};
pub use observed::{CurrentCertificate, Limits, Observed};
pub use reading::{Bootstrapper, Policy, Reading, counts_as_pending, read};
pub use refusal::Refusal;
pub use request::{Names, RequestedCertificate};
