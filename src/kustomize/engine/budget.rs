//! A limit on the memory and work of a build.
//!
//! Small input can create large results. For example, a one-line patch can be merged into ten thousand objects, or an
//! operation can repeatedly copy an object into itself. kustomize has no limit, but an admission controller needs one.

use std::cell::Cell;

use crate::kustomize::node::{Kind, Node};

/// Maximum memory of a build in bytes: the total size of all objects, including everything that transformers add to
/// them. Each visit of an object by a transformer also counts as a few bytes. The limit is enough for a million short
/// values. It protects the process against input that is small but has large results.
const MAX_BYTES: u64 = 256 << 20;
/// Approximate memory overhead of a value in bytes. The size of a value is this overhead plus the length of its text.
const VALUE: u64 = 160;
/// Number of bytes that are counted toward `MAX_BYTES` when a transformer visits an object. So `MAX_BYTES` limits both
/// the memory and the running time of a build.
const STEP: u64 = 16;

/// A counter of the memory that one build uses, in bytes. It also limits the work: each visit of an object by a
/// transformer counts as a few bytes. Counting fails if the total exceeds [`MAX_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: Cell<u64>,
}

/// The error of a build that exceeds [`MAX_BYTES`], the limit on its memory and work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the build needs more than {} MiB for its objects, which is the limit", MAX_BYTES >> 20)]
pub(super) struct Exceeded;

impl Budget {
    /// Counts a number of bytes against the memory limit of the build.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded.
    pub(super) fn spend(&self, bytes: u64) -> Result<(), Exceeded> {
        let spent = self.spent.get().saturating_add(bytes);
        self.spent.set(spent);
        if spent > MAX_BYTES { Err(Exceeded) } else { Ok(()) }
    }

    /// Counts the size of a scalar or key with this text against the memory limit of the build.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded.
    pub(super) fn text(&self, text: &str) -> Result<(), Exceeded> {
        self.spend(VALUE + text.len() as u64)
    }

    /// Counts the size of a node and everything in it against the memory limit of the build.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded. Then the rest of the node is not measured.
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

    /// Counts the work of a transformer that visits `objects` objects against the limit of the build.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded.
    pub(super) fn steps(&self, objects: usize) -> Result<(), Exceeded> {
        self.spend(STEP.saturating_mul(objects as u64))
    }

    /// Returns the number of bytes that the build has counted so far.
    pub(super) fn spent(&self) -> u64 {
        self.spent.get()
    }
}
