//! Through whom the cloud is reached: OpenShift's `Proxy` object, read by its rule, and what follows
//! for one client.

use std::fmt;

use machinist_api::openshift_config::Proxy;

/// What the environment variables of the same names would hold. A URL may hold a password: Debug
/// shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    pub http: Option<String>,
    pub https: Option<String>,
    pub no_proxy: Option<String>,
}

/// Never reached through a proxy, whatever the cluster or the environment says: this machine, and what the
/// cloud serves on its link alone. Those are the metadata and the credentials of the machine, of its
/// containers and of its pods; through a proxy they would be the proxy's own, if they were any.
const ALWAYS_DIRECT: &str = "localhost,127.0.0.0/8,::1,169.254.0.0/16,fe80::/10,fd00:ec2::/32";

impl ProxySettings {
    /// The contract's rule: the spec's proxy, once the status has one too, which means that it was
    /// checked; and the status's list of exceptions, which was completed.
    pub fn of(proxy: &Proxy) -> Self {
        let status = proxy.status.as_ref();
        let checked = |spec: &Option<String>, status: Option<&String>| {
            status.filter(|text| !text.is_empty())?;
            spec.clone().filter(|text| !text.is_empty())
        };
        let spec = &proxy.spec;
        let no_proxy = status.and_then(|status| status.no_proxy.clone());
        Self {
            http: checked(&spec.http_proxy, status.and_then(|status| status.http_proxy.as_ref())),
            https: checked(
                &spec.https_proxy,
                status.and_then(|status| status.https_proxy.as_ref()),
            ),
            no_proxy: no_proxy.filter(|text| !text.is_empty()),
        }
    }

    /// What a process finds in its environment, where nothing else is said. As everybody reads it: the
    /// names in capitals come first, `ALL_PROXY` stands in for both schemes, and a proxy without a
    /// scheme is one of http. None where no proxy is named.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let first = |name: &str| {
            let known = variable(name).or_else(|| variable(&name.to_ascii_lowercase()))?;
            Some(known.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let url = |name: &str| {
            let text = first(name).or_else(|| first("ALL_PROXY"))?;
            Some(if text.contains("://") { text } else { format!("http://{text}") })
        };
        let (http, https) = (url("HTTP_PROXY"), url("HTTPS_PROXY"));
        (http.is_some() || https.is_some()).then(|| Self {
            http,
            https,
            no_proxy: first("NO_PROXY"),
        })
    }

    /// The environment of a container, in the contract's order.
    pub fn environment(&self) -> Vec<(&'static str, &str)> {
        [("HTTP_PROXY", &self.http), ("HTTPS_PROXY", &self.https), ("NO_PROXY", &self.no_proxy)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    /// What is not reached through a proxy, as a list with commas.
    pub fn direct(&self) -> String {
        match &self.no_proxy {
            Some(more) => format!("{ALWAYS_DIRECT},{more}"),
            None => ALWAYS_DIRECT.to_owned(),
        }
    }

    /// The proxy for a client that calls these endpoints; `https` is what an endpoint has that is
    /// not named. One client has one proxy for each scheme or one for both, so a client of both
    /// schemes whose proxies differ uses that of https for all.
    pub fn route<'a>(&self, endpoints: impl IntoIterator<Item = Option<&'a str>>) -> Route {
        let (mut plain, mut secure) = (false, false);
        for endpoint in endpoints {
            match endpoint {
                Some(url) if url.starts_with("http://") => plain = true,
                _ => secure = true,
            }
        }
        let (http, https) = (self.http.clone(), self.https.clone());
        match (plain, secure, http, https) {
            (true, true, Some(_), Some(https)) => Route::All(https),
            (_, true, _, Some(https)) => Route::Https(https),
            (true, _, Some(http), _) => Route::Http(http),
            _ => Route::Direct,
        }
    }
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment().into_iter().map(|(name, _)| name).collect();
        formatter.debug_tuple("ProxySettings").field(&names).finish()
    }
}

/// Which calls of a client go through which proxy.
#[derive(Clone, PartialEq, Eq)]
pub enum Route {
    Direct,
    /// Those to `http` endpoints.
    Http(String),
    /// Those to `https` endpoints.
    Https(String),
    All(String),
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Direct => "Direct",
            Self::Http(_) => "Http(...)",
            Self::Https(_) => "Https(...)",
            Self::All(_) => "All(...)",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(spec: Value, status: Value) -> ProxySettings {
        let object = json!({ "metadata": { "name": "cluster" }, "spec": spec, "status": status });
        ProxySettings::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn the_proxy_is_the_specs_once_the_status_has_one() {
        let both = json!({ "httpProxy": "http://p", "httpsProxy": "http://q", "noProxy": "a" });
        let checked =
            json!({ "httpProxy": "http://x", "httpsProxy": "http://y", "noProxy": "a,b" });
        let table = [
            (json!({}), json!({}), vec![]),
            (both.clone(), json!({}), vec![]),
            (both.clone(), json!({ "httpProxy": "" }), vec![]),
            (both.clone(), json!({ "httpProxy": "http://x" }), vec![("HTTP_PROXY", "http://p")]),
            (json!({}), checked.clone(), vec![("NO_PROXY", "a,b")]),
            (
                both,
                checked,
                vec![("HTTP_PROXY", "http://p"), ("HTTPS_PROXY", "http://q"), ("NO_PROXY", "a,b")],
            ),
        ];
        for (spec, status, expected) in table {
            assert_eq!(settings(spec.clone(), status).environment(), expected, "{spec}");
        }
    }

    #[test]
    fn the_environment_is_read_as_everybody_reads_it() {
        let read = |variables: &[(&str, &str)]| {
            ProxySettings::of_environment(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
            .map(|settings| (settings.http, settings.https, settings.no_proxy))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("HTTPS_PROXY", ""), ("NO_PROXY", "a")]), None);
        assert_eq!(
            read(&[("HTTPS_PROXY", "p:1"), ("https_proxy", "q"), ("no_proxy", "a")]),
            Some((None, some("http://p:1"), some("a")))
        );
        assert_eq!(
            read(&[("ALL_PROXY", "http://p"), ("http_proxy", "https://q")]),
            Some((some("https://q"), some("http://p"), None))
        );
    }

    #[test]
    fn no_password_is_shown() {
        let url = Some("http://me:secret@p".to_owned());
        let settings = ProxySettings { http: url.clone(), https: url, no_proxy: None };
        let route = settings.route([None]);
        assert!(!format!("{settings:?} {route:?}").contains("secret"));
    }

    #[test]
    fn this_machine_and_the_metadata_are_always_direct() {
        let none = ProxySettings::default();
        assert_eq!(none.direct(), ALWAYS_DIRECT);
        let some = ProxySettings { no_proxy: Some(".svc".to_owned()), ..none };
        assert_eq!(some.direct(), format!("{ALWAYS_DIRECT},.svc"));
        for address in ["169.254.0.0/16", "fd00:ec2::/32", "127.0.0.0/8"] {
            assert!(some.direct().split(',').any(|one| one == address), "{address}");
        }
    }

    #[test]
    fn a_client_has_the_proxy_of_its_endpoints() {
        let of = |http: Option<&str>, https: Option<&str>| ProxySettings {
            http: http.map(str::to_owned),
            https: https.map(str::to_owned),
            no_proxy: None,
        };
        let own = [None, None];
        let stand_in = [Some("http://a"), Some("http://b")];
        let mixed = [Some("http://a"), Some("https://b")];
        let table = [
            (of(None, None), own, Route::Direct),
            (of(Some("p"), Some("q")), own, Route::Https("q".to_owned())),
            (of(Some("p"), None), own, Route::Direct),
            (of(Some("p"), Some("q")), stand_in, Route::Http("p".to_owned())),
            (of(None, Some("q")), stand_in, Route::Direct),
            (of(Some("p"), Some("q")), mixed, Route::All("q".to_owned())),
            (of(None, Some("q")), mixed, Route::Https("q".to_owned())),
            (of(Some("p"), None), mixed, Route::Http("p".to_owned())),
        ];
        for (settings, endpoints, expected) in table {
            assert_eq!(settings.route(endpoints), expected, "{settings:?} {endpoints:?}");
        }
    }
}
