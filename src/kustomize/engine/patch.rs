//! A parsed patch: a strategic merge patch or a JSON patch.
//!
//! Source: kustomize's `PatchTransformer`.

use super::json6902;
use super::read;
use super::resource::Resource;
use crate::kustomize::bad_objects::BadObjects;

/// A parsed patch: objects to merge, or the operations of a JSON patch.
#[derive(Debug, Clone)]
pub(super) enum Patch {
    /// Objects of a strategic merge patch, which are merged into other objects.
    Strategic(Vec<Resource>),
    /// The operations of a JSON patch.
    Json(json6902::Patch),
}

/// The reason why a patch is invalid. The error text has no subject: callers put a text such as `the patch` before it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum BadPatch {
    /// The patch is neither a valid strategic merge patch nor a valid JSON patch. Contains the error of parsing it as a
    /// strategic merge patch.
    #[error("{0}")]
    Neither(BadObjects),
    /// The text is valid both as a strategic merge patch and as a JSON patch.
    #[error("is both an object and a list of operations")]
    Both,
}

impl Patch {
    /// Parses a patch: objects to merge, or JSON patch operations. `source` is the number of the patch's file in
    /// [`Sources`](super::Sources).
    ///
    /// # Errors
    ///
    /// If the text is neither objects nor operations, or is valid as both.
    pub(super) fn read(text: &str, source: u32) -> Result<Self, BadPatch> {
        if begins_with_item(text)
            && let Ok(operations) = json6902::Patch::read(text)
        {
            return Ok(Self::Json(operations));
        }
        let objects = read::objects_of_text(text, source);
        if objects.as_ref().is_ok_and(|objects| !objects.is_empty()) && begins_with_word(text) {
            return objects.map(Self::Strategic).map_err(BadPatch::Neither);
        }
        match (objects, json6902::Patch::read(text)) {
            (Ok(objects), Ok(operations)) if !objects.is_empty() && !operations.is_empty() => Err(BadPatch::Both),
            (Ok(objects), _) => Ok(Self::Strategic(objects)),
            (Err(_), Ok(operations)) => Ok(Self::Json(operations)),
            (Err(objects), Err(_)) => Err(BadPatch::Neither(objects)),
        }
    }
}

/// Returns whether the first value of a YAML text begins with a letter, as in `kind: Service`. Such a text cannot be a
/// JSON patch, because a JSON patch is a list of operations.
fn begins_with_word(text: &str) -> bool {
    first_line(text).starts_with(|letter: char| letter.is_ascii_alphabetic())
}

/// Returns whether the first value of a YAML text is a list, as in `- op: remove`. Such a text contains no objects.
fn begins_with_item(text: &str) -> bool {
    first_line(text).starts_with("- ")
}

/// Returns the first line of a YAML text that is not empty, not a comment, and not `---`. The result does not contain
/// the indentation of the line. Returns an empty text if there is no such line.
fn first_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim_start);
    lines.find(|line| !line.is_empty() && !line.starts_with('#') && line.trim_end() != "---").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::node::Origin;

    #[test]
    fn a_text_that_begins_with_an_item_contains_no_objects() {
        let object = "---\nkind: ConfigMap\nmetadata: {name: a}\n";
        for list in
            ["- op: remove\n  path: /a\n", "# a\n---\n---\n  - kind: ConfigMap\n", "- a\n", "- &a b\n- *a\n", "- [\n"]
        {
            for text in [list.to_owned(), format!("{list}{object}")] {
                assert!(begins_with_item(&text), "{text:?}");
                assert!(read::objects_of_text(&text, 1).is_err(), "{text:?}");
            }
        }
        for text in ["", "-", "-1", "--- - a\n", "kind: ConfigMap\n", "[]\n", "# - a\n", object] {
            assert!(!begins_with_item(text), "{text:?}");
        }
    }

    #[test]
    fn a_list_that_is_no_json_patch_is_an_error_about_objects() {
        assert!(matches!(Patch::read("- op: remove\n  path: /a\n", 1), Ok(Patch::Json(_))));
        assert_eq!(
            Patch::read("- a\n", 1).unwrap_err(),
            BadPatch::Neither(BadObjects::NoObject(Origin { source: 1, line: 1 }))
        );
    }
}
