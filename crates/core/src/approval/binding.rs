//! Which one client certificate a Machine may have: the binding that is stored on it before the first is
//! approved.
//!
//! Bootstrap credentials are shared by a whole fleet, so who holds them says nothing of which machine asks.
//! A Machine is therefore bound to one request and to the key in it. A kubelet keeps its key until it has
//! its certificate, and asks again with the same one when its request was denied, failed or deleted: that
//! can only help whoever has the key already. With another key nobody gets a second certificate, unless it
//! is certain that there was no first.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use machinist_api::{Machine, names::annotation};

/// What a Machine is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding<'a> {
    /// The uid of the request.
    pub request: &'a str,
    /// The fingerprint of the key in it; bindings of earlier versions have none.
    pub key: Option<&'a str>,
}

impl<'a> Binding<'a> {
    /// Reads the binding of a Machine. It says whose it is: whoever makes a Machine out of the text of
    /// another copies the other's annotations, and that one is bound to none.
    pub fn of(machine: &'a Machine) -> Option<Self> {
        let annotations = machine.metadata.annotations.as_ref()?;
        let bound = annotations.get(annotation::CLIENT_CERTIFICATE_REQUEST)?;
        let (owner, rest) = bound.split_once('/')?;
        if Some(owner) != machine.metadata.uid.as_deref() {
            return None;
        }
        Some(match rest.split_once('/') {
            Some((request, key)) => Self { request, key: Some(key).filter(|key| !key.is_empty()) },
            None => Self { request: rest, key: None },
        })
    }

    /// The text that is stored on the Machine of this uid.
    pub fn text(machine: &str, request: &str, key: &str) -> String {
        format!("{machine}/{request}/{key}")
    }

    /// Whether the same asker asks with this request: it is the bound one, or has its key.
    pub fn admits(&self, request: Option<&str>, key: &str) -> bool {
        Some(self.request) == request || (self.key == Some(key) && !key.is_empty())
    }
}

/// Whether it is certain that no certificate came of a request, nor ever will: it was denied or failed,
/// which nobody can take back.
pub fn is_void(request: &CertificateSigningRequest) -> bool {
    request.status.as_ref().is_some_and(|status| {
        let conditions = status.conditions.iter().flatten();
        let is_end = |type_: &str| matches!(type_, "Denied" | "Failed");
        status.certificate.as_ref().is_none_or(|bytes| bytes.0.is_empty())
            && conditions
                .into_iter()
                .any(|condition| is_end(&condition.type_) && condition.status == "True")
    })
}
