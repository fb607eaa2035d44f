//! What is asked for? An HTTP request, read.

use bytes::Bytes;
use http::{Method, request::Parts};
use serde_json::Value;

use super::{
    failure::Failure,
    kinds::{KindRef, Scope},
};

/// A request, read.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub verb: Verb,
    pub kind: KindRef,
    /// Empty for objects of the whole cluster and for all namespaces.
    pub namespace: String,
    /// Empty for whole collections and for creations.
    pub name: String,
    pub subresource: Subresource,
    pub options: Options,
    pub body: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    MergePatch,
    JsonPatch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Whether the request can change anything.
    #[must_use]
    pub const fn is_write(self) -> bool {
        match self {
            Self::Get | Self::List | Self::Watch => false,
            Self::Create
            | Self::Update
            | Self::MergePatch
            | Self::JsonPatch
            | Self::Delete
            | Self::DeleteCollection => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    None,
    Status,
    Scale,
    Eviction,
    Binding,
    Approval,
}

/// The parameters of a list or watch.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub label_selector: String,
    pub field_selector: String,
    pub limit: usize,
    pub continue_token: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub timeout_seconds: Option<u64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

impl ApiRequest {
    /// A request for one object or collection, without parameters.
    #[must_use]
    pub fn new(verb: Verb, kind: KindRef, namespace: &str, name: &str) -> Self {
        Self {
            verb,
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: Subresource::None,
            options: Options::default(),
            body: Value::Null,
        }
    }

    #[must_use]
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    #[must_use]
    pub const fn at(mut self, subresource: Subresource) -> Self {
        self.subresource = subresource;
        self
    }

    /// Reads an HTTP request.
    ///
    /// # Errors
    /// Fails with what the server answers when it cannot be read.
    pub fn read(parts: &Parts, body: &Bytes) -> Result<Self, Failure> {
        let target = Target::read(parts.uri.path()).ok_or_else(Failure::no_such_path)?;
        let (options, watch) = Options::read(parts.uri.query().unwrap_or_default())?;
        let verb = verb_of(parts, &target, watch)?;
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| {
                Failure::bad_request(format!("the object provided is unrecognized: {error}"))
            })?
        };
        Ok(Self {
            verb,
            kind: target.kind,
            namespace: target.namespace,
            name: target.name,
            subresource: target.subresource,
            options,
            body,
        })
    }

    /// Where the request goes, for logs and messages.
    #[must_use]
    pub fn target(&self) -> String {
        let mut text = self.kind.kind.group_resource();
        for part in [&self.namespace, &self.name] {
            if !part.is_empty() {
                text.push('/');
                text.push_str(part);
            }
        }
        text
    }
}

struct Target {
    kind: KindRef,
    namespace: String,
    name: String,
    subresource: Subresource,
}

impl Target {
    fn read(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        // `namespaces/x/pods` is about pods, `namespaces/x` and `namespaces/x/status` about x itself.
        let (namespace, rest) = match rest {
            ["namespaces", namespace, plural, tail @ ..]
                if KindRef::find(group, plural).is_some() && *plural != "namespaces" =>
            {
                let mut inner = vec![*plural];
                inner.extend(tail);
                (*namespace, inner)
            }
            other => ("", other.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (*plural, "", Subresource::None),
            [plural, name] => (*plural, *name, Subresource::None),
            [plural, name, subresource] => (*plural, *name, subresource_of(subresource)?),
            _ => return None,
        };
        let kind = KindRef::find(group, plural).filter(|found| found.kind.version == version)?;
        let namespaced = kind.kind.scope == Scope::Namespaced;
        if (namespaced && namespace.is_empty() && !name.is_empty())
            || (!namespaced && !namespace.is_empty())
        {
            return None;
        }
        let served = match subresource {
            Subresource::None => true,
            Subresource::Status => kind.kind.has_status,
            Subresource::Scale => kind.kind.has_scale,
            Subresource::Eviction | Subresource::Binding => kind.kind.plural == "pods",
            Subresource::Approval => kind.kind.has_approval,
        };
        served.then(|| Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource,
        })
    }
}

fn subresource_of(name: &str) -> Option<Subresource> {
    match name {
        "status" => Some(Subresource::Status),
        "scale" => Some(Subresource::Scale),
        "eviction" => Some(Subresource::Eviction),
        "binding" => Some(Subresource::Binding),
        "approval" => Some(Subresource::Approval),
        _ => None,
    }
}

fn verb_of(parts: &Parts, target: &Target, watch: bool) -> Result<Verb, Failure> {
    let posted = matches!(target.subresource, Subresource::Eviction | Subresource::Binding);
    let named = !target.name.is_empty();
    match parts.method {
        Method::POST if posted => Ok(Verb::Create),
        _ if posted => Err(Failure::method_not_allowed()),
        Method::GET if watch => Ok(Verb::Watch),
        Method::GET if named => Ok(Verb::Get),
        Method::GET => Ok(Verb::List),
        Method::POST if !named => Ok(Verb::Create),
        Method::PUT if named => Ok(Verb::Update),
        Method::PATCH if named => patch_verb(parts, target),
        Method::DELETE if target.subresource != Subresource::None => {
            Err(Failure::method_not_allowed())
        }
        Method::DELETE if named => Ok(Verb::Delete),
        Method::DELETE => Ok(Verb::DeleteCollection),
        _ => Err(Failure::method_not_allowed()),
    }
}

fn patch_verb(parts: &Parts, target: &Target) -> Result<Verb, Failure> {
    let content_type = parts.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    match content_type.split(';').next().unwrap_or_default() {
        "application/merge-patch+json" => Ok(Verb::MergePatch),
        "application/json-patch+json" => Ok(Verb::JsonPatch),
        _ if target.kind.kind.is_custom() => Err(Failure::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => {
            let message = "415: Unsupported Media Type";
            let mut failure = Failure::new(415, "UnsupportedMediaType", message);
            failure.details = Some(serde_json::json!({}));
            Err(failure)
        }
    }
}

impl Options {
    fn read(query: &str) -> Result<(Self, bool), Failure> {
        let mut options = Self::default();
        let mut watch = false;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_true = || matches!(value.as_ref(), "true" | "1");
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|error| Failure::bad_request(format!("{name}: {error}: \"{value}\"")))
            };
            match name.as_ref() {
                "labelSelector" => options.label_selector = value.into_owned(),
                "fieldSelector" => options.field_selector = value.into_owned(),
                "limit" => options.limit = usize::try_from(number()?).unwrap_or_default(),
                "continue" => options.continue_token = value.into_owned(),
                "resourceVersion" => options.resource_version = value.into_owned(),
                "resourceVersionMatch" => options.resource_version_match = value.into_owned(),
                "timeoutSeconds" => options.timeout_seconds = Some(number()?),
                "allowWatchBookmarks" => options.allow_bookmarks = is_true(),
                "sendInitialEvents" => options.send_initial_events = Some(is_true()),
                "watch" => watch = is_true(),
                _ => {}
            }
        }
        Ok((options, watch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, uri: &str) -> Result<(Verb, String, Subresource), u16> {
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/merge-patch+json")
            .body(())
            .unwrap();
        let request = ApiRequest::read(&request.into_parts().0, &Bytes::new());
        request
            .map(|request| (request.verb, request.target(), request.subresource))
            .map_err(|failure| failure.code)
    }

    #[test]
    fn paths_and_methods_name_what_is_asked_for() {
        let machines = "/apis/machine.openshift.io/v1beta1/namespaces/n/machines";
        let none = Subresource::None;
        let table = [
            ("GET", "/api/v1/nodes".to_owned(), Ok((Verb::List, "nodes", none))),
            ("GET", "/api/v1/nodes?watch=true".to_owned(), Ok((Verb::Watch, "nodes", none))),
            ("GET", "/api/v1/nodes/a".to_owned(), Ok((Verb::Get, "nodes/a", none))),
            ("GET", "/api/v1/namespaces/n".to_owned(), Ok((Verb::Get, "namespaces/n", none))),
            (
                "GET",
                "/api/v1/namespaces/n/status".to_owned(),
                Ok((Verb::Get, "namespaces/n", Subresource::Status)),
            ),
            ("GET", "/api/v1/pods".to_owned(), Ok((Verb::List, "pods", none))),
            ("POST", "/api/v1/namespaces/n/pods".to_owned(), Ok((Verb::Create, "pods/n", none))),
            (
                "POST",
                "/api/v1/namespaces/n/pods/p/eviction".to_owned(),
                Ok((Verb::Create, "pods/n/p", Subresource::Eviction)),
            ),
            (
                "PATCH",
                format!("{machines}/m/status"),
                Ok((Verb::MergePatch, "machines.machine.openshift.io/n/m", Subresource::Status)),
            ),
            (
                "DELETE",
                machines.to_owned(),
                Ok((Verb::DeleteCollection, "machines.machine.openshift.io/n", none)),
            ),
            ("GET", format!("{machines}/m/scale"), Err(404)),
            ("GET", "/api/v1/namespaces/n/nodes/a".to_owned(), Err(404)),
            ("GET", "/apis/batch/v1/jobs".to_owned(), Err(404)),
            ("POST", "/api/v1/nodes/a".to_owned(), Err(405)),
            ("GET", "/api/v1/nodes?limit=x".to_owned(), Err(400)),
        ];
        for (method, uri, expected) in table {
            let expected = expected.map(|(verb, target, sub)| (verb, target.to_owned(), sub));
            assert_eq!(read(method, &uri), expected, "{method} {uri}");
        }
    }
}
