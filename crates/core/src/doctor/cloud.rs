//! Does the cloud take the operator's credentials, let it do what it has to, and answer at all? Only the
//! operator can know; these are its words, and an old word is called old.

use super::{
    leases::{Leases, age},
    observed::Observed,
    report::{Check, Code, Finding},
};
use crate::operator_status::{CONFIG_MAP, CloudProblem, CloudState, OperatorStatus, ProblemKind};

pub(super) const CREDENTIALS: &str = "credentials";
pub(super) const PERMISSIONS: &str = "cloud permissions";
pub(super) const ENDPOINTS: &str = "cloud endpoints";

/// The operator's words, or the check that cannot be made without them.
fn words<'a>(observed: &'a Observed, name: &'static str) -> Result<&'a OperatorStatus, Check> {
    match &observed.status {
        Ok(Some(status)) => Ok(status),
        Ok(None) => {
            let why = format!(
                "only the operator can know, and there is no ConfigMap {CONFIG_MAP} of it in {}",
                observed.namespace
            );
            Err(Check::not_made_yet(name, &why, "see the check of the operator"))
        }
        Err(why) => {
            let why = format!("only the operator can know, and what it says is hidden: {why}");
            Err(Check::not_made(name, &why))
        }
    }
}

pub(super) fn credentials(observed: &Observed, leases: &Leases) -> Check {
    let well = "no cloud refuses them";
    of_kind(CREDENTIALS, observed, leases, well, |cloud, problem, how| {
        match problem.kind {
        ProblemKind::CredentialsRefused => Some(Finding::failed(
            Code::WrongCredentials,
            format!("the credentials of {} are refused", cloud.name),
            format!("{}; {how}", problem.message),
            "put working keys into the secret that the name ends with; they are taken up within a minute, \
             without a restart"
                .to_owned(),
        )),
        _ => None,
    }
    })
}

pub(super) fn endpoints(observed: &Observed, leases: &Leases) -> Check {
    of_kind(ENDPOINTS, observed, leases, "every cloud answers", |cloud, problem, how| {
        let seen = format!("{}; {how}", problem.message);
        match problem.kind {
            ProblemKind::CredentialsRefused | ProblemKind::PermissionMissing => None,
            ProblemKind::Unreachable => {
                let (at, fix) = match &cloud.endpoint {
                    Some(endpoint) => (
                        format!(" at {endpoint}"),
                        format!(
                            "see that {endpoint} is right (the flag --aws-ec2-endpoint, or serviceEndpoints \
                             of Infrastructure cluster), and that the operator's Pod gets there"
                        ),
                    ),
                    None => (
                        String::new(),
                        "see that the operator's Pod gets out: DNS, proxy, network policies, firewall"
                            .to_owned(),
                    ),
                };
                let what = format!("{} does not answer{at}", cloud.name);
                Some(Finding::failed(Code::UnreachableEndpoint, what, seen, fix))
            }
            ProblemKind::Throttled => Some(Finding::warning(
                Code::CloudRefuses,
                format!("{} asks us to slow down", cloud.name),
                seen,
                "wait; if it stays so, find who else calls with this account, or ask for a higher limit"
                    .to_owned(),
            )),
            ProblemKind::Other => Some(Finding::failed(
                Code::CloudRefuses,
                format!("{} cannot be used", cloud.name),
                seen,
                "put right what its words name".to_owned(),
            )),
        }
    })
}

fn of_kind(
    name: &'static str,
    observed: &Observed,
    leases: &Leases,
    well: &str,
    finding: impl Fn(&CloudState, &CloudProblem, &str) -> Option<Finding>,
) -> Check {
    let status = match words(observed, name) {
        Ok(status) => status,
        Err(check) => return check,
    };
    let how = format!("the operator says so in ConfigMap {CONFIG_MAP}{}", age(leases));
    let problems = status.clouds.iter().filter_map(|cloud| Some((cloud, cloud.problem.as_ref()?)));
    let findings = problems.filter_map(|(cloud, problem)| finding(cloud, problem, &how));
    let well = if status.clouds.is_empty() { "the operator tells of no cloud yet" } else { well };
    Check::of(name, with_age(well, leases), findings.collect())
}

pub(super) fn permissions(observed: &Observed, leases: &Leases) -> Check {
    let status = match words(observed, PERMISSIONS) {
        Ok(status) => status,
        Err(check) => return check,
    };
    let findings = status.missing_permissions.iter().map(|permission| {
        Finding::failed(
            Code::MissingIamAction,
            format!("the cloud does not allow {permission}"),
            format!(
                "a call was refused for lack of it; the operator says so in ConfigMap {CONFIG_MAP}{}",
                age(leases)
            ),
            format!("allow {permission} in the policy of the credentials; deploy/iam/policy.json has them all"),
        )
    });
    Check::of(PERMISSIONS, with_age("no call was refused", leases), findings.collect())
}

fn with_age(well: &str, leases: &Leases) -> String {
    if leases.is_led() {
        well.to_owned()
    } else {
        format!("{well}, by the last words of an operator")
    }
}
