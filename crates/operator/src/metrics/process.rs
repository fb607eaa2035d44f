//! What does this process use?
//!
//! Memory and CPU time from `/proc/self`, read at each scrape. Where there is no such file the metrics are absent.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// Ticks in a second in `/proc/self/stat`: fixed at 100 in Linux's interface to programs.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let read = |file| std::fs::read_to_string(file).unwrap_or_default();
        if let Some(bytes) = resident_bytes(&read("/proc/self/status")) {
            let help = "Resident memory";
            let name = "process_resident_memory_bytes";
            encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&bytes)?;
        }
        if let Some(seconds) = cpu_seconds(&read("/proc/self/stat")) {
            let help = "User and system CPU time";
            encoder
                .encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, f64, f64>(&seconds, None)?;
        }
        Ok(())
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program's name in parentheses and may itself contain both.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_as_linux_writes_them() {
        let status = "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t  1234 kB\nThreads:\t3\n";
        assert_eq!(resident_bytes(status), Some(1234 * 1024));
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 3 0 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!((resident_bytes(""), cpu_seconds("")), (None, None));
    }
}
