//! Runs the server as a process, and reads its memory from the kernel.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::executable::Executable;
use crate::http;
use crate::objects::Row;
use crate::pod::Pod;
use crate::stage::PopulatedCluster;

/// Timeout for a server to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(20);
/// Delay before memory is measured, because the allocator returns free memory to the kernel with a delay.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// A server process. When this value is dropped, the process is terminated with SIGTERM. Unlike SIGKILL, SIGTERM lets a
/// build with profiling write its profile.
pub struct Server {
    child: Child,
    admin: u16,
    log: PathBuf,
    begun: Instant,
    /// The environment of the server, whose files it reads when it starts. `None` if it does not run as in a pod.
    pod: Option<Pod>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap();
    }
}

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub resident: u64,
    pub peak: u64,
}

impl Memory {
    /// Parses the memory of a process from `status`, the text of the file `/proc/PID/status`.
    pub fn of(status: &str) -> Self {
        let kib = |key: &str| -> u64 {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
            value.trim().trim_end_matches(" kB").parse().unwrap()
        };
        Self { resident: kib("VmRSS") * 1024, peak: kib("VmHWM") * 1024 }
    }
}

/// A copy of a build of Portcullis, with a certificate for its server.
pub struct Program {
    executable: Executable,
    certs: TempDir,
}

impl Program {
    /// Copies the executable of Portcullis at `path`, and creates a serving certificate. If `path` is `None`, copies the
    /// executable that cargo built for this benchmark.
    pub fn new(path: Option<&str>) -> Self {
        let executable = Executable::copy_of(Path::new(path.unwrap_or(env!("CARGO_BIN_EXE_portcullis"))));
        let certs = tempfile::tempdir().unwrap();
        let output = Command::new(executable.path()).args(["certs", "--out"]).arg(certs.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { executable, certs }
    }

    /// Starts a server. `arguments` are additional arguments of its command line, which say where the server finds the
    /// objects.
    pub fn serve<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Server {
        self.serve_with_command(Command::new(self.executable.path()), arguments)
    }

    /// Starts a server that reads the objects of `cluster`. As in a pod, the server finds the API server through
    /// environment variables, and the credentials in a mounted folder. If this machine does not permit such a mount,
    /// passes a kubeconfig to the server instead.
    pub fn serve_cluster(&self, cluster: &PopulatedCluster) -> Server {
        match cluster.pod() {
            Some(pod) => {
                let mut server = self.serve_with_command::<&str>(pod.command(self.executable.path().as_os_str()), &[]);
                server.pod = Some(pod);
                server
            }
            None => self.serve(&["--kubeconfig".as_ref(), cluster.kubeconfig().as_os_str()]),
        }
    }

    fn serve_with_command<A: AsRef<OsStr>>(&self, mut command: Command, arguments: &[A]) -> Server {
        // The server writes its ports to the log, but up to 100 ms later, so they are chosen here.
        let admin = free_port();
        command.args(["serve", "--listen", "127.0.0.1:0", "--lame-duck=0"]);
        command.arg(format!("--admin-listen=127.0.0.1:{admin}"));
        command.arg("--certs").arg(self.certs.path()).args(arguments);
        let log = self.certs.path().join("server.log");
        command.stderr(fs::File::create(&log).unwrap());
        let begun = Instant::now();
        Server { child: command.spawn().unwrap(), admin, log, begun, pod: None }
    }
}

/// Returns a port on which no process listens.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Waits until the server is ready. Returns the time since the server was started.
    pub fn wait_until_ready(&mut self) -> Duration {
        while !http::is_ok(&http::get(self.admin, "/readyz")) {
            assert!(self.begun.elapsed() < READY_TIMEOUT, "{:?}", http::get(self.admin, "/readyz?verbose"));
            let log = || fs::read_to_string(&self.log).unwrap();
            assert!(self.child.try_wait().unwrap().is_none(), "the server did not start:\n{}", log());
            thread::sleep(Duration::from_millis(5));
        }
        self.begun.elapsed()
    }

    /// Waits until the allocator has returned free memory. Returns the memory of the server.
    pub fn settled_memory(&self) -> Memory {
        thread::sleep(SETTLE_TIME);
        self.memory()
    }

    pub fn memory(&self) -> Memory {
        Memory::of(&fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap())
    }

    /// Returns the value of the metric `name`, summed over the kinds of `rows`.
    pub fn metric(&self, name: &str, rows: &[Row]) -> f64 {
        let metrics = http::get(self.admin, "/metrics").unwrap();
        let labels: Vec<_> = rows.iter().map(|row| format!("kind=\"{}.{}\"", row.plural, row.group)).collect();
        let of = |line: &str| {
            let (labelled, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
            labels.iter().any(|label| label == labelled).then(|| value.parse::<f64>().ok())?
        };
        metrics.lines().filter_map(of).sum()
    }
}
