//! Do the clocks agree? The API server's is the measure. It stamps each write, so a lease shows both its
//! holder's clock and the server's at one moment.

use jiff::SignedDuration;

use super::{
    leases::Leases,
    observed::{Observed, Stamp},
    report::{Check, Code, Finding, Level},
};

pub(super) const NAME: &str = "clocks";

/// The server's stamps have whole seconds, and a request takes a moment.
const UNNOTICED: SignedDuration = SignedDuration::from_secs(10);
/// Clouds refuse requests whose time is off by this much, and certificates are not valid yet.
const REFUSED: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn check(observed: &Observed, leases: &Leases) -> Check {
    let here =
        observed.clocks.here.map(|stamp| ("this machine".to_owned(), stamp, "its answer's date"));
    let mut holders: Vec<(String, Stamp, &str)> = Vec::new();
    for (name, state) in observed.leases.iter().flatten() {
        let holder =
            leases.live.get(name).filter(|one| !holders.iter().any(|(who, ..)| who == *one));
        let (Some(holder), Some(by_it), Some(by_server)) =
            (holder, state.record.renewed, state.written)
        else {
            continue;
        };
        holders.push((holder.clone(), Stamp { by_it, by_server }, "its last renewal of a lease"));
    }
    let asked = usize::from(here.is_some()) + holders.len();
    let findings = here
        .into_iter()
        .chain(holders)
        .filter_map(|(whose, stamp, how)| finding(&whose, stamp, how));
    let well = match asked {
        0 => "no clock could be compared with the API server's".to_owned(),
        1 => "one clock agrees with the API server's".to_owned(),
        more => format!("{more} clocks agree with the API server's"),
    };
    Check::of(NAME, well, findings.collect())
}

fn finding(whose: &str, stamp: Stamp, how: &str) -> Option<Finding> {
    let ahead = stamp.by_it.duration_since(stamp.by_server);
    if ahead.abs() <= UNNOTICED {
        return None;
    }
    let direction = if ahead.is_positive() { "ahead of" } else { "behind" };
    let by = in_words(ahead.abs());
    let level = if ahead.abs() >= REFUSED { Level::Failed } else { Level::Warning };
    Some(Finding {
        code: Code::ClockSkew,
        level,
        what: format!("the clock of {whose} is {by} {direction} the API server's"),
        seen: format!(
            "at {how} it showed {}, and the API server's {}",
            super::leases::whole_seconds(stamp.by_it),
            super::leases::whole_seconds(stamp.by_server)
        ),
        fix: "have chrony or another service set both clocks; clouds refuse requests that are five minutes \
              off, and windows open at the wrong time"
            .to_owned(),
    })
}

fn in_words(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    // To the nearest: the two stamps are never of quite the same moment.
    match seconds {
        ..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", (seconds + 30) / 60),
        _ => format!("{} hours", (seconds + 1800) / 3600),
    }
}
