//! How does EC2 write times?

use jiff::{SignedDuration, Timestamp};

/// Returns a time as it stands in EC2's XML: UTC with milliseconds.
pub fn wire_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// Returns the text of a state transition that a user asked for, with the time inside, as EC2 has it.
pub fn user_initiated(now: Timestamp) -> String {
    format!("User initiated ({})", now.strftime("%Y-%m-%d %H:%M:%S GMT"))
}

/// Adds without ever failing: a time beyond the calendar's end means "never".
pub fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
