//! Why a request is not approved: a word for programs and a sentence for people.

use jiff::Timestamp;
use machinist_api::names::annotation;

use super::request::Unreadable;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Unreadable(Unreadable),
    /// Who asks is none who may.
    Requester {
        username: String,
    },
    Groups {
        expected: String,
    },
    Usages,
    CommonName {
        expected: &'static str,
    },
    Organization,
    NodeName {
        name: String,
    },
    /// A client needs no alternative names.
    UnexpectedNames,
    /// A server needs at least one.
    NoNames,
    /// Email addresses, URIs and the like.
    ForbiddenNames {
        kinds: String,
    },
    Wildcard {
        name: String,
    },
    /// No Machine has this name, or is linked to this Node; its addresses may come later.
    NoMachine {
        node: String,
    },
    AmbiguousMachine {
        machines: Vec<String>,
    },
    NodeExists {
        node: String,
    },
    MachineHasNode {
        machine: String,
        node: String,
    },
    MachineDeleting {
        machine: String,
    },
    MachineFailed {
        machine: String,
    },
    OutsideWindow {
        machine: String,
        from: Timestamp,
        until: Timestamp,
    },
    AnotherRequest {
        machine: String,
    },
    /// The Machine is linked to another Node of that name.
    AnotherNode {
        machine: String,
        node: String,
    },
    AddressesUnknown {
        machine: String,
    },
    NamesNotOfMachine {
        machine: String,
        names: String,
    },
    TooManyPending {
        pending: usize,
        max: usize,
    },
}

impl Refusal {
    /// A stable word: the label of the metric, and the beginning of the event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "Unreadable",
            Self::Requester { .. } => "RequesterNotAllowed",
            Self::Groups { .. } => "WrongGroups",
            Self::Usages => "WrongUsages",
            Self::CommonName { .. } => "WrongCommonName",
            Self::Organization => "WrongOrganization",
            Self::NodeName { .. } => "InvalidNodeName",
            Self::UnexpectedNames => "UnexpectedNames",
            Self::NoNames => "NoNames",
            Self::ForbiddenNames { .. } => "ForbiddenNames",
            Self::Wildcard { .. } => "WildcardName",
            Self::NoMachine { .. } => "NoMachine",
            Self::AmbiguousMachine { .. } => "AmbiguousMachine",
            Self::NodeExists { .. } => "NodeExists",
            Self::MachineHasNode { .. } => "MachineHasNode",
            Self::MachineDeleting { .. } => "MachineDeleting",
            Self::MachineFailed { .. } => "MachineFailed",
            Self::OutsideWindow { .. } => "OutsideWindow",
            Self::AnotherRequest { .. } => "AnotherRequestApproved",
            Self::AnotherNode { .. } => "AnotherNode",
            Self::AddressesUnknown { .. } => "AddressesUnknown",
            Self::NamesNotOfMachine { .. } => "NamesNotOfMachine",
            Self::TooManyPending { .. } => "TooManyPending",
        }
    }

    /// Whether nothing that may happen to Machines or Nodes can make it right.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Unreadable(_)
            | Self::Requester { .. }
            | Self::Groups { .. }
            | Self::Usages
            | Self::CommonName { .. }
            | Self::Organization
            | Self::NodeName { .. }
            | Self::UnexpectedNames
            | Self::NoNames
            | Self::ForbiddenNames { .. }
            | Self::Wildcard { .. } => true,
            Self::NoMachine { .. }
            | Self::AmbiguousMachine { .. }
            | Self::NodeExists { .. }
            | Self::MachineHasNode { .. }
            | Self::MachineDeleting { .. }
            | Self::MachineFailed { .. }
            | Self::OutsideWindow { .. }
            | Self::AnotherRequest { .. }
            | Self::AnotherNode { .. }
            | Self::AddressesUnknown { .. }
            | Self::NamesNotOfMachine { .. }
            | Self::TooManyPending { .. } => false,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable(why) => write!(formatter, "the request cannot be read: {why}"),
            Self::Requester { username } => {
                write!(formatter, "{} may not ask for it", quoted(username))
            }
            Self::Groups { expected } => {
                write!(formatter, "the groups of who asks are not exactly {expected}")
            }
            Self::Usages => formatter.write_str("the usages are not those of a kubelet"),
            Self::CommonName { expected } => {
                write!(formatter, "the common name is not {expected}")
            }
            Self::Organization => {
                formatter.write_str("the organization is not system:nodes, and that alone")
            }
            Self::NodeName { name } => {
                write!(formatter, "{} is not the name of a node", quoted(name))
            }
            Self::UnexpectedNames => {
                formatter.write_str("a client certificate has no alternative names")
            }
            Self::NoNames => formatter.write_str("it names neither a host nor an address"),
            Self::ForbiddenNames { kinds } => {
                write!(formatter, "its alternative names include: {kinds}")
            }
            Self::Wildcard { name } => write!(formatter, "{} is a wildcard", quoted(name)),
            Self::NoMachine { node } => write!(formatter, "no machine is known for node {node}"),
            Self::AmbiguousMachine { machines } => {
                write!(formatter, "more than one machine matches: {}", machines.join(", "))
            }
            Self::NodeExists { node } => {
                write!(formatter, "node {node} exists, so it has its certificate")
            }
            Self::MachineHasNode { machine, node } => {
                write!(formatter, "machine {machine} became node {node} before")
            }
            Self::MachineDeleting { machine } => {
                write!(formatter, "machine {machine} is being deleted")
            }
            Self::MachineFailed { machine } => write!(formatter, "machine {machine} is Failed"),
            Self::OutsideWindow { machine, from, until } => write!(
                formatter,
                "machine {machine} may join between {from} and {until}, and this was not asked then"
            ),
            Self::AnotherRequest { machine } => {
                write!(
                    formatter,
                    "another request, with another key, was approved for machine {machine} before; if no \
                     machine has that key, delete the Machine or remove its annotation {}",
                    annotation::CLIENT_CERTIFICATE_REQUEST
                )
            }
            Self::AnotherNode { machine, node } => {
                write!(formatter, "machine {machine} is linked to an earlier node {node}")
            }
            Self::AddressesUnknown { machine } => {
                write!(formatter, "the addresses of machine {machine} are not known yet")
            }
            Self::NamesNotOfMachine { machine, names } => {
                write!(formatter, "machine {machine} does not have: {names}")
            }
            Self::TooManyPending { pending, max } => write!(
                formatter,
                "{pending} requests of kubelets are pending, more than {max}, which no fleet of \
                 this size makes"
            ),
        }
    }
}

/// Untrusted text, on one line and not for ever.
pub fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(100).collect();
    format!("{cut:?}")
}
