//! Who is a client to the server? A tag that is a user's name is that user, in the groups that the
//! authentication of the real server gives it.

const AUTHENTICATED: &str = "system:authenticated";

/// A user and their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub username: String,
    pub groups: Vec<String>,
}

impl Identity {
    /// The user behind a client's tag.
    #[must_use]
    pub fn of(tag: &str) -> Self {
        let mut groups = Vec::new();
        if tag.starts_with("system:node:") {
            groups.push("system:nodes".to_owned());
        } else if let Some(account) = tag.strip_prefix("system:serviceaccount:") {
            let namespace = account.split(':').next().unwrap_or_default();
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        groups.push(AUTHENTICATED.to_owned());
        Self { username: tag.to_owned(), groups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_in_the_groups_that_their_names_bring() {
        let of = |tag: &str| Identity::of(tag).groups.join(" ");
        assert_eq!(of("system:node:a.b"), "system:nodes system:authenticated");
        assert_eq!(
            of("system:serviceaccount:n:s"),
            "system:serviceaccounts system:serviceaccounts:n system:authenticated"
        );
        assert_eq!(of("user"), "system:authenticated");
    }
}
