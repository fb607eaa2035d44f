//! The simulated cloud of the testbed, with all its levers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use machinist_providers::{
    InstanceId, Provider,
    aws::{AwsCredentials, AwsProvider, AwsSettings},
};
use machinist_testbed::{
    cloud::{
        CloudConfig, CloudHandle, CloudServer, TlsPem,
        model::{
            Denied, ErrorFault, EventCode, Faults, FilterAnswer, Impair, ImpairedCheck,
            LedgerQuery, NewEvent, TimeoutFault,
        },
        serve,
    },
    pki::Authority,
};
use serde_json::{Value, json};

use crate::{
    console::Console,
    harness::{Calls, Capability, Harness, Levers, Schedule},
};

const ACCESS_KEY_ID: &str = "AKIDEXAMPLE";

/// A domain of the VPC's own, so that its lookup shows in the addresses.
const DOMAIN: &str = "machines.example.com";

pub async fn start() -> Harness {
    let cloud = serve(config(), None).await.unwrap();
    let calls = Arc::new(Calls::default());
    let settings = AwsSettings {
        // The smallest page that EC2 allows, so that a dozen instances take several.
        page_size: 5,
        observer: Some(calls.observer()),
        ..settings(&cloud.ec2_url(), ACCESS_KEY_ID)
    };
    let world = cloud.handle().world();
    let zone = world.availability_zones.first().unwrap();
    let spec = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
        "ami": {"id": world.images["x86_64"]},
        "instanceType": "m6i.large",
        "subnet": {"id": world.private_subnets[zone]},
        "securityGroups": [{"id": world.worker_security_group}],
        "iamInstanceProfile": {"id": world.worker_instance_profile},
        "placement": {"region": world.region, "availabilityZone": zone},
        "blockDevices": [{"ebs": {"volumeSize": 120, "volumeType": "gp3"}}],
        "tags": [{"name": "team", "value": "blue"}],
        "metadataServiceOptions": {"authentication": "Required"},
    });
    let mut by_filters = spec.clone();
    by_filters["ami"] = json!({"filters": [{"name": "architecture", "values": ["x86_64"]}]});
    by_filters["subnet"] = json!({"filters": [
        {"name": "subnet-id", "values": [world.private_subnets[zone]]},
    ]});
    by_filters["securityGroups"] = json!([
        {"filters": [{"name": "group-id", "values": [world.worker_security_group]}]},
    ]);
    Harness {
        provider: Arc::new(AwsProvider::new(settings.clone()).await.unwrap()),
        console: Console::new(&settings, &world.vpc_id, &world.private_subnets[zone], zone),
        settings,
        // Of all that the suite asks for it lacks a queue service and STS.
        capabilities: [
            Capability::ClientTokens,
            Capability::Reports,
            Capability::Events,
            Capability::HostsAreHeld,
            Capability::StrictLoadBalancers,
            Capability::TagsOnlyWhatExists,
            Capability::Faults,
            Capability::Ledger,
        ]
        .into(),
        provider_spec: spec,
        provider_spec_by_filters: by_filters,
        calls,
        levers: Some(Arc::new(SimulatedLevers(cloud.handle()))),
        schedule: Arc::new(SimulatedLevers(cloud.handle())),
        _server: Box::new(cloud),
        machines: 1.into(),
    }
}

fn config() -> CloudConfig {
    CloudConfig { domain_name: Some(DOMAIN.to_owned()), ..CloudConfig::fast() }
}

fn settings(endpoint: &str, access_key_id: &str) -> AwsSettings {
    let credentials = AwsCredentials::Static {
        access_key_id: access_key_id.to_owned(),
        secret_access_key: "secret".to_owned(),
    };
    AwsSettings::new(config().region, credentials).with_one_endpoint(endpoint)
}

struct SimulatedLevers(CloudHandle);

impl Schedule for SimulatedLevers {
    fn schedule_retirement(
        &self,
        instance: &InstanceId,
        not_before: Timestamp,
        deadline: Timestamp,
    ) -> String {
        let event = NewEvent {
            instance_id: instance.0.clone(),
            code: EventCode::InstanceRetirement,
            description: Some("degraded hardware".to_owned()),
            not_before,
            not_after: None,
            not_before_deadline: Some(deadline),
        };
        self.0.schedule_event(event).unwrap().event_id
    }
}

impl Levers for SimulatedLevers {
    fn impair(&self, instance: &InstanceId, check: &str) {
        let check = match check {
            "system" => ImpairedCheck::System,
            "instance" => ImpairedCheck::Instance,
            "attached-ebs" => ImpairedCheck::AttachedEbs,
            other => panic!("no check is called {other}"),
        };
        self.0.impair(&instance.0, &Impair { check, impaired: true }).unwrap();
    }

    fn deny(&self, permission: &str) {
        let denied = Denied { action: permission.to_owned(), access_key: None };
        self.0.add_faults(Faults { denied: vec![denied], ..Faults::default() }).unwrap();
    }

    fn launch_parameters(&self, instance: &InstanceId) -> Value {
        let ledger = self.0.ledger(&LedgerQuery::default());
        let launched = ledger.instances.iter().find(|found| found.id == instance.0);
        serde_json::to_value(&*launched.expect("the ledger has it").parameters).unwrap()
    }

    fn wavelength(&self) -> (String, String) {
        let world = self.0.world();
        (world.wavelength_zone, world.wavelength_subnet)
    }

    fn answer_status_filters(&self, with_everything: bool) {
        let answer = if with_everything { FilterAnswer::Everything } else { FilterAnswer::Nothing };
        let faults = Faults { status_filters: Some(answer), ..Faults::default() };
        self.0.add_faults(faults).unwrap();
    }

    fn refuse(&self, action: &str, code: &str) {
        let fault = ErrorFault {
            action: action.to_owned(),
            code: code.to_owned(),
            message: None,
            status: None,
            count: None,
            probability: 1.0,
            effect: false,
            access_key: None,
        };
        self.0.add_faults(Faults { errors: vec![fault], ..Faults::default() }).unwrap();
    }

    fn lose_answer(&self, action: &str) {
        let fault = TimeoutFault {
            action: action.to_owned(),
            after: SignedDuration::ZERO,
            count: Some(1),
            probability: 1.0,
            effect: true,
        };
        self.0.add_faults(Faults { timeouts: vec![fault], ..Faults::default() }).unwrap();
    }

    fn clear(&self) {
        self.0.clear_faults();
    }
}

async fn serve_with_tls() -> (CloudServer, String) {
    let authority = Authority::new("test authority").unwrap();
    let server = authority.server("ec2", &["127.0.0.1"]).unwrap();
    let tls = TlsPem { certificate_chain: server.certificate, private_key: server.key };
    (serve(config(), Some(tls)).await.unwrap(), authority.certificate())
}

#[tokio::test]
async fn bundle_of_the_cluster_is_trusted_and_no_other() {
    let (cloud, bundle) = serve_with_tls().await;
    let endpoint = cloud.ec2_tls_url().unwrap();
    let trusting =
        AwsSettings { ca_bundle_pem: Some(bundle), ..settings(&endpoint, ACCESS_KEY_ID) };
    let provider = AwsProvider::new(trusting).await.unwrap();
    assert_eq!(provider.list("prod").await.unwrap(), []);

    let provider = AwsProvider::new(settings(&endpoint, ACCESS_KEY_ID)).await.unwrap();
    let error = provider.list("prod").await.unwrap_err();
    assert_eq!(error.class, machinist_providers::ErrorClass::Transient);
    assert!(error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn wrong_key_is_unauthorized() {
    let allowed = Some([ACCESS_KEY_ID.to_owned()].into());
    let cloud =
        serve(CloudConfig { allowed_access_keys: allowed, ..config() }, None).await.unwrap();
    let right = AwsProvider::new(settings(&cloud.ec2_url(), ACCESS_KEY_ID)).await.unwrap();
    right.list("prod").await.unwrap();
    let wrong = AwsProvider::new(settings(&cloud.ec2_url(), "AKIDOTHER")).await.unwrap();
    let error = wrong.list("prod").await.unwrap_err();
    assert_eq!(error.class, machinist_providers::ErrorClass::Unauthorized, "{error}");
}

#[tokio::test]
async fn domains_of_the_vpc_are_among_the_addresses() {
    let harness = start().await;
    let instance = harness.launch(&harness.request()).await;
    let name = instance.addresses.iter().find(|address| address.address.ends_with(DOMAIN));
    assert_eq!(name.map(|address| address.type_.as_str()), Some("InternalDNS"), "{instance:?}");
}
