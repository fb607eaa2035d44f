//! What do people and programs see? The columns of `kubectl get`, events, the operator's metrics,
//! the record in a Machine's status, and the operator's calls in the cloud's books.

use std::{collections::BTreeMap, time::Duration};

use http::{Request, header::ACCEPT};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::{Api, api::ListParams};
use machinist_api::{
    Condition, ConditionStatus, Machine, condition, provider_status::ProviderStatus,
};
use machinist_testbed::cloud::model::{LedgerCall, LedgerQuery};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::arena::{Arena, name_of};

/// The cells of one row of `kubectl get`, by column.
pub type Row = BTreeMap<String, String>;

/// A person's view of one Machine and what belongs to it.
#[derive(Clone, Debug)]
pub struct Subject {
    pub machine: String,
    pub uid: String,
    pub instance: String,
    pub node: String,
    pub node_uid: String,
}

impl Subject {
    pub fn of(machine: &Machine) -> Self {
        let status = machine.status.as_ref().unwrap();
        let node = status.node_ref.as_ref().unwrap();
        Self {
            machine: name_of(machine),
            uid: machine.metadata.uid.clone().unwrap(),
            instance: record_of(machine).instance_id.unwrap(),
            node: node.name.clone().unwrap(),
            node_uid: node.uid.clone().unwrap(),
        }
    }
}

/// The provider's part of a Machine's status.
pub fn record_of(machine: &Machine) -> ProviderStatus {
    let status = machine.status.as_ref().and_then(|status| status.provider_status.as_ref());
    status.map(|raw| raw.parse().unwrap()).unwrap_or_default()
}

/// A port that nobody listens at right now.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Arena {
    pub async fn machine(&self, name: &str) -> Machine {
        self.api::<Machine>().get(name).await.unwrap()
    }

    pub async fn condition(&self, machine: &str, type_: &str) -> Option<Condition> {
        let status = self.machine(machine).await.status?;
        condition::find(&status.conditions, type_).cloned()
    }

    /// The rows that `kubectl get` would print, by name; columns of `-o wide` are left out.
    async fn table(&self, path: &str) -> BTreeMap<String, Row> {
        let request = Request::get(path)
            .header(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .unwrap();
        let answer = self.client.request_text(request).await.unwrap();
        let table: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(table["kind"], "Table", "{path}");
        let columns = table["columnDefinitions"].as_array().unwrap();
        let rows = table["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| {
                let cells = row["cells"].as_array().unwrap();
                let named: Row = columns
                    .iter()
                    .zip(cells)
                    .filter(|(column, _)| column["priority"] == 0)
                    .map(|(column, cell)| {
                        let text = cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
                        (column["name"].as_str().unwrap().to_owned(), text)
                    })
                    .collect();
                (named["Name"].clone(), named)
            })
            .collect()
    }

    /// `PHASE STATE`, as `kubectl get machine` prints them.
    pub async fn machine_columns(&self, name: &str) -> String {
        let path = format!("/apis/machine.openshift.io/v1beta1/namespaces/{}/machines", self.name);
        let rows = self.table(&path).await;
        rows.get(name).map_or_else(String::new, |row| format!("{} {}", row["Phase"], row["State"]))
    }

    /// `DESIRED CURRENT READY AVAILABLE`, as `kubectl get machineset` prints them.
    pub async fn set_columns(&self, name: &str) -> String {
        let path =
            format!("/apis/machine.openshift.io/v1beta1/namespaces/{}/machinesets", self.name);
        let row = self.table(&path).await.remove(name).unwrap();
        ["Desired", "Current", "Ready", "Available"].map(|column| row[column].clone()).join(" ")
    }

    /// `STATUS`, as `kubectl get node` prints it; none where there is no such Node.
    pub async fn node_status(&self, name: &str) -> Option<String> {
        let mut rows = self.table("/api/v1/nodes").await;
        rows.remove(name).map(|row| row["Status"].clone())
    }

    pub async fn wait_machine_columns(&self, name: &str, expected: &str) {
        let what = format!("kubectl get machine {name} says {expected:?}");
        self.eventually(&what, async || {
            (self.machine_columns(name).await == expected).then_some(())
        })
        .await;
    }

    pub async fn wait_set_columns(&self, name: &str, expected: &str) {
        let what = format!("kubectl get machineset {name} says {expected:?}");
        self.eventually(&what, async || (self.set_columns(name).await == expected).then_some(()))
            .await;
    }

    pub async fn wait_node_status(&self, name: &str, expected: &str) {
        let what = format!("kubectl get node {name} says {expected:?}");
        self.eventually(&what, async || {
            (self.node_status(name).await.as_deref() == Some(expected)).then_some(())
        })
        .await;
    }

    /// Waits until a condition of a Machine is False for this reason, and returns its sentence.
    pub async fn wait_false(&self, machine: &str, type_: &str, reason: &str) -> String {
        let found = self
            .wait_condition(machine, type_, |condition| {
                condition.status == ConditionStatus::False
                    && condition.reason.as_deref() == Some(reason)
            })
            .await;
        found.message.unwrap_or_default()
    }

    pub async fn wait_true(&self, machine: &str, type_: &str) {
        self.wait_condition(machine, type_, |condition| condition.status == ConditionStatus::True)
            .await;
    }

    /// Waits for a condition whose sentence holds these words.
    pub async fn wait_said(&self, machine: &str, type_: &str, words: &str) -> Condition {
        self.wait_condition(machine, type_, |condition| {
            condition.message.as_deref().is_some_and(|message| message.contains(words))
        })
        .await
    }

    /// Waits until a Machine is gone.
    pub async fn wait_gone(&self, machine: &str) {
        self.eventually(&format!("machine {machine} is gone"), async || {
            self.api::<Machine>().get_opt(machine).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// How often events of this reason were recorded on an object.
    pub async fn times_told(&self, object: &str, reason: &str) -> i32 {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        events
            .items
            .iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(object))
            .filter(|event| event.reason.as_deref() == Some(reason))
            .map(|event| event.count.unwrap_or(1))
            .sum()
    }

    pub async fn node(&self, name: &str) -> Option<Node> {
        Api::<Node>::all(self.client.clone()).get_opt(name).await.unwrap()
    }

    /// What the operator's `/metrics` answers; waits while it is starting.
    pub async fn metrics(&self) -> String {
        self.eventually("the operator answers /metrics", async || {
            let address = std::fs::read_to_string(self.address_file()).ok()?;
            let address = address.lines().next()?;
            let mut stream = TcpStream::connect(address).await.ok()?;
            let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            let read = stream.read_to_string(&mut answer);
            timeout(Duration::from_secs(10), read).await.ok()?.ok()?;
            let (_, body) = answer.split_once("\r\n\r\n")?;
            body.ends_with("# EOF\n").then(|| body.to_owned())
        })
        .await
    }

    /// The value of a series such as `name{label="value"}`; zero where there is none.
    pub async fn metric(&self, series: &str) -> f64 {
        let metrics = self.metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// The sum of a metric over all its labels.
    pub async fn metric_sum(&self, name: &str) -> f64 {
        let metrics = self.metrics().await;
        let samples = metrics.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// How often drift of a class was counted.
    pub async fn drift(&self, class: &str) -> f64 {
        self.metric(&format!("machinist_machine_drift_total{{class=\"{class}\"}}")).await
    }

    /// How many Machines wait for this reason.
    pub async fn waiting_for(&self, reason: &str) -> f64 {
        self.metric(&format!("machinist_waiting{{controller=\"machine\",reason=\"{reason}\"}}"))
            .await
    }

    /// The books as they stand: what comes later has a greater number.
    pub fn page_of_the_books(&self) -> u64 {
        let ledger = self.cluster.cloud().ledger(&LedgerQuery::default());
        ledger.calls.last().map_or(0, |call| call.sequence)
    }

    /// The calls of this test's operator after a page of the books; `*` is every action.
    pub fn calls_since(&self, page: u64, action: &str) -> Vec<LedgerCall> {
        let action = Some(action.to_owned()).filter(|action| action != "*");
        let query = LedgerQuery { action, after: Some(page) };
        let key = Some(self.access_key());
        let calls = self.cluster.cloud().ledger(&query).calls;
        calls.into_iter().filter(|call| call.access_key_id == key).collect()
    }

    /// How many calls of this test's operator changed something in the cloud after a page.
    pub fn changes_since(&self, page: u64) -> usize {
        let is_read = |call: &&LedgerCall| call.action.contains("Describe");
        let calls = self.calls_since(page, "*");
        calls.len() - calls.iter().filter(is_read).count()
    }
}
