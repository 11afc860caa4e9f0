//! The shape of a rule about trees.
//!
//! Such a rule looks at no request: it is something that `kustomize build` refuses, or takes in another way than it
//! seems. The walk through a tree meets all of them at once, in the order in which kustomize would; so a rule is its row,
//! its page, and how its findings are told.

use super::finding::{Site, TreeFinding};
use super::options::Profile;
use crate::admission::Level;

/// One rule about trees: a row of the registry.
pub struct TreeRule {
    /// Stable id, such as `KZ001`. It never changes its meaning.
    pub id: &'static str,
    /// Stable name in words, such as `component-as-resource`.
    pub name: &'static str,
    /// The level of its findings where the configuration says nothing.
    pub level: Level,
    /// One line: what it says no to.
    pub summary: &'static str,
    /// Its page.
    pub page: TreePage,
}

impl TreeRule {
    /// The letters of its id: `KZ`.
    pub fn family(&self) -> &'static str {
        self.id.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// A finding of this rule at its default level, for which kustomize refuses to build.
    pub(super) fn finding(&self, site: Site, message: impl Into<String>) -> TreeFinding {
        TreeFinding {
            rule: self.id,
            level: self.level,
            site,
            message: message.into(),
            found: None,
            allowed: None,
            help: None,
            refused: true,
            first: false,
            fix: None,
        }
    }
}

/// The page of a rule about trees. The examples are run by a test: the wrong tree is found, the right one is not.
pub struct TreePage {
    /// What it looks for, and why that matters.
    pub why: &'static str,
    /// A tree in which the rule finds something.
    pub wrong: TreeExample,
    /// A tree in which it finds nothing.
    pub right: TreeExample,
    /// How to mend it.
    pub mend: &'static str,
}

/// A tree of a page.
pub struct TreeExample {
    /// Who builds it.
    pub profile: Profile,
    /// The folder that is built.
    pub root: &'static str,
    /// The files: path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// `spec.components` of the Flux Kustomization that points at it.
    pub components: &'static [&'static str],
    /// `spec.postBuild.substitute` of that Flux Kustomization.
    pub substitute: &'static [(&'static str, &'static str)],
}

impl TreeExample {
    /// A tree that `kubectl kustomize` builds.
    pub const fn new(root: &'static str, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { profile: Profile::Kubectl, root, files, components: &[], substitute: &[] }
    }

    /// A tree that Flux builds.
    pub const fn flux(root: &'static str, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { profile: Profile::Flux, root, files, components: &[], substitute: &[] }
    }
}
