//! Runs kustomize's own libraries in a program that builds one tree after another, because a process for each would
//! take most of the time. Go builds it once, from the versions pinned in `kustomize/go.mod`.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cache::{self, Cache, CacheError};
use crate::case::{Case, ROOT};
use crate::cleanup::Process;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/render/kustomize");
const FILES: [&str; 3] =
    [include_str!("kustomize/main.go"), include_str!("kustomize/go.mod"), include_str!("kustomize/go.sum")];
/// The version that the label `managedByLabel` names.
const VERSION: &str = "-X sigs.k8s.io/kustomize/api/provenance.version=v5.8.1";

/// The program.
pub struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

/// What kustomize makes of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The text.
    Builds(String),
    /// The error, or the panic.
    Refuses(String),
}

impl Oracle {
    /// Starts the program, which is built if it is not there yet.
    pub fn start() -> Self {
        let mut command = Command::new(program("kustomize", SOURCE, &FILES, &["-ldflags", VERSION]));
        command.env_clear().env("GOMAXPROCS", "1").env("GOGC", "400").env("PATH", "/nonexistent");
        // nothing is fetched
        command.envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:1")));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take().expect("its input is piped");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let folder = tempfile::Builder::new().prefix("portcullis-tree-").tempdir().expect("there is room for a folder");
        Self { child, input, output, folder }
    }

    /// Returns the path of the trees.
    pub fn root(&self) -> String {
        let folder = fs::canonicalize(self.folder.path()).expect("the folder is there");
        folder.join("tree").to_string_lossy().into_owned()
    }

    /// Writes a tree into an empty folder and builds it.
    pub fn build(&mut self, case: &mut Case) -> Answer {
        let text = self.root();
        let root = Path::new(&text);
        drop(fs::remove_dir_all(root));
        fs::create_dir_all(root).expect("a temporary folder can be written to");
        case.write(root);
        let build = root.join(case.build_at(&text));
        // the schema stays for the rest of the process, so that another one needs a new start of it
        let has_schema = case.files.values().any(|file| file.contains("openapi") || file.contains('\\'));
        match self.build_folder(&build, case.unrestricted, has_schema) {
            Answer::Refuses(error) => Answer::Refuses(error.replace(&text, ROOT)),
            answer => answer,
        }
    }

    /// Builds a folder.
    pub fn build_folder(&mut self, folder: &Path, unrestricted: bool, has_schema: bool) -> Answer {
        let request = json!({"root": folder, "unrestricted": unrestricted, "hasSchema": has_schema});
        writeln!(self.input, "{request}").expect("the program reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the program writes");
        let Ok(answer) = serde_json::from_str::<Value>(&line) else {
            *self = Self::start();
            return Answer::Refuses("the program ended".to_owned());
        };
        match answer["output"].as_str() {
            Some(output) => Answer::Builds(output.to_owned()),
            None => Answer::Refuses(answer["error"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns a program in Go, built if it is not there yet. `files` are its files, which determine it.
pub fn program(name: &str, source: &str, files: &[&str], flags: &[&str]) -> PathBuf {
    let key = cache::key(&[files, &[OS, ARCH]].concat());
    let cache = Cache::open(&key).expect("there is a cache");
    let made = cache.entry(name, |folder| -> Result<(), CacheError> {
        eprintln!("building {name} with Go: a minute the first time, then kept");
        let mut go = Command::new("go");
        go.current_dir(source).env("GOWORK", "off").env_remove("GOOS").env_remove("GOARCH");
        go.args(["build", "-mod=readonly", "-buildvcs=false"]).args(flags).arg("-o").arg(folder.join(name)).arg(".");
        let built = Process::start(&mut go).and_then(|process| process.wait());
        let built = built.expect("this test needs Go, to build programs of others");
        assert!(built.success(), "go build: {built}");
        Ok(())
    });
    made.expect("the program is built").join(name)
}
