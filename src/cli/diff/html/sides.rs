//! Formats two texts side by side as an HTML table.

use std::fmt::Write as _;
use std::ops::Range;

use similar::{DiffOp, TextDiff};

use super::super::super::page::escape;

/// Number of unchanged lines that are shown before and after a difference.
const CONTEXT: usize = 3;

/// Writes the differences of two texts as an HTML table. Writes nothing if the texts are equal.
pub(super) fn write(out: &mut String, before: &str, after: &str) {
    let difference = TextDiff::from_lines(before, after);
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let groups = difference.grouped_ops(CONTEXT);
    if groups.is_empty() {
        return;
    }
    out.push_str("<table class=\"sides\">\n");
    for group in groups {
        out.push_str("<tbody>\n");
        for change in group {
            rows(out, change, (&before, &after));
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table>\n");
}

/// Writes the table rows of one difference, or of lines that are equal. Removed and added lines are side by side.
fn rows(out: &mut String, change: DiffOp, (before, after): (&[&str], &[&str])) {
    let is_equal = matches!(change, DiffOp::Equal { .. });
    let (old, new) = (change.old_range(), change.new_range());
    for row in 0..old.len().max(new.len()) {
        out.push_str("<tr>");
        cell(out, before, &old, row, if is_equal { "" } else { "removed" });
        cell(out, after, &new, row, if is_equal { "" } else { "added" });
        out.push_str("</tr>\n");
    }
}

fn cell(out: &mut String, lines: &[&str], range: &Range<usize>, row: usize, class: &str) {
    let at = range.start + row;
    match lines.get(at).filter(|_| range.contains(&at)) {
        Some(line) => {
            let _ = write!(out, "<th>{}</th><td class=\"{class}\">{}</td>", at + 1, escape(line));
        }
        None => out.push_str("<th></th><td class=\"none\"></td>"),
    }
}
