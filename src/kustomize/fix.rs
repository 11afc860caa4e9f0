//! Applies fixes to the text of a kustomization file, and leaves the rest of the text unchanged.

use std::cmp::Reverse;

use serde_json::Value;

use super::finding::Fix;
use crate::admission::FieldPath;
use crate::yaml::{self, Document, Limits, Place};

/// Applies fixes to the text of a kustomization file, and returns the new text. Returns `None` if a fix cannot be
/// applied, for example because the entry to move does not exist. Also returns `None` if other values in the file would
/// change.
pub fn fix(text: &str, fixes: &[Fix]) -> Option<String> {
    let mut fixes: Vec<_> = fixes.iter().collect();
    // Entries at the end of a list are moved first, so that the indexes of earlier entries stay valid.
    fixes.sort_by_key(|fix| match fix {
        Fix::MoveEntry { index, .. } => Reverse(Some(*index)),
        Fix::AddEntry { .. } => Reverse(None),
    });
    fixes.dedup();
    let mut text = text.to_owned();
    for fix in fixes {
        let fixed = Lists::of(&text)?.fixed(fix)?;
        text = has_only_changed(&text, &fixed, fix).then_some(fixed)?;
    }
    Some(text)
}

/// A kustomization file, as text and as a parsed document. The document contains the positions of the lists in the
/// file, such as `resources`.
struct Lists<'t> {
    text: &'t str,
    document: Document,
}

/// A replacement in a text: start and end of the replaced bytes, and the new text.
type Edit = (usize, usize, String);

/// A new entry for a list in a kustomization file.
struct Insertion<'t> {
    /// The YAML text of the new list entry, possibly with a comment after it.
    entry: &'t str,
    /// The YAML text before the new list entry: indentation and `- `. Used only if the list is empty or does not exist.
    dash: &'t str,
    /// The byte offset at which a new list is inserted, if the file does not contain the list of the new entry yet. The
    /// offset is the end of the file, or the end of the list from which the entry is moved.
    end: usize,
}

impl<'t> Lists<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let document = yaml::first(text, &Limits::default()).ok()??;
        Some(Self { text, document })
    }

    fn fixed(&self, fix: &Fix) -> Option<String> {
        match fix {
            Fix::MoveEntry { from, index, to } => self.moved(from, *index, to),
            Fix::AddEntry { list, entry } => self.added(list, entry),
        }
    }

    fn added(&self, list: &str, entry: &str) -> Option<String> {
        let quoted = if is_plain(entry) { entry.to_owned() } else { Value::from(entry).to_string() };
        let insertion = Insertion { entry: &quoted, dash: "  - ", end: self.text.len() };
        self.edited(vec![self.insertion(list, &insertion)?])
    }

    fn moved(&self, from: &str, index: usize, to: &str) -> Option<String> {
        let list_end = self.document.place(&path(from))?.end;
        let dash = match self.items(from).first() {
            Some(first) if !self.is_flow(from) => &self.text[self.line_start(first.start)..first.start],
            _ => "  - ",
        };
        let end = self.line_end(list_end.saturating_sub(1));
        let removal = self.removal(from, index)?;
        let mut insertion = self.insertion(to, &Insertion { entry: self.entry_text(from, index)?, dash, end })?;
        if removal.1 == insertion.0 && self.line_start(removal.0) == removal.0 {
            // the insertion directly follows the removed lines, so it needs no newline before it
            insertion.2 = insertion.2.trim_start_matches(['\r', '\n']).to_owned();
        }
        self.edited(vec![removal, insertion])
    }

    fn edited(&self, mut edits: Vec<Edit>) -> Option<String> {
        edits.sort_by_key(|(start, ..)| *start);
        let mut edited = String::with_capacity(self.text.len() + 32);
        let mut at = 0;
        for (start, end, new) in edits {
            edited.push_str(self.text.get(at..start)?);
            edited.push_str(&new);
            at = end.max(at);
        }
        edited.push_str(self.text.get(at..)?);
        Some(edited)
    }

    fn items(&self, list: &str) -> Vec<Place> {
        let count = self.document.value[list].as_array().map_or(0, Vec::len);
        (0..count).filter_map(|at| self.document.place(&path(list).index(at))).collect()
    }

    fn is_flow(&self, list: &str) -> bool {
        self.document.place(&path(list)).is_some_and(|place| self.text[place.start..].starts_with('['))
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the offset of the first byte after the line that contains the offset `at`. The newline is a part of the
    /// line.
    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// Returns the YAML text of the list entry at `index`. In a block list, the text includes the comment on the last
    /// line of the entry.
    fn entry_text(&self, list: &str, index: usize) -> Option<&'t str> {
        let item = *self.items(list).get(index)?;
        let end = if self.is_flow(list) { item.end } else { self.line_end(item.end.saturating_sub(1)) };
        Some(self.text[item.start..end].trim_end())
    }

    fn removal(&self, from: &str, index: usize) -> Option<Edit> {
        let items = self.items(from);
        let item = *items.get(index)?;
        let list = self.document.place(&path(from))?;
        let key = self.document.key_place(&path(from))?;
        let edit = match (self.is_flow(from), items.len()) {
            (_, 1) => (self.line_start(key.start), self.line_end(list.end.saturating_sub(1))),
            (false, _) => (self.line_start(item.start), self.line_end(item.end.saturating_sub(1))),
            (true, _) => match items.get(index + 1) {
                Some(next) => (item.start, next.start),
                None => (items.get(index.checked_sub(1)?)?.end, item.end),
            },
        };
        Some((edit.0, edit.1, String::new()))
    }

    fn insertion(&self, to: &str, new: &Insertion<'_>) -> Option<Edit> {
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let items = self.items(to);
        if self.is_flow(to) {
            let place = self.document.place(&path(to))?;
            let entry = new.entry.split(" #").next().unwrap_or(new.entry).trim_end();
            let entry = if items.is_empty() { entry.to_owned() } else { format!(", {entry}") };
            let at = items.last().map_or(place.start + 1, |last| last.end);
            return Some((at, at, entry));
        }
        if let Some(last) = items.last() {
            let at = self.line_end(last.end.saturating_sub(1));
            let dash = &self.text[self.line_start(last.start)..last.start];
            return Some((at, at, self.on_a_line(at, &format!("{dash}{}", new.entry), newline)));
        }
        let line = format!("{}{}", new.dash, new.entry);
        let at = match self.document.value.get(to) {
            Some(Value::Null) => self.line_end(self.document.key_place(&path(to))?.end),
            _ => return Some((new.end, new.end, self.on_a_line(new.end, &format!("{to}:{newline}{line}"), newline))),
        };
        Some((at, at, self.on_a_line(at, &line, newline)))
    }

    fn on_a_line(&self, at: usize, line: &str, newline: &str) -> String {
        let begins = at == 0 || self.text[..at].ends_with('\n');
        if begins { format!("{line}{newline}") } else { format!("{newline}{line}") }
    }
}

fn path(list: &str) -> FieldPath {
    FieldPath::of([list])
}

/// Returns whether a new list entry, such as a file path, can be written in YAML without quotes. Returns `true` only if
/// the entry begins with a letter, contains no special characters, and is a string in YAML.
fn is_plain(entry: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    entry.starts_with(|c: char| c.is_ascii_alphabetic()) && entry.chars().all(is_safe) && yaml::is_plain_string(entry)
}

/// Returns whether `fix` is the only difference between the parsed contents of `before` and `after`.
fn has_only_changed(before: &str, after: &str, fix: &Fix) -> bool {
    let read = |text| yaml::first(text, &Limits::default()).ok().flatten().map(|document| document.value);
    let (Some(mut before), Some(after)) = (read(before), read(after)) else { return false };
    apply(&mut before, fix).is_some() && before == after
}

/// Applies a fix to the parsed content of a file. Returns `None` if the content is not a mapping, if the entry to move
/// does not exist, or if the target field is not a list.
fn apply(content: &mut Value, fix: &Fix) -> Option<()> {
    let members = content.as_object_mut()?;
    let (to, entry) = match fix {
        Fix::AddEntry { list, entry } => (list, Value::from(entry.as_str())),
        Fix::MoveEntry { from, index, to } => {
            let source = members.get_mut(from)?.as_array_mut().filter(|items| *index < items.len())?;
            let entry = source.remove(*index);
            if source.is_empty() {
                members.remove(from);
            }
            (to, entry)
        }
    };
    let target = members.entry(to.as_str()).or_insert(Value::Null);
    if target.is_null() {
        *target = Value::Array(Vec::new());
    }
    target.as_array_mut()?.push(entry);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(text: &str, from: &str, index: usize, to: &str) -> Option<String> {
        fix(text, &[Fix::MoveEntry { from: from.into(), index, to: to.into() }])
    }

    #[test]
    fn an_entry_moves_with_its_comment() {
        let text = "# ours\nresources:\n  - ../base # kept\n  - ../ldap   # the directory\n\nnamePrefix: x-\n";
        let fixed =
            "# ours\nresources:\n  - ../base # kept\ncomponents:\n  - ../ldap   # the directory\n\nnamePrefix: x-\n";
        assert_eq!(moved(text, "resources", 1, "components").as_deref(), Some(fixed));
    }

    #[test]
    fn a_list_that_is_there_is_added_to_in_its_own_way() {
        let text = "components:\n- ../a\nresources: [../b, \"../c\"]\n";
        assert_eq!(
            moved(text, "resources", 1, "components").as_deref(),
            Some("components:\n- ../a\n- \"../c\"\nresources: [../b]\n")
        );
        let text = "components: [../a]\r\nresources:\r\n  - ../b\r\n  - ../c\r\n";
        assert_eq!(
            moved(text, "resources", 0, "components").as_deref(),
            Some("components: [../a, ../b]\r\nresources:\r\n  - ../c\r\n")
        );
    }

    #[test]
    fn a_list_that_becomes_empty_goes() {
        let text = "components:\n  - ../base";
        assert_eq!(moved(text, "components", 0, "resources").as_deref(), Some("resources:\n  - ../base"));
    }

    #[test]
    fn adds_an_entry_in_the_style_of_the_list() {
        let added = |text, entry: &str| fix(text, &[Fix::AddEntry { list: "resources".into(), entry: entry.into() }]);
        for (text, entry, fixed) in [
            (
                "resources:\n- a.yaml # the first\nnamePrefix: x-\n",
                "b.yaml",
                "resources:\n- a.yaml # the first\n- b.yaml\nnamePrefix: x-\n",
            ),
            ("resources: [a.yaml]\n", "b.yaml", "resources: [a.yaml, b.yaml]\n"),
            ("resources:\n# none yet\n", "b.yaml", "resources:\n  - b.yaml\n# none yet\n"),
            ("namePrefix: x-", "b.yaml", "namePrefix: x-\nresources:\n  - b.yaml"),
            ("resources:\r\n  - a.yaml\r\n", "@b.yaml", "resources:\r\n  - a.yaml\r\n  - \"@b.yaml\"\r\n"),
        ] {
            assert_eq!(added(text, entry).as_deref(), Some(fixed));
        }
        assert_eq!(added("resources: {a: b}\n", "b.yaml"), None);
        assert_eq!(added("x: &l [a]\nresources: *l\n", "b.yaml"), None);
    }

    #[test]
    fn what_cannot_be_moved_alone_is_left() {
        assert_eq!(moved("{resources: [a, b], components: *x}", "resources", 0, "components"), None);
        assert_eq!(moved("resources: &l [a]\ncomponents: *l\n", "resources", 0, "components"), None);
    }
}
