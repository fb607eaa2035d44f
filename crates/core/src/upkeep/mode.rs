//! Whether this cluster's machines are ours to look after.

use machinist_api::openshift_config::Infrastructure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Objects are kept, old controllers are replaced.
    Managed,
    /// Nothing is kept and nobody is replaced: the platform has no machines, or none that we know.
    NoOp,
}

/// A cluster without the object is not OpenShift's, and whoever installed us there wants us. A
/// platform whose provider we do not have is left to whom it has.
pub fn mode(infrastructure: Option<&Infrastructure>) -> Mode {
    let Some(infrastructure) = infrastructure else { return Mode::Managed };
    let platform =
        infrastructure.status.as_ref().and_then(|status| status.platform_status.as_ref());
    let Some(platform) = platform else { return Mode::NoOp };
    match platform.type_.as_deref() {
        Some("AWS") => Mode::Managed,
        None | Some("") if platform.aws.is_some() => Mode::Managed,
        _ => Mode::NoOp,
    }
}
