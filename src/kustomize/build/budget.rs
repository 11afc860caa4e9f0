//! A limit on the size of what a build makes out of its files.
//!
//! A patch of one line that is merged into ten thousand objects, or an operation that copies an object into itself again and
//! again, makes much out of little. kustomize has no limit; an admission controller needs one.

use std::cell::Cell;

use crate::kustomize::node::{Kind, Node};

/// All objects of a build and everything that transformers add to them: a million short values.
const MOST: u64 = 256 << 20;
/// About what a value takes besides its text.
const VALUE: u64 = 160;
/// What a transformer costs for each object that it might change.
const STEP: u64 = 16;

/// What a build has used of its limit.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: Cell<u64>,
}

/// A build makes more out of its files than is rendered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the build makes more than {} MiB out of its files, which is not worked out here", MOST >> 20)]
pub(super) struct Exceeded;

impl Budget {
    /// Uses a number of bytes.
    ///
    /// # Errors
    ///
    /// When the limit is exceeded.
    pub(super) fn spend(&self, bytes: u64) -> Result<(), Exceeded> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MOST { Err(Exceeded) } else { Ok(()) }
    }

    /// Uses what a text takes.
    ///
    /// # Errors
    ///
    /// When the limit is exceeded.
    pub(super) fn text(&self, text: &str) -> Result<(), Exceeded> {
        self.spend(VALUE + text.len() as u64)
    }

    /// Uses what a node takes.
    ///
    /// # Errors
    ///
    /// When the limit is exceeded; the node is measured no further then.
    pub(super) fn node(&self, node: &Node) -> Result<(), Exceeded> {
        match &node.kind {
            Kind::Scalar(text) => self.text(text),
            Kind::Seq(items) => {
                self.spend(VALUE)?;
                items.iter().try_for_each(|item| self.node(item))
            }
            Kind::Map(entries) => {
                self.spend(VALUE)?;
                entries.iter().try_for_each(|entry| self.text(&entry.key).and_then(|()| self.node(&entry.value)))
            }
        }
    }

    /// Uses what a JSON value takes.
    ///
    /// # Errors
    ///
    /// When the limit is exceeded; the value is measured no further then.
    pub(super) fn json(&self, value: &serde_json::Value) -> Result<(), Exceeded> {
        use serde_json::Value;
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.spend(VALUE)?;
                items.iter().try_for_each(|item| self.json(item))
            }
            Value::Object(members) => {
                self.spend(VALUE)?;
                members.iter().try_for_each(|(key, value)| self.text(key).and_then(|()| self.json(value)))
            }
            _ => self.spend(VALUE),
        }
    }

    /// Uses what it takes to go through a number of objects.
    ///
    /// # Errors
    ///
    /// When the limit is exceeded.
    pub(super) fn steps(&self, objects: usize) -> Result<(), Exceeded> {
        self.spend(STEP.saturating_mul(objects as u64))
    }

    /// Returns how many bytes were used.
    pub(super) fn spent(&self) -> u64 {
        self.spent.get()
    }
}
