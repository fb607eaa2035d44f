//! Is a kubelet believed exactly when its certificate was signed by the cluster's own CA, for it?

use std::net::Ipv4Addr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const NODE: &str = "node.example";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

/// What a client that trusts one authority says of a kubelet whose certificate another signed.
async fn asked(signer: &Authority, trusted: &str, node: &str) -> anyhow::Result<Vec<u8>> {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(vec![NODE.to_owned()]).unwrap();
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = parameters.signed_by(&key, signer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let kubelets = OverTls { port: listener.local_addr().unwrap().port() };
    let serve = async {
        let (connection, _) = listener.accept().await.unwrap();
        // Kept open until the client is done.
        TlsAcceptor::from(Arc::new(config)).accept(connection).await
    };
    let ask = kubelets.serving_certificate(node, Ipv4Addr::LOCALHOST.into(), trusted);
    let (_served, answer) = tokio::join!(serve, ask);
    let expected = certificate.der().to_vec();
    answer.inspect(|served| assert_eq!(*served, expected))
}

#[tokio::test]
async fn only_what_the_cas_of_kubelets_signed_for_the_node_is_trusted() {
    let (own, other) = (authority(), authority());
    let both = format!("{}{}", other.pem(), own.pem());
    asked(&own, &both, NODE).await.unwrap();
    let error = asked(&own, &other.pem(), NODE).await.unwrap_err();
    assert!(format!("{error:#}").contains("not trusted"), "{error:#}");
    asked(&own, &own.pem(), "another.example").await.unwrap_err();
}

#[test]
fn an_empty_bundle_trusts_nobody() {
    trusting("").unwrap_err();
    trusting("no certificate").unwrap_err();
}
