//! Which labels and annotations of a Machine are meant for its Node? Those of certain domains, and those that the operator
//! is told besides.

use std::str::FromStr;

use machinist_api::cluster_api::names::node_domain;
use regex::Regex;

/// What the operator is told besides.
#[derive(Clone, Debug, Default)]
pub struct NodeKeys {
    pub labels: Vec<KeyPattern>,
    pub annotations: Vec<KeyPattern>,
}

/// A regular expression that a key matches where it is found anywhere in it, as in Cluster API.
#[derive(Clone, Debug)]
pub struct KeyPattern(Regex);

impl FromStr for KeyPattern {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl NodeKeys {
    pub fn is_label_meant(&self, key: &str) -> bool {
        let domain = domain_of(key);
        domain == node_domain::ROLE
            || is_within(domain, node_domain::RESTRICTION)
            || is_within(domain, node_domain::MANAGED)
            || matches_any(&self.labels, key)
    }

    pub fn is_annotation_meant(&self, key: &str) -> bool {
        is_within(domain_of(key), node_domain::MANAGED) || matches_any(&self.annotations, key)
    }
}

fn matches_any(patterns: &[KeyPattern], key: &str) -> bool {
    patterns.iter().any(|KeyPattern(regex)| regex.is_match(key))
}

fn domain_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

fn is_within(domain: &str, parent: &str) -> bool {
    domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<KeyPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn some_domains_are_always_meant() {
        let none = NodeKeys::default();
        for (key, label, annotation) in [
            ("node-role.kubernetes.io/worker", true, false),
            ("x.node-role.kubernetes.io/worker", false, false),
            ("node-restriction.kubernetes.io/a", true, false),
            ("x.node-restriction.kubernetes.io/a", true, false),
            ("node.cluster.x-k8s.io/a", true, true),
            ("x.node.cluster.x-k8s.io/a", true, true),
            ("evilnode.cluster.x-k8s.io/a", false, false),
            ("example.com/a", false, false),
            ("a", false, false),
        ] {
            assert_eq!(none.is_label_meant(key), label, "{key}");
            assert_eq!(none.is_annotation_meant(key), annotation, "{key}");
        }
    }

    #[test]
    fn patterns_add_keys_of_their_own_kind() {
        let table: [(&[&str], &str, bool); 8] = [
            (&["example\\.com"], "example.com/a", true),
            // Found anywhere, unless the pattern says otherwise.
            (&["example\\.com"], "not-example.com/a", true),
            (&["^example\\.com/"], "not-example.com/a", false),
            (&["^example\\.com/a$"], "example.com/ab", false),
            (&["^x$", "^team$"], "team", true),
            (&["^x$", "^team$"], "teams", false),
            (&[".*"], "anything", true),
            (&[], "anything", false),
        ];
        for (texts, key, is_meant) in table {
            let labels = NodeKeys { labels: patterns(texts), ..NodeKeys::default() };
            assert_eq!(labels.is_label_meant(key), is_meant, "{texts:?} {key}");
            assert!(!labels.is_annotation_meant(key), "{texts:?} {key}");
            let annotations = NodeKeys { annotations: patterns(texts), ..NodeKeys::default() };
            assert_eq!(annotations.is_annotation_meant(key), is_meant, "{texts:?} {key}");
            assert!(!annotations.is_label_meant(key), "{texts:?} {key}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!("[".parse::<KeyPattern>().is_err());
    }
}
