//! The verdict about a root.

use std::fmt;

use super::explain::Step;
use super::files::Files;
use super::finding::TreeFinding;
use super::options::{Options, Profile};
use super::tree::{Tree, TreePath};
use super::walk::Walk;

/// What kustomize would do with a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It builds it.
    Accept,
    /// kustomize cannot build it.
    Reject,
    /// Unknown without fetching, rendering or running something.
    Unknown,
}

impl Verdict {
    /// Returns the name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The analysis of a root.
#[derive(Debug, Clone)]
pub struct Report {
    /// The folder that would be built.
    pub root: TreePath,
    /// By whom.
    pub profile: Profile,
    /// What would come of it.
    pub verdict: Verdict,
    /// Why the verdict is not Accept although there are no findings.
    pub reasons: Vec<String>,
    /// Everything found, in the order in which kustomize would meet it.
    pub findings: Vec<TreeFinding>,
    /// How it would be evaluated; nothing if the root cannot be read.
    pub evaluation: Option<Step>,
}

/// Judges the root of a tree.
pub fn analyse(tree: &Tree, root: &TreePath, options: &Options) -> Report {
    analyse_with(tree, root, options, &Files::default())
}

/// Judges one of several roots of a tree, which share the files that were read.
pub fn analyse_with(tree: &Tree, root: &TreePath, options: &Options, files: &Files) -> Report {
    let mut walk = Walk::new(tree, options, files);
    let evaluation = walk.root(root);
    let refused = walk.findings.iter().any(|finding| finding.refused);
    let verdict = match (refused, walk.reasons.is_empty()) {
        (true, _) => Verdict::Reject,
        (false, true) => Verdict::Accept,
        (false, false) => Verdict::Unknown,
    };
    Report {
        root: root.clone(),
        profile: options.profile,
        verdict,
        reasons: walk.reasons,
        findings: walk.findings,
        evaluation,
    }
}
