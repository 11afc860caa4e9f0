//! Runs kubectl as a user, with a kubeconfig, arguments and optional standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::cleanup::Process;

/// A kubectl command that has not run yet. The caller can add arguments and standard input, and then run it.
#[must_use = "nothing happens until it is run"]
pub struct Kubectl {
    command: Command,
    command_line: String,
    stdin: Option<String>,
}

/// The result of a kubectl command. Its `Display` text contains the command line, the exit status and all output.
#[derive(Debug)]
pub struct Output {
    /// The command line for messages, without the kubeconfig.
    pub command_line: String,
    pub status: ExitStatus,
    pub stdout: String,
    /// The standard error, which contains errors and warnings.
    pub stderr: String,
}

impl Kubectl {
    /// Creates a command that runs the kubectl binary `program` with the file `kubeconfig`. kubectl uses the folder
    /// `home` as its home folder, and stores its caches there.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Self {
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(kubeconfig).arg("--cache-dir").arg(home.join("cache"));
        command.env_remove("KUBECONFIG").env("HOME", home);
        Self { command, command_line: "kubectl".to_owned(), stdin: None }
    }

    /// Adds arguments to the command.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<str>>(mut self, args: I) -> Self {
        for arg in args {
            self.command_line = format!("{} {}", self.command_line, arg.as_ref());
            self.command.arg(arg.as_ref());
        }
        self
    }

    /// Sets the standard input of kubectl to `text`.
    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Runs kubectl, and waits until it ends.
    pub fn run(self) -> Output {
        self.try_run().expect("kubectl was found, and the temporary folder can be written to")
    }

    /// Runs kubectl with temporary files for its input and output. With pipes, kubectl and the test could block each
    /// other.
    fn try_run(mut self) -> io::Result<Output> {
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        self.command.stdin(file_with(self.stdin.as_deref().unwrap_or_default())?);
        self.command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        let status = Process::start(&mut self.command)?.wait()?;
        Ok(Output {
            command_line: self.command_line,
            status,
            stdout: text_of(&mut stdout)?,
            stderr: text_of(&mut stderr)?,
        })
    }
}

impl Output {
    /// Returns the output if kubectl succeeded.
    ///
    /// # Panics
    ///
    /// If kubectl failed. The message contains all of its output.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        assert!(self.status.success(), "kubectl failed:\n{self}");
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command_line, status, stdout, stderr } = self;
        write!(f, "$ {command_line}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
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
