//! How does a guest come by its certificates? It asks as whoever bootstraps machines to become a Node,
//! and as that Node to serve; then it waits until somebody approves and the cluster signs.

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use machinist_testbed::cloud::model::InstanceFacts;
use serde_json::{Value, json};

use super::super::{Scene, earliest, later, signer::REQUESTS, text};
use crate::{
    api_server::KindRef,
    certificates::{self, Asked, BOOTSTRAPPER, Purpose, user_of},
};

/// After so long a kubelet asks anew for the certificate that it serves with.
const SERVING_PATIENCE: Duration = Duration::from_secs(900);

/// The certificates of one guest. They are on its disk, so they survive a reboot.
#[derive(Debug, Default)]
pub(super) struct Papers {
    client: Paper,
    serving: Paper,
    /// Whether it is yet to ask for what is not its own.
    pub will_overreach: bool,
}

#[derive(Debug, Default)]
struct Paper {
    is_issued: bool,
    /// The newest that was issued, as `status.certificate` holds it.
    certificate: Option<Arc<str>>,
    /// Whether somebody was told that it is there.
    is_told: bool,
    /// The request that it waits for: its name, and since when.
    pending: Option<(String, Timestamp)>,
}

impl Papers {
    /// Whether the guest may act as the Node. A kubelet has one key before it has joined, and one request
    /// for it, which it finds again by its name.
    pub fn has_client(&mut self, scene: &Scene, id: &str, node: &str, now: Timestamp) -> bool {
        if self.client.is_issued(scene) {
            if self.client.is_news() {
                scene.hub.judge().holds_certificate(id, Purpose::Client);
            }
            return true;
        }
        if self.client.pending.is_none() {
            let metadata = json!({ "name": certificates::client_request_of(id) });
            let asked = Asked::client(node).by_bearer(scene.hub.weather().bearer(node, id));
            self.client.ask(scene, (BOOTSTRAPPER, metadata), Purpose::Client, &asked, now);
        }
        false
    }

    /// Sees to it that the kubelet can serve; says when it wants to look again.
    pub fn mind_serving(
        &mut self,
        scene: &Scene,
        facts: &InstanceFacts,
        node: &str,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if scene.hub.weather().renewals.remove(&facts.id) {
            self.serving.is_issued = false;
        }
        if self.serving.is_issued(scene) {
            if self.serving.is_news() {
                scene.hub.judge().holds_certificate(&facts.id, Purpose::Serving);
            }
            let mut weather = scene.hub.weather();
            if let Some(certificate) = &self.serving.certificate
                && !weather.served.contains_key(node)
            {
                weather.served.insert(node.to_owned(), Arc::clone(certificate));
            }
            return None;
        }
        let mut next = None;
        self.serving.pending.take_if(|(_, since)| later(*since, SERVING_PATIENCE) <= now);
        if self.serving.pending.is_none() {
            let address = facts.private_ip.map(IpAddr::V4);
            let asked = Asked::serving(node, &facts.private_dns_name, address);
            let metadata = json!({ "generateName": "csr-" });
            let asker = (&*user_of(node), metadata);
            self.serving.ask(scene, asker, Purpose::Serving, &asked, now);
        }
        if let Some((_, since)) = &self.serving.pending {
            earliest(&mut next, later(*since, SERVING_PATIENCE));
        }
        next
    }

    /// Asks for what is another's besides its own, once.
    pub fn overreach(&mut self, scene: &Scene, facts: &InstanceFacts, node: &str) {
        self.will_overreach = false;
        let mut asked = Asked::serving(node, &facts.private_dns_name, None);
        asked.dns.insert("kubernetes.default.svc".to_owned());
        let metadata = json!({ "generateName": "overreaching-" });
        let object = certificates::object(metadata, Purpose::Serving, &asked);
        if let Some(made) = scene.create(&user_of(node), REQUESTS.0, REQUESTS.1, object) {
            scene.hub.judge().must_not_be_approved(made.uid(), None);
        }
    }
}

impl Paper {
    /// Looks whether the certificate is there by now.
    fn is_issued(&mut self, scene: &Scene) -> bool {
        let Some((name, _)) = &self.pending else { return self.is_issued };
        let found = KindRef::find(REQUESTS.0, REQUESTS.1)
            .and_then(|kind| scene.server.get_object(kind, "", name));
        match found {
            // Removed before it was signed: it is asked for anew.
            None => self.pending = None,
            Some(request) => {
                let certificate = text(request.value(), "/status/certificate");
                self.is_issued = !certificate.is_empty();
                if self.is_issued {
                    self.certificate = Some(Arc::from(certificate));
                    self.pending = None;
                }
            }
        }
        self.is_issued
    }

    /// Whether nobody was told yet.
    fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    fn ask(
        &mut self,
        scene: &Scene,
        (who, metadata): (&str, Value),
        purpose: Purpose,
        asked: &Asked,
        now: Timestamp,
    ) {
        let object = certificates::object(metadata, purpose, asked);
        let made = scene.create(who, REQUESTS.0, REQUESTS.1, object);
        self.pending = made.map(|made| (made.name().to_owned(), now));
    }
}
