//! Which object does a person mean by `machine/x`, `machines x` or just `x`?

use std::collections::BTreeSet;

use machinist_api::Machine;

use crate::{failure::Hinted, snapshot::Snapshot};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Machine,
    Node,
    Pool,
}

impl Target {
    /// Reads `kind/name`, `kind name` or `name`, in kubectl's spellings. A machine or pool of Cluster API is named with its
    /// namespace: `machine/team-a/x`.
    pub fn read(words: &[String]) -> anyhow::Result<Self> {
        let (kind, name) = match words {
            [word] => word.split_once('/').unwrap_or(("machine", word)),
            [kind, name] => (kind.as_str(), name.as_str()),
            _ => ("", ""),
        };
        // kubectl prints and takes `machine.machine.openshift.io/x` and `machines.v1beta1…`.
        let singular = kind.split('.').next().unwrap_or_default().to_lowercase();
        let kind = match singular.as_str() {
            "machine" | "machines" => Kind::Machine,
            "node" | "nodes" | "no" => Kind::Node,
            "machineset" | "machinesets" | "machinedeployment" | "machinedeployments" | "pool"
            | "pools" => Kind::Pool,
            _ => {
                let what =
                    format!("Unsupported value: {:?}: no kind that is known", words.join(" "));
                let hint = "name a machine/NAME, a node/NAME or a machineset/NAME";
                return Err(Hinted::new(what, hint).into());
            }
        };
        if name.is_empty() {
            let what = format!("{:?} names no object", words.join(" "));
            return Err(Hinted::new(what, "name it as machine/NAME").into());
        }
        Ok(Self { kind, name: name.to_owned() })
    }

    /// The machines that are meant. One that is not there may still be spoken of.
    pub fn machines(&self, snapshot: &Snapshot) -> anyhow::Result<BTreeSet<String>> {
        let named = |is: &dyn Fn(&Machine) -> bool| -> BTreeSet<String> {
            let machines = snapshot.machines.iter().filter(|machine| is(machine));
            machines.filter_map(|machine| machine.metadata.name.clone()).collect()
        };
        let name = Some(self.name.as_str());
        match self.kind {
            Kind::Machine => Ok([self.name.clone()].into()),
            Kind::Node => {
                let link =
                    |machine: &Machine| machine.status.as_ref()?.node_ref.as_ref()?.name.clone();
                let found = named(&|machine| link(machine).as_deref() == name);
                if found.is_empty() {
                    let what = format!(
                        "no Machine of namespace {} is linked to node {}",
                        snapshot.namespace, self.name
                    );
                    return Err(Hinted::new(what, "`kubectl get nodes` lists the nodes").into());
                }
                Ok(found)
            }
            Kind::Pool => {
                let is_there = snapshot.sets.iter().any(|set| set.metadata.name.as_deref() == name);
                if !is_there {
                    let what = format!(
                        "there is no machineset {} in namespace {}",
                        self.name, snapshot.namespace
                    );
                    let hint = "`machinist status` lists them; choose a namespace with -n";
                    return Err(Hinted::new(what, hint).into());
                }
                Ok(named(&|machine| {
                    let owners = machine.metadata.owner_references.iter().flatten();
                    let mut owners = owners.filter(|owner| owner.controller == Some(true));
                    owners.any(|owner| Some(owner.name.as_str()) == name)
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> anyhow::Result<Target> {
        Target::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn kubectls_spellings_are_understood() {
        for (words, kind) in [
            (&["x"][..], Kind::Machine),
            (&["machine/x"], Kind::Machine),
            (&["machines", "x"], Kind::Machine),
            (&["machine.machine.openshift.io/x"], Kind::Machine),
            (&["node/x"], Kind::Node),
            (&["no", "x"], Kind::Node),
            (&["MachineSet/x"], Kind::Pool),
            (&["machinesets.machine.openshift.io", "x"], Kind::Pool),
            (&["machinedeployment.cluster.x-k8s.io/x"], Kind::Pool),
        ] {
            assert_eq!(read(words).unwrap(), Target { kind, name: "x".to_owned() }, "{words:?}");
        }
    }

    #[test]
    fn a_machine_of_cluster_api_is_named_with_its_namespace() {
        for words in [&["machine/team-a/x"][..], &["machines", "team-a/x"]] {
            let expected = Target { kind: Kind::Machine, name: "team-a/x".to_owned() };
            assert_eq!(read(words).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for words in [&["pod/x"][..], &["machine/"], &["machine", ""]] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
