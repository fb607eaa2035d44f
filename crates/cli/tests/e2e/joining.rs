//! Nodes join because the operator lets them, and nobody else does: the testbed approves nothing.

use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        core::v1::Event,
    },
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use machinist_testbed::{
    kubelet::{self, CLIENT_SIGNER, SERVING_SIGNER},
    pki::signing_request,
};
use serde_json::json;

use crate::arena::{Arena, name_of, run};

/// The message of the approval that each request about a Machine got, by signer.
async fn approvals(arena: &Arena, machine: &str) -> Vec<(String, String)> {
    let requests: Api<CertificateSigningRequest> = Api::all(arena.client.clone());
    let all = requests.list(&ListParams::default()).await.unwrap().items;
    let approved = all.into_iter().filter_map(|one| {
        let conditions = one.status.and_then(|status| status.conditions)?;
        let approved = conditions.into_iter().find(|condition| condition.type_ == "Approved")?;
        assert_eq!(approved.reason.as_deref(), Some("NodeCSRApprove"));
        Some((one.spec.signer_name, approved.message.unwrap_or_default()))
    });
    approved.filter(|(_, message)| message.contains(machine)).collect()
}

#[test]
fn a_machine_joins_because_the_operator_approves_and_a_stranger_does_not() {
    run(async {
        let (arena, _operator) = Arena::with_operator("joining").await;
        arena.create_set("pool", 1, json!({})).await;
        let machines = arena.wait_running(1).await;
        let machine = name_of(&machines[0]);
        arena
            .eventually("both certificates of the node are approved", async || {
                let approved = approvals(&arena, &machine).await;
                let has = |signer: &str| approved.iter().any(|(found, _)| found == signer);
                (has(CLIENT_SIGNER) && has(SERVING_SIGNER)).then_some(())
            })
            .await;

        // Somebody found the bootstrap credentials, and asks to be a node that no Machine is.
        let (access, admin) = (arena.cluster.access(), &arena.client);
        let stranger = kubelet::bootstrap_client(access, admin).await.unwrap();
        let user = "system:node:stranger.ec2.internal";
        let asked = signing_request(user, Some("system:nodes"), &[]).unwrap();
        let object = CertificateSigningRequest {
            metadata: serde_json::from_value(json!({"generateName": "stranger-"})).unwrap(),
            spec: CertificateSigningRequestSpec {
                request: ByteString(asked.certificate.into_bytes()),
                signer_name: CLIENT_SIGNER.to_owned(),
                usages: Some(vec!["digital signature".to_owned(), "client auth".to_owned()]),
                ..CertificateSigningRequestSpec::default()
            },
            status: None,
        };
        let requests: Api<CertificateSigningRequest> = Api::all(stranger);
        let made = requests.create(&PostParams::default(), &object).await.unwrap();
        let name = made.metadata.name.unwrap();
        let events: Api<Event> = Api::all(arena.client.clone());
        arena
            .eventually("the operator says why it does not approve", async || {
                let all = events.list(&ListParams::default()).await.unwrap().items;
                let told = all.iter().any(|event| {
                    event.involved_object.name.as_ref() == Some(&name)
                        && event.message.as_deref().unwrap_or_default().contains("NoMachine")
                });
                told.then_some(())
            })
            .await;
        let all: Api<CertificateSigningRequest> = Api::all(arena.client.clone());
        let found = all.get(&name).await.unwrap();
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        assert!(conditions.is_empty(), "neither approved nor denied: {conditions:?}");
    });
}
