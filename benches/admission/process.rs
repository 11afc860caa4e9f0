//! Starts servers as processes, and reads their CPU time and memory from the kernel.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, copy, sink};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::floor;

/// A process that is terminated with SIGTERM when this value is dropped. After SIGTERM, a program that records a
/// profile can still write the profile.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap();
    }
}

/// A running server process. The log of the server has already reported the addresses at which the server listens.
pub struct Process {
    child: Running,
    pub address: SocketAddr,
    /// The address of probes and metrics of Portcullis. `None` for the baseline server (module `floor`), which has no
    /// probes and metrics.
    #[allow(dead_code, reason = "one of the benchmarks asks it")]
    pub admin: Option<SocketAddr>,
}

/// Starts the baseline server (module `floor`) in a new process. The new process runs the same executable as this
/// benchmark.
pub fn floor(certs: &Path) -> Process {
    floor_with_command(Command::new(std::env::current_exe().unwrap()), certs)
}

/// Starts the baseline server. `command` must run this executable, directly or through another program.
pub fn floor_with_command(mut command: Command, certs: &Path) -> Process {
    command.arg(floor::ARGUMENT).arg(certs);
    Process::start(command)
}

/// Starts Portcullis with its default settings. `build` is the path of the executable.
pub fn portcullis(build: &Path, certs: &Path, manifests: &Path) -> Process {
    portcullis_with_command(Command::new(build), certs, manifests)
}

/// The path of the Portcullis executable that Cargo has built together with this benchmark.
pub const PORTCULLIS: &str = env!("CARGO_BIN_EXE_portcullis");

/// Starts Portcullis with its default settings. `command` must run the Portcullis executable, directly or through
/// another program.
pub fn portcullis_with_command(mut command: Command, certs: &Path, manifests: &Path) -> Process {
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--lame-duck=0"]);
    command.arg("--certs").arg(certs).arg("--manifests").arg(manifests);
    Process::start(command)
}

/// Starts Portcullis with its probes at the address `admin`, and returns immediately. Does not wait until the server
/// logs its address, because log records are written up to 100 ms late. Callers poll `/readyz` instead.
#[allow(dead_code, reason = "one of the benchmarks measures the start")]
pub fn portcullis_with_admin(admin: SocketAddr, mut command: Command, certs: &Path, manifests: &Path) -> Running {
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", &admin.to_string(), "--lame-duck=0"]);
    command.arg("--certs").arg(certs).arg("--manifests").arg(manifests);
    Running(command.stderr(Stdio::null()).spawn().unwrap())
}

impl Process {
    /// Starts a server with `command`, and waits until the server logs its address. Reads the log through a pipe,
    /// because the log of a container also goes to a pipe.
    fn start(mut command: Command) -> Self {
        let mut child = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut log = BufReader::new(child.0.stderr.take().unwrap());
        let (address, admin) = addresses_in(&mut log);
        thread::spawn(move || copy(&mut log, &mut sink()));
        Self { child, address, admin }
    }

    /// Returns the CPU time that all threads of the process have used.
    pub fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.0.id())).unwrap();
        // Threads that end while this function runs are ignored. They were idle, so they used almost no CPU time.
        let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
        times.map(|time| Duration::from_nanos(time.split(' ').next().unwrap().parse().unwrap())).sum()
    }

    /// Returns a number from `/proc/PID/status`, such as `VmRSS` in KiB.
    pub fn status(&self, key: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

fn addresses_in(log: &mut BufReader<impl Read>) -> (SocketAddr, Option<SocketAddr>) {
    let mut log_text = String::new();
    while log.read_line(&mut log_text).unwrap() > 0 {
        if let Some(address) = value_after(&log_text, "webhooks=https://") {
            return (address.parse().unwrap(), value_after(&log_text, "admin=").map(|admin| admin.parse().unwrap()));
        }
    }
    panic!("the server did not start:\n{log_text}")
}

fn value_after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.rsplit_once(key)?.1.split_whitespace().next()
}
