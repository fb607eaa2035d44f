//! What does the cloud itself say? Clients of the services that share nothing with the provider's.

use aws_credential_types::Credentials;
use aws_sdk_ec2::{
    config::{BehaviorVersion, Region},
    types::{Filter, Host},
};
use aws_sdk_elasticloadbalancing::types::Listener;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, LoadBalancerTypeEnum, ProtocolEnum, TargetHealthReasonEnum,
    TargetHealthStateEnum, TargetTypeEnum,
};
use machinist_providers::{aws::AwsSettings, service};

pub struct Console {
    pub ec2: aws_sdk_ec2::Client,
    pub classic: aws_sdk_elasticloadbalancing::Client,
    pub network: aws_sdk_elasticloadbalancingv2::Client,
    pub sqs: aws_sdk_sqs::Client,
    vpc: String,
    subnet: String,
    pub zone: String,
}

impl Console {
    /// For a cloud that takes any keys, at the endpoint that the settings give EC2.
    pub fn new(settings: &AwsSettings, vpc: &str, subnet: &str, zone: &str) -> Self {
        let shared = aws_config::SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(settings.region.clone()))
            .credentials_provider(aws_credential_types::provider::SharedCredentialsProvider::new(
                Credentials::new("console", "console", None, None, "tests"),
            ))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .endpoint_url(&settings.endpoints[service::EC2])
            .build();
        Self {
            ec2: aws_sdk_ec2::Client::new(&shared),
            classic: aws_sdk_elasticloadbalancing::Client::new(&shared),
            network: aws_sdk_elasticloadbalancingv2::Client::new(&shared),
            sqs: aws_sdk_sqs::Client::new(&shared),
            vpc: vpc.to_owned(),
            subnet: subnet.to_owned(),
            zone: zone.to_owned(),
        }
    }

    pub async fn create_classic(&self, name: &str) {
        let listener = Listener::builder()
            .protocol("TCP")
            .load_balancer_port(443)
            .instance_port(443)
            .build()
            .unwrap();
        let call = self.classic.create_load_balancer().load_balancer_name(name);
        call.listeners(listener).subnets(&self.subnet).send().await.unwrap();
    }

    pub async fn classic_instances(&self, name: &str) -> Vec<String> {
        let call = self.classic.describe_load_balancers().load_balancer_names(name);
        let answer = call.send().await.unwrap();
        let balancers = answer.load_balancer_descriptions().iter();
        let instances = balancers.flat_map(|balancer| balancer.instances());
        instances.map(|instance| instance.instance_id().unwrap().to_owned()).collect()
    }

    /// Creates a network load balancer without groups and returns its ARN.
    pub async fn create_network(&self, name: &str) -> String {
        let call = self.network.create_load_balancer().name(name).subnets(&self.subnet);
        let answer = call.r#type(LoadBalancerTypeEnum::Network).send().await.unwrap();
        answer.load_balancers()[0].load_balancer_arn().unwrap().to_owned()
    }

    /// Adds a group to a load balancer, on a listener of its own, and returns the group's ARN.
    pub async fn add_group(
        &self,
        load_balancer_arn: &str,
        name: &str,
        targets: TargetTypeEnum,
        port: i32,
    ) -> String {
        let call = self.network.create_target_group().name(name).vpc_id(&self.vpc);
        let call = call.protocol(ProtocolEnum::Tcp).port(port).target_type(targets);
        let answer = call.send().await.unwrap();
        let arn = answer.target_groups()[0].target_group_arn().unwrap().to_owned();
        let forward =
            Action::builder().r#type(ActionTypeEnum::Forward).target_group_arn(&arn).build();
        let call = self.network.create_listener().load_balancer_arn(load_balancer_arn);
        let call = call.protocol(ProtocolEnum::Tcp).port(port).default_actions(forward);
        call.send().await.unwrap();
        arn
    }

    /// The targets that a group has and keeps.
    pub async fn targets(&self, group_arn: &str) -> Vec<String> {
        let call = self.network.describe_target_health().target_group_arn(group_arn);
        let answer = call.send().await.unwrap();
        let targets = answer.target_health_descriptions().iter().filter(|target| {
            let health = target.target_health().unwrap();
            health.state() != Some(&TargetHealthStateEnum::Draining)
                && health.reason() != Some(&TargetHealthReasonEnum::NotRegistered)
        });
        targets.map(|target| target.target().unwrap().id().unwrap().to_owned()).collect()
    }

    pub async fn allocate_host(&self, instance_type: &str) -> String {
        let call = self.ec2.allocate_hosts().quantity(1).instance_type(instance_type);
        let answer = call.availability_zone(&self.zone).send().await.unwrap();
        answer.host_ids()[0].clone()
    }

    /// Every host that is not released yet.
    pub async fn hosts(&self) -> Vec<Host> {
        let state = Filter::builder().name("state").values("available").build();
        let answer = self.ec2.describe_hosts().filter(state).send().await.unwrap();
        answer.hosts.unwrap_or_default()
    }

    pub async fn create_queue(&self, name: &str) -> String {
        let answer = self.sqs.create_queue().queue_name(name).send().await.unwrap();
        answer.queue_url().unwrap().to_owned()
    }

    pub async fn send(&self, queue_url: &str, body: &str) {
        self.sqs.send_message().queue_url(queue_url).message_body(body).send().await.unwrap();
    }
}

/// The value of a host's tag.
pub fn tag_of<'a>(host: &'a Host, key: &str) -> Option<&'a str> {
    host.tags().iter().find(|tag| tag.key() == Some(key))?.value()
}
