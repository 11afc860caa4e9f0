//! Mending a kustomization file without a person, every other byte left as it was.

use serde_json::Value;

use super::finding::Fix;
use crate::admission::FieldPath;
use crate::yaml::{self, Document, Limits, Place};

/// The text of a file with `fix` applied; `None` where it does not fit the text, or would change anything else.
pub fn apply(text: &str, fix: &Fix) -> Option<String> {
    let Fix::MoveEntry { from, index, to } = fix;
    let document = yaml::first(text, &Limits::default()).ok()??;
    let item = document.place(&FieldPath::of([from.as_str()]).index(*index))?;
    let mended = if is_block_item(text, item) {
        move_line(text, &document, item, to)?
    } else {
        let without = remove_from_flow(text, &document, from, *index)?;
        add(&without, text.get(item.start..item.end)?, to)?
    };
    moves_exactly(&document.value, &mended, fix).then_some(mended)
}

/// Whether an entry has its lines to itself: `- entry`, and perhaps a comment.
fn is_block_item(text: &str, item: Place) -> bool {
    let line = line_start(text, item.start);
    text.get(line..item.start).is_some_and(|before| before.trim_start().trim_end_matches(' ') == "-")
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

/// The end of the line that `at` is in, its line break included.
fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end + 1)
}

/// Takes the lines of an entry out and puts them behind the last entry of the other list, with that list's indent.
fn move_line(text: &str, document: &Document, item: Place, to: &str) -> Option<String> {
    let (start, end) = (line_start(text, item.start), line_end(text, item.end));
    let lines = text.get(start..end)?;
    let last = last_item(document, to).filter(|last| is_block_item(text, *last));
    let Some(last) = last else {
        let without = format!("{}{}", text.get(..start)?, text.get(end..)?);
        return add(&without, lines.trim().strip_prefix('-')?.trim_start(), to);
    };
    let indent = text.get(line_start(text, last.start)..last.start)?.split('-').next()?;
    let moved = format!("{indent}{}", lines.trim_start());
    let at = line_end(text, last.end);
    let parts = if at <= start {
        [text.get(..at)?, &terminated(text.get(..at)?, &moved), text.get(at..start)?, text.get(end..)?]
    } else {
        [text.get(..start)?, text.get(end..at)?, &terminated(text.get(..at)?, &moved), text.get(at..)?]
    };
    Some(parts.concat())
}

/// A line that begins on a line of its own after `before`, and ends with a line break.
fn terminated(before: &str, line: &str) -> String {
    let begin = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let end = if line.ends_with('\n') { "" } else { "\n" };
    format!("{begin}{line}{end}")
}

fn last_item(document: &Document, list: &str) -> Option<Place> {
    let items = document.value.get(list)?.as_array()?;
    document.place(&FieldPath::of([list]).index(items.len().checked_sub(1)?))
}

/// Takes an entry out of `[a, b]`, with one of its commas.
fn remove_from_flow(text: &str, document: &Document, list: &str, index: usize) -> Option<String> {
    let place = |index: usize| document.place(&FieldPath::of([list]).index(index));
    let item = place(index)?;
    let (start, end) = match (index.checked_sub(1).and_then(place), place(index + 1)) {
        (_, Some(next)) => (item.start, next.start),
        (Some(before), None) => (before.end, item.end),
        (None, None) => (item.start, item.end),
    };
    Some(format!("{}{}", text.get(..start)?, text.get(end..)?))
}

/// Adds an entry, spelled as `entry`, at the end of a list, which is made at the end of the file where it is missing.
fn add(text: &str, entry: &str, list: &str) -> Option<String> {
    let document = yaml::first(text, &Limits::default()).ok()?;
    let last = document.as_ref().and_then(|document| last_item(document, list));
    match last {
        Some(last) if is_block_item(text, last) => {
            let line = line_start(text, last.start);
            let indent = text.get(line..last.start)?;
            let at = line_end(text, last.end);
            let added = terminated(text.get(..at)?, &format!("{indent}{entry}"));
            Some(format!("{}{added}{}", text.get(..at)?, text.get(at..)?))
        }
        Some(last) => Some(format!("{}, {entry}{}", text.get(..last.end)?, text.get(last.end..)?)),
        None if document.as_ref().is_some_and(|document| document.value.get(list).is_some()) => None,
        None => Some(format!("{text}{}", terminated(text, &format!("{list}:\n- {entry}")))),
    }
}

/// Whether the mended text says the same as before but for the one entry.
fn moves_exactly(before: &Value, mended: &str, fix: &Fix) -> bool {
    let Fix::MoveEntry { from, index, to } = fix;
    let Ok(Some(after)) = yaml::first(mended, &Limits::default()) else { return false };
    let mut expected = before.clone();
    let Some(list) = expected.get_mut(from).and_then(Value::as_array_mut) else { return false };
    let entry = list.remove(*index);
    match expected.get_mut(to).and_then(Value::as_array_mut) {
        Some(list) => list.push(entry),
        None => expected[to.as_str()] = Value::Array(vec![entry]),
    }
    normal(expected) == normal(after.value)
}

/// An empty list and one that says nothing are the same.
fn normal(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mend(text: &str, from: &str, index: usize, to: &str) -> Option<String> {
        apply(text, &Fix::MoveEntry { from: from.into(), index, to: to.into() })
    }

    #[test]
    fn an_entry_takes_its_comment_along() {
        let text = "# top\nresources:\n  - a\n  - ../ldap  # who knows\n  - b\n\ncomponents:\n- ../x\nnamePrefix: p-\n";
        let mended = "# top\nresources:\n  - a\n  - b\n\ncomponents:\n- ../x\n- ../ldap  # who knows\nnamePrefix: p-\n";
        assert_eq!(mend(text, "resources", 1, "components").as_deref(), Some(mended));
    }

    #[test]
    fn a_list_is_made_where_there_is_none() {
        assert_eq!(
            mend("resources:\n- a\n- \"../ldap\"", "resources", 1, "components").as_deref(),
            Some("resources:\n- a\ncomponents:\n- \"../ldap\"\n")
        );
    }

    #[test]
    fn lists_in_brackets_keep_their_brackets() {
        assert_eq!(
            mend("resources: [a, ../ldap]\ncomponents: [../x]\n", "resources", 1, "components").as_deref(),
            Some("resources: [a]\ncomponents: [../x, ../ldap]\n")
        );
        assert_eq!(
            mend("components: [../app, ../x]\nresources:\n- a\n", "components", 0, "resources").as_deref(),
            Some("components: [../x]\nresources:\n- a\n- ../app\n")
        );
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        assert_eq!(mend("resources: a\n", "resources", 0, "components"), None);
        assert_eq!(mend("resources: []\n", "resources", 0, "components"), None);
        assert_eq!(mend("x: &x ../l\nresources: [*x]\ncomponents: {}\n", "resources", 0, "components"), None);
    }
}
