//! Builds a tree with the engine of Portcullis.

use std::panic::{self, AssertUnwindSafe};

use portcullis::kustomize::Files;
use portcullis::kustomize::engine::{self, Settings, Stop};
use portcullis::kustomize::options::{Options, Restrictor};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};

use crate::case::{Case, ROOT};

/// The result of a build with the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    /// The output of a successful build.
    Text(String),
    /// The error message of a failed build.
    Refused(String),
    /// The reason why the engine cannot determine the result, for example because the tree needs a step that the engine
    /// does not execute.
    Unknown(String),
    /// The engine panicked.
    Panicked,
}

/// Builds the tree of `case` with the engine. The tree is in memory, and `base` is its absolute path.
fn build_tree(case: &Case, base: &str) -> Result<String, Stop> {
    let files = case.files_at(base).fold(Memory::new(), |files, (path, text)| files.file(path, text));
    let links = case.links.iter().map(|(path, target)| (path, target.replace(ROOT, base)));
    let tree = Tree::new(links.fold(files, |files, (path, target)| files.link(path, &target)), base);
    let restrictor = if case.unrestricted { Restrictor::None } else { Restrictor::RootOnly };
    let options = Options { restrictor, ..Options::default() };
    let root = case.build_at(base);
    let root = TreePath::from(root.strip_prefix(base).unwrap_or(&root));
    let (settings, files) = (Settings::default(), Files::default());
    engine::build(&tree, &root, &options, &settings, &files)?.text()
}

/// Builds the tree of `case` with the engine, and catches panics. The tree is in memory. `base` must be the path at
/// which kustomize builds the same tree, because texts in the tree can contain this path.
pub fn build(case: &Case, base: &str) -> Built {
    panic::catch_unwind(AssertUnwindSafe(|| build_tree(case, base))).map_or(Built::Panicked, Built::from)
}

impl From<Result<String, Stop>> for Built {
    fn from(result: Result<String, Stop>) -> Self {
        match result {
            Ok(text) => Self::Text(text),
            Err(stop @ Stop::Refused(_)) => Self::Refused(format!("{} {}", stop.site(), stop.message())),
            Err(Stop::Unknown(reason)) => Self::Unknown(reason.message.clone()),
        }
    }
}
