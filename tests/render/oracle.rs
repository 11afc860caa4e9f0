//! Runs the libraries of kustomize in a Go program that builds one tree after another. Starting a process for each tree
//! would take most of the time. `go build` builds the program once, with the versions in `kustomize/go.mod`.

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
/// Linker flag that sets the version of kustomize. Objects contain the version in a label if `buildMetadata` contains
/// `managedByLabel`.
const VERSION: &str = "-X sigs.k8s.io/kustomize/api/provenance.version=v5.8.1";

/// A running process of the Go program that builds trees with the libraries of kustomize. `folder` is the temporary
/// folder into which each tree is written.
pub struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

/// The result of a build with kustomize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The build succeeded. Contains the output.
    Builds(String),
    /// The error or the panic with which the build failed.
    Fails(String),
}

impl Oracle {
    /// Starts the Go program. Builds the program first if it is not in the cache.
    pub fn start() -> Self {
        let mut command = Command::new(program("kustomize", SOURCE, &FILES, &["-ldflags", VERSION]));
        command.env_clear().env("GOMAXPROCS", "1").env("GOGC", "400").env("PATH", "/nonexistent");
        // No server listens at this address, so kustomize cannot fetch remote resources.
        command.envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:1")));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("the standard input is piped");
        let output = BufReader::new(child.stdout.take().expect("the standard output is piped"));
        let folder =
            tempfile::Builder::new().prefix("portcullis-tree-").tempdir().expect("a temporary folder can be created");
        Self { child, input, output, folder }
    }

    /// Returns the absolute path at which every tree is written and built.
    pub fn root(&self) -> String {
        let folder = fs::canonicalize(self.folder.path()).expect("the folder exists");
        folder.join("tree").to_string_lossy().into_owned()
    }

    /// Writes a tree into an empty folder, and builds it with kustomize.
    pub fn build(&mut self, case: &mut Case) -> Answer {
        let text = self.root();
        let root = Path::new(&text);
        drop(fs::remove_dir_all(root));
        fs::create_dir_all(root).expect("a temporary folder can be written to");
        case.write(root);
        let build = root.join(case.build_at(&text));
        // kustomize keeps the OpenAPI schema of a tree for the rest of the process. So the program must reset the
        // schema if a tree may choose one. A backslash can be part of an escaped field name.
        let has_schema = case.files.values().any(|file| file.contains("openapi") || file.contains('\\'));
        match self.build_folder(&build, case.unrestricted, has_schema) {
            Answer::Fails(error) => Answer::Fails(error.replace(&text, ROOT)),
            answer => answer,
        }
    }

    /// Builds a folder with kustomize. If `unrestricted` is true, kustomize loads files from any folder. Starts the Go
    /// program again if it has ended.
    ///
    /// `has_schema` must be true if a kustomization may set an OpenAPI schema. The Go program then resets the schema
    /// before and after the build.
    pub fn build_folder(&mut self, folder: &Path, unrestricted: bool, has_schema: bool) -> Answer {
        let request = json!({"root": folder, "unrestricted": unrestricted, "hasSchema": has_schema});
        writeln!(self.input, "{request}").expect("the program reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the program writes");
        let Ok(answer) = serde_json::from_str::<Value>(&line) else {
            *self = Self::start();
            return Answer::Fails("the program ended".to_owned());
        };
        match answer["output"].as_str() {
            Some(output) => Answer::Builds(output.to_owned()),
            None => Answer::Fails(answer["error"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the path of a Go program that is built from the folder `source`. Builds the program if it is not in the
/// cache. `files` contains the texts of the source files. The key of the cache is computed from them. `flags` are
/// additional arguments of `go build`.
pub fn program(name: &str, source: &str, files: &[&str], flags: &[&str]) -> PathBuf {
    let key = cache::key(&[files, &[OS, ARCH]].concat());
    let cache = Cache::open(&key).expect("the cache can be opened");
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
