//! Runs `kubectl kustomize`, whose results are the reference for the analysis.

use std::ffi::OsStr;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use portcullis::kustomize::options::Version;
use serde_json::Value;

use crate::case::Case;
use crate::cleanup::Process;

/// Timeout of a build. A build normally takes a tenth of a second, so a build that takes this long is considered
/// endless.
const BUILD_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval for checking whether a build has ended.
const PAUSE: Duration = Duration::from_millis(3);

/// A kubectl program with which trees are built: its path, its version, and the version of the kustomize in it.
#[derive(Debug, Clone)]
pub struct Oracle {
    program: PathBuf,
    /// The version of kubectl, such as `v1.36.3`.
    pub kubectl: String,
    /// The version of kustomize in kubectl.
    pub kustomize: Version,
}

/// The result of a build with kustomize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The build succeeded.
    Builds,
    /// The build failed with this error.
    Fails(String),
    /// The build did not end before the timeout.
    TimedOut,
}

impl Oracle {
    /// Runs `kubectl version` to find the versions of kubectl and kustomize.
    pub fn new(program: PathBuf) -> io::Result<Self> {
        let reported = command(&program).args(["version", "--client", "--output=json"]).output()?;
        let reported: Value = serde_json::from_slice(&reported.stdout)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kustomize = text(&reported["kustomizeVersion"]).parse().map_err(io::Error::other)?;
        Ok(Self { program, kubectl: text(&reported["clientVersion"]["gitVersion"]), kustomize })
    }

    /// Builds the tree of `case` with `kubectl kustomize`. The caller has already written the tree to `folder`.
    pub fn build(&self, case: &Case, folder: &Path) -> io::Result<Answer> {
        let mut command = command(&self.program);
        command.arg("kustomize").arg(case.build_at(&folder.to_string_lossy())).current_dir(folder);
        if case.unrestricted {
            command.args(["--load-restrictor", "LoadRestrictionsNone"]);
        }
        let mut stderr = tempfile::tempfile()?;
        command.stdout(Stdio::null()).stderr(stderr.try_clone()?);
        let (process, begin) = (Process::start(&mut command)?, Instant::now());
        let status = loop {
            match process.status()? {
                Some(status) => break status,
                None if begin.elapsed() > BUILD_TIMEOUT => return Ok(Answer::TimedOut),
                None => thread::sleep(PAUSE),
            }
        };
        if status.success() {
            return Ok(Answer::Builds);
        }
        let mut error = String::new();
        stderr.rewind()?;
        stderr.read_to_string(&mut error)?;
        Ok(Answer::Fails(error.replace(&*folder.to_string_lossy(), crate::case::ROOT)))
    }
}

/// Returns a kubectl command with one thread, and without user configuration, git and network.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("GOMAXPROCS", "1").env("GOGC", "400").env("PATH", OsStr::new("/nonexistent"));
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command.stdin(Stdio::null());
    command
}
