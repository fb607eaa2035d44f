//! How does a cluster without a control-plane provider get its kubeconfig?
//!
//! Out of its authority, the Secret `<cluster>-ca`, once it is known where its API server is. One that is there is left alone.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    ByteString,
    api::core::v1::Secret,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::Api;
use machinist_api::cluster_api::{
    API_VERSION, Cluster,
    names::{kind, label, secret},
};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use serde_json::json;

use crate::{context, write};

/// As long as Cluster API's own are good for.
const VALIDITY: SignedDuration = SignedDuration::from_hours(24 * 365);
/// A client's clock may be behind.
const BEFORE: SignedDuration = SignedDuration::from_mins(5);

/// Makes the kubeconfig of the cluster unless it is there. Returns whether it was made now.
///
/// # Errors
/// Fails, in words, when the authority cannot be used, or a Secret not be read or written.
pub async fn ensure(
    base: &context::Context,
    cluster: &Cluster,
    server: &str,
) -> anyhow::Result<bool> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let api = Api::<Secret>::namespaced(base.client.clone(), namespace);
    let wanted = format!("{name}{}", secret::KUBECONFIG_SUFFIX);
    if api.get_opt(&wanted).await?.is_some() {
        return Ok(false);
    }
    let authority = format!("{name}{}", secret::CA_SUFFIX);
    // Whoever makes the authority has not done so yet; the Cluster is looked at again.
    let Some(found) = api.get_opt(&authority).await? else { return Ok(false) };
    let data = found.data.unwrap_or_default();
    let part = |key: &str| {
        let bytes = data.get(key).map(|bytes| bytes.0.clone());
        let bytes = bytes.ok_or_else(|| anyhow::anyhow!("the Secret {authority} has no {key}"))?;
        String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{key} of {authority} is no PEM"))
    };
    let (certificate, key) = (part("tls.crt")?, part("tls.key")?);
    let text = kubeconfig(name, server, &certificate, &key, base.env.now())?;
    let made = Secret {
        metadata: ObjectMeta {
            name: Some(wanted),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(label::CLUSTER_NAME.to_owned(), name.to_owned())])),
            owner_references: Some(vec![OwnerReference {
                api_version: API_VERSION.to_owned(),
                kind: kind::CLUSTER.to_owned(),
                name: name.to_owned(),
                uid: cluster.metadata.uid.clone().unwrap_or_default(),
                ..Default::default()
            }]),
            ..Default::default()
        },
        type_: Some(secret::TYPE.to_owned()),
        data: Some(BTreeMap::from([(secret::VALUE_KEY.to_owned(), ByteString(text.into_bytes()))])),
        ..Default::default()
    };
    match api.create(&write::creation(), &made).await {
        Ok(_) => {
            tracing::info!(cluster = format!("{namespace}/{name}"), "made the kubeconfig");
            Ok(true)
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An administrator's kubeconfig with a certificate of the cluster's own authority. JSON is YAML.
fn kubeconfig(
    name: &str,
    server: &str,
    authority: &str,
    authority_key: &str,
    now: Timestamp,
) -> anyhow::Result<String> {
    // What the parsers say may repeat the key (Rule 13).
    let signer = KeyPair::from_pem(authority_key)
        .map_err(|_| anyhow::anyhow!("the key of the cluster's authority cannot be read"))?;
    let issuer = Issuer::from_ca_cert_pem(authority, signer).map_err(|_| {
        anyhow::anyhow!("the certificate of the cluster's authority cannot be read")
    })?;
    let mut parameters = CertificateParams::new(Vec::<String>::new())?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "kubernetes-admin");
    subject.push(DnType::OrganizationName, "system:masters");
    parameters.distinguished_name = subject;
    let at = |time: Result<Timestamp, jiff::Error>| {
        let seconds = time.unwrap_or(now).as_second();
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    };
    parameters.not_before = at(now.checked_sub(BEFORE));
    parameters.not_after = at(now.checked_add(VALIDITY));
    parameters.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    let encoded = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
    let (user, context) = (format!("{name}-admin"), format!("{name}-admin@{name}"));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": context,
        "clusters": [{
            "name": name,
            "cluster": { "server": server, "certificate-authority-data": encoded(authority) },
        }],
        "users": [{
            "name": user,
            "user": {
                "client-certificate-data": encoded(&certificate.pem()),
                "client-key-data": encoded(&key.serialize_pem()),
            },
        }],
        "contexts": [{ "name": context, "context": { "cluster": name, "user": user } }],
    });
    Ok(config.to_string())
}
