//! A process that runs beside the tests and writes a log.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cleanup::Process;

/// Interval for polling.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Number of attempts to find free ports: another process can take a port between the check and the bind.
const ATTEMPTS: usize = 3;
const SHOWN_LINES: usize = 20;

/// A process that runs until it is dropped.
pub struct Daemon {
    name: &'static str,
    process: Process,
    log: PathBuf,
}

/// Why a daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// It could not be started.
    #[error("starting {name}: {source}")]
    Start {
        /// Which one.
        name: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It ended before it was ready.
    #[error("{name} ended before it was ready: {status}; its log ends with\n{log}")]
    Ended {
        /// Which one.
        name: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// It was not ready in time.
    #[error("{name} was not ready after {limit:?}; its log ends with\n{log}")]
    NotReady {
        /// Which one.
        name: &'static str,
        /// How long it was given.
        limit: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// The system has no port to give.
    #[error("looking for free ports: {0}")]
    Ports(io::Error),
}

impl Daemon {
    /// Starts `command`, its output going to `log`.
    pub fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Self, DaemonError> {
        let started = logged(command, log).and_then(Process::start);
        let process = started.map_err(|source| DaemonError::Start { name, source })?;
        Ok(Self { name, process, log: log.to_owned() })
    }

    /// Waits until `ready` returns true.
    pub fn wait_until(&self, limit: Duration, ready: impl Fn() -> bool) -> Result<(), DaemonError> {
        let (name, start) = (self.name, Instant::now());
        while !ready() {
            if let Ok(Some(status)) = self.process.status() {
                return Err(DaemonError::Ended { name, status, log: self.log_end() });
            }
            if start.elapsed() > limit {
                return Err(DaemonError::NotReady { name, limit, log: self.log_end() });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns what it is called.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the path of its log.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// Asks it to end, as the kubelet does, and waits until it has.
    pub fn terminate(&self) -> io::Result<ExitStatus> {
        self.signal("TERM")?;
        self.process.wait()
    }

    /// Sends it a signal by its name, such as `STOP`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().map(drop)
    }

    /// Returns the most memory that it ever had resident, in bytes.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    }

    /// Counts the lines of its log that contain a text.
    pub fn logged(&self, text: &str) -> usize {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }

    /// Returns the last lines of its log.
    pub fn log_end(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().collect::<Vec<_>>();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl DaemonError {
    /// Returns whether it ended because its port was in use.
    pub fn port_was_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.to_lowercase().contains("address already in use"))
    }
}

/// Starts something on `N` free ports, and retries with others if `port_was_taken` holds for its error.
pub fn on_free_ports<const N: usize, T, E: From<DaemonError>>(
    start: impl Fn([u16; N]) -> Result<T, E>,
    port_was_taken: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let attempt = || start(free_ports().map_err(DaemonError::Ports)?);
    let retried = (1..ATTEMPTS).map(|_| attempt()).find(|done| !matches!(done, Err(e) if port_was_taken(e)));
    retried.unwrap_or_else(attempt)
}

/// All ports are held until the last one is found, so that they differ.
fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        let listener = listener.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn logged<'a>(command: &'a mut Command, log: &Path) -> io::Result<&'a mut Command> {
    let output = File::create(log)?;
    Ok(command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output))
}
