//! A background process of a test, which writes its output to a log file.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cleanup::Process;

/// The time between two checks, when a test waits until a condition is met.
pub const PAUSE: Duration = Duration::from_millis(50);
/// The number of attempts to find free ports. Another process can take a port between the check and the bind.
const ATTEMPTS: usize = 3;
const SHOWN_LINES: usize = 20;

/// A background process. It is killed when this value is dropped.
pub struct Daemon {
    name: &'static str,
    process: Process,
    log: PathBuf,
}

/// An error that occurred while starting a daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("starting {name}: {source}")]
    Start {
        /// The name of the daemon, such as `etcd`.
        name: &'static str,
        source: io::Error,
    },
    /// The process ended before it was ready.
    #[error("{name} ended before it was ready: {status}; its log ends with\n{log}")]
    Ended {
        name: &'static str,
        status: ExitStatus,
        /// The last lines of the log.
        log: String,
    },
    /// The process was not ready within `limit`.
    #[error("{name} was not ready after {limit:?}; its log ends with\n{log}")]
    NotReady {
        name: &'static str,
        limit: Duration,
        /// The last lines of the log.
        log: String,
    },
    /// No free ports were found.
    #[error("looking for free ports: {0}")]
    Ports(io::Error),
}

impl Daemon {
    /// Starts `command`, and writes its output to the file `log`.
    pub fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Self, DaemonError> {
        let started = redirect_output(command, log).and_then(Process::start);
        let process = started.map_err(|source| DaemonError::Start { name, source })?;
        Ok(Self { name, process, log: log.to_owned() })
    }

    /// Waits until `ready` returns true. Fails if the process ends before that, or after `limit`.
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

    /// Returns the name of the daemon, such as `etcd`.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the path of the log file.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn log(&self) -> PathBuf {
        self.log.clone()
    }

    /// Sends SIGTERM to the process, as the kubelet does, and waits until the process ends.
    pub fn terminate(&self) -> io::Result<ExitStatus> {
        self.signal("TERM")?;
        self.process.wait()
    }

    /// Sends a signal to the process. `name` is the name of the signal without `SIG`, such as `STOP`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().map(drop)
    }

    /// Returns the peak resident memory of the process in bytes, if the system provides it.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    }

    /// Returns the number of lines of the log that contain `text`.
    pub fn count_log_lines(&self, text: &str) -> usize {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).count()
    }

    /// Returns the last lines of the log.
    pub fn log_end(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().collect::<Vec<_>>();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl DaemonError {
    /// Returns whether the process ended because its port was in use, according to its log.
    pub fn port_was_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.to_lowercase().contains("address already in use"))
    }
}

/// Calls `start` with `N` free ports. If `start` fails with an error for which `port_was_taken` returns true, retries
/// with other ports.
pub fn on_free_ports<const N: usize, T, E: From<DaemonError>>(
    start: impl Fn([u16; N]) -> Result<T, E>,
    port_was_taken: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let attempt = || start(free_ports().map_err(DaemonError::Ports)?);
    let retried = (1..ATTEMPTS).map(|_| attempt()).find(|done| !matches!(done, Err(e) if port_was_taken(e)));
    retried.unwrap_or_else(attempt)
}

/// Returns `N` different free ports. All ports stay bound until the last one is found, so that no port is found twice.
fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        let listener = listener.as_ref().map_err(|error| io::Error::from(error.kind()))?;
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn redirect_output<'a>(command: &'a mut Command, log: &Path) -> io::Result<&'a mut Command> {
    let output = File::create(log)?;
    Ok(command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output))
}
