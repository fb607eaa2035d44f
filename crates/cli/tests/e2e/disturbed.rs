//! A pool goes from 0 to 30 while the operator is killed, its leases are stolen and the webhooks'
//! certificate is replaced: no request of a user fails, and all comes right.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    coordination::v1::Lease,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use machinist_api::{MachineSet, names::lease};
use machinist_testbed::{operator_process::OperatorProcess, pki::Authority};
use serde_json::json;
use tokio::{sync::Mutex, time::sleep};

use crate::{
    arena::{Arena, TAKEOVER, run},
    seen::free_port,
};

/// A certificate as cert-manager mounts it, of an authority of its own each time.
fn write_certificate(folder: &Path) {
    let authority = Authority::new("webhooks").unwrap();
    let identity = authority.server("webhook", &["127.0.0.1", "localhost"]).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("ca.crt"), authority.certificate()).unwrap();
    std::fs::write(folder.join("tls.key"), identity.key).unwrap();
    std::fs::write(folder.join("tls.crt"), identity.certificate).unwrap();
}

/// A user who changes a pool again and again; counts what was asked and what failed.
struct Users {
    asked: AtomicUsize,
    failures: std::sync::Mutex<Vec<String>>,
    is_over: AtomicBool,
}

async fn use_it(arena: &Arena, users: Arc<Users>) {
    let sets = arena.api::<MachineSet>();
    while !users.is_over.load(Ordering::Relaxed) {
        let number = users.asked.fetch_add(1, Ordering::Relaxed);
        let annotations = json!({"example.com/touched": number.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        if let Err(error) = sets.patch("pool", &PatchParams::default(), &patch).await {
            users.failures.lock().unwrap().push(error.to_string());
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Starts the operator again whenever it has ended, as the kubelet of its node does.
struct Kubelet {
    operator: Mutex<OperatorProcess>,
    restarts: AtomicUsize,
}

impl Kubelet {
    fn of(operator: OperatorProcess) -> Self {
        Self { operator: Mutex::new(operator), restarts: AtomicUsize::new(0) }
    }

    async fn keep_up(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let mut operator = self.operator.lock().await;
            if !operator.process().is_running() {
                operator.restart().await.unwrap();
                self.restarts.fetch_add(1, Ordering::Relaxed);
            }
            drop(operator);
            sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn steal_leases(arena: &Arena) {
    for name in lease::ALL {
        // To the microsecond: the API server takes nothing else here.
        let now = format!("{:.6}", jiff::Timestamp::now());
        let stolen = json!({"spec": {
            "holderIdentity": "thief",
            "renewTime": now,
            "acquireTime": now,
            "leaseDurationSeconds": 6,
        }});
        let leases: Api<Lease> = arena.api();
        leases.patch(name, &PatchParams::default(), &Patch::Merge(stolen)).await.unwrap();
    }
}

async fn wait_made(arena: &Arena, count: usize) {
    arena
        .eventually(&format!("{count} instances were launched"), async || {
            (arena.launched().len() >= count).then_some(())
        })
        .await;
}

#[test]
fn a_scale_up_survives_a_kill_stolen_leases_and_another_certificate() {
    run(async {
        let arena = Arena::alone("disturbed").await;
        let folder = arena.cluster.folder().join("disturbed-certificate");
        write_certificate(&folder);
        let address = format!("127.0.0.1:{}", free_port());
        let kept = format!("url:https://{address}");
        let mut flags = TAKEOVER.to_vec();
        flags.extend([
            ("--webhook-address", address.as_str()),
            ("--keep-webhooks", kept.as_str()),
            ("--webhook-cert-dir", folder.to_str().unwrap()),
        ]);
        let kubelet = Kubelet::of(arena.start_operator_with(&flags).await);
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(arena.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(arena.client.clone());
        let bundle = async || {
            let found = validating.get_opt("machine-api").await.unwrap()?;
            found.webhooks?.first()?.client_config.ca_bundle.clone()
        };
        let first = arena.eventually("the webhooks are configured", bundle).await;

        arena.create_set("pool", 0, json!({})).await;
        let users = Arc::new(Users {
            asked: AtomicUsize::new(0),
            failures: std::sync::Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let disturb = async {
            arena.scale("pool", 30).await;
            wait_made(&arena, 5).await;
            kubelet.operator.lock().await.kill().await;
            wait_made(&arena, 12).await;
            let restarts = kubelet.restarts.load(Ordering::Relaxed);
            steal_leases(&arena).await;
            // It ends itself, since another may act now.
            arena
                .eventually("it has noticed", async || {
                    (kubelet.restarts.load(Ordering::Relaxed) > restarts).then_some(())
                })
                .await;
            wait_made(&arena, 20).await;
            write_certificate(&folder);
            arena
                .eventually("the API server is told of the new authority", async || {
                    bundle().await.filter(|now| *now != first)
                })
                .await;
            arena.wait_running(30).await;
            users.is_over.store(true, Ordering::Relaxed);
        };
        tokio::join!(disturb, use_it(&arena, Arc::clone(&users)), kubelet.keep_up(&users.is_over));

        let failures = std::mem::take(&mut *users.failures.lock().unwrap());
        let asked = users.asked.load(Ordering::Relaxed);
        assert!(failures.is_empty(), "{} of {asked}: {failures:?}", failures.len());
        arena.wait_set_columns("pool", "30 30 30 30").await;
        // With the new certificate it is asked as before.
        arena
            .eventually("what is wrong is refused again", async || {
                let patch =
                    Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}));
                let sets = arena.api::<MachineSet>();
                sets.patch("pool", &PatchParams::default(), &patch).await.err().map(drop)
            })
            .await;
        arena.check_ledger().await;
        kubelet.operator.into_inner().stop().await;
        mutating.delete("machine-api", &DeleteParams::default()).await.unwrap();
        validating.delete("machine-api", &DeleteParams::default()).await.unwrap();
        assert!(mutating.list(&ListParams::default()).await.unwrap().items.is_empty());
    });
}
