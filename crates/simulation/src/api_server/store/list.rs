//! Which objects are there? Whole collections, in pages, now or at an earlier version.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answer, Store, View, in_namespace};
use crate::api_server::{
    built_in,
    failure::{Cause, Failure},
    object::ObjectRef,
    request::{ApiRequest, Verb},
    selector::Selector,
};

const EXPIRED: &str = "The resourceVersion for the provided list is too old.";
const EXPIRED_CONTINUE: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue token \
    in this response to retrieve the remainder of the results. Continuing with the provided token \
    results in an inconsistent list - objects that were created, modified, or deleted between the \
    time the first chunk was returned and now may show up in the list.";

/// Where a list goes on, in the encoding of the real server.
#[derive(Serialize, Deserialize)]
struct ContinueToken {
    v: String,
    /// -1 goes on at the newest version.
    rv: i64,
    start: String,
}

/// The version that a list is read at, and the key that it begins after.
struct Start {
    revision: u64,
    after: Option<String>,
}

impl Store {
    pub(super) fn list(&self, request: &ApiRequest, view: View) -> Result<Answer, Failure> {
        self.check_list_options(request)?;
        let options = &request.options;
        let kind = request.kind.kind;
        let selector = Selector::parse(kind, &options.label_selector, &options.field_selector)?;
        let start = self.start_of_list(request, view)?;
        let chosen = |object: &ObjectRef| {
            in_namespace(object, &request.namespace) && selector.matches(object.value())
        };
        let earlier;
        let objects = if start.revision == self.revision() {
            self.collection(request.kind).map(|collection| &collection.objects)
        } else {
            earlier = self.objects_at(request.kind, start.revision);
            earlier.as_ref()
        };
        let prefix = if request.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", request.namespace)
        };
        let first = format!("{prefix}{}", start.after.unwrap_or_default());
        let mut candidates = objects
            .map(|objects| objects.range(first..))
            .into_iter()
            .flatten()
            .filter(|(_, object)| chosen(object));

        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let mut page: Vec<(&String, &ObjectRef)> = candidates.by_ref().take(limit).collect();
        let remaining = candidates.count();
        let mut metadata = json!({ "resourceVersion": start.revision.to_string() });
        if remaining > 0
            && let (Some((last, _)), Some(fields)) = (page.last(), metadata.as_object_mut())
        {
            let key = last.strip_prefix(&prefix).unwrap_or(last);
            let revision = i64::try_from(start.revision).unwrap_or(-1);
            fields.insert("continue".to_owned(), Value::from(token(revision, &format!("{key}\0"))));
            if selector.is_empty() {
                fields.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        }
        let items = page.drain(..).map(|(_, object)| match kind.shows {
            Some(_) => Bytes::from(built_in::show_event(object.value()).to_string()),
            None => object.text(),
        });
        Ok(Answer::List(list_text(kind.kind, &kind.api_version(), &metadata, items)))
    }

    pub(super) fn check_list_options(&self, request: &ApiRequest) -> Result<(), Failure> {
        let options = &request.options;
        let matching = options.resource_version_match.as_str();
        let mut causes = Vec::new();
        let mut forbid = |field: &str, detail: &str| causes.push(Cause::forbidden(field, detail));
        const MATCH: &str = "resourceVersionMatch";
        if request.verb == Verb::Watch {
            if options.send_initial_events.is_some() && matching != "NotOlderThan" {
                let detail =
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                forbid(MATCH, detail);
            }
            if options.send_initial_events.is_none() && !matching.is_empty() {
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                forbid(MATCH, detail);
            }
        } else {
            if !matching.is_empty() {
                if options.resource_version.is_empty() {
                    let detail =
                        "resourceVersionMatch is forbidden unless resourceVersion is provided";
                    forbid(MATCH, detail);
                }
                if !options.continue_token.is_empty() {
                    forbid(MATCH, "resourceVersionMatch is forbidden when continue is provided");
                }
                if matching == "Exact" && options.resource_version == "0" {
                    let detail =
                        "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                    forbid(MATCH, detail);
                }
            }
            if options.send_initial_events.is_some() {
                forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
        }
        if causes.is_empty() {
            Ok(())
        } else {
            Err(Failure::invalid_of("meta.k8s.io", "ListOptions", "", &causes))
        }
    }

    fn start_of_list(&self, request: &ApiRequest, view: View) -> Result<Start, Failure> {
        let options = &request.options;
        let newest = match view {
            View::Latest => self.revision(),
            View::At(revision) => revision.clamp(self.oldest_revision(), self.revision()),
        };
        if !options.continue_token.is_empty() {
            return self.continued(&options.continue_token, &options.resource_version);
        }
        if options.resource_version.is_empty() {
            return Ok(Start { revision: newest, after: None });
        }
        let wanted: u64 = options.resource_version.parse().map_err(|_| {
            let text = &options.resource_version;
            Failure::bad_request(format!(
                "invalid resource version: strconv.ParseUint: parsing \"{text}\": invalid syntax"
            ))
        })?;
        if wanted > self.revision() {
            return Err(Failure::too_large_version(wanted, self.revision()));
        }
        // A limit with a version means that very version, for clients from before there was a choice.
        let exact = match options.resource_version_match.as_str() {
            "Exact" => true,
            "" => options.limit > 0 && wanted > 0,
            _ => false,
        };
        if exact && wanted < self.oldest_revision() {
            return Err(Failure::expired(EXPIRED));
        }
        let revision = if exact { wanted } else { newest.max(wanted) };
        Ok(Start { revision, after: None })
    }

    fn continued(&self, text: &str, resource_version: &str) -> Result<Start, Failure> {
        let invalid = |why: &str| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let decoded =
            BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(&error.to_string()))?;
        let read: ContinueToken =
            serde_json::from_slice(&decoded).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(resource_version, "" | "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Failure::bad_request(message));
        }
        let revision = match u64::try_from(read.rv) {
            Ok(revision) => revision,
            Err(_) => self.revision(),
        };
        if revision < self.oldest_revision() {
            let mut failure = Failure::expired(EXPIRED_CONTINUE);
            failure.continue_token = Some(token(-1, &read.start));
            return Err(failure);
        }
        Ok(Start { revision, after: Some(read.start) })
    }
}

fn token(revision: i64, start: &str) -> String {
    let token =
        ContinueToken { v: "meta.k8s.io/v1".to_owned(), rv: revision, start: start.to_owned() };
    // Plain text and a number always have a JSON form.
    BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn list_text(
    kind: &str,
    api_version: &str,
    metadata: &Value,
    items: impl Iterator<Item = Bytes>,
) -> Bytes {
    let mut text = format!(
        "{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
    )
    .into_bytes();
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&item);
    }
    text.extend_from_slice(b"]}");
    Bytes::from(text)
}
