//! `portcullis init`: writes the files that `portcullis check` needs in a repository, and changes no other files.

use std::path::{Path, PathBuf};

use super::checkout::{self, Known, Scan};
use super::inputs::REPOSITORY_FILE;
use super::{OK, Unusable, print, walk};
use crate::gate::Registry;
use crate::kustomize::checkout::Git;
use crate::kustomize::options::Options;
use crate::kustomize::tree::TreePath;

/// Write a configuration file, a pre-commit hook and a CI job for a repository.
///
/// The configuration file lists the Flux sources whose files are in the repository. The CI job is for GitHub or GitLab,
/// depending on the git remotes. Existing files are not changed, except that a hook is appended to the pre-commit
/// configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder of the repository
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// URL of the repository that contains the GitHub Action and the pre-commit hook.
const HOME: &str = env!("CARGO_PKG_REPOSITORY");
/// Version of the GitHub Action and the pre-commit hook.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// File name of the configuration of pre-commit.
const PRE_COMMIT: &str = ".pre-commit-config.yaml";

/// A file to write into the repository.
struct File {
    path: &'static str,
    /// The content of a new file. If the file exists and `appends` is set, this text is appended to it.
    text: String,
    /// Whether `text` may be appended if the file already exists. A file that already contains the word `portcullis` is
    /// not changed.
    appends: bool,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    if !args.folder.is_dir() {
        return Err(Unusable::because(args.folder.display(), "it is not a folder"));
    }
    let mut paths = walk::manifests(&args.folder).map_err(Unusable::new)?;
    let scan = Scan::of(&mut paths, &Options::default())?;
    let tops = checkout::tops(std::slice::from_ref(&args.folder))?;
    let git = checkout::git(&scan.tree, &tops);
    let sources = Known::read(None, &[], &Registry::standard())?.sources;
    let survey = scan.survey(&git, &tops, &sources);
    let top = tops.first().cloned().unwrap_or_default();
    let mut files = vec![configuration(&survey.sources, &top), pre_commit()];
    files.extend(job(&git));
    for file in &files {
        print(&file.write(args)?);
    }
    if files.len() < 3 {
        print("no CI job written: no git remote is on GitHub or GitLab; run `portcullis check .` in your CI\n");
    }
    Ok(OK)
}

/// Creates a configuration file with the folder of each Flux source in `sources`. The paths of the folders are relative
/// to `top`, the top folder of the repository.
fn configuration(sources: &checkout::Sources, top: &TreePath) -> File {
    let line = |((namespace, name), folder): (&(String, String), &TreePath)| {
        format!("    {namespace}/{name}: {}\n", relative(folder, top))
    };
    let sources: String = sources.iter().map(line).collect();
    let sources = if sources.is_empty() { "  sources: {}\n".to_owned() } else { format!("  sources:\n{sources}") };
    let text = format!(
        "check:\n  # the folders that are the roots of Flux sources\n{sources}  # folders that contain all objects of a cluster: \
         references to other objects are reported\n  complete: []\n"
    );
    File { path: REPOSITORY_FILE, text, appends: false }
}

fn relative(folder: &TreePath, top: &TreePath) -> String {
    match folder.relative_to(top) {
        path if path.is_empty() => ".".to_owned(),
        path => path,
    }
}

fn pre_commit() -> File {
    let text = format!("repos:\n  - repo: {HOME}\n    rev: v{VERSION}\n    hooks:\n      - id: portcullis\n");
    File { path: PRE_COMMIT, text, appends: true }
}

/// Returns the CI job for GitHub or GitLab, depending on the git remotes. `None` if no remote is on GitHub or GitLab.
fn job(git: &Git) -> Option<File> {
    let is_on = |forge: &str| git.remotes.iter().any(|remote| remote.host.split('.').any(|part| part == forge));
    let action = HOME.trim_start_matches("https://github.com/");
    let (path, text) = match () {
        () if is_on("github") => (
            ".github/workflows/portcullis.yaml",
            format!(
                "name: portcullis\non:\n  pull_request:\n  push:\n    branches: [main]\npermissions:\n  contents: read\njobs:\n  check:\n    \
                 runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - uses: {action}@v{VERSION}\n"
            ),
        ),
        () if is_on("gitlab") => (
            ".gitlab-ci.yml",
            format!(
                "portcullis:\n  image: python:3-slim\n  script:\n    - pip install portcullis=={VERSION}\n    - portcullis check .\n"
            ),
        ),
        () => return None,
    };
    Some(File { path, text, appends: false })
}

impl File {
    /// Writes this file, or appends its text to an existing file if possible. Returns a message for the user about what
    /// was done. A file that already contains the word `portcullis` is not changed. With `--dry-run`, no file is
    /// written.
    fn write(&self, args: &Args) -> Result<String, Unusable> {
        let path = args.folder.join(self.path);
        let failed = |error: std::io::Error| Unusable::because(path.display(), error);
        let Some(text) = read(&path).map_err(failed)? else {
            return self.put(args, &path, &self.text, "writes");
        };
        if text.contains("portcullis") || text == self.text {
            return Ok(format!("{} exists and needs no change\n", self.path));
        }
        match appended(&text, &self.text).filter(|_| self.appends) {
            Some(text) => self.put(args, &path, &text, "appends a hook to"),
            None => Ok(format!("{} exists and is not changed; add this:\n\n{}\n", self.path, indented(&self.text))),
        }
    }

    fn put(&self, args: &Args, path: &Path, text: &str, verb: &str) -> Result<String, Unusable> {
        if args.dry_run {
            return Ok(format!("{verb} {}:\n\n{}\n", self.path, indented(&self.text)));
        }
        let failed = |error: std::io::Error| Unusable::because(path.display(), error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(path, text).map_err(failed)?;
        Ok(format!("{verb} {}\n", self.path))
    }
}

/// Returns the text of a file; `None` if there is no file.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Appends the entry of the list `repos` in the pre-commit configuration `new` to the list `repos` in `text`, an
/// existing pre-commit configuration. Returns the resulting text. `None` if `repos` is not the last key of `text`, or
/// if its list is not in block style.
fn appended(text: &str, new: &str) -> Option<String> {
    let is_key = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let item = text.lines().find(|line| line.trim_start().starts_with("- repo:"))?;
    let indent = item.len() - item.trim_start().len();
    if !text.lines().rfind(is_key)?.starts_with("repos:") {
        return None;
    }
    let (_, items) = new.split_once('\n')?;
    let shifted: String = items.lines().map(|line| format!("{}{}\n", " ".repeat(indent), &line[2..])).collect();
    Some(format!("{}\n{shifted}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_a_hook_with_the_indentation_of_the_others() {
        let text =
            "default_stages: [pre-commit]\nrepos:\n- repo: https://example.org/a\n  rev: v1\n  hooks: [{id: a}]\n";
        let appended = appended(text, &pre_commit().text).unwrap();
        assert!(appended.starts_with(text), "{appended}");
        let value: serde_json::Value = serde_saphyr::from_str(&appended).unwrap();
        assert_eq!(value["repos"][1]["hooks"][0]["id"], "portcullis");
    }

    #[test]
    fn leaves_other_configurations_alone() {
        let new = pre_commit().text;
        assert_eq!(appended("repos: [{repo: local}]\n", &new), None);
        assert_eq!(appended("repos:\n  - repo: local\nexclude: x\n", &new), None);
    }
}
