//! Shared parts of all measurements: certificates, catalogs, and servers on a separate CPU.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::version::TLS13;
use tempfile::TempDir;

use super::catalogs;
use super::executable::Executable;
use super::process::{self, Process, Running};
use super::support::client;
use super::support::pki::{Authority, SecretMount};

/// The CPU to which servers are pinned, unless [`Setting::is_pinned`] is false.
const SERVER_CPU: &str = "0";
/// The CPU to which the client is pinned, unless [`Setting::is_pinned`] is false.
const CLIENT_CPU: &str = "1";
/// The nice value of servers and client. It is the highest priority, so that they rarely wait for a processor. Such
/// a wait would be measured as latency of the server.
const NICE_VALUE: &str = "-20";

pub struct Setting {
    pub authority: Authority,
    pub mount: SecretMount,
    pub arguments: Vec<String>,
    /// Whether server and client are pinned to one CPU each.
    pub is_pinned: bool,
    /// The measured executable: the command-line argument `--binary`, or the executable that Cargo has built together
    /// with this benchmark.
    executable: Executable,
    folder: TempDir,
}

impl Setting {
    pub fn new(arguments: &[String]) -> Self {
        let authority = Authority::new();
        let binary = arguments.iter().find_map(|argument| argument.strip_prefix("--binary="));
        Self {
            mount: SecretMount::new(&authority.leaf()),
            authority,
            executable: Executable::copy_of(binary.unwrap_or(process::PORTCULLIS).as_ref()),
            arguments: arguments.to_vec(),
            is_pinned: !arguments.iter().any(|argument| argument == "--unpinned") && pin_client(),
            folder: TempDir::new().unwrap(),
        }
    }

    /// Returns the number in the command-line argument `name`, or `default` if the argument is missing. For example,
    /// the argument `--seconds=5` has the name `--seconds` and the number 5.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.value(name).map_or(default, |number| number.parse().expect("a whole number"))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns the duration in the command-line argument `--seconds`, or `default` seconds if the argument is missing.
    pub fn seconds(&self, default: u64) -> Duration {
        Duration::from_secs(self.number("--seconds", default))
    }

    pub fn client(&self) -> ClientConfig {
        client::config(&self.authority.root, &[&TLS13])
    }

    pub fn floor(&self) -> Process {
        process::floor_with_command(self.command(&std::env::current_exe().unwrap()), self.mount.path())
    }

    /// Starts the server with its default settings, and with a catalog of `objects` objects.
    pub fn portcullis(&self, objects: usize) -> Process {
        self.portcullis_with_catalog(&self.catalog(objects))
    }

    /// Starts the server with ten objects in its catalog, and returns immediately, before the server is ready. The
    /// server answers health probes at the address `admin`.
    pub fn portcullis_with_admin(&self, admin: SocketAddr) -> Running {
        process::portcullis_with_admin(
            admin,
            self.command(self.executable.path()),
            self.mount.path(),
            &self.catalog(10),
        )
    }

    /// Starts the server with its default settings and with the catalog in the folder `catalog`.
    pub fn portcullis_with_catalog(&self, catalog: &Path) -> Process {
        process::portcullis_with_command(self.command(self.executable.path()), self.mount.path(), catalog)
    }

    /// Creates a folder with this name, and returns its path.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// Returns the folder of a catalog with `objects` objects. Creates the catalog if necessary.
    pub fn catalog(&self, objects: usize) -> PathBuf {
        let manifests = self.folder.path().join(objects.to_string());
        if !manifests.exists() {
            catalogs::write(&manifests, objects);
        }
        manifests
    }

    fn command(&self, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        // If the priority is not permitted, `nice` prints a warning and continues.
        command.args(["--cpu-list", SERVER_CPU, "nice", "-n", NICE_VALUE]).arg(program);
        command
    }
}

/// Pins this process to [`CLIENT_CPU`]. Call this function before the process starts threads, because it pins only the
/// main thread. Returns false if there is only one CPU, or no `taskset`.
fn pin_client() -> bool {
    let pid = std::process::id().to_string();
    // If the priority is not permitted, the measurement is still useful.
    let _ = run_quietly("renice", &["-n", NICE_VALUE, "-p", &pid]);
    run_quietly("taskset", &["--cpu-list", "--pid", CLIENT_CPU, &pid])
}

fn run_quietly(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
