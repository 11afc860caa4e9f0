//! The verdict about a root.

use std::fmt;

use super::build::{Settings, Stop, build, build_flux};
use super::explain::{Step, StepKind};
use super::files::Files;
use super::finding::TreeFinding;
use super::options::{Options, Profile, Version};
use super::rules::{kz031, kz040};
use super::tree::{Tree, TreePath};
use super::walk::Walk;

/// The predicted result of kustomize for a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// kustomize can build it.
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
    /// The verdict.
    pub verdict: Verdict,
    /// Why the verdict is not Accept although there are no findings.
    pub reasons: Vec<String>,
    /// Everything found, in the order in which kustomize would meet it.
    pub findings: Vec<TreeFinding>,
    /// The evaluation; `None` if the root cannot be read.
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
    let Walk { built, of_build, findings, reasons, .. } = walk;
    let mut report = Report { root: root.clone(), profile: options.profile, verdict, reasons, findings, evaluation };
    let of_build = of_build.filter(|(reasons, _)| *reasons > 0 && verdict == Verdict::Unknown);
    if let Some(((folder, file), of_build)) = built.zip(of_build)
        && follows(&report, options)
    {
        let built = match &file {
            Some(file) => build_flux(tree, &folder, file, options, files),
            None => build(tree, root, options, &Settings::default(), files),
        };
        settle(&mut report, built.and_then(|built| built.check()), of_build);
    }
    report
}

/// Returns whether the engine reproduces the tool that builds the root: it builds whole roots, like the newest
/// kustomize.
fn follows(report: &Report, options: &Options) -> bool {
    let is_part = report.evaluation.as_ref().is_none_or(|step| step.kind == StepKind::Component);
    options.version == Version::DEFAULT && !is_part
}

/// Replaces unknown results of the analysis by those of a build of the root.
fn settle(report: &mut Report, built: Result<(), Stop>, (reasons, findings): (usize, usize)) {
    let found = match built {
        Err(Stop::Unknown(_)) => return,
        Ok(()) => None,
        Err(Stop::Refused(reason)) => Some(kz031::found(reason.site, &reason.message)),
    };
    report.reasons.drain(..reasons);
    let mut at = 0..;
    report.findings.retain(|finding| at.next().is_some_and(|at| at >= findings) || finding.rule != kz040::ID);
    let is_refused = found.is_some();
    report.findings.extend(found.map(|finding| TreeFinding { first: true, ..finding }));
    report.verdict = match (is_refused, report.reasons.is_empty()) {
        (true, _) => Verdict::Reject,
        (false, true) => Verdict::Accept,
        (false, false) => Verdict::Unknown,
    };
}
