//! A real OCI registry on the loopback interface. It is the registry server of the CNCF project Distribution. The tests
//! build it with Go, in the version that `assets/go.mod` names.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::cache::{self, Cache, CacheError};
use crate::cleanup::{self, Process};
use crate::deadline::deadline;

const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/registry/assets");
const GO_MOD: &str = include_str!("assets/go.mod");
const GO_SUM: &str = include_str!("assets/go.sum");
const PACKAGE: &str = "github.com/distribution/distribution/v3/cmd/registry";
/// An htpasswd file with the user `reader` and the password `secret`. The registry supports only bcrypt hashes.
const HTPASSWD: &str = "reader:$2a$04$2DF6hoYou2xFnTqGncbMeOLa.PpiWi8VDFm/tqqQeppSfPAlU1t5q\n";

/// Options of a registry.
#[derive(Default)]
pub struct Options {
    /// Certificate chain and key in PEM. `None` for plain HTTP.
    pub tls: Option<(String, String)>,
    /// Whether the registry requires a user name and a password.
    pub requires_login: bool,
}

/// A registry that runs as a process. Dropping it stops the process and deletes the content.
pub struct Registry {
    folder: TempDir,
    port: u16,
    scheme: &'static str,
    process: Option<Process>,
}

impl Registry {
    pub fn start(options: &Options) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be created");
        cleanup::add_folder(folder.path());
        let port = free_port();
        fs::write(folder.path().join("config.yml"), configuration(folder.path(), port, options)).unwrap();
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let mut registry = Self { folder, port, scheme, process: None };
        registry.restart();
        registry
    }

    /// Starts the registry process, and waits until it listens. A registry that was stopped keeps its port and its
    /// content.
    pub fn restart(&mut self) {
        let mut command = Command::new(program());
        command.arg("serve").arg(self.folder.path().join("config.yml"));
        command.env("OTEL_TRACES_EXPORTER", "none").stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(Process::start(&mut command).expect("the registry can be started"));
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begin.elapsed() < deadline(), "the registry does not listen on port {}", self.port);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the registry process, which closes its port. The content is kept.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Returns the host and port of the registry.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the base URL of the registry.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.host())
    }
}

fn configuration(folder: &Path, port: u16, options: &Options) -> String {
    let data = folder.join("data");
    let mut text = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp:\n  addr: \
         127.0.0.1:{port}\n  secret: test\n",
        data.display()
    );
    if let Some((chain, key)) = &options.tls {
        let (chain_file, key_file) = (folder.join("tls.crt"), folder.join("tls.key"));
        fs::write(&chain_file, chain).unwrap();
        fs::write(&key_file, key).unwrap();
        text += &format!("  tls: {{certificate: {}, key: {}}}\n", chain_file.display(), key_file.display());
    }
    if options.requires_login {
        let path = folder.join("htpasswd");
        fs::write(&path, HTPASSWD).unwrap();
        text += &format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", path.display());
    }
    text
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("the socket is bound").port()
}

/// Returns the path of the registry program. Builds the program if the cache does not contain it.
fn program() -> PathBuf {
    let key = cache::key(&[GO_MOD, GO_SUM, OS, ARCH]);
    let cache = Cache::open(&key).expect("the cache can be opened");
    let made = cache.entry("registry", |folder| -> Result<(), CacheError> {
        eprintln!("building the registry with Go: a minute or two the first time, then kept");
        let mut go = Command::new("go");
        go.current_dir(PINS).env("GOWORK", "off").env_remove("GOOS").env_remove("GOARCH");
        go.args(["build", "-mod=readonly", "-buildvcs=false", "-ldflags", "-s -w", "-o"]);
        go.arg(folder.join("registry")).arg(PACKAGE);
        let built = Process::start(&mut go).and_then(|process| process.wait());
        let built = built.expect("these tests need Go 1.26 or newer, to build a registry to test against");
        assert!(built.success(), "go build {PACKAGE}: {built}");
        Ok(())
    });
    made.expect("the registry is built").join("registry")
}
