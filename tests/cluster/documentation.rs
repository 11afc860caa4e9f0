//! The commands of documentation pages, run as a reader runs them.

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

/// A shell with the commands of a user, in a folder with the chart.
pub struct Shell {
    folder: PathBuf,
    path: String,
    kubeconfig: PathBuf,
}

/// What a command printed.
#[derive(Debug)]
pub struct Answer {
    /// The command.
    pub command: String,
    /// Whether it succeeded.
    pub is_success: bool,
    /// Its output, errors included.
    pub text: String,
}

impl Page {
    /// Reads a page of `docs/`.
    pub fn read(name: &'static str) -> Self {
        let path = Path::new(REPOSITORY).join("docs").join(name);
        Self { name, text: fs::read_to_string(path).expect("the page exists") }
    }

    /// Returns the content of the block in this language, by its number, below a heading.
    pub fn block(&self, heading: &str, language: &str, number: usize) -> String {
        let mut blocks = self.blocks(heading, language).into_iter();
        blocks.nth(number).unwrap_or_else(|| panic!("{} {heading}: no {language} block {number}", self.name))
    }

    /// Returns the blocks in this language between a heading and the next one.
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
    /// Opens a shell in a folder of the node.
    pub fn open(node: &Node) -> Self {
        let folder = node.folder().join("work");
        fs::create_dir_all(&folder).expect("there is room");
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

    /// Returns the folder in which commands run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("there is room");
    }

    /// Runs a command, or several.
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
    /// Returns the output of a command that succeeded.
    ///
    /// # Errors
    /// If it failed, with its output.
    pub fn success(self) -> Result<String, String> {
        if self.is_success { Ok(self.text) } else { Err(format!("$ {}\n{}", self.command, self.text)) }
    }

    /// Returns the output of a command that failed.
    ///
    /// # Errors
    /// If it succeeded, with its output.
    pub fn failure(self) -> Result<String, String> {
        if self.is_success {
            Err(format!("this was to fail: $ {}\n{}", self.command, self.text))
        } else {
            Ok(self.text)
        }
    }
}
