//! What does a Machine's providerSpec ask of AWS?
//!
//! Every field of `AWSMachineProviderConfig` has its place here, also those that no launch uses, so
//! that a field nobody knows can be told from one that is merely unused.

use machinist_api::RawObject;
use serde::{Deserialize, Deserializer, de::IntoDeserializer};
use serde_json::Value;

use super::errors::invalid;
use crate::ProviderError;

/// The kind that a providerSpec for AWS has.
pub const KIND: &str = "AWSMachineProviderConfig";

/// The API versions that a providerSpec for AWS may have.
pub const API_VERSIONS: [&str; 2] =
    ["awsproviderconfig.openshift.io/v1beta1", "machine.openshift.io/v1beta1"];

/// `AWSMachineProviderConfig`, field for field. Absent, null and empty mean the same.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsMachineProviderConfig {
    pub api_version: Option<String>,
    pub kind: Option<String>,
    /// Accepted and unused.
    pub metadata: Option<Value>,
    pub ami: Option<ResourceReference>,
    #[serde(deserialize_with = "empty_as_none")]
    pub instance_type: Option<String>,
    pub cpu_options: Option<CpuOptions>,
    #[serde(deserialize_with = "null_as_default")]
    pub tags: Vec<TagSpecification>,
    pub iam_instance_profile: Option<ResourceReference>,
    pub user_data_secret: Option<SecretReference>,
    pub credentials_secret: Option<SecretReference>,
    #[serde(deserialize_with = "empty_as_none")]
    pub key_name: Option<String>,
    pub device_index: Option<i64>,
    pub public_ip: Option<bool>,
    #[serde(deserialize_with = "empty_as_none")]
    pub network_interface_type: Option<NetworkInterfaceType>,
    #[serde(deserialize_with = "null_as_default")]
    pub security_groups: Vec<ResourceReference>,
    pub subnet: Option<ResourceReference>,
    pub placement: Option<Placement>,
    #[serde(deserialize_with = "null_as_default")]
    pub load_balancers: Vec<LoadBalancerReference>,
    #[serde(deserialize_with = "null_as_default")]
    pub block_devices: Vec<BlockDevice>,
    pub spot_market_options: Option<SpotMarketOptions>,
    #[serde(deserialize_with = "empty_as_none")]
    pub market_type: Option<MarketType>,
    #[serde(deserialize_with = "empty_as_none")]
    pub capacity_reservation_id: Option<String>,
    pub metadata_service_options: Option<MetadataServiceOptions>,
    #[serde(deserialize_with = "empty_as_none")]
    pub placement_group_name: Option<String>,
    pub placement_group_partition: Option<i32>,
}

/// One thing of AWS, by its id or by filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResourceReference {
    #[serde(deserialize_with = "empty_as_none")]
    pub id: Option<String>,
    #[serde(deserialize_with = "empty_as_none")]
    pub arn: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub filters: Vec<ResourceFilter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ResourceFilter {
    pub name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SecretReference {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TagSpecification {
    pub name: String,
    #[serde(default)]
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuOptions {
    #[serde(deserialize_with = "empty_as_none")]
    pub confidential_compute: Option<ConfidentialCompute>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ConfidentialCompute {
    Disabled,
    AMDEncryptedVirtualizationNestedPaging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum NetworkInterfaceType {
    #[serde(rename = "ENA")]
    Ena,
    #[serde(rename = "EFA")]
    Efa,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    #[serde(deserialize_with = "empty_as_none")]
    pub region: Option<String>,
    #[serde(deserialize_with = "empty_as_none")]
    pub availability_zone: Option<String>,
    #[serde(deserialize_with = "empty_as_none")]
    pub tenancy: Option<Tenancy>,
    pub host: Option<HostPlacement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tenancy {
    Default,
    Dedicated,
    Host,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostPlacement {
    #[serde(deserialize_with = "empty_as_none")]
    pub affinity: Option<HostAffinity>,
    pub dedicated_host: Option<DedicatedHost>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum HostAffinity {
    AnyAvailable,
    DedicatedHost,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DedicatedHost {
    #[serde(deserialize_with = "empty_as_none")]
    pub allocation_strategy: Option<AllocationStrategy>,
    #[serde(deserialize_with = "empty_as_none")]
    pub id: Option<String>,
    pub dynamic_host_allocation: Option<DynamicHostAllocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum AllocationStrategy {
    UserProvided,
    Dynamic,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DynamicHostAllocation {
    #[serde(deserialize_with = "null_as_default")]
    pub tags: Vec<TagSpecification>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LoadBalancerReference {
    pub name: String,
    #[serde(rename = "type")]
    pub type_: LoadBalancerType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadBalancerType {
    Classic,
    Network,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockDevice {
    #[serde(deserialize_with = "empty_as_none")]
    pub device_name: Option<String>,
    pub ebs: Option<EbsBlockDevice>,
    /// Also an empty text has an effect: it suppresses a device of the image.
    pub no_device: Option<String>,
    #[serde(deserialize_with = "empty_as_none")]
    pub virtual_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EbsBlockDevice {
    /// Deprecated and without effect: volumes always go with their instance.
    pub delete_on_termination: Option<bool>,
    pub encrypted: Option<bool>,
    #[serde(rename = "kmsKey")]
    pub kms_key: Option<ResourceReference>,
    pub iops: Option<i64>,
    pub throughput_mib: Option<i64>,
    pub volume_size: Option<i64>,
    #[serde(deserialize_with = "empty_as_none")]
    pub volume_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpotMarketOptions {
    #[serde(deserialize_with = "empty_as_none")]
    pub max_price: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MarketType {
    OnDemand,
    Spot,
    CapacityBlock,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MetadataServiceOptions {
    #[serde(deserialize_with = "empty_as_none")]
    pub authentication: Option<MetadataAuthentication>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MetadataAuthentication {
    Optional,
    Required,
}

impl AwsMachineProviderConfig {
    /// Reads a providerSpec. The message of an error begins with the path of the field at fault.
    pub fn parse(provider_spec: &RawObject) -> Result<Self, ProviderError> {
        let value: Value = provider_spec.parse().map_err(|error| invalid("providerSpec", error))?;
        if !value.is_object() {
            return Err(invalid("providerSpec", "expected an object"));
        }
        let config: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." {
                "providerSpec".to_owned()
            } else {
                format!("providerSpec.{path}")
            };
            invalid(&field, error.inner())
        })?;
        config.check_kind()?;
        Ok(config)
    }

    pub fn region(&self) -> Option<&str> {
        self.placement.as_ref()?.region.as_deref()
    }

    pub fn availability_zone(&self) -> Option<&str> {
        self.placement.as_ref()?.availability_zone.as_deref()
    }

    /// The Secret with the user data; a reference without a name is none.
    pub fn user_data_secret_name(&self) -> Option<&str> {
        secret_name(self.user_data_secret.as_ref())
    }

    /// The Secret with the credentials; a reference without a name is none, and means the default
    /// chain.
    pub fn credentials_secret_name(&self) -> Option<&str> {
        secret_name(self.credentials_secret.as_ref())
    }

    /// An absent kind is accepted, as the controllers before us did; a wrong one is another
    /// cloud's.
    fn check_kind(&self) -> Result<(), ProviderError> {
        if let Some(kind) = self.kind.as_deref()
            && !kind.is_empty()
            && kind != KIND
        {
            return Err(invalid(
                "providerSpec.kind",
                format_args!("unknown kind {kind:?}, expected {KIND:?}"),
            ));
        }
        if let Some(api_version) = self.api_version.as_deref()
            && !api_version.is_empty()
            && !API_VERSIONS.contains(&api_version)
        {
            let [first, second] = API_VERSIONS;
            return Err(invalid(
                "providerSpec.apiVersion",
                format_args!("unknown version {api_version:?}, expected {first:?} or {second:?}"),
            ));
        }
        Ok(())
    }
}

fn secret_name(reference: Option<&SecretReference>) -> Option<&str> {
    reference.map(|reference| reference.name.as_str()).filter(|name| !name.is_empty())
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn empty_as_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if !text.is_empty() => T::deserialize(text.into_deserializer()).map(Some),
        Some(_) | None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorClass;

    fn parse(value: &Value) -> Result<AwsMachineProviderConfig, ProviderError> {
        AwsMachineProviderConfig::parse(&RawObject::from_value(value).unwrap())
    }

    #[test]
    fn every_field_is_read() {
        let config = parse(&json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": KIND,
            "metadata": {"creationTimestamp": null},
            "ami": {"id": "ami-1", "arn": "a", "filters": [{"name": "n", "values": ["v"]}]},
            "instanceType": "m6i.large",
            "cpuOptions": {"confidentialCompute": "AMDEncryptedVirtualizationNestedPaging"},
            "tags": [{"name": "team", "value": "blue"}],
            "iamInstanceProfile": {"id": "worker"},
            "userDataSecret": {"name": "worker-user-data"},
            "credentialsSecret": {"name": "aws-cloud-credentials"},
            "keyName": "key", "deviceIndex": 0, "publicIp": true, "networkInterfaceType": "EFA",
            "securityGroups": [{"id": "sg-1"}], "subnet": {"id": "subnet-1"},
            "placement": {
                "region": "us-east-1", "availabilityZone": "us-east-1a", "tenancy": "host",
                "host": {"affinity": "DedicatedHost", "dedicatedHost": {
                    "allocationStrategy": "Dynamic", "id": "h-1",
                    "dynamicHostAllocation": {"tags": [{"name": "a", "value": "b"}]}
                }}
            },
            "loadBalancers": [{"name": "int", "type": "network"}],
            "blockDevices": [{"deviceName": "/dev/xvda", "noDevice": "", "virtualName": "ephemeral0",
                "ebs": {"deleteOnTermination": false, "encrypted": true, "kmsKey": {"arn": "k"},
                        "iops": 3000, "throughputMib": 200, "volumeSize": 120, "volumeType": "gp3"}}],
            "spotMarketOptions": {"maxPrice": "0.1"}, "marketType": "Spot",
            "capacityReservationId": "cr-1", "metadataServiceOptions": {"authentication": "Required"},
            "placementGroupName": "group", "placementGroupPartition": 3
        }))
        .unwrap();
        assert_eq!(config.region(), Some("us-east-1"));
        assert_eq!(config.availability_zone(), Some("us-east-1a"));
        assert_eq!(config.user_data_secret_name(), Some("worker-user-data"));
        assert_eq!(config.credentials_secret_name(), Some("aws-cloud-credentials"));
        let device = config.block_devices.first().unwrap();
        assert_eq!(device.no_device.as_deref(), Some(""));
        let ebs = device.ebs.as_ref().unwrap();
        assert_eq!(
            (ebs.iops, ebs.throughput_mib, ebs.volume_size),
            (Some(3000), Some(200), Some(120))
        );
        assert_eq!(ebs.kms_key.as_ref().unwrap().arn.as_deref(), Some("k"));
        assert_eq!(config.placement_group_partition, Some(3));
    }

    #[test]
    fn null_and_empty_are_as_absent() {
        let config = parse(&json!({
            "ami": {"id": null}, "tags": null, "loadBalancers": null, "publicIp": null,
            "networkInterfaceType": "", "marketType": "", "keyName": "",
            "placement": {"region": "", "tenancy": ""}, "credentialsSecret": {"name": ""},
            "metadataServiceOptions": {"authentication": ""}, "unknown": {"left": "alone"}
        }))
        .unwrap();
        assert_eq!(config.ami, Some(ResourceReference::default()));
        assert_eq!(config.region(), None);
        assert_eq!(config.credentials_secret_name(), None);
        assert_eq!(config.network_interface_type, None);
    }

    #[test]
    fn errors_name_the_field() {
        let table = [
            (json!("text"), "providerSpec: expected an object"),
            (json!({"subnet": {"id": 5}}), "providerSpec.subnet.id: invalid type: integer `5`"),
            (
                json!({"blockDevices": [{}, {"ebs": {"volumeSize": "big"}}]}),
                "providerSpec.blockDevices[1].ebs.volumeSize: invalid type: string \"big\"",
            ),
            (
                json!({"placement": {"tenancy": "shared"}}),
                "providerSpec.placement.tenancy: unknown variant `shared`",
            ),
            (
                json!({"kind": "GCPMachineProviderSpec"}),
                "providerSpec.kind: unknown kind \"GCPMachineProviderSpec\"",
            ),
            (json!({"apiVersion": "v1"}), "providerSpec.apiVersion: unknown version \"v1\""),
        ];
        for (value, expected) in table {
            let error = parse(&value).unwrap_err();
            assert_eq!(error.class, ErrorClass::InvalidConfiguration);
            assert!(error.message.starts_with(expected), "{} is not {expected}", error.message);
        }
    }
}
