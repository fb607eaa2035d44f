//! What has a process used? Read from /proc, as the kernel counts it.

use anyhow::Context;

/// At one moment of its life.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub cpu_seconds: f64,
    /// The most that was resident at once, so far.
    pub peak_rss_mebibytes: f64,
    pub rss_mebibytes: f64,
}

pub fn usage(process: u32) -> anyhow::Result<Usage> {
    let read = |file: &str| {
        let path = format!("/proc/{process}/{file}");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    let stat = read("stat")?;
    let status = read("status")?;
    let ticks = cpu_ticks(&stat).with_context(|| format!("/proc/{process}/stat is strange"))?;
    let memory = |name: &str| {
        kibibytes(&status, name).with_context(|| format!("/proc/{process}/status has no {name}"))
    };
    #[expect(clippy::cast_precision_loss, reason = "a benchmark has no 2^52 ticks or pages")]
    Ok(Usage {
        cpu_seconds: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
        peak_rss_mebibytes: memory("VmHWM")? as f64 / 1024.0,
        rss_mebibytes: memory("VmRSS")? as f64 / 1024.0,
    })
}

/// User and system time. The program's name, which may hold anything, ends at the last parenthesis.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let stat = "42 (a (strange) name) S 1 42 42 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 9 0";
        assert_eq!(cpu_ticks(stat), Some(300));
        let status = "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t   2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(kibibytes(status, "VmHWM"), Some(2048));
        assert_eq!(kibibytes(status, "VmSwap"), None);
        usage(std::process::id()).unwrap();
    }
}
