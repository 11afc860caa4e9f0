//! Runs kubectl as a user, with a kubeconfig, arguments and optional standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::cleanup::Process;

/// One call of kubectl, to be completed and run.
#[must_use = "nothing happens until it is run"]
pub struct Kubectl {
    command: Command,
    shown: String,
    stdin: Option<String>,
}

/// The result of a kubectl call. Its text form contains all of it.
#[derive(Debug)]
pub struct Output {
    /// The arguments, for people to read.
    pub shown: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error, with errors and warnings.
    pub stderr: String,
}

impl Kubectl {
    /// `program` as the user of `kubeconfig`, who keeps caches and preferences in `home`.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Self {
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(kubeconfig).arg("--cache-dir").arg(home.join("cache"));
        command.env_remove("KUBECONFIG").env("HOME", home);
        Self { command, shown: "kubectl".to_owned(), stdin: None }
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<str>>(mut self, args: I) -> Self {
        for arg in args {
            self.shown = format!("{} {}", self.shown, arg.as_ref());
            self.command.arg(arg.as_ref());
        }
        self
    }

    /// Gives it `text` on standard input.
    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Output {
        self.try_run().expect("kubectl was found, and the temporary folder can be written to")
    }

    /// Files, unlike pipes, never make us wait for kubectl while it waits for us.
    fn try_run(mut self) -> io::Result<Output> {
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        self.command.stdin(file_with(self.stdin.as_deref().unwrap_or_default())?);
        self.command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let status = Process::start(&mut self.command)?.wait()?;
        Ok(Output { shown: self.shown, status, stdout: text_of(&mut stdout)?, stderr: text_of(&mut stderr)? })
    }
}

impl Output {
    /// Returns the output of a successful call.
    ///
    /// # Panics
    ///
    /// If it failed, with all output of kubectl.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        assert!(self.status.success(), "this was to succeed:\n{self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, status, stdout, stderr } = self;
        write!(f, "$ {shown}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

fn file_with(text: &str) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn text_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
