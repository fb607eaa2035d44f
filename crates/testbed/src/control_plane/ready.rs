//! When does the control plane serve?

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::bail;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::api_access::{ADMINISTRATORS, ApiAccess};
use crate::process::Process;

/// Start-up takes seconds; a machine whose cores are busy with a build takes a good deal more.
const PATIENCE: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);

pub async fn wait_for_port(process: &Process, port: u16) -> anyhow::Result<()> {
    wait_until("etcd to listen", &[process], || async {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()
    })
    .await
}

pub async fn wait_for_api_server(access: &ApiAccess, processes: &[&Process]) -> anyhow::Result<()> {
    let client = access.client_without_retry("admin", Some(ADMINISTRATORS)).await?;
    wait_until("the API server to be ready", processes, || async {
        let request = http_get("/readyz");
        match request {
            Some(request) => client.request_text(request).await.is_ok_and(|text| text == "ok"),
            None => false,
        }
    })
    .await
}

/// The controllers run when the default service account exists: a pod cannot be created before.
pub async fn wait_for_controllers(
    access: &ApiAccess,
    processes: &[&Process],
) -> anyhow::Result<()> {
    let client = access.client_without_retry("admin", Some(ADMINISTRATORS)).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let namespaces: Api<Namespace> = Api::all(client);
    wait_until("the controllers to run", processes, || async {
        let account = accounts.get_opt("default").await;
        let leases = namespaces.get_opt("kube-node-lease").await;
        matches!((account, leases), (Ok(Some(_)), Ok(Some(_))))
    })
    .await
}

fn http_get(path: &str) -> Option<axum::http::Request<Vec<u8>>> {
    axum::http::Request::get(path).body(Vec::new()).ok()
}

async fn wait_until<Answer: Future<Output = bool>>(
    what: &str,
    processes: &[&Process],
    condition: impl Fn() -> Answer,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if condition().await {
            return Ok(());
        }
        for process in processes {
            process.check_running()?;
        }
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}; the logs say why", PATIENCE.as_secs());
        }
        sleep(POLL).await;
    }
}
