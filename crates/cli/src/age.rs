//! How long ago is that? In kubectl's words.

use jiff::{SignedDuration, Timestamp};

/// The time since `then`, as kubectl's AGE column writes it.
pub fn since(then: Timestamp, now: Timestamp) -> String {
    human(now.duration_since(then))
}

/// client-go's `HumanDuration`, number for number: two units while they matter, then one.
pub fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        // A clock that is a little behind is not worth a word.
        ..=-2 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectls() {
        let (minute, hour, day) = (60, 3600, 86_400);
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (3 * minute + 12, "3m12s"),
            (10 * minute + 1, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (5 * hour + 30 * minute, "5h30m"),
            (8 * hour + 30 * minute, "8h"),
            (47 * hour, "47h"),
            (3 * day + 4 * hour, "3d4h"),
            (8 * day + hour, "8d"),
            (729 * day, "729d"),
            (800 * day, "2y70d"),
            (9 * 365 * day, "9y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }
}
