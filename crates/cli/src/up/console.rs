//! How does a command play the simulated cloud's console and its provider? Over the small HTTP API that the
//! cloud of `machinist up` has for it.

use anyhow::{Context, bail};
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

/// The console of one running cloud.
pub struct Console {
    client: Client,
    address: String,
}

/// What is needed of an instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudInstance {
    pub id: String,
    pub state: String,
    pub zone: String,
    pub impairment: Option<Value>,
}

impl CloudInstance {
    pub fn is_running(&self) -> bool {
        self.state == "running"
    }
}

impl Console {
    pub fn at(address: &str) -> anyhow::Result<Self> {
        let describe = || format!("{address} is no address of a cloud's console");
        let mut config = Config::new(address.parse().with_context(describe)?);
        // It is on this machine, and answers or does not.
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)?, address: address.to_owned() })
    }

    pub async fn instances(&self) -> anyhow::Result<Vec<CloudInstance>> {
        let answer = self.ask("GET", "/instances", None).await?;
        serde_json::from_value(answer).context("cannot read the cloud's list of instances")
    }

    /// Stops it, as a user of the console would.
    pub async fn stop(&self, instance: &str) -> anyhow::Result<()> {
        let path = format!("/instances/{instance}/stop");
        self.ask("POST", &path, Some(json!({ "by": "user" }))).await.map(drop)
    }

    /// Announces a retirement.
    pub async fn retire(&self, instance: &str, not_before: jiff::Timestamp) -> anyhow::Result<()> {
        let event = json!({
            "instanceId": instance,
            "code": "instance-retirement",
            "notBefore": not_before,
        });
        self.ask("POST", "/events", Some(event)).await.map(drop)
    }

    /// Breaks its host, or mends it.
    pub async fn impair(&self, instance: &str, impaired: bool) -> anyhow::Result<()> {
        let path = format!("/instances/{instance}/impair");
        let body = json!({ "check": "system", "impaired": impaired });
        self.ask("POST", &path, Some(body)).await.map(drop)
    }

    /// Leaves no room for further instances in a zone.
    pub async fn exhaust(&self, zone: &str) -> anyhow::Result<()> {
        let faults = json!({ "capacity": [{ "availabilityZone": zone, "available": 0 }] });
        self.ask("POST", "/faults", Some(faults)).await.map(drop)
    }

    /// Whether some zone has no room, by one of these experiments.
    pub async fn is_exhausted(&self) -> anyhow::Result<bool> {
        let faults = self.ask("GET", "/faults", None).await?;
        Ok(faults["capacity"].as_array().is_some_and(|shortages| !shortages.is_empty()))
    }

    pub async fn make_room(&self) -> anyhow::Result<()> {
        self.ask("DELETE", "/faults?kind=capacity", None).await.map(drop)
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let describe = || format!("the cloud's console at {} did not do it", self.address);
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).body(Body::from(bytes))?;
        let answer = self.client.send(request).await.with_context(describe)?;
        let status = answer.status();
        let bytes = answer.into_body().collect_bytes().await.with_context(describe)?;
        let value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).with_context(describe)?
        };
        if !status.is_success() {
            let why = value["error"].as_str().unwrap_or("it did not say why");
            bail!("{}: {why}", describe());
        }
        Ok(value)
    }
}
