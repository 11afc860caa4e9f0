//! The reasons why EnvironmentConfigs are selected or not.

use std::sync::Arc;

use super::label;
use crate::catalog::Stored;
use crate::crossplane::environment::{EnvironmentSource, Mode, Profile, SourceOutcome, SourceType};

/// Maximum number of EnvironmentConfigs that an explanation lists as not selected, so that the explanation stays short.
/// If there are more, those with the most labels that match the selector are listed.
const MAX_OTHERS: usize = 20;

/// Returns a short description of `source`, such as `Reference example` or `Selector stage=prod (Single)`. `source` is
/// an entry of `environmentConfigs`. `sourced` is the result of this entry. It contains the labels that
/// EnvironmentConfigs must have to be selected.
pub(super) fn wanted(source: &EnvironmentSource, sourced: &SourceOutcome) -> String {
    let at = sourced.to_field_path.as_ref().map(|path| format!(", at {path}")).unwrap_or_default();
    match (source.kind(), &source.selector) {
        (SourceType::Selector, Some(selector)) => {
            let labels: Vec<_> = sourced.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let mode = match selector.effective_mode() {
                Mode::Multiple => {
                    let bound = |name: &str, bound: Option<u64>| bound.map(|bound| format!(" {name} {bound}"));
                    let least = bound("at least", selector.min_match).unwrap_or_default();
                    let most = bound("at most", selector.max_match).unwrap_or_default();
                    format!("Multiple{least}{most}, sorted by {}", selector.sort_path(Profile::Function))
                }
                other => {
                    if other.is_unset() {
                        "Single".to_owned()
                    } else {
                        other.as_str().to_owned()
                    }
                }
            };
            format!("Selector {} ({mode}){at}", if labels.is_empty() { "-".to_owned() } else { labels.join(", ") })
        }
        _ => {
            let name = source.reference.as_ref().map(|reference| reference.name.as_str()).unwrap_or_default();
            format!("Reference {name}{at}")
        }
    }
}

/// Returns the names of EnvironmentConfigs in `all` that a selector does not select, each with the reason. `sourced` is
/// the result of the selector. EnvironmentConfigs with the fewest wrong labels come first. Returns at most
/// [`MAX_OTHERS`] names. Returns no names if the selector requires no labels.
pub(super) fn others(sourced: &SourceOutcome, all: &[Arc<Stored>]) -> Vec<(String, String)> {
    if sourced.labels.is_empty() {
        return Vec::new();
    }
    let is_taken = |stored: &Arc<Stored>| sourced.selected.iter().any(|taken| taken.name() == stored.name());
    let mut others: Vec<(usize, String, String)> = all
        .iter()
        .filter(|stored| !is_taken(stored))
        .map(|stored| {
            let wrong = wrong_labels(sourced, stored);
            let reason = match wrong.as_slice() {
                [] if sourced.error.is_some() => "it matches too".to_owned(),
                [] => "it matches, but is beyond maxMatch".to_owned(),
                wrong => wrong.join(", "),
            };
            (wrong.len(), stored.name().to_owned(), reason)
        })
        .collect();
    others.sort();
    others.into_iter().take(MAX_OTHERS).map(|(_, name, reason)| (name, reason)).collect()
}

fn wrong_labels(sourced: &SourceOutcome, stored: &Stored) -> Vec<String> {
    let wrong = |(key, value): (&String, &String)| match label(stored.value(), key) {
        Some(found) if found == value => None,
        Some(found) => Some(format!("its label {key} is {found:?}")),
        None => Some(format!("it has no label {key}")),
    };
    sourced.labels.iter().filter_map(wrong).collect()
}
