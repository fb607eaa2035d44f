//! What can this provider ask of AWS at all, and which permission does each call need?
//!
//! Every call names one of these, so that no call can be made whose permission is not known; the
//! policy under `deploy/iam` is tested against the list.

/// Whether a call changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
}

macro_rules! actions {
    ($($variant:ident: $name:literal, $permission:literal, $kind:ident;)+) => {
        /// One operation of AWS.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Action { $($variant),+ }

        impl Action {
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The operation's name, with a prefix where it is not EC2's; a label of metrics.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The permission that IAM asks for.
            pub fn permission(self) -> &'static str {
                match self { $(Self::$variant => $permission),+ }
            }

            fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind),+ }
            }
        }
    };
}

actions! {
    DescribeInstances: "DescribeInstances", "ec2:DescribeInstances", Read;
    DescribeInstanceStatus: "DescribeInstanceStatus", "ec2:DescribeInstanceStatus", Read;
    DescribeInstanceTypes: "DescribeInstanceTypes", "ec2:DescribeInstanceTypes", Read;
    DescribeImages: "DescribeImages", "ec2:DescribeImages", Read;
    DescribeSubnets: "DescribeSubnets", "ec2:DescribeSubnets", Read;
    DescribeSecurityGroups: "DescribeSecurityGroups", "ec2:DescribeSecurityGroups", Read;
    DescribeAvailabilityZones:
        "DescribeAvailabilityZones", "ec2:DescribeAvailabilityZones", Read;
    DescribeVpcs: "DescribeVpcs", "ec2:DescribeVpcs", Read;
    DescribeDhcpOptions: "DescribeDhcpOptions", "ec2:DescribeDhcpOptions", Read;
    DescribeRegions: "DescribeRegions", "ec2:DescribeRegions", Read;
    DescribeHosts: "DescribeHosts", "ec2:DescribeHosts", Read;
    RunInstances: "RunInstances", "ec2:RunInstances", Change;
    TerminateInstances: "TerminateInstances", "ec2:TerminateInstances", Change;
    StartInstances: "StartInstances", "ec2:StartInstances", Change;
    StopInstances: "StopInstances", "ec2:StopInstances", Change;
    RebootInstances: "RebootInstances", "ec2:RebootInstances", Change;
    CreateTags: "CreateTags", "ec2:CreateTags", Change;
    ModifyInstanceEventStartTime:
        "ModifyInstanceEventStartTime", "ec2:ModifyInstanceEventStartTime", Change;
    ModifyInstanceMaintenanceOptions:
        "ModifyInstanceMaintenanceOptions", "ec2:ModifyInstanceMaintenanceOptions", Change;
    AllocateHosts: "AllocateHosts", "ec2:AllocateHosts", Change;
    ReleaseHosts: "ReleaseHosts", "ec2:ReleaseHosts", Change;
    RegisterWithClassic:
        "elb:RegisterInstancesWithLoadBalancer",
        "elasticloadbalancing:RegisterInstancesWithLoadBalancer", Change;
    DeregisterFromClassic:
        "elb:DeregisterInstancesFromLoadBalancer",
        "elasticloadbalancing:DeregisterInstancesFromLoadBalancer", Change;
    DescribeLoadBalancers:
        "elbv2:DescribeLoadBalancers", "elasticloadbalancing:DescribeLoadBalancers", Read;
    DescribeTargetGroups:
        "elbv2:DescribeTargetGroups", "elasticloadbalancing:DescribeTargetGroups", Read;
    DescribeTargetHealth:
        "elbv2:DescribeTargetHealth", "elasticloadbalancing:DescribeTargetHealth", Read;
    RegisterTargets: "elbv2:RegisterTargets", "elasticloadbalancing:RegisterTargets", Change;
    DeregisterTargets: "elbv2:DeregisterTargets", "elasticloadbalancing:DeregisterTargets", Change;
    // Receiving hides a message from others for a while, so it is no mere read.
    ReceiveMessage: "sqs:ReceiveMessage", "sqs:ReceiveMessage", Change;
    DeleteMessageBatch: "sqs:DeleteMessageBatch", "sqs:DeleteMessage", Change;
}

/// What IAM asks for besides the calls themselves: a launch with an instance profile passes its
/// role on.
const IMPLIED_PERMISSIONS: [&str; 1] = ["iam:PassRole"];

impl Action {
    pub fn is_read(self) -> bool {
        self.kind() == Kind::Read
    }
}

/// Every permission that the provider may need, such as `ec2:RunInstances`; each once, sorted.
pub fn permissions() -> Vec<&'static str> {
    let mut permissions: Vec<_> =
        Action::ALL.iter().map(|action| action.permission()).chain(IMPLIED_PERMISSIONS).collect();
    permissions.sort_unstable();
    permissions.dedup();
    permissions
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::*;

    /// The policies as they are applied: the controller's, and the event queue's which is apart as
    /// most clusters have none.
    const POLICIES: [&str; 2] = [
        include_str!("../../../../deploy/iam/policy.json"),
        include_str!("../../../../deploy/iam/queue-policy.json"),
    ];

    fn statements() -> Vec<Value> {
        let policies = POLICIES.map(|text| serde_json::from_str::<Value>(text).unwrap());
        policies.iter().flat_map(|policy| policy["Statement"].as_array().unwrap().clone()).collect()
    }

    fn actions_of(statement: &Value) -> Vec<String> {
        let actions = statement["Action"].as_array().unwrap().iter();
        actions.map(|action| action.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn names_are_unique_and_reads_are_told_from_changes() {
        let names: BTreeSet<_> = Action::ALL.iter().map(|action| action.name()).collect();
        assert_eq!(names.len(), Action::ALL.len());
        for action in Action::ALL {
            let (_, bare) = action.name().rsplit_once(':').unwrap_or_else(|| ("", action.name()));
            let reads = ["Describe", "List", "Get"].iter().any(|verb| bare.starts_with(verb));
            assert_eq!(action.is_read(), reads, "{action:?}");
        }
    }

    #[test]
    fn policies_grant_exactly_what_the_provider_can_ask() {
        let granted: BTreeSet<String> = statements().iter().flat_map(actions_of).collect();
        let needed: BTreeSet<String> = permissions().into_iter().map(str::to_owned).collect();
        assert_eq!(granted, needed);
    }

    /// What `deploy/iam/README.md` promises.
    #[test]
    fn changes_are_limited_to_what_is_the_clusters() {
        let cluster = "kubernetes.io/cluster/CLUSTER_ID";
        let owned = format!("aws:ResourceTag/{cluster}");
        let mut conditions = BTreeMap::<String, Vec<Value>>::new();
        for statement in statements() {
            assert_eq!(statement["Effect"], "Allow");
            for action in actions_of(&statement) {
                assert!(!action.contains('*'), "{action} is a wildcard");
                conditions.entry(action).or_default().push(statement.clone());
            }
        }
        for action in [
            "ec2:TerminateInstances",
            "ec2:StartInstances",
            "ec2:StopInstances",
            "ec2:RebootInstances",
            "ec2:ModifyInstanceEventStartTime",
            "ec2:ReleaseHosts",
        ] {
            for statement in &conditions[action] {
                assert_eq!(statement["Condition"]["StringEquals"][&owned], "owned", "{action}");
            }
        }
        for statement in &conditions["ec2:CreateTags"] {
            let condition = &statement["Condition"];
            let at_creation = !condition["StringEquals"]["ec2:CreateAction"].is_null();
            let on_own = condition["StringEquals"][&owned] == "owned";
            let shares_a_host =
                condition["StringEquals"][format!("aws:RequestTag/{cluster}")] == "shared";
            assert!(at_creation || on_own || shares_a_host, "{statement}");
            if on_own {
                let keys = &condition["ForAllValues:StringNotLike"]["aws:TagKeys"];
                assert_eq!(keys[0], "kubernetes.io/cluster/*", "identity cannot be given");
            }
        }
        for statement in &conditions["iam:PassRole"] {
            assert_ne!(statement["Resource"], "*");
            assert_eq!(
                statement["Condition"]["StringEquals"]["iam:PassedToService"],
                "ec2.amazonaws.com"
            );
        }
        let launches = &conditions["ec2:RunInstances"];
        let tagged = launches.iter().filter(|statement| {
            statement["Condition"]["StringEquals"][format!("aws:RequestTag/{cluster}")] == "owned"
                && statement["Condition"]["Null"]["aws:RequestTag/machinist.dev/machine-uid"]
                    == "false"
        });
        assert_eq!(tagged.count(), 1, "instances and volumes are launched with their tags");
        let restricted = launches.iter().filter(|statement| {
            statement["Condition"]["ForAllValues:StringLike"]["aws:TagKeys"].is_array()
        });
        assert_eq!(restricted.count(), 1, "the keys of tags are restricted");
        for statement in launches {
            let resources = statement["Resource"].as_array().unwrap();
            let makes = |kind: &str| {
                resources.iter().any(|arn| arn.as_str().unwrap().contains(&format!(":{kind}/")))
            };
            let conditional = !statement["Condition"].is_null();
            assert_eq!(makes("instance") || makes("volume"), conditional, "{statement}");
        }
    }
}
