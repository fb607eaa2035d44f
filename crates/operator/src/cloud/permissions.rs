//! Which permissions do the credentials lack, as far as calls have shown?

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What was refused, until it is granted. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MissingPermissions {
    missing: Arc<Mutex<Missing>>,
    /// With whose credentials: what one may do says nothing about another.
    caller: Arc<str>,
}

/// The actions that were refused, by provider, permission and caller: one action may need several
/// permissions, a launch that of tagging for example.
type Missing = BTreeMap<(&'static str, String, Arc<str>), BTreeSet<&'static str>>;

impl MissingPermissions {
    /// The same, as one caller fills it.
    pub fn of_caller(&self, caller: &str) -> Self {
        Self { missing: Arc::clone(&self.missing), caller: Arc::from(caller) }
    }

    /// Notes that an action was refused for lack of a permission.
    pub fn refused(&self, provider: &'static str, action: &'static str, permission: &str) {
        let mut missing = self.lock();
        let key = (provider, permission.to_owned(), Arc::clone(&self.caller));
        let actions = missing.entry(key).or_default();
        if actions.is_empty() {
            tracing::warn!(provider, action, permission, "a permission is missing");
        }
        actions.insert(action);
    }

    /// Notes that an action succeeded: nothing that it needs is missing.
    pub fn granted(&self, provider: &'static str, action: &'static str) {
        self.lock().retain(|(of, permission, caller), actions| {
            let is_mine = *of == provider && *caller == self.caller;
            !is_mine || !(actions.contains(action) || is_named_after(permission, action))
        });
    }

    /// Provider and permission, such as `ec2:StartInstances`; sorted.
    pub fn list(&self) -> Vec<(&'static str, String)> {
        let missing = self.lock();
        let names = missing.keys().map(|(provider, permission, _)| (*provider, permission.clone()));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Missing> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ec2:StartInstances` is what `StartInstances` needs, whoever missed it.
fn is_named_after(permission: &str, action: &str) -> bool {
    let name = |of: &str| of.rsplit(':').next().map(str::to_owned);
    name(permission) == name(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_missing_until_an_action_that_needs_it_succeeds() {
        let permissions = MissingPermissions::default();
        permissions.refused("aws", "StartInstances", "ec2:StartInstances");
        permissions.refused("aws", "RunInstances", "ec2:CreateTags");
        permissions.refused("aws", "RunInstances", "iam:PassRole");
        permissions.refused("other", "StartInstances", "ec2:StartInstances");
        let list = || {
            let names = permissions.list().into_iter();
            names.map(|(provider, name)| format!("{provider} {name}")).collect::<Vec<_>>()
        };
        let all = [
            "aws ec2:CreateTags",
            "aws ec2:StartInstances",
            "aws iam:PassRole",
            "other ec2:StartInstances",
        ];
        assert_eq!(list(), all);
        permissions.granted("aws", "DescribeInstances");
        assert_eq!(list(), all);
        permissions.granted("aws", "StartInstances");
        assert_eq!(list(), [all[0], all[2], all[3]]);
        permissions.granted("aws", "CreateTags");
        assert_eq!(list(), [all[2], all[3]]);
        permissions.granted("aws", "RunInstances");
        assert_eq!(list(), [all[3]]);
        permissions.of_caller("another").granted("other", "StartInstances");
        assert_eq!(list(), [all[3]], "what others may do does not help");
    }
}
