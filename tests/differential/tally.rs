//! Counts the trees of the differential test. The trees are grouped by the result of kustomize, and by the verdict of
//! Portcullis's analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use portcullis::kustomize::Verdict;

use crate::class::{self, Layer};
use crate::engine::AnalysisResult;
use crate::oracle::Answer;

/// Maximum number of characters that are printed of an unclassified error of kustomize. The last characters are
/// printed, because they contain the reason.
const SHOWN: usize = 160;

/// The number of trees for each pair of a kustomize result and a verdict of Portcullis's analysis.
#[derive(Debug, Default)]
pub struct Tally {
    rows: BTreeMap<(Option<Layer>, &'static str), Counts>,
    /// The errors of kustomize that do not belong to a known class. Contains only the last [`SHOWN`] characters of each
    /// error.
    unclassified: BTreeSet<String>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    accept: usize,
    reject: usize,
    unknown: usize,
}

impl Tally {
    /// Counts one tree. `analysis` is the result of Portcullis's analysis of the tree, and `answer` is the result of
    /// kustomize.
    pub fn add(&mut self, analysis: &AnalysisResult, answer: &Answer) {
        let row = match answer {
            Answer::Builds => (None, "builds"),
            Answer::TimedOut => (None, "does not end"),
            Answer::Fails(error) => {
                let (class, layer) = class::of(error);
                if layer == Layer::Unclassified {
                    self.unclassified.insert(last_characters(error));
                }
                (Some(layer), class)
            }
        };
        self.rows.entry(row).or_default().add(analysis);
    }
}

fn last_characters(error: &str) -> String {
    let characters: Vec<char> = error.trim_end().chars().collect();
    characters[characters.len().saturating_sub(SHOWN)..].iter().collect()
}

impl Counts {
    fn add(&mut self, analysis: &AnalysisResult) {
        match analysis.verdict {
            Some(Verdict::Accept) => self.accept += 1,
            Some(Verdict::Reject) => self.reject += 1,
            Some(Verdict::Unknown) | None => self.unknown += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unclassified.iter().try_for_each(|error| writeln!(f, "an error that has no class: …{error}"))?;
        writeln!(f, "{:<60} {:>8} {:>8} {:>8}", "kustomize", "accept", "reject", "unknown")?;
        let mut total = Counts::default();
        for ((layer, class), Counts { accept, reject, unknown }) in &self.rows {
            let label = layer.map_or_else(|| (*class).to_owned(), |layer| format!("{layer:?}: {class}"));
            writeln!(f, "{label:<60} {accept:>8} {reject:>8} {unknown:>8}")?;
            total.accept += accept;
            total.reject += reject;
            total.unknown += unknown;
        }
        write!(f, "{:<60} {:>8} {:>8} {:>8}", "all", total.accept, total.reject, total.unknown)
    }
}
