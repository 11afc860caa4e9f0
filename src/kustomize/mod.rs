//! Builds kustomize trees as kustomize does, and reports all errors in them as findings of rules.
//!
//! A tree is a folder with a kustomization file, and all files and folders to which this file refers. kustomize stops
//! at its first error, and its message nests the error of one file in the error of another. This module reads a tree in
//! kustomize's order, and reports all errors at once, each with its position.
//!
//! ```
//! use portcullis::kustomize::options::Options;
//! use portcullis::kustomize::tree::{Memory, Tree};
//! use portcullis::kustomize::{Verdict, analyse};
//!
//! let files = Memory::new()
//!     .file("app/kustomization.yaml", "resources:\n  - ../ldap\n")
//!     .file("ldap/kustomization.yaml", "kind: Component\nnamePrefix: ldap-\n");
//! let tree = Tree::new(files, "/");
//! let report = analyse(&tree, &"app".into(), &Options::default());
//! assert_eq!(report.verdict, Verdict::Reject);
//! assert_eq!(report.findings[0].rule, "KZ001");
//! assert_eq!(report.findings[0].location.place.line, 2);
//! ```
//!
//! # Verdicts
//!
//! The verdict comes from a build that follows kustomize step by step, like [`engine::build`], but continues after
//! errors. [`Verdict::Reject`] means that kustomize cannot build the tree, and [`Verdict::Accept`] that it can.
//! Otherwise the verdict is [`Verdict::Unknown`]. [`Report::reasons`] then contains the reasons, such as remote
//! resources and external plugins.
//!
//! The semantics are those of kustomize 5.8.1, according to its source and its observed behavior.
//! `tests/vectors/kustomize` contains test cases with the results of kustomize.

mod analysis;
pub mod annotations;
mod argo;
mod bad_objects;
pub mod changes;
pub mod checkout;
pub mod delivery;
pub mod emit;
pub mod engine;
pub mod explain;
pub mod file;
mod files;
pub mod finding;
mod fix;
mod flux;
pub mod forgotten;
mod glob;
pub mod identity;
pub mod merge;
pub mod node;
pub mod options;
pub mod pattern;
pub mod references;
pub mod remote;
pub mod roots;
mod rules;
pub mod schema;
pub mod tree;

pub use analysis::{Report, Verdict, analyse, analyse_shared, analyse_with};
pub use files::Files;
pub use fix::fix;
pub use flux::Excluded;

use crate::rule::{Rule, RuleInfo};

/// Returns the rules of this module that check admission requests, sorted by id.
pub fn rules() -> Vec<&'static Rule> {
    [rules::RULES, delivery::RULES].concat()
}

/// Returns the rules that need a build of a kustomize tree. The rules about the content of trees come first, and then
/// the rules about deletions by Flux and Argo CD. Both lists are sorted by id.
pub fn tree_rules() -> Vec<&'static RuleInfo> {
    [rules::TREE_RULES, delivery::TREE_RULES].concat()
}
