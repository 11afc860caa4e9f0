//! Formats the plan of `portcullis diff` as Markdown for the comment of a pull request. The plan contains the changes
//! of all kustomize roots.

use std::fmt::Write as _;

use super::text::{note, owners, subject, summary};
use super::unified;
use crate::kustomize::changes::{Plan, RootChange};

/// Maximum length of the Markdown text, in characters. GitHub accepts comments of up to 65,536.
const MAX_LENGTH: usize = 60_000;
/// Number of characters reserved for the last line of the Markdown text. This line says how many changed kustomize
/// roots were omitted because the text would be too long.
const ROOM: usize = 200;

/// Formats the changes of all kustomize roots as Markdown. The text has a summary, and then a collapsible section for
/// each changed root. Sections that do not fit are omitted and counted. `broken` has a sentence for each limit that the
/// changes exceed.
pub(super) fn render(plan: &Plan, broken: &[String]) -> String {
    let mut out = format!("**{}**\n", summary(plan));
    if !broken.is_empty() {
        out.push('\n');
    }
    for sentence in broken {
        let _ = writeln!(out, "- :x: {sentence}");
    }
    let mut length = out.chars().count();
    let changed: Vec<_> = plan.roots.iter().filter(|root| root.is_changed()).collect();
    let mut left_out = 0;
    for root in &changed {
        let whole = part(root, true);
        let fits = |text: &str| length + text.chars().count() + ROOM <= MAX_LENGTH;
        let text = if fits(&whole) { whole } else { part(root, false) };
        if fits(&text) {
            length += text.chars().count();
            out.push_str(&text);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = writeln!(out, "\n{left_out} of {} roots are left out: the text would be too long.", changed.len());
    }
    out
}

/// Returns the Markdown section about one kustomize root, a folder that kustomize builds. The section lists the changed
/// objects of this folder. If `with_differences` is true, it also shows the changed lines of these objects.
fn part(root: &RootChange, with_differences: bool) -> String {
    let count = root.objects.len();
    let objects = if count == 1 { "object" } else { "objects" };
    let (name, owners, note) = (root.root.shown(), owners(root), note(&root.state));
    let mut out = format!("\n<details><summary><code>{name}</code>{owners}{note}: {count} {objects}</summary>\n\n");
    if let Some(cause) = root.state.cause() {
        let _ = writeln!(out, "{} (`{}:{}`)\n", cause.message, cause.site.file, cause.site.place.line);
    }
    if count > 0 {
        out.push_str("| action | object |\n|---|---|\n");
    }
    for object in &root.objects {
        let _ = writeln!(out, "| {} | `{}` |", object.action.as_str(), subject(object));
    }
    let differences: String = root.objects.iter().map(|object| unified::object(root.root.shown(), object)).collect();
    if with_differences && !differences.is_empty() {
        let fence = fence(&differences);
        let _ = write!(out, "\n{fence}diff\n{differences}{fence}\n");
    } else if !differences.is_empty() {
        out.push_str("\nThe differences are left out: the text would be too long.\n");
    }
    out.push_str("\n</details>\n");
    out
}

/// Returns a code fence that is longer than any run of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_any_in_the_text() {
        assert_eq!(fence("a"), "```");
        assert_eq!(fence("```` b"), "`````");
    }
}
