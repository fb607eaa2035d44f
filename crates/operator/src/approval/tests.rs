//! Is a Machine bound before its request is approved, is nothing else ever written, and is a refusal
//! told once?

use std::{net::IpAddr, sync::Mutex};

use async_trait::async_trait;
use http::Method;
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use super::{kubelets::Unreachable, *};
use crate::{
    engine::testing::Fault,
    index,
    testing::{MACHINES, World, machine, read},
};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CONFIG_MAPS: &str = "/api/v1/namespaces/openshift-config-managed/configmaps";
const NODE: &str = "ip-10-0-1-7.ec2.internal";

/// For no names.
const CLIENT_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBAjCBqAIBADBGMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxLTArBgNVBAMMJHN5
c3RlbTpub2RlOmlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbDBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABL2MCE3vT9Jyij7N2XAwpv6moO92Y8BJXbwecG4zNhJguCYU
lYEKqgAA4DKKLmkWHiE9VbgIFLhT2v/LaAWyMjWgADAKBggqhkjOPQQDAgNJADBG
AiEA602HdiOcZDiVuribE4QPR0B5OWQgx+ua/FTieBJDpbICIQD5Rej1PRoYfqsD
RsbInkyMRTWdmsy3sfsDDZW+JAcGHw==
-----END CERTIFICATE REQUEST-----
";

/// For the Node's name, 10.0.1.7 and fd00::7.
const SERVING_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBTjCB9gIBADBGMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxLTArBgNVBAMMJHN5
c3RlbTpub2RlOmlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbDBZMBMGByqGSM49AgEG
CCqGSM49AwEHA0IABL2MCE3vT9Jyij7N2XAwpv6moO92Y8BJXbwecG4zNhJguCYU
lYEKqgAA4DKKLmkWHiE9VbgIFLhT2v/LaAWyMjWgTjBMBgkqhkiG9w0BCQ4xPzA9
MDsGA1UdEQQ0MDKCGGlwLTEwLTAtMS03LmVjMi5pbnRlcm5hbIcECgABB4cQ/QAA
AAAAAAAAAAAAAAAABzAKBggqhkjOPQQDAgNHADBEAiAijPluq04PhcpIaIDhUbg8
beWGGZwmIWIFTk8vkbmDjwIgFML+nSe1sYXmq6G4hHQehgKxLBRsSvP3p6HUJNgj
oaY=
-----END CERTIFICATE REQUEST-----
";

/// For the same names.
const CERTIFICATE_BY_OPENSSL: &str = "\
-----BEGIN CERTIFICATE-----
MIICIjCCAcigAwIBAgIUUbQwxNEycOPtxTA0n38E6v/T93wwCgYIKoZIzj0EAwIw
RjEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMS0wKwYDVQQDDCRzeXN0ZW06bm9kZTpp
cC0xMC0wLTEtNy5lYzIuaW50ZXJuYWwwIBcNMjYxMTE1MTAwMjUwWhgPMjEyNjEw
MjIxMDAyNTBaMEYxFTATBgNVBAoMDHN5c3RlbTpub2RlczEtMCsGA1UEAwwkc3lz
dGVtOm5vZGU6aXAtMTAtMC0xLTcuZWMyLmludGVybmFsMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEvYwITe9P0nKKPs3ZcDCm/qag73ZjwEldvB5wbjM2EmC4JhSV
gQqqAADgMoouaRYeIT1VuAgUuFPa/8toBbIyNaOBkTCBjjAdBgNVHQ4EFgQUec34
FIQwIzLncArLh+M+llnWTG8wHwYDVR0jBBgwFoAUec34FIQwIzLncArLh+M+llnW
TG8wDwYDVR0TAQH/BAUwAwEB/zA7BgNVHREENDAyghhpcC0xMC0wLTEtNy5lYzIu
aW50ZXJuYWyHBAoAAQeHEP0AAAAAAAAAAAAAAAAAAAcwCgYIKoZIzj0EAwIDSAAw
RQIgAeUm+12q/0BBxqfKkm3zlsewYBoRLSqBHgtz9/ZDyeMCIQCtQBJAVg0rQXM7
rn4rai1YIqys1lhJR6VD+lHu3tQbqw==
-----END CERTIFICATE-----
";

fn request(name: &str, pem: &str, spec: Value) -> CertificateSigningRequest {
    let mut object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "resourceVersion": "10",
            "creationTimestamp": "2026-01-01T11:59:30Z",
        },
        "spec": spec,
    });
    object["spec"]["request"] = json!(ByteString(pem.as_bytes().to_vec()));
    read(object)
}

pub(crate) fn client(name: &str) -> CertificateSigningRequest {
    let namespace = "openshift-machine-config-operator";
    request(
        name,
        CLIENT_BY_OPENSSL,
        json!({
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "username": format!("system:serviceaccount:{namespace}:node-bootstrapper"),
            "groups": [
                "system:serviceaccounts", format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ],
            "usages": ["digital signature", "client auth"],
        }),
    )
}

/// For the same Node, by somebody else.
fn client_with_another_key(name: &str) -> CertificateSigningRequest {
    let mut request = client(name);
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    let mut subject = rcgen::DistinguishedName::new();
    subject.push(rcgen::DnType::OrganizationName, "system:nodes");
    subject.push(rcgen::DnType::CommonName, format!("system:node:{NODE}"));
    parameters.distinguished_name = subject;
    let pem = parameters.serialize_request(&key).unwrap().pem().unwrap();
    request.spec.request = ByteString(pem.into_bytes());
    request
}

fn serving(name: &str) -> CertificateSigningRequest {
    request(
        name,
        SERVING_BY_OPENSSL,
        json!({
            "signerName": "kubernetes.io/kubelet-serving",
            "username": format!("system:node:{NODE}"),
            "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"],
        }),
    )
}

fn add(world: &World, request: &CertificateSigningRequest) {
    world.server.put(REQUESTS, serde_json::to_value(request).unwrap());
    world.context.stores.requests.apply_written(request.clone());
}

fn add_machine(world: &World) {
    let mut fresh = machine("m", json!({ "creationTimestamp": "2026-01-01T11:50:00Z" }));
    fresh["status"] = json!({ "phase": "Provisioned", "addresses": [
        { "type": "InternalDNS", "address": NODE.to_uppercase() },
    ] });
    world.server.put(MACHINES, fresh.clone());
    world.context.stores.machines.apply_written(read(fresh));
}

fn add_node(world: &World) {
    world.context.stores.nodes.apply_written(read(json!({
        "metadata": { "name": NODE, "uid": "uid-node", "resourceVersion": "10" },
        "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.1.7" }] },
    })));
}

fn approver() -> Approver {
    Approver::new(Policy::default(), Arc::new(Unreachable), None)
}

async fn pass(world: &World, approver: &Approver, name: &str) -> Outcome {
    reconcile(&world.context, approver, ObjectKey::cluster_wide(name)).await
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_bound_and_then_its_request_is_approved() {
    let (world, approver) = (World::new(), approver());
    add_machine(&world);
    add(&world, &client("csr"));
    let outcome = pass(&world, &approver, "csr").await;
    assert!(matches!(outcome, Outcome::Settled), "{outcome:?}");
    assert_eq!(
        world.requests("PATCH"),
        [format!("{MACHINES}/m"), format!("{REQUESTS}/csr/approval")]
    );
    let machine = world.context.stores.machines.get(&ObjectKey::new("ns", "m")).unwrap();
    let bound = &machine.metadata.annotations.as_ref().unwrap();
    let binding = &bound["machinist.dev/client-certificate-request"];
    assert!(binding.starts_with("uid-m/uid-csr/"), "{binding}");
    pass(&world, &approver, "csr").await;
    assert_eq!(world.requests("PATCH").len(), 2, "a decided request is left alone");

    add(&world, &client_with_another_key("second"));
    pass(&world, &approver, "second").await;
    assert_eq!(world.requests("PATCH").len(), 2, "a machine has one client certificate");
}

/// The signer could not, or a person would not: then there is no first certificate.
#[tokio::test(start_paused = true)]
async fn a_machine_whose_request_failed_is_bound_to_the_next_one() {
    let (world, approver) = (World::new(), approver());
    add_machine(&world);
    add(&world, &client("csr"));
    pass(&world, &approver, "csr").await;
    add(&world, &client_with_another_key("second"));
    pass(&world, &approver, "second").await;
    assert_eq!(world.requests("PATCH").len(), 2);
    let mut failed = client("csr");
    failed.metadata.resource_version = Some("99999".to_owned());
    failed.status = Some(read(json!({ "conditions": [
        { "type": "Approved", "status": "True" }, { "type": "Failed", "status": "True" },
    ] })));
    world.context.stores.requests.apply_written(failed);
    pass(&world, &approver, "second").await;
    let patches = world.requests("PATCH");
    assert_eq!(patches[2..], [format!("{MACHINES}/m"), format!("{REQUESTS}/second/approval")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_approved_for_a_machine_that_could_not_be_bound() {
    let (world, approver) = (World::new(), approver());
    add_machine(&world);
    add(&world, &client("csr"));
    world.server.fail(|method, path| match *method {
        Method::PATCH if path.starts_with(MACHINES) => Fault::Code(409),
        _ => Fault::None,
    });
    assert!(matches!(pass(&world, &approver, "csr").await, Outcome::RecheckAfter(_)));
    assert_eq!(world.requests("PATCH"), [format!("{MACHINES}/m")]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_once_and_may_end() {
    let (world, approver) = (World::new(), approver());
    add(&world, &client("csr"));
    pass(&world, &approver, "csr").await;
    pass(&world, &approver, "csr").await;
    assert_eq!(world.requests("PATCH"), [""; 0]);
    let text = world.context.metrics.encode().unwrap();
    let waiting = r#"machinist_waiting{controller="certificates",reason="NoMachine"} 1"#;
    assert!(text.contains(waiting), "{text}");
    add_machine(&world);
    pass(&world, &approver, "csr").await;
    assert_eq!(world.requests("PATCH").len(), 2);
    assert_eq!(world.into_event_count().await, 1);
}

/// Serves one certificate, and notes who asked for it.
struct Scripted {
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Kubelets for Scripted {
    async fn serving_certificate(
        &self,
        node: &str,
        address: IpAddr,
        authorities: &str,
    ) -> anyhow::Result<Vec<u8>> {
        self.asked.lock().unwrap().push(format!("{node} {address} {authorities}"));
        Ok(CertificateDer::from_pem_slice(CERTIFICATE_BY_OPENSSL.as_bytes()).unwrap().to_vec())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_kubelet_serves_with_may_be_renewed() {
    let world = World::new();
    let kubelets = Arc::new(Scripted { asked: Mutex::default() });
    let approver = Approver::new(Policy::default(), Arc::clone(&kubelets) as _, None);
    add_node(&world);
    add(&world, &serving("csr"));
    let outcome = pass(&world, &approver, "csr").await;
    assert!(matches!(outcome, Outcome::RecheckAfter(KUBELET_RETRY)), "{outcome:?}");
    assert_eq!(*kubelets.asked.lock().unwrap(), [""; 0], "without a CA nobody is trusted");

    let data = json!({ "ca-bundle.crt": "the-ca" });
    world.server.put(
        CONFIG_MAPS,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "csr-controller-ca", "namespace": "openshift-config-managed" },
            "data": data,
        }),
    );
    pass(&world, &approver, "csr").await;
    assert_eq!(*kubelets.asked.lock().unwrap(), [format!("{NODE} 10.0.1.7 the-ca")]);
    assert_eq!(world.requests("PATCH"), [format!("{REQUESTS}/csr/approval")]);
    let text = world.context.metrics.encode().unwrap();
    assert!(
        text.contains(r#"machinist_certificates_approved_total{reason="Renewal"} 1"#),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_not_approved_and_told_of_nobody() {
    let (world, approver) = (World::new(), approver());
    add_machine(&world);
    for number in 0..102 {
        world.context.stores.requests.apply_written(client(&format!("csr-{number}")));
    }
    let outcome = pass(&world, &approver, "csr-7").await;
    assert!(matches!(outcome, Outcome::RecheckAfter(_)), "{outcome:?}");
    assert_eq!(world.requests("PATCH"), [""; 0]);
    let limits = limits(&world.context.stores, world.context.env.now());
    assert_eq!((limits.pending, limits.max()), (102, 101));

    for number in 0..100 {
        let key = ObjectKey::cluster_wide(format!("csr-{number}"));
        world.context.stores.requests.forget_written(&key, &format!("uid-csr-{number}"));
    }
    add(&world, &client("csr-101"));
    tokio::time::advance(Duration::from_secs(60)).await;
    pass(&world, &approver, "csr-101").await;
    assert_eq!(world.requests("PATCH").len(), 2, "the flood is over");
    assert_eq!(world.into_event_count().await, 0);
}

#[test]
fn decided_requests_are_kept_without_their_bytes() {
    let policy = Policy::default();
    let mut pending = client("csr");
    index::prune_request(&mut pending, &policy);
    assert_eq!(pending.spec.request.0, CLIENT_BY_OPENSSL.as_bytes());
    let mut issued = client("csr");
    issued.status = Some(read(json!({ "certificate": ByteString(vec![7; 9]) })));
    index::prune_request(&mut issued, &policy);
    assert_eq!(issued.spec.request.0.len(), 0);
    assert_eq!(index::state_of_request(&issued, &policy), [""; 0]);
    let mut huge = client("csr");
    huge.spec.request.0 = vec![b'a'; 1024 * 1024];
    let before = machinist_core::approval::read(&huge, &policy);
    index::prune_request(&mut huge, &policy);
    assert!(huge.spec.request.0.len() < 100_000);
    assert_eq!(machinist_core::approval::read(&huge, &policy), before);
}

#[tokio::test(start_paused = true)]
async fn openshifts_own_approver_is_not_interfered_with_and_is_replaced_when_it_is_off() {
    let (world, approver) = (World::new(), approver());
    add_machine(&world);
    add(&world, &client("csr"));
    world.context.stores.infrastructures.apply_written(read(json!({
        "metadata": { "name": "cluster", "uid": "i", "resourceVersion": "1" }, "spec": {},
    })));
    let scale = |version: u32, replicas: i32| {
        world.context.stores.openshift.approvers.apply_written(read(json!({
            "metadata": {
                "name": "machine-approver", "namespace": "openshift-cluster-machine-approver",
                "uid": "a", "resourceVersion": version.to_string(),
            },
            "spec": {
                "replicas": replicas, "selector": {},
                "template": { "metadata": {}, "spec": { "containers": [] } },
            },
        })));
    };
    scale(2, 1);
    let outcome = pass(&world, &approver, "csr").await;
    assert!(matches!(outcome, Outcome::RecheckAfter(_)), "{outcome:?}");
    assert_eq!(world.requests("PATCH"), [""; 0]);
    scale(3, 0);
    pass(&world, &approver, "csr").await;
    assert_eq!(world.requests("PATCH").len(), 2, "bound and approved");
}
