//! What can be asked of network load balancers? One struct for each action that is simulated.

use serde::Serialize;

use crate::cloud::model::request::Tag;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Elbv2Request {
    CreateLoadBalancer(CreateLoadBalancer),
    DeleteLoadBalancer(LoadBalancerArn),
    DescribeLoadBalancers(DescribeLoadBalancers),
    CreateTargetGroup(CreateTargetGroup),
    DeleteTargetGroup(TargetGroupArn),
    DescribeTargetGroups(DescribeTargetGroups),
    CreateListener(CreateListener),
    RegisterTargets(Targets),
    DeregisterTargets(Targets),
    DescribeTargetHealth(Targets),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateLoadBalancer {
    pub name: String,
    /// `network` or `application`.
    pub r#type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct LoadBalancerArn {
    pub load_balancer_arn: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeLoadBalancers {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_arns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateTargetGroup {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_path: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TargetGroupArn {
    pub target_group_arn: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeTargetGroups {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_arn: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_group_arns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateListener {
    pub load_balancer_arn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// The groups that the default action forwards to.
    pub target_group_arns: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Targets {
    pub target_group_arn: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetDescription>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TargetDescription {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
}

impl Elbv2Request {
    pub fn action(&self) -> &'static str {
        match self {
            Self::CreateLoadBalancer(_) => "elbv2:CreateLoadBalancer",
            Self::DeleteLoadBalancer(_) => "elbv2:DeleteLoadBalancer",
            Self::DescribeLoadBalancers(_) => "elbv2:DescribeLoadBalancers",
            Self::CreateTargetGroup(_) => "elbv2:CreateTargetGroup",
            Self::DeleteTargetGroup(_) => "elbv2:DeleteTargetGroup",
            Self::DescribeTargetGroups(_) => "elbv2:DescribeTargetGroups",
            Self::CreateListener(_) => "elbv2:CreateListener",
            Self::RegisterTargets(_) => "elbv2:RegisterTargets",
            Self::DeregisterTargets(_) => "elbv2:DeregisterTargets",
            Self::DescribeTargetHealth(_) => "elbv2:DescribeTargetHealth",
        }
    }
}
