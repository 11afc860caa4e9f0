//! How large objects may become: a patch of a line on ten thousand objects, or one that copies an object into itself
//! again and again, makes much out of little.

use serde_json::Value;

use super::{Entry, Walk};
use crate::kustomize::accumulate::json_patch::Operations;
use crate::kustomize::finding::Site;

/// Maximum number of values from aliases in all objects of a root: some 50 MB. Few manifests have any.
const MOST_ALIASED: usize = 250_000;
/// All patches of a root together add no more: a million short words, or 160 MB of text.
const MOST_ADDED: u64 = 160 << 20;
/// Approximate size of a value in addition to its text, in bytes.
const VALUE: u64 = 160;

impl Walk<'_> {
    /// Returns whether the objects of another file, with this many copied values, fit into the limit; reports if not.
    pub(super) fn affords_aliases(&mut self, entry: &Entry<'_>, more: usize) -> bool {
        self.aliased = self.aliased.saturating_add(more);
        let affords = more == 0 || self.aliased <= MOST_ALIASED;
        if !affords {
            let reason = format!(
                "with \"{}\", anchors and aliases make more than {MOST_ALIASED} values, which is not worked out here",
                entry.text
            );
            self.aliased -= more;
            self.uncertainty(&entry.site, reason);
        }
        affords
    }

    /// Returns whether a merge of `patch` into another object fits into the limit; reports if not.
    pub(super) fn affords_merge(&mut self, site: &Site, patch: &Value) -> bool {
        self.affords(site, weight(patch))
    }

    /// Returns whether these operations on another object fit into the limit; reports if not.
    pub(super) fn affords_operations(&mut self, site: &Site, operations: &Operations, content: &Value) -> bool {
        let values = operations.iter().filter_map(|operation| operation.get("value")).map(weight).sum::<u64>();
        let copies = operations.iter().filter(|operation| operation.get("op").is_some_and(|op| op == "copy")).count();
        let copied = match u32::try_from(copies) {
            Ok(0) => 0,
            // Each copy at most doubles the size.
            Ok(copies) => weight(content).saturating_add(values).saturating_mul(2_u64.saturating_pow(copies)),
            Err(_) => u64::MAX,
        };
        self.affords(site, values.saturating_add(copied))
    }

    fn affords(&mut self, site: &Site, more: u64) -> bool {
        let added = self.added.saturating_add(more);
        if added > MOST_ADDED {
            self.uncertainty(
                site,
                format!("the patches add more than {MOST_ADDED} bytes, which is not worked out here"),
            );
            return false;
        }
        self.added = added;
        true
    }
}

fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => VALUE + text.len() as u64,
        Value::Array(items) => VALUE + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => {
            VALUE + members.iter().map(|(key, value)| key.len() as u64 + weight(value)).sum::<u64>()
        }
        _ => VALUE,
    }
}
