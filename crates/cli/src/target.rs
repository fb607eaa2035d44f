//! Which object does a person mean by `machine/x`, `machines x` or just `x`?

use crate::failure::Hinted;

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
    /// Reads `kind/name`, `kind name` or `name`, in kubectl's spellings.
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
            "machineset" | "machinesets" | "pool" | "pools" => Kind::Pool,
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
        ] {
            assert_eq!(read(words).unwrap(), Target { kind, name: "x".to_owned() }, "{words:?}");
        }
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for words in [&["pod/x"][..], &["machine/"], &["machine", ""]] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
