//! What did an operator ask of the API server? Counted from the audit log, which it cannot talk
//! round.

use serde_json::Value;

use crate::arena::Arena;

/// One complete request of this test's operator.
#[derive(Debug)]
pub struct Asked {
    pub verb: String,
    /// With the subresource, as in `pods/eviction`.
    pub resource: String,
    pub name: String,
    pub code: u64,
    pub at: jiff::Timestamp,
}

impl Asked {
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

impl Arena {
    /// Every request of this test's operator since a moment.
    pub fn asked_since(&self, since: jiff::Timestamp) -> Vec<Asked> {
        let log = std::fs::read_to_string(self.cluster.audit_log().unwrap()).unwrap();
        // The last line may be half written.
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let complete = entries.filter(|entry| {
            entry["stage"] == "ResponseComplete" && entry["user"]["username"] == self.name.as_str()
        });
        let asked = complete.map(|entry| {
            let object = &entry["objectRef"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut resource = text(&object["resource"]);
            if let Some(subresource) = object["subresource"].as_str() {
                resource = format!("{resource}/{subresource}");
            }
            Asked {
                verb: text(&entry["verb"]),
                resource,
                name: text(&object["name"]),
                code: entry["responseStatus"]["code"].as_u64().unwrap_or_default(),
                at: text(&entry["stageTimestamp"]).parse().unwrap(),
            }
        });
        asked.filter(|asked| asked.at >= since).collect()
    }

    /// Waits until the operator has listed the cloud so many times more: its clock, by which we can
    /// tell that it had the time to do something and did not.
    pub async fn let_it_look(&self, times: usize) {
        let page = self.page_of_the_books();
        self.eventually(&format!("{times} more lists of the cloud"), async || {
            (self.calls_since(page, "DescribeInstances").len() >= times).then_some(())
        })
        .await;
    }

    /// What the operator writes, Leases apart, while it lists the cloud so many times.
    pub async fn writes_during(&self, looks: usize) -> Vec<Asked> {
        let since = jiff::Timestamp::now();
        self.let_it_look(looks).await;
        let asked = self.asked_since(since).into_iter();
        asked.filter(|one| one.is_write() && one.resource != "leases").collect()
    }
}
