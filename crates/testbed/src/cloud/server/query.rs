//! What do the parameters of a query request say? `A.1.B=c` becomes a tree that is read and used up.
//!
//! What nobody has read at the end is a parameter that EC2 does not have.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cloud::model::Ec2Error;

/// Deeper than any EC2 parameter; a longer path is an attack on the recursion.
const DEPTH_MAX: usize = 8;

/// One node of the tree: a value, or named or numbered parts.
#[derive(Debug, Default)]
pub struct Parameters {
    path: String,
    value: Option<String>,
    parts: BTreeMap<String, Self>,
}

impl Parameters {
    pub fn from_pairs(pairs: Vec<(String, String)>) -> Result<Self, Ec2Error> {
        let mut root = Self::default();
        for (name, value) in pairs {
            if name.split('.').count() > DEPTH_MAX {
                return Err(unknown(&name));
            }
            let mut node = &mut root;
            for part in name.split('.') {
                let path = if node.path.is_empty() {
                    part.to_owned()
                } else {
                    format!("{}.{part}", node.path)
                };
                node = node
                    .parts
                    .entry(part.to_owned())
                    .or_insert_with(|| Self { path, ..Self::default() });
            }
            if node.value.replace(value).is_some() {
                return Err(Ec2Error::new(
                    "MalformedQueryString",
                    format!("The parameter {name} is given more than once"),
                ));
            }
        }
        Ok(root)
    }

    pub fn string(&mut self, name: &str) -> Option<String> {
        let part = self.parts.get_mut(name)?;
        let value = part.value.take();
        if part.parts.is_empty() {
            self.parts.remove(name);
        }
        value
    }

    pub fn required_string(&mut self, name: &str) -> Result<String, Ec2Error> {
        self.string(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Ec2Error::missing_parameter(&self.full(name)))
    }

    pub fn integer(&mut self, name: &str) -> Result<Option<i64>, Ec2Error> {
        let full = self.full(name);
        self.string(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    Ec2Error::invalid_value(format!(
                        "Value ({text}) for parameter {full} is invalid. It must be an integer."
                    ))
                })
            })
            .transpose()
    }

    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, Ec2Error> {
        let full = self.full(name);
        self.string(name)
            .map(|text| match text.as_str() {
                "true" | "True" | "1" => Ok(true),
                "false" | "False" | "0" => Ok(false),
                _ => Err(Ec2Error::invalid_value(format!(
                    "Invalid value '{text}' for boolean parameter {full}"
                ))),
            })
            .transpose()
    }

    pub fn timestamp(&mut self, name: &str) -> Result<Option<Timestamp>, Ec2Error> {
        let full = self.full(name);
        self.string(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    Ec2Error::invalid_value(format!(
                        "Value ({text}) for parameter {full} is invalid. It must be a timestamp in \
                         ISO 8601 format."
                    ))
                })
            })
            .transpose()
    }

    /// Returns a structure, whose own parts the caller reads before calling its `finish`.
    pub fn structure(&mut self, name: &str) -> Option<Self> {
        self.parts.remove(name)
    }

    /// Returns the items of a list in the order of their numbers.
    pub fn list(&mut self, name: &str) -> Result<Vec<Self>, Ec2Error> {
        let Some(list) = self.parts.remove(name) else {
            return Ok(Vec::new());
        };
        if list.value.is_some() {
            return Err(unknown(&list.path));
        }
        let mut items = BTreeMap::new();
        for (number, item) in list.parts {
            let index: u32 = number.parse().map_err(|_| unknown(&item.path))?;
            items.insert(index, item);
        }
        Ok(items.into_values().collect())
    }

    pub fn strings(&mut self, name: &str) -> Result<Vec<String>, Ec2Error> {
        self.list(name)?.into_iter().map(Self::into_string).collect()
    }

    /// Returns the items of a list as the load balancing services write it: `Name.member.1`.
    pub fn members(&mut self, name: &str) -> Result<Vec<Self>, Ec2Error> {
        let Some(mut list) = self.parts.remove(name) else {
            return Ok(Vec::new());
        };
        // An empty list comes as the bare name.
        list.value = list.value.filter(|value| !value.is_empty());
        let members = list.list("member")?;
        list.finish()?;
        Ok(members)
    }

    pub fn member_strings(&mut self, name: &str) -> Result<Vec<String>, Ec2Error> {
        self.members(name)?.into_iter().map(Self::into_string).collect()
    }

    fn into_string(mut self) -> Result<String, Ec2Error> {
        let value = self.value.take().ok_or_else(|| unknown(&self.path))?;
        self.finish()?;
        Ok(value)
    }

    /// Refuses whatever was not read.
    pub fn finish(self) -> Result<(), Ec2Error> {
        if self.value.is_some() {
            return Err(unknown(&self.path));
        }
        match self.parts.into_values().next() {
            None => Ok(()),
            Some(part) => {
                let path = part.path.clone();
                part.finish()?;
                // An empty part without a value cannot come from a request; refuse it all the same.
                Err(unknown(&path))
            }
        }
    }

    fn full(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn unknown(name: &str) -> Ec2Error {
    Ec2Error::new("UnknownParameter", format!("The parameter {name} is not recognized"))
}
