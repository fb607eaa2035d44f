//! Which version of a provider's kind is spoken to, and by which contract?
//!
//! A reference names group and kind only. The CRD's labels `cluster.x-k8s.io/<contract>` list the versions that keep to
//! that contract; the newest contract wins, and of its versions the greatest.

use std::{cmp::Ordering, collections::BTreeMap, fmt};

/// What the fields of an object mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    V1Beta1,
    V1Beta2,
}

impl Contract {
    /// The newest first.
    const ALL: [Self; 2] = [Self::V1Beta2, Self::V1Beta1];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

/// A kind as references name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    pub group: String,
    pub kind: String,
}

impl GroupKind {
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// The name of the CRD. It is computed and never searched for, as Cluster API does.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }

    pub fn plural(&self) -> String {
        pluralize(&self.kind.to_lowercase())
    }
}

/// As the annotation `cloned-from-groupkind` has it.
impl fmt::Display for GroupKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.kind, self.group)
    }
}

/// How a kind is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub contract: Contract,
    pub version: String,
}

/// Why a kind cannot be spoken to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("the CustomResourceDefinition {0} does not exist")]
    NoDefinition(String),
    #[error(
        "cannot find any versions matching contract versions v1beta2, v1beta1 for CRD {0}: it has no label \
         cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1 that names one"
    )]
    NoContract(String),
}

/// Reads the labels of a CRD.
pub fn resolve(
    kind: &GroupKind,
    labels: Option<&BTreeMap<String, String>>,
) -> Result<Served, Unresolved> {
    let named = |contract: Contract| {
        let versions = labels?.get(&format!("cluster.x-k8s.io/{}", contract.as_str()))?;
        let versions = versions.split('_').filter(|version| !version.is_empty());
        let greatest = versions.max_by(|left, right| compare_versions(left, right))?;
        Some(Served { contract, version: greatest.to_owned() })
    };
    Contract::ALL.into_iter().find_map(named).ok_or_else(|| Unresolved::NoContract(kind.crd_name()))
}

/// The order of Kubernetes: GA before beta before alpha, then by number; what is no such version comes last, by its letters.
fn compare_versions(left: &str, right: &str) -> Ordering {
    match (rank(left), rank(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => right.cmp(left),
    }
}

/// Stability, major and minor of `v1`, `v1beta2`, `v2alpha1`.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (None, Some(minor)) => (0, minor),
        (None, None) => return None,
    };
    Some((stability, major, minor.parse().ok()?))
}

/// The English plural, for the endings that kinds have.
fn pluralize(word: &str) -> String {
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if ends_in(&["s", "x", "z", "ch", "sh"]) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}
