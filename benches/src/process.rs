//! Child processes and their use of CPU time and memory, as the kernel counts them.

use std::{
    collections::HashMap,
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::fault::{Context as _, Result, fault};

/// The kernel's clock ticks a second (`USER_HZ`, the same on every Linux).
const TICKS: u32 = 100;
/// How long a process may take to stop after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// A child process that ends with the harness.
pub struct Running {
    child: Child,
    what: String,
}

impl Running {
    /// Starts a command.
    pub fn start(command: &mut Command, what: &str) -> Result<Self> {
        let child = command.stdin(Stdio::null()).spawn().context(format!("cannot start {what}"))?;
        Ok(Self { child, what: what.to_owned() })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the process has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(fault(format!("{} ended: {status}", self.what))),
        }
    }

    /// Sends the process a signal to stop and waits until it has ended.
    pub fn stop(mut self) -> Result<()> {
        let signal_status = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        if !signal_status.success() {
            return Err(fault(format!("{} was gone before it was stopped", self.what)));
        }
        let begin = Instant::now();
        while begin.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() {
                    Ok(())
                } else {
                    Err(fault(format!("{} stopped badly: {status}", self.what)))
                };
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err(fault(format!("{} did not stop", self.what)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The fields of `/proc/PID/stat` that the harness uses.
struct Stat {
    parent: u32,
    own: u64,
    of_ended_children: u64,
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // the name may contain anything, but ends at the last bracket
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        of_ended_children: number(13)? + number(14)?,
    })
}

fn duration(ticks: u64) -> Duration {
    Duration::from_secs(ticks) / TICKS
}

/// The CPU time of a process.
pub fn cpu(process: u32) -> Duration {
    duration(stat(process).map_or(0, |stat| stat.own))
}

/// The CPU time of a process and its children, the ended ones included.
pub fn cpu_of_family(parent: u32) -> Duration {
    let own = stat(parent).map_or(0, |stat| stat.own + stat.of_ended_children);
    let children = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let child: u32 = entry.file_name().to_str()?.parse().ok()?;
        stat(child).filter(|stat| stat.parent == parent).map(|stat| stat.own)
    });
    duration(own + children.sum::<u64>())
}

/// A child of a process.
pub fn child_of(parent: u32) -> Option<u32> {
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.find_map(|entry| {
        let child: u32 = entry.file_name().to_str()?.parse().ok()?;
        stat(child).filter(|stat| stat.parent == parent).map(|_| child)
    })
}

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident memory.
    pub resident: u64,
    /// The peak of resident memory since the last reset.
    pub peak: u64,
    /// Resident memory that no file backs.
    pub anonymous: u64,
}

/// The memory of a process.
pub fn memory(process: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let figures: HashMap<&str, u64> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            Some((name, rest.split_whitespace().next()?.parse().ok()?))
        })
        .collect();
    let of = |name: &str| figures.get(name).copied().unwrap_or(0);
    Memory { resident: of("VmRSS"), peak: of("VmHWM"), anonymous: of("RssAnon") }
}

/// Resets the peak of a process's memory.
pub fn reset_peak(process: u32) {
    let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
}
