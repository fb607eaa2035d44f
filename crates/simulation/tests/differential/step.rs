//! What is one step of a sequence? A request in which what only a server knows is named, not written.

use serde_json::Value;

/// A kind that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The path before the namespace.
    pub base: &'static str,
    pub plural: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
}

const fn part(
    base: &'static str,
    plural: &'static str,
    api_version: &'static str,
    kind: &'static str,
) -> Part {
    Part { base, plural, api_version, kind, namespaced: true }
}

const MACHINE_BASE: &str = "/apis/machine.openshift.io/v1beta1";
const MACHINE_VERSION: &str = "machine.openshift.io/v1beta1";

pub const MACHINE: Part = part(MACHINE_BASE, "machines", MACHINE_VERSION, "Machine");
pub const MACHINE_SET: Part = part(MACHINE_BASE, "machinesets", MACHINE_VERSION, "MachineSet");
pub const HEALTH_CHECK: Part =
    part(MACHINE_BASE, "machinehealthchecks", MACHINE_VERSION, "MachineHealthCheck");
pub const SIGNING_REQUEST: Part = Part {
    base: "/apis/certificates.k8s.io/v1",
    plural: "certificatesigningrequests",
    api_version: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    namespaced: false,
};
pub const POD: Part = part("/api/v1", "pods", "v1", "Pod");
pub const CONFIG_MAP: Part = part("/api/v1", "configmaps", "v1", "ConfigMap");
pub const SECRET: Part = part("/api/v1", "secrets", "v1", "Secret");
pub const EVENT: Part = part("/api/v1", "events", "v1", "Event");
pub const NEW_EVENT: Part = part("/apis/events.k8s.io/v1", "events", "events.k8s.io/v1", "Event");
pub const LEASE: Part =
    part("/apis/coordination.k8s.io/v1", "leases", "coordination.k8s.io/v1", "Lease");
pub const BUDGET: Part =
    part("/apis/policy/v1", "poddisruptionbudgets", "policy/v1", "PodDisruptionBudget");
pub const NODE: Part =
    Part { base: "/api/v1", plural: "nodes", api_version: "v1", kind: "Node", namespaced: false };
pub const NAMESPACE: Part = Part {
    base: "/api/v1",
    plural: "namespaces",
    api_version: "v1",
    kind: "Namespace",
    namespaced: false,
};

/// The kinds that sequences are about. Each can be watched, and holds a sentinel at the end.
pub const PARTS: [Part; 10] = [
    MACHINE,
    MACHINE_SET,
    HEALTH_CHECK,
    SIGNING_REQUEST,
    POD,
    CONFIG_MAP,
    SECRET,
    LEASE,
    BUDGET,
    NODE,
];

impl Part {
    pub const fn is_custom(&self) -> bool {
        matches!(self.kind.as_bytes(), b"Machine" | b"MachineSet" | b"MachineHealthCheck")
    }

    /// The path of the collection.
    pub fn collection(&self, namespace: &str) -> String {
        if self.namespaced {
            format!("{}/namespaces/{namespace}/{}", self.base, self.plural)
        } else {
            format!("{}/{}", self.base, self.plural)
        }
    }
}

/// A text of the form `$rv:plural/name` stands for the last resourceVersion that the server told of that
/// object; `$old-rv`, `$uid` and `$old-uid` likewise; `$namespace:` for the sequence's namespace.
#[derive(Clone, Debug)]
pub enum Body {
    None,
    /// Sent as it is, references apart.
    Json(Value),
    /// The object as the server last told it, after a merge patch.
    Seen {
        name: String,
        edit: Value,
    },
    Text(&'static str),
}

#[derive(Clone, Debug)]
pub struct Step {
    pub method: &'static str,
    pub part: Part,
    /// What follows the path of the collection: a name, a subresource, a query.
    pub tail: String,
    pub content_type: &'static str,
    pub body: Body,
    /// Follows `continue` to the last page.
    pub pages: bool,
}

pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const JSON: &str = "application/json";

impl Step {
    pub fn new(method: &'static str, part: Part, tail: impl Into<String>) -> Self {
        Self { method, part, tail: tail.into(), content_type: JSON, body: Body::None, pages: false }
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = Body::Json(body);
        self
    }

    pub const fn content(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}{}", self.method, self.part.plural, self.tail)?;
        match &self.body {
            Body::None => Ok(()),
            Body::Json(value) => write!(formatter, " [{}] {value}", self.content_type),
            Body::Seen { name, edit } => write!(formatter, " {name} as seen, with {edit}"),
            Body::Text(text) => write!(formatter, " {text:?}"),
        }
    }
}
