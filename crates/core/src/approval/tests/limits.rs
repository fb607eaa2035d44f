//! Is a flood ignored, and is everything told once?

use super::super::counts_as_pending;
use super::*;

fn with(limits: Limits, told: Option<&str>) -> ApprovalDecision {
    let request = client_request(&Draft::of_node(NAME));
    let machine = machine("m");
    let observed = Observed {
        request: &request,
        machines: vec![&machine],
        node: None,
        current: CurrentCertificate::NotAsked,
        void_requests: Default::default(),
        limits,
        told,
    };
    decide(&observed, &Policy::default(), now())
}

#[test]
fn more_pending_requests_than_a_fleet_makes_are_all_ignored() {
    for (pending, machines, nodes, is_over) in [
        (100, 0, 0, false),
        (101, 0, 0, true),
        (150, 50, 3, false),
        (151, 50, 3, true),
        (150, 3, 50, false),
        (10_000, 50, 50, true),
    ] {
        let answer = with(Limits { pending, machines, nodes }, None);
        assert_eq!(is_approved(&answer), !is_over, "{pending} {machines} {nodes}");
        if is_over {
            assert_eq!(answer.verdict.reason(), "TooManyPending");
            assert_eq!(answer.decision.announcements, [], "no flood of events");
            assert!(answer.decision.recheck.unwrap() > now());
        }
    }
}

#[test]
fn a_reason_is_told_once_and_a_new_one_again() {
    let request = client_request(&Draft::of_node(NAME));
    let told = |told| {
        let observed = Observed {
            request: &request,
            machines: vec![],
            node: None,
            current: CurrentCertificate::NotAsked,
            void_requests: Default::default(),
            limits: ROOM,
            told,
        };
        decide(&observed, &Policy::default(), now()).decision.announcements.len()
    };
    assert_eq!((told(None), told(Some("NoMachine")), told(Some("MachineHasNode"))), (1, 0, 1));
}

#[test]
fn only_recent_undecided_requests_of_kubelets_count() {
    let base = client_request(&Draft::of_node(NAME));
    let changed = |change: &dyn Fn(&mut CertificateSigningRequest)| {
        let mut request = base.clone();
        change(&mut request);
        counts_as_pending(&request, now())
    };
    let created = |seconds: i64| {
        changed(&|request| {
            request.metadata.creation_timestamp =
                serde_json::from_value(json!(ago(seconds))).unwrap();
        })
    };
    assert!(changed(&|_| {}));
    assert!(created(3599) && !created(3600));
    assert!(!changed(&|request| request.spec.signer_name = "example.com/x".to_owned()));
    assert!(changed(
        &|request| request.spec.signer_name = "kubernetes.io/kubelet-serving".to_owned()
    ));
    assert!(!changed(&|request| request.spec.username = Some("system:node:x".to_owned())));
    assert!(!changed(&|request| {
        let status = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        request.status = Some(serde_json::from_value(status).unwrap());
    }));
    // Nonsense counts as well, or it could be sent for ever.
    assert!(changed(&|request| request.spec.request.0.clear()));
}
