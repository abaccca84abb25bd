//! Where the figures come from: cores, processor, memory, kernel and file system.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// A machine as a reader of the figures needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// The processor's own name.
    pub(crate) processor: String,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// Name and release of the kernel.
    pub(crate) kernel: String,
    /// Kind and device of the file system that holds the folder.
    pub(crate) file_system: String,
}

impl Machine {
    /// This machine, with the file system of a folder.
    pub(crate) fn with(folder: &Path) -> Machine {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let kernel = text("/proc/sys/kernel/osrelease");
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: field(&text("/proc/cpuinfo"), "model name").unwrap_or(std::env::consts::ARCH).into(),
            memory_mib: field(&text("/proc/meminfo"), "MemTotal").map_or(0, kib_as_mib),
            kernel: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().into(),
            file_system: file_system(&text("/proc/self/mounts"), folder).unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// Resident memory of a process, in MiB.
pub(crate) fn resident_mib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib =
        field(&status, "VmRSS").and_then(|value| value.trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

/// Processor time that this process has used so far, in microseconds. The kernel counts it in steps of 10 ms.
pub(crate) fn processor_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in parentheses and may contain blanks; user and system time are fields 14 and 15.
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() * 10_000.0
}

/// The value of a line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim()))
}

fn kib_as_mib(value: &str) -> u64 {
    value.trim_end_matches("kB").trim().parse::<u64>().map_or(0, |kib| kib >> 10)
}

/// What this process has used of the processors so far.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The mount that holds a folder: the one with the longest path above it, the later of two with the same.
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (device, path, kind) = (words.next()?, words.next()?, words.next()?);
            folder.starts_with(path).then(|| (path.len(), format!("{kind} on {device}")))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_mount_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/x xfs rw 0 0\n";
        let found = |folder| file_system(mounts, Path::new(folder)).unwrap();
        assert_eq!(found("/home/someone"), "ext4 on /dev/vda");
        assert_eq!(found("/tmp/bench"), "tmpfs on tmpfs");
        assert_eq!(found("/tmp/x/y"), "xfs on /dev/vdb");
        assert_eq!(found("/tmp/xy"), "tmpfs on tmpfs");
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn fields_are_found_by_their_name() {
        assert_eq!(field("MemFree: 1 kB\nMemTotal:   2048 kB\n", "MemTotal").map(kib_as_mib), Some(2));
        assert_eq!(field("model name\t: Fast One\n", "model name"), Some("Fast One"));
        assert_eq!(field("model\t: 6\n", "model name"), None);
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        assert!(Machine::with(Path::new("/")).cores > 0);
        assert!(resident_mib(std::process::id()) > 0.1);
    }
}
