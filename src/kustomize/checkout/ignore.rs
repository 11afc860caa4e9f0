//! Excludes the files that Flux does not put into the artifact of a source.
//!
//! Source: `SourceIgnoreFilter` in fluxcd/pkg's `artifact/storage/archive.go`. Flux applies the patterns of every
//! `.sourceignore`, and then the patterns in `spec.ignore` of the source. If there are no such patterns, Flux applies
//! default patterns. The last matching pattern decides.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::kustomize::tree::{Entry, Tree, TreePath};

/// The ignore patterns that Flux applies to every source. They exclude the files of git from the artifact of the
/// source.
const VERSION_CONTROL: [&str; 4] = [".git/", ".gitignore", ".gitmodules", ".gitattributes"];
/// The ignore patterns that Flux applies if neither the source nor its `.sourceignore` files contain patterns.
const DEFAULTS: [&str; 20] = [
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.png",
    "*.wmv",
    "*.flv",
    "*.tar.gz",
    "*.zip",
    ".github/",
    ".circleci/",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    "**/.goreleaser.yml",
    "**/.sops.yaml",
    "**/.flux.yaml",
];
/// The name of Flux's files with ignore patterns. The patterns apply to the folder that contains the file.
pub(super) const FILE: &str = ".sourceignore";

/// Returns the part of `tree` that Flux puts into the artifact of a source. These are the files in or below `top`,
/// without links and ignored files. The ignore patterns are in the files `ignores` and in `spec`, which is the source's
/// `spec.ignore`. Files keep their paths in `tree`.
pub(super) fn artifact(tree: &Arc<Tree>, top: &TreePath, ignores: &[TreePath], spec: Option<&str>) -> Tree {
    let mut own = Vec::new();
    for file in ignores.iter().filter(|file| file.is_within(top)) {
        let text = tree.read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let folder = TreePath::from(&*file.parent().unwrap_or_default().relative_to(top));
        own.extend(patterns(&text).map(|line| (folder.clone(), matcher(&[line]))));
    }
    own.extend(spec.into_iter().flat_map(patterns).map(|line| (TreePath::root(), matcher(&[line]))));
    let mut matchers = vec![(TreePath::root(), matcher(&VERSION_CONTROL))];
    match own.is_empty() {
        true => matchers.push((TreePath::root(), matcher(&DEFAULTS))),
        false => matchers.append(&mut own),
    }
    let top = top.clone();
    tree.without(move |path, entry| {
        if !path.is_within(&top) {
            return !top.is_within(path);
        }
        if *path == top || *entry == Entry::Folder {
            // An excluded folder may hold files that a later pattern includes.
            return false;
        }
        let below = TreePath::from(&*path.relative_to(&top));
        let is_ignored = |(folder, patterns): &(TreePath, Gitignore)| {
            if below == *folder || !below.is_within(folder) {
                return None;
            }
            let name = below.relative_to(folder);
            let matched = patterns.matched_path_or_any_parents(Path::new(&name), false);
            (!matched.is_none()).then(|| matched.is_ignore())
        };
        // source-controller archives no links.
        matches!(entry, Entry::Link(_)) || matchers.iter().rev().find_map(is_ignored).unwrap_or_default()
    })
}

/// Returns the lines of a text that are patterns, without comments and empty lines.
fn patterns(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// Compiles ignore patterns to one matcher. In Flux, the last matching pattern has priority. The matcher differs from
/// Flux in one case: a pattern that matches a file has priority over a later pattern that matches a folder above the
/// file. So if patterns may contradict each other, the caller compiles each one to its own matcher.
fn matcher(patterns: &[&str]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        // Like Flux, this skips a pattern that cannot be parsed.
        drop(builder.add_line(None, pattern));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::Memory;

    #[test]
    fn leaves_out_what_the_patterns_exclude() {
        let files = ["r/.sops.yaml", "r/a/logo.png", "r/a/k.yaml", "r/b/.sops.yaml", "r/deploy/x/k.yaml", "s/k.yaml"];
        let memory = files.iter().fold(Memory::new(), |memory, file| memory.file(file, "a: b\n"));
        let memory =
            memory.file("r/b/.sourceignore", "/old\n*.txt\n").file("r/b/old/k.yaml", "").file("r/b/c/n.txt", "");
        let tree = Arc::new(Tree::new(memory, "/"));
        let has = |tree: &Tree, path: &str| tree.entry(&path.into()) == Some(Entry::File);
        let ignores = [TreePath::from("r/b/.sourceignore")];
        let artifact = super::artifact(&tree, &"r".into(), &ignores, None);
        let kept: Vec<_> = files.into_iter().filter(|file| has(&artifact, file)).collect();
        // If a source has its own patterns, Flux does not apply the default patterns.
        assert_eq!(kept, ["r/.sops.yaml", "r/a/logo.png", "r/a/k.yaml", "r/b/.sops.yaml", "r/deploy/x/k.yaml"]);
        assert!(!has(&artifact, "r/b/old/k.yaml") && !has(&artifact, "r/b/c/n.txt"));
        let artifact = super::artifact(&tree, &"r".into(), &ignores, Some("/*\n!/deploy"));
        assert!(has(&artifact, "r/deploy/x/k.yaml") && !has(&artifact, "r/a/k.yaml"));
        // A later pattern can exclude a folder with files that an earlier pattern includes.
        let artifact = super::artifact(&tree, &"r".into(), &[], Some("!/a/k.yaml\n/a"));
        assert!(!has(&artifact, "r/a/k.yaml"));
        let artifact = super::artifact(&tree, &"r".into(), &[], None);
        let kept: Vec<_> = files.into_iter().filter(|file| has(&artifact, file)).collect();
        assert_eq!(kept, ["r/a/k.yaml", "r/deploy/x/k.yaml"]);
        assert_eq!(artifact.names(&"r".into()), ["a", "b", "deploy"]);
    }
}
