//! Moves an entry to the list where it belongs, and leaves all other bytes unchanged.

use serde_json::Value;

use super::finding::Fix;
use crate::admission::FieldPath;
use crate::yaml::{self, Document, Limits, Place};

/// Returns the text of a kustomization file with the fixes applied; `None` where one of them cannot be applied without
/// changing something else.
pub fn fix(text: &str, fixes: &[Fix]) -> Option<String> {
    let mut moves: Vec<_> = fixes
        .iter()
        .map(|fix| match fix {
            Fix::MoveEntry { from, index, to } => (from, *index, to),
        })
        .collect();
    // From the end, so that the indexes of earlier entries stay valid.
    moves.sort_by_key(|(_, index, _)| std::cmp::Reverse(*index));
    moves.dedup();
    let mut text = text.to_owned();
    for (from, index, to) in moves {
        let moved = Move::new(&text, from, index, to)?.apply()?;
        text = is_what_was_meant(&text, &moved, from, index, to).then_some(moved)?;
    }
    Some(text)
}

struct Move<'t> {
    text: &'t str,
    document: Document,
    from: &'t str,
    index: usize,
    to: &'t str,
}

/// A piece of a text to be replaced.
type Edit = (usize, usize, String);

impl<'t> Move<'t> {
    fn new(text: &'t str, from: &'t str, index: usize, to: &'t str) -> Option<Self> {
        let document = yaml::first(text, &Limits::default()).ok()??;
        Some(Self { text, document, from, index, to })
    }

    fn apply(&self) -> Option<String> {
        let (removal, mut insertion) = (self.removal()?, self.insertion()?);
        if removal.1 == insertion.0 && self.line_start(removal.0) == removal.0 {
            // the line before the new one goes, and with it the need for a newline
            insertion.2 = insertion.2.trim_start_matches(['\r', '\n']).to_owned();
        }
        let mut edits = vec![removal, insertion];
        edits.sort_by_key(|(start, ..)| *start);
        let mut moved = String::with_capacity(self.text.len() + 32);
        let mut at = 0;
        for (start, end, new) in edits {
            moved.push_str(self.text.get(at..start)?);
            moved.push_str(&new);
            at = end.max(at);
        }
        moved.push_str(self.text.get(at..)?);
        Some(moved)
    }

    fn list(&self, name: &str) -> FieldPath {
        FieldPath::of([name])
    }

    fn items(&self, name: &str) -> Vec<Place> {
        let count = self.document.value[name].as_array().map_or(0, Vec::len);
        (0..count).filter_map(|at| self.document.place(&self.list(name).index(at))).collect()
    }

    fn is_flow(&self, name: &str) -> bool {
        self.document.place(&self.list(name)).is_some_and(|place| self.text[place.start..].starts_with('['))
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the offset after the end of the line, including its newline.
    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// Returns the text of the entry, including a comment after it if it has its own line.
    fn entry_text(&self) -> Option<&'t str> {
        let item = *self.items(self.from).get(self.index)?;
        let end = if self.is_flow(self.from) { item.end } else { self.line_end(item.end.saturating_sub(1)) };
        Some(self.text[item.start..end].trim_end())
    }

    fn removal(&self) -> Option<Edit> {
        let items = self.items(self.from);
        let item = *items.get(self.index)?;
        let list = self.document.place(&self.list(self.from))?;
        let key = self.document.key_place(&self.list(self.from))?;
        let edit = match (self.is_flow(self.from), items.len()) {
            (_, 1) => (self.line_start(key.start), self.line_end(list.end.saturating_sub(1))),
            (false, _) => (self.line_start(item.start), self.line_end(item.end.saturating_sub(1))),
            (true, _) => match items.get(self.index + 1) {
                Some(next) => (item.start, next.start),
                None => (items.get(self.index.checked_sub(1)?)?.end, item.end),
            },
        };
        Some((edit.0, edit.1, String::new()))
    }

    fn insertion(&self) -> Option<Edit> {
        let entry_text = self.entry_text()?;
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let target = &self.document.value[self.to];
        let items = self.items(self.to);
        if self.is_flow(self.to) {
            let place = self.document.place(&self.list(self.to))?;
            let entry = entry_text.split(" #").next().unwrap_or(entry_text).trim_end();
            let entry = if items.is_empty() { entry.to_owned() } else { format!(", {entry}") };
            let at = items.last().map_or(place.start + 1, |last| last.end);
            return Some((at, at, entry));
        }
        if let Some(last) = items.last() {
            let at = self.line_end(last.end.saturating_sub(1));
            let dash = &self.text[self.line_start(last.start)..last.start];
            return Some((at, at, self.on_a_line(at, &format!("{dash}{entry_text}"), newline)));
        }
        let new_entry = format!("{}{entry_text}", self.dash());
        if target.is_null() && self.document.value.get(self.to).is_some() {
            let at = self.line_end(self.document.key_place(&self.list(self.to))?.end);
            return Some((at, at, self.on_a_line(at, &new_entry, newline)));
        }
        let at = self.line_end(self.document.place(&self.list(self.from))?.end.saturating_sub(1));
        Some((at, at, self.on_a_line(at, &format!("{}:{newline}{new_entry}", self.to), newline)))
    }

    /// Returns the text before each entry in the list of the entry.
    fn dash(&self) -> &'t str {
        match self.items(self.from).first() {
            Some(first) if !self.is_flow(self.from) => &self.text[self.line_start(first.start)..first.start],
            _ => "  - ",
        }
    }

    fn on_a_line(&self, at: usize, line: &str, newline: &str) -> String {
        let begins = at == 0 || self.text[..at].ends_with('\n');
        if begins { format!("{line}{newline}") } else { format!("{newline}{line}") }
    }
}

/// Returns whether the entry is moved, and nothing else is changed.
fn is_what_was_meant(before: &str, after: &str, from: &str, index: usize, to: &str) -> bool {
    let read = |text| yaml::first(text, &Limits::default()).ok().flatten().map(|document| document.value);
    let (Some(mut before), Some(after)) = (read(before), read(after)) else { return false };
    let Some(members) = before.as_object_mut() else { return false };
    let Some(source) = members.get_mut(from).and_then(Value::as_array_mut).filter(|items| index < items.len()) else {
        return false;
    };
    let entry = source.remove(index);
    if source.is_empty() {
        members.remove(from);
    }
    let target = members.entry(to).or_insert_with(|| Value::Array(Vec::new()));
    if target.is_null() {
        *target = Value::Array(Vec::new());
    }
    let Some(target) = target.as_array_mut() else { return false };
    target.push(entry);
    before == after
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
    fn what_cannot_be_moved_alone_is_left() {
        assert_eq!(moved("{resources: [a, b], components: *x}", "resources", 0, "components"), None);
        assert_eq!(moved("resources: &l [a]\ncomponents: *l\n", "resources", 0, "components"), None);
    }
}
