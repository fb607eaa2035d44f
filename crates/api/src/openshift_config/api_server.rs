//! What we read of OpenShift's `APIServer`: the TLS profile of the cluster, and who is to follow it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RawObject;

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "APIServer",
    root = "ApiServer",
    plural = "apiservers",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerSpec {
    /// As it came; whoever serves TLS reads it.
    #[serde(default)]
    pub tls_security_profile: Option<RawObject>,
    /// Whether components besides the API servers follow the profile.
    #[serde(default)]
    pub tls_adherence: Option<String>,
}
