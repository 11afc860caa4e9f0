//! Reads the commands of documentation pages, and runs them as a reader does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::Node;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A page of the documentation.
pub struct Page {
    name: &'static str,
    text: String,
}

/// A shell that runs the commands of a user. Its working directory contains links to the chart and the examples.
pub struct Shell {
    folder: PathBuf,
    path: String,
    kubeconfig: PathBuf,
}

/// The result of a shell command.
#[derive(Debug)]
pub struct Answer {
    pub command: String,
    pub is_success: bool,
    /// The output, which includes standard error.
    pub text: String,
}

impl Page {
    /// Reads a page of the folder `docs`.
    pub fn read(name: &'static str) -> Self {
        let path = Path::new(REPOSITORY).join("docs").join(name);
        Self { name, text: fs::read_to_string(path).expect("the page exists") }
    }

    /// Returns the content of a code block in the section with the heading `heading`. `number` is the position of the
    /// block among the blocks in `language`, starting at 0.
    pub fn block(&self, heading: &str, language: &str, number: usize) -> String {
        let mut blocks = self.blocks(heading, language).into_iter();
        blocks.nth(number).unwrap_or_else(|| panic!("{} {heading}: no {language} block {number}", self.name))
    }

    /// Returns the content of all code blocks in `language` between the heading `heading` and the next heading.
    fn blocks(&self, heading: &str, language: &str) -> Vec<String> {
        let (mut blocks, mut is_below, mut open) = (Vec::new(), false, None);
        for line in self.text.lines() {
            match (line.strip_prefix("```"), &mut open) {
                (Some(name), None) => open = Some((name, String::new())),
                (Some(_), Some(_)) => blocks.extend(open.take().filter(|(name, _)| is_below && *name == language)),
                (None, Some((_, block))) => *block += &format!("{line}\n"),
                (None, None) if line.starts_with('#') => is_below = line == heading,
                (None, None) => {}
            }
        }
        blocks.into_iter().map(|(_, block)| block).collect()
    }
}

impl Shell {
    /// Creates a shell. Its working directory is inside the folder of `node`.
    pub fn open(node: &Node) -> Self {
        let folder = node.folder().join("work");
        fs::create_dir_all(&folder).expect("the folder can be created");
        for name in ["charts", "examples"] {
            let link = folder.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(Path::new(REPOSITORY).join(name), link).expect("the folder is new");
            }
        }
        let bin = node.folder().join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        Self { folder, path, kubeconfig: node.kubeconfig() }
    }

    /// Returns the path of the working directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("the file can be written");
    }

    /// Runs one or more shell commands. Stops after the first command that fails.
    pub fn run(&self, command: &str) -> Answer {
        let mut bash = Command::new("bash");
        bash.args(["-e", "-o", "pipefail", "-c", &format!("exec 2>&1\n{command}")]).current_dir(&self.folder);
        bash.env("PATH", &self.path).env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.folder);
        let output = bash.output().expect("bash is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Answer { command: command.to_owned(), is_success: output.status.success(), text }
    }
}

impl Answer {
    /// Returns the output if the command succeeded.
    ///
    /// # Errors
    /// If the command failed. The error contains the command and its output.
    pub fn success(self) -> Result<String, String> {
        if self.is_success { Ok(self.text) } else { Err(format!("$ {}\n{}", self.command, self.text)) }
    }

    /// Returns the output of a command that is expected to fail.
    ///
    /// # Errors
    /// If the command succeeded. The error contains the command and its output.
    pub fn failure(self) -> Result<String, String> {
        if self.is_success {
            Err(format!("the command must fail, but succeeds: $ {}\n{}", self.command, self.text))
        } else {
            Ok(self.text)
        }
    }
}
