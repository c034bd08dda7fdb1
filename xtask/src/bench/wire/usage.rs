//! The CPU time and the memory of a process, as Linux counts them.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// The CPU time of all threads since the start of the process.
    pub(crate) cpu: Duration,
    /// The resident memory, in bytes.
    pub(crate) resident: f64,
    /// The maximum of `resident` since the start or the last [`reset_peak`], in bytes.
    pub(crate) peak: f64,
}

impl Usage {
    pub(crate) fn of(process: u32) -> anyhow::Result<Self> {
        let status = read(process, "status")?;
        Ok(Self {
            cpu: ticks(&read(process, "stat")?)?.max(of_threads(process)),
            resident: kilobytes(&status, "VmRSS:")?,
            peak: kilobytes(&status, "VmHWM:")?,
        })
    }
}

/// Resets the peak memory of a process to its current size.
pub(crate) fn reset_peak(process: u32) -> anyhow::Result<()> {
    // The value 5 has this meaning: proc_pid_clear_refs(5).
    std::fs::write(path(process, "clear_refs"), "5").context("cannot reset the peak memory of a client")
}

/// Returns the memory that processes can allocate, in bytes.
pub(crate) fn available_memory() -> anyhow::Result<f64> {
    let memory =
        std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo; this needs Linux")?;
    kilobytes(&memory, "MemAvailable:")
}

/// Allocates and frees 2 GB of memory, so that a client gets memory fast afterwards.
pub(crate) fn warm_memory() -> anyhow::Result<()> {
    // The host of a virtual machine can take back unused memory. Linux would count a client's wait
    // for such memory as CPU time.
    // `dd` allocates and fills a buffer of the size `bs`. With hugetlb=1, glibc requests large
    // pages for it.
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "of=/dev/null", "bs=2047M", "count=1", "status=none"]);
    let status = dd.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1").status();
    let status = status.context("cannot start `dd`, which is part of GNU coreutils; install it")?;
    ensure!(status.success(), "`dd` failed ({status}), see its message above");
    Ok(())
}

fn path(process: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/{file}"))
}

fn read(process: u32, file: &str) -> anyhow::Result<String> {
    let path = path(process, file);
    std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}; this needs Linux, and the client must run", path.display()))
}

/// Returns the CPU time of ended and running threads. `/proc/PID/stat` counts it in units of 10 ms.
fn ticks(stat: &str) -> anyhow::Result<Duration> {
    // Field 2 is the program's name in parentheses, which can contain blanks. `fields` begins with field 3 of
    // proc_pid_stat(5).
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has an unknown format")?;
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Ok(Duration::from_millis(10 * ticks.sum::<u64>()))
}

/// Returns the CPU time of running threads, which Linux counts in nanoseconds. While no thread has
/// ended, it is more exact than [`ticks`].
fn of_threads(process: u32) -> Duration {
    let threads = std::fs::read_dir(path(process, "task")).into_iter().flatten().flatten();
    let times = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}

fn kilobytes(text: &str, name: &str) -> anyhow::Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(value.with_context(|| format!("no number follows `{name}` in a file of /proc"))? as f64 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_the_sum_of_user_and_system_time() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 25 15 0 0 20 0 3 0 12345";
        assert_eq!(ticks(stat).expect("well formed"), Duration::from_millis(400));
    }

    #[test]
    fn memory_is_converted_to_bytes() {
        let memory = kilobytes("VmHWM:\t     4 kB\nVmRSS:\t     2 kB\n", "VmRSS:");
        assert!((memory.expect("well formed") - 2048.0).abs() < f64::EPSILON);
    }
}
