//! Whose machines of Cluster API does somebody see? Those of the namespaces in which they may list them.

use std::collections::BTreeSet;

use machinist_core::cluster_api::maintained;

/// All who see the same are shown the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Audience {
    All,
    Namespaces(BTreeSet<String>),
}

/// Sees none.
impl Default for Audience {
    fn default() -> Self {
        Self::Namespaces(BTreeSet::new())
    }
}

impl Audience {
    /// Whether it sees the machines of Cluster API in a namespace.
    pub fn sees(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(seen) => seen.contains(namespace),
        }
    }

    /// Whether it may know of a machine or a pool by this name. Those of the other API it may.
    pub fn knows(&self, name: &str) -> bool {
        maintained::parts(name).is_none_or(|(namespace, _)| self.sees(namespace))
    }
}
