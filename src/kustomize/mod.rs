//! Kustomize: Components, Kustomizations and where each may stand, found without building.
//!
//! kustomize itself stops at its first error, with a message that nests one file after another. This room reads a tree
//! as kustomize would, in the order in which kustomize would, and tells everything that it would refuse, at once and
//! with the place of each.
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
//! assert_eq!(report.findings[0].site.place.line, 2);
//! ```
//!
//! # What is certain
//!
//! [`Verdict::Reject`] means that kustomize refuses the tree. [`Verdict::Accept`] means that it does not, as far as files,
//! references, objects and their identities go; a transformer that fails on the content of an object can still be missed.
//! Everything else is [`Verdict::Unknown`], with reasons: what is far away, what plugins do, some effects of patches.
//!
//! The semantics are those of kustomize 5.8.1, read in its source and executed; `tests/vectors/kustomize` holds what it
//! said.

pub mod accumulate;
mod analysis;
pub mod build;
pub mod delivery;
pub mod emit;
pub mod explain;
pub mod file;
mod files;
pub mod finding;
mod fix;
mod flux;
pub mod merge;
pub mod node;
pub mod options;
pub mod references;
pub mod roots;
pub mod rule;
mod rules;
pub mod schema;
pub mod tree;
mod walk;

pub use analysis::{Report, Verdict, analyse, analyse_with};
pub use files::Files;
pub use fix::fix;
pub use rules::tree_rules;

use crate::rule::Rule;

/// Returns the rules of this system that look at requests, in the order of their ids.
pub fn rules() -> Vec<&'static Rule> {
    [rules::rules(), delivery::rules()].concat()
}
