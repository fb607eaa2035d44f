//! Who may do what? Nothing is forbidden unless the fault `denied` takes a right away, as IAM would.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Caller, Cloud,
    error::Ec2Error,
    faults::concerns,
    request::{Elbv2Request, Request, Service},
};

/// A right that is taken away until the fault is cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Denied {
    /// IAM's name, such as `ec2:StartInstances` or `elasticloadbalancing:*`, or the ledger's, such
    /// as `elbv2:RegisterTargets`; a `*` at the end stands for any rest.
    pub action: String,
    /// Whose right; none means everybody's.
    #[serde(default)]
    pub access_key: Option<String>,
}

impl Denied {
    pub(super) fn check(&self) -> Result<(), String> {
        let is_known = super::ACTIONS
            .iter()
            .any(|action| names_of(action).iter().any(|name| concerns(&self.action, name)));
        if is_known {
            return Ok(());
        }
        Err(format!(
            "action {} names nothing that the cloud does; it should look like ec2:StartInstances, \
             ec2:Describe* or elasticloadbalancing:RegisterTargets",
            self.action
        ))
    }

    fn takes(&self, caller: &Caller, names: &[String]) -> bool {
        let is_meant =
            self.access_key.as_ref().is_none_or(|key| caller.access_key_id.as_ref() == Some(key));
        is_meant && names.iter().any(|name| concerns(&self.action, name))
    }
}

/// Returns the names of an action of the ledger: IAM's first, then the ledger's own where it says
/// more.
fn names_of(action: &str) -> Vec<String> {
    match Service::of_action(action) {
        Service::Ec2 => vec![format!("ec2:{action}")],
        service @ (Service::Elb | Service::Elbv2) => {
            vec![format!("elasticloadbalancing:{}", service.wire_action(action)), action.to_owned()]
        }
    }
}

impl Cloud {
    pub(super) fn authorize(&self, caller: &Caller, request: &Request) -> Result<(), Ec2Error> {
        if self.faults.denied.is_empty() {
            return Ok(());
        }
        let names = names_of(request.action());
        if !self.faults.denied.iter().any(|denied| denied.takes(caller, &names)) {
            return Ok(());
        }
        let action = names.first().cloned().unwrap_or_default();
        let key = caller.access_key_id.as_deref().unwrap_or("anonymous");
        let user = format!("arn:aws:iam::{}:user/{key}", self.config.account_id);
        let resource = self.resource_of(request);
        let on = resource.map(|arn| format!(" on resource: {arn}")).unwrap_or_default();
        let sentence = format!(
            "User: {user} is not authorized to perform: {action}{on} because no identity-based \
             policy allows the {action} action"
        );
        Err(match request.service() {
            Service::Elb | Service::Elbv2 => Ec2Error::new("AccessDenied", sentence),
            Service::Ec2 if request.is_mutating() => {
                let opaque = URL_SAFE_NO_PAD.encode(Sha256::digest(sentence.as_bytes()));
                Ec2Error::new(
                    "UnauthorizedOperation",
                    format!(
                        "You are not authorized to perform this operation. {sentence}. Encoded \
                         authorization failure message: {opaque}"
                    ),
                )
            }
            Service::Ec2 => Ec2Error::new(
                "UnauthorizedOperation",
                format!("You are not authorized to perform this operation. {sentence}"),
            ),
        })
    }

    /// Returns the resource that IAM would name; reads have none.
    fn resource_of(&self, request: &Request) -> Option<String> {
        let named = |kind: &str, id: &str| {
            let (region, account) = (&self.config.region, &self.config.account_id);
            format!("arn:aws:ec2:{region}:{account}:{kind}/{id}")
        };
        match request {
            Request::TerminateInstances(request)
            | Request::StopInstances(request)
            | Request::StartInstances(request)
            | Request::RebootInstances(request) => {
                request.instance_ids.first().map(|id| named("instance", id))
            }
            Request::ModifyInstanceEventStartTime(request) => {
                Some(named("instance", &request.instance_id))
            }
            Request::ModifyInstanceMaintenanceOptions(request) => {
                Some(named("instance", &request.instance_id))
            }
            Request::RunInstances(_) => Some(named("instance", "*")),
            Request::AllocateHosts(_) => Some(named("dedicated-host", "*")),
            Request::ReleaseHosts(request) => {
                request.host_ids.first().map(|id| named("dedicated-host", id))
            }
            Request::CreateTags(request) => request.resources.first().map(|id| named("*", id)),
            Request::DeleteTags(request) => request.resources.first().map(|id| named("*", id)),
            Request::Elbv2(request) => match request {
                Elbv2Request::RegisterTargets(request)
                | Elbv2Request::DeregisterTargets(request) => {
                    Some(request.target_group_arn.clone())
                }
                _ => None,
            },
            Request::Elb(request) => request.load_balancer_name().map(|name| {
                let (region, account) = (&self.config.region, &self.config.account_id);
                format!("arn:aws:elasticloadbalancing:{region}:{account}:loadbalancer/{name}")
            }),
            Request::DescribeInstances(_)
            | Request::DescribeInstanceStatus(_)
            | Request::DescribeHosts(_)
            | Request::DescribeRegions(_)
            | Request::DescribeAvailabilityZones(_)
            | Request::DescribeVpcs(_)
            | Request::DescribeDhcpOptions(_)
            | Request::DescribeSubnets(_)
            | Request::DescribeSecurityGroups(_)
            | Request::DescribeImages(_)
            | Request::DescribeInstanceTypes(_) => None,
        }
    }
}
