//! Reads the git files of a checkout: remotes, branches and submodules. Does not run git.
//!
//! Reads the keys `url` and `pushurl` of remotes and the key `insteadOf` of URLs in the file `config`. Also reads
//! `HEAD`, the default branches of remotes, and `.gitmodules`. git-config(1) and gitrepository-layout(5) define the
//! formats of these files.

use std::collections::BTreeSet;

use gix::config::{File, file};

use super::url::Repository;
use crate::kustomize::tree::{Entry, Located, Tree, TreePath};

/// The git state of a checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Git {
    /// The folder that contains `.git`.
    pub top: TreePath,
    /// The remote repositories in the git configuration of the checkout, such as `github.com/org/apps` for the remote
    /// `origin`.
    pub remotes: BTreeSet<Repository>,
    /// The names of the branches that the files of this checkout may belong to: the current branch, and the default
    /// branches of the remotes. Empty if HEAD is detached and no default branch is known.
    pub branches: BTreeSet<String>,
    /// The folders of submodules.
    pub submodules: Vec<TreePath>,
    /// The reason why the remotes are unknown. `None` if the remotes are known.
    pub problem: Option<String>,
}

/// Maximum number of remotes that are read from the git configuration. Real checkouts have only a few remotes. The
/// limit bounds the memory that an unusual configuration needs.
const MAX_REMOTES: usize = 10_000;
/// The key in the file `.git` of a worktree or submodule. The file contains `gitdir: PATH`.
const GIT_DIR: &str = "gitdir:";

impl Git {
    /// Finds the checkout that contains a folder. `None` if no checkout contains the folder.
    pub fn find(tree: &Tree, folder: &TreePath) -> Option<Self> {
        let mut above = Some(folder.clone());
        while let Some(top) = above {
            if let Some(entry) = tree.entry(&top.join(".git")) {
                return Some(Self::read(tree, top, &entry));
            }
            above = top.parent();
        }
        None
    }

    /// Returns the submodule that contains a path, if the submodule is not checked out.
    pub(super) fn not_checked_out(&self, tree: &Tree, path: &TreePath) -> Option<&TreePath> {
        self.submodules.iter().find(|submodule| path.is_within(submodule) && tree.names(submodule).is_empty())
    }

    fn read(tree: &Tree, top: TreePath, entry: &Entry) -> Self {
        let submodules = submodules(tree, &top);
        let git = Self { top, submodules, ..Self::default() };
        match git.folders(tree, entry) {
            Ok((own, common)) => git.with_remotes(tree, &own, &common),
            Err(problem) => Self { problem: Some(problem), ..git },
        }
    }

    /// Returns the git folder of the checkout, and the git folder that the checkout shares with other worktrees. Both
    /// are the same folder unless the checkout is an additional worktree. `entry` is the file or folder `.git`. Returns
    /// an error message if the git folder cannot be found.
    fn folders(&self, tree: &Tree, entry: &Entry) -> Result<(TreePath, TreePath), String> {
        let path = self.top.join(".git");
        let own = match entry {
            Entry::Folder => path,
            _ => {
                let text = text(tree, &path).ok_or_else(|| format!("{path} cannot be read"))?;
                let target = text.trim().strip_prefix(GIT_DIR).map(str::trim);
                let target =
                    target.ok_or_else(|| format!("{path} is neither a folder nor a file with \"{GIT_DIR}\""))?;
                folder(tree, &self.top, target)
                    .ok_or_else(|| format!("{path} leads to {target}, which does not exist"))?
            }
        };
        let common = text(tree, &own.join("commondir")).and_then(|text| folder(tree, &own, text.trim()));
        let common = common.unwrap_or_else(|| own.clone());
        Ok((own, common))
    }

    fn with_remotes(mut self, tree: &Tree, own: &TreePath, common: &TreePath) -> Self {
        let path = common.join("config");
        let config = text(tree, &path).ok_or_else(|| format!("{path} cannot be read"));
        let config = config.and_then(|text| Config::parse(&text).map_err(|error| format!("{path}: {error}")));
        let config = match config {
            Ok(config) => config,
            Err(problem) => return Self { problem: Some(problem), ..self },
        };
        let aliases = config.sections("url", &["insteadOf"]);
        let aliases: Vec<_> =
            aliases.iter().flat_map(|(base, aliases)| aliases.iter().map(move |alias| (alias, base))).collect();
        for (name, urls) in config.sections("remote", &["url", "pushurl"]).into_iter().take(MAX_REMOTES) {
            for url in urls {
                let aliased =
                    |(alias, base): &(&String, &String)| Some(format!("{base}{}", url.strip_prefix(&***alias)?));
                let alias = aliases.iter().find_map(aliased);
                // Flux uses the original URL; `insteadOf` is a setting of this machine.
                self.remotes.extend([Some(url), alias].iter().flatten().filter_map(|url| Repository::parse(url)));
            }
            let head = text(tree, &TreePath::from(&*format!("{common}/refs/remotes/{name}/HEAD")));
            self.branches.extend(head.and_then(|head| branch(&head, &format!("refs/remotes/{name}/"))));
        }
        let head = text(tree, &own.join("HEAD"));
        self.branches.extend(head.and_then(|head| branch(&head, "refs/heads/")));
        self
    }
}

/// Returns the branch to which a symbolic reference refers. The branch is the text after `prefix`. For example, the
/// branch in `ref: refs/heads/main` is `main` if the prefix is `refs/heads/`. `None` if the text is not a symbolic
/// reference with this prefix, such as a detached HEAD.
fn branch(head: &str, prefix: &str) -> Option<String> {
    head.trim().strip_prefix("ref:")?.trim().strip_prefix(prefix).map(str::to_owned)
}

fn text(tree: &Tree, path: &TreePath) -> Option<String> {
    match tree.locate(&TreePath::root(), path.as_str()) {
        Ok(Located::File(file)) => tree.read(&file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

fn folder(tree: &Tree, from: &TreePath, path: &str) -> Option<TreePath> {
    match tree.locate(from, path) {
        Ok(Located::Folder(folder)) => Some(folder),
        _ => None,
    }
}

fn submodules(tree: &Tree, top: &TreePath) -> Vec<TreePath> {
    let modules = text(tree, &top.join(".gitmodules")).and_then(|text| Config::parse(&text).ok());
    let sections = modules.map(|modules| modules.sections("submodule", &["path"])).unwrap_or_default();
    sections.iter().flat_map(|(_, paths)| paths).map(|path| TreePath::from(&*format!("{top}/{path}"))).collect()
}

/// A git configuration. Only sections with a name are read, such as `[remote "origin"]`.
struct Config(File);

/// A section of a git configuration: its name, such as `origin`, and the values of the requested keys.
type Section = (String, Vec<String>);

impl Config {
    /// Parses the text of a git configuration file. Included files are not read.
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| error.to_string())
    }

    /// Returns the sections of a git configuration file that have the kind `kind` and a name. For example, the section
    /// `[remote "origin"]` has the kind `remote` and the name `origin`. The result contains the name and the values of
    /// `keys` for each section.
    fn sections(&self, kind: &str, keys: &[&str]) -> Vec<Section> {
        let sections = self.0.sections_by_name(kind).into_iter().flatten();
        let of = |section: file::SectionRef<'_>| {
            let values = keys.iter().flat_map(|key| section.values(key)).map(|value| value.to_string()).collect();
            Some((section.header().subsection_name()?.to_string(), values))
        };
        sections.filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::Memory;

    const CONFIG: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@github.com:o/r.git # ours\n\
                          \tfetch = +refs/heads/*:refs/remotes/origin/*\n[Remote \"mirror\"]\n  URL = \"gl:o/m\"\n\
                          [url \"https://gitlab.com/\"]\n\tinsteadOf = gl:\n";

    fn found(files: Memory, folder: &str) -> Git {
        Git::find(&Tree::new(files, "/"), &folder.into()).unwrap()
    }

    fn names(git: &Git) -> Vec<String> {
        git.remotes.iter().map(|remote| format!("{}/{}", remote.host, remote.path)).collect()
    }

    #[test]
    fn finds_remotes_branches_and_submodules_above_a_folder() {
        let files = Memory::new()
            .file("r/.git/config", CONFIG)
            .file("r/.git/HEAD", "ref: refs/heads/fix/a\n")
            .file("r/.git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n")
            .file("r/.gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n")
            .file("r/apps/a/kustomization.yaml", "");
        let git = found(files, "r/apps/a");
        assert_eq!((git.top.as_str(), git.problem.as_deref()), ("r", None));
        // The original URL counts too: `insteadOf` may lead to a mirror of the repository that Flux reads.
        assert_eq!(names(&git), ["github.com/o/r", "gitlab.com/o/m", "gl/o/m"]);
        assert_eq!(git.branches.iter().collect::<Vec<_>>(), ["fix/a", "main"]);
        assert_eq!(git.submodules, [TreePath::from("r/vendor/lib")]);
    }

    #[test]
    fn reads_the_shared_configuration_of_a_worktree() {
        let files = Memory::new()
            .file("work/.git", "gitdir: /r/.git/worktrees/work\n")
            .file("r/.git/worktrees/work/commondir", "../..\n")
            .file("r/.git/worktrees/work/HEAD", "0123456789\n")
            .file("r/.git/config", CONFIG);
        let git = found(files, "work");
        assert_eq!((git.remotes.len(), git.branches.len()), (3, 0));
    }

    #[test]
    fn reports_git_folders_that_do_not_exist() {
        let git = found(Memory::new().file("r/.git", "gitdir: ../gone\n"), "r");
        assert_eq!(git.problem.as_deref(), Some("r/.git leads to ../gone, which does not exist"));
        let git = found(Memory::new().file("r/.git", "what\n"), "r");
        assert!(git.problem.is_some_and(|problem| problem.contains("neither a folder nor a file")));
        let git = found(Memory::new().file("r/.git/HEAD", "ref: refs/heads/main\n"), "r");
        assert_eq!(git.problem.as_deref(), Some("r/.git/config cannot be read"));
        assert_eq!(Git::find(&Tree::new(Memory::new().file("r/a", ""), "/"), &"r".into()), None);
    }

    #[test]
    fn reports_a_configuration_that_git_cannot_read() {
        let files = Memory::new().file("r/.git/config", "[remote\n").file("r/.git/HEAD", "ref: refs/heads/main\n");
        assert!(found(files, "r").problem.is_some_and(|problem| problem.starts_with("r/.git/config: ")));
    }

    #[test]
    fn reads_a_thousand_remotes() {
        let config: String = (0..1000).map(|at| format!("[remote \"r{at}\"]\nurl = https://h/o/{at}\n")).collect();
        let files = Memory::new().file("r/.git/config", config).file("r/.git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(found(files, "r").remotes.len(), 1000);
    }
}
