//! Which of a controller's refused writes are of its own making?
//!
//! Where another program wrote to the object first, the refusal is the API server's way to tell; that other write
//! excuses one refusal. Whoever is refused again without another write in between has sent what it could have known
//! to be outdated.

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;

use super::audit::{Request, read};

const CONFLICT: u16 = 409;

/// The refusals of `user` in the half-open span `from..until` that no write of another excuses.
pub fn of_own_making(
    user: &str,
    log: &Path,
    from: Timestamp,
    until: Timestamp,
) -> anyhow::Result<usize> {
    let is_read = |line: &str| {
        ["get", "list", "watch"].iter().any(|verb| line.contains(&format!(r#""verb":"{verb}""#)))
    };
    let requests = read(log, |line| !is_read(line))?;
    Ok(count(user, requests.iter().filter(|one| from <= one.at && one.at < until)))
}

fn count<'a>(user: &str, requests: impl Iterator<Item = &'a Request>) -> usize {
    let mut by_object: BTreeMap<(&str, &str), Vec<&Request>> = BTreeMap::new();
    for request in requests.filter(|one| one.is_write()) {
        let kind = request.resource.split('/').next().unwrap_or_default();
        by_object.entry((kind, &request.object)).or_default().push(request);
    }
    by_object.into_values().map(|writes| count_of_object(user, writes)).sum()
}

fn count_of_object(user: &str, mut writes: Vec<&Request>) -> usize {
    // Another's write may take effect from its arrival on; ours is judged when it is answered.
    writes.sort_by_key(|one| if one.user == user { one.answered_at } else { one.at });
    let (mut is_excused, mut of_own_making) = (false, 0);
    for write in writes {
        match (write.user == user, write.code) {
            (false, code) => is_excused |= code < 400,
            (true, CONFLICT) => {
                of_own_making += usize::from(!is_excused);
                is_excused = false;
            }
            (true, _) => {}
        }
    }
    of_own_making
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(user: &str, resource: &str, code: u16, second: i64) -> Request {
        let at = Timestamp::from_second(second).unwrap();
        Request {
            user: user.to_owned(),
            at,
            answered_at: at + jiff::SignedDuration::from_millis(100),
            verb: "patch".to_owned(),
            resource: resource.to_owned(),
            object: "ns/m".to_owned(),
            code,
            is_approval: false,
        }
    }

    #[test]
    fn another_write_excuses_one_refusal() {
        let counted = |writes: &[Request]| count("us", writes.iter());
        let refused = |second| write("us", "machines/status", 409, second);
        let theirs = |second| write("them", "machines", 200, second);
        assert_eq!(counted(&[refused(1)]), 1);
        assert_eq!(counted(&[theirs(0), refused(1)]), 0);
        assert_eq!(counted(&[theirs(0), refused(1), refused(2)]), 1);
        assert_eq!(counted(&[theirs(0), refused(1), theirs(2), refused(3)]), 0);
        // Refused itself, or of another kind: it changed nothing.
        assert_eq!(counted(&[write("them", "machines", 409, 0), refused(1)]), 1);
        assert_eq!(counted(&[write("them", "nodes", 200, 0), refused(1)]), 1);
        // An accepted write of ours may have been decided before theirs came.
        assert_eq!(counted(&[theirs(0), write("us", "machines", 200, 1), refused(2)]), 0);
    }
}
