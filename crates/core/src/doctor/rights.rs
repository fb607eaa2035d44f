//! May the operator do what it has to, and may the person who asks do what the command line does?

use std::fmt;

use super::{
    observed::{Observed, Right},
    report::{Check, Code, Finding},
};

pub(super) const OWN: &str = "your rights";
pub(super) const OPERATORS: &str = "operator's rights";

impl fmt::Display for Right {
    /// As `kubectl auth can-i` takes it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, name, namespace } = self;
        write!(formatter, "{verb} ")?;
        match resource.split_once('/') {
            _ if group.is_empty() => formatter.write_str(resource)?,
            None => write!(formatter, "{resource}.{group}")?,
            Some((resource, part)) => write!(formatter, "{resource}.{group}/{part}")?,
        }
        if !name.is_empty() {
            write!(formatter, " {name}")?;
        }
        if !namespace.is_empty() {
            write!(formatter, " in {namespace}")?;
        }
        Ok(())
    }
}

/// Less than the operator's: what a person lacks breaks a command, not the cluster.
pub(super) fn own(observed: &Observed) -> Check {
    let rights = match &observed.own_rights {
        Ok(rights) => rights,
        Err(why) => return Check::not_made(OWN, why),
    };
    let findings = rights.missing.iter().map(|right| {
        Finding::warning(
            Code::OwnRightMissing,
            format!("you may not {right}"),
            "the API server says so (SelfSubjectAccessReview)".to_owned(),
            "commands that need it will not work for you; ask for the right if you need them"
                .to_owned(),
        )
    });
    Check::of(OWN, "you may read all that machinist shows".to_owned(), findings.collect())
}

pub(super) fn operators(observed: &Observed) -> Check {
    let rights = match &observed.rights {
        Ok(rights) => rights,
        Err(why) => return Check::not_made(OPERATORS, why),
    };
    let user = &rights.user;
    let findings = rights.missing.iter().map(|right| {
        Finding::failed(
            Code::MissingRbacVerb,
            format!("the operator may not {right}"),
            format!("the API server says so of the user {user} (SubjectAccessReview)"),
            format!(
                "apply deploy/kustomize/base/rbac.yaml of this version again; ClusterRole and Role \
                 machinist-operator grant it, and their bindings must name {user}"
            ),
        )
    });
    let well = format!("all {} are there, for {user}", rights.asked);
    Check::of(OPERATORS, well, findings.collect())
}
