//! Formats the table of results that `portcullis check` prints below the findings. Each row is about one system that
//! builds folders with kustomize, such as Flux. The row counts these folders by result, such as `accepted`.

use std::collections::BTreeMap;

use super::words::plural;
use super::{Report, Root};
use crate::admission::Level;

/// Maximum number of reasons for unknown results that are shown, so that the output stays short.
const MAX_REASONS: usize = 5;

/// The value of the column `builder` in the result table of `portcullis check`, for unused kustomizations. No Flux
/// Kustomization or similar object builds them.
const UNUSED: &str = "(none)";

/// Returns the table that `portcullis check` prints after the findings. The table shows how many kustomizations are
/// accepted, rejected or unknown, and how many warnings they have. The table is omitted if there are fewer than two
/// kustomizations, or if all used kustomizations are accepted without warnings. A kustomization is used if a Flux
/// Kustomization or similar object builds it.
///
/// With `--verbose`, other lines come before the table. They name the Flux Kustomizations whose files are not in the
/// repository, and the scripts from which kustomize options such as `--enable-helm` were taken.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    if report.is_verbose {
        for (owner, source) in report.elsewhere.iter().chain(&report.composed) {
            text.push_str(&format!("{owner} builds from {source}\n"));
        }
        report.assumptions.iter().for_each(|assumption| text.push_str(&format!("{assumption}\n")));
    }
    let is_healthy = report.roots.iter().all(|root| root.is_unused || root.verdict == "accept" && warnings(root) == 0);
    if report.roots.len() > 1 && !is_healthy {
        text.push_str(&rows(report));
        text.push_str(&reasons(report));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn rows(report: &Report) -> String {
    let mut builders: BTreeMap<&str, Vec<&Root>> = BTreeMap::new();
    for root in &report.roots {
        builders.entry(if root.is_unused { UNUSED } else { root.profile }).or_default().push(root);
    }
    let mut text = String::from("builder  roots  accepted  rejected  unknown  warnings\n");
    for (builder, roots) in builders {
        let count = |verdict: &str| roots.iter().filter(|root| root.verdict == verdict).count();
        let (accepted, rejected, unknown) = (count("accept"), count("reject"), count("unknown"));
        let warnings: usize = roots.iter().map(|root| warnings(root)).sum();
        let all = roots.len();
        text.push_str(&format!("{builder:<7}  {all:>5}  {accepted:>8}  {rejected:>8}  {unknown:>7}  {warnings:>8}\n"));
    }
    text
}

fn warnings(root: &Root) -> usize {
    root.findings.iter().filter(|located| located.level == Level::Warn).count()
}

/// Returns lines with the reasons why checks of kustomize roots have the result `unknown`, the most frequent reasons
/// first. A kustomize root is a folder that kustomize builds.
fn reasons(report: &Report) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for root in report.roots.iter().filter(|root| root.verdict == "unknown" && !root.is_unused) {
        for reason in &root.reasons {
            // Drops the position, `file:line: `.
            *counts.entry(reason.split_once(": ").map_or(&**reason, |(_, reason)| reason)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counts.iter().take(MAX_REASONS).map(|(reason, count)| format!("unknown: {count} × {reason}\n"));
    let rest = match counts.len().saturating_sub(MAX_REASONS) {
        0 => String::new(),
        rest => format!("unknown: {}\n", plural(rest, "other reason")),
    };
    shown.collect::<String>() + &rest
}
