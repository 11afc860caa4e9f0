//! Runs the analysis of Portcullis on a tree.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use portcullis::kustomize::options::{Options, Restrictor, Version};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Report, Verdict, analyse};

use crate::case::{Case, ROOT};

/// The absolute path of a tree in memory. The analysis does not read this path on disk.
const BASE: &str = "/srv/portcullis-tree";

/// The result of analyzing a tree: a summary of the report of Portcullis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalysisResult {
    /// The verdict. `None` if the analysis panicked.
    pub verdict: Option<Verdict>,
    /// The id of the rule that reports the first error of the build. kustomize stops at this error. Empty if there is
    /// no error, or if the first error is unknown. `panic` if the analysis panicked.
    pub rule: &'static str,
    /// The findings, and the reasons why the verdict is unknown, as human-readable text.
    pub reported: String,
}

/// Analyzes a tree in memory.
pub fn judge(case: &Case, version: Version) -> AnalysisResult {
    catch_panics(|| {
        let files = case.files_at(BASE).fold(Memory::new(), |files, (path, text)| files.file(path, text));
        let links = case.links.iter().map(|(path, target)| (path, target.replace(ROOT, BASE)));
        let files = links.fold(files, |files, (path, target)| files.link(path, &target));
        report(case, Tree::new(files, BASE), version)
    })
}

/// Analyzes the tree of `case` after its files were written to `folder`.
pub fn judge_folder(case: &Case, folder: &Path, version: Version) -> AnalysisResult {
    catch_panics(|| report(case, Tree::folder(folder).expect("the folder exists"), version))
}

fn catch_panics(report: impl FnOnce() -> Report) -> AnalysisResult {
    match panic::catch_unwind(AssertUnwindSafe(report)) {
        Err(_) => AnalysisResult { verdict: None, rule: "panic", reported: "the analysis panicked".to_owned() },
        Ok(report) => {
            AnalysisResult { verdict: Some(report.verdict), rule: first_rule(&report), reported: describe(&report) }
        }
    }
}

fn report(case: &Case, tree: Tree, version: Version) -> Report {
    let restrictor = if case.unrestricted { Restrictor::None } else { Restrictor::RootOnly };
    let options = Options { version, restrictor, ..Options::default() };
    let build = case.build_at(tree.base());
    let root = TreePath::from(build.strip_prefix(tree.base()).unwrap_or(&build));
    analyse(&tree, &root, &options)
}

fn first_rule(report: &Report) -> &'static str {
    let first = report.findings.iter().find(|finding| finding.location.first && report.reasons.is_empty());
    first.map_or("", |finding| finding.rule)
}

fn describe(report: &Report) -> String {
    let findings = report.findings.iter().filter(|finding| finding.location.refused).map(|finding| finding.paragraph());
    let reasons = report.reasons.iter().map(|reason| format!("unknown: {reason}"));
    findings.chain(reasons).collect::<Vec<_>>().join("\n")
}
