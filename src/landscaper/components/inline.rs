//! Inline component descriptors of an Installation.
//!
//! The label `landscaper.gardener.cloud/component-descriptor` of a component reference may contain a nested descriptor.
//! Landscaper reads nested descriptors only if the outermost component also has this label. Landscaper uses inline
//! descriptors only for references whose repository context equals the last repository context of the outermost
//! descriptor.
//!
//! Source: `inlinecompdesc` and `NewRegistryAccess` in Landscaper's `pkg/components/ocmlib`.

use std::sync::Arc;

use serde_json::Value;

use super::descriptor::{Descriptor, DescriptorError, INLINE_LABEL};
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::repository_context::RepositoryContext;

/// Maximum nesting depth of the component descriptors in an Installation. A descriptor can contain other descriptors,
/// in the labels of its component references. Deeper descriptors are ignored.
const MAX_NESTED: usize = 16;

/// The component descriptors that are written in an Installation (`spec.componentDescriptor.inline`). Landscaper does
/// not read these descriptors from a registry.
#[derive(Debug, Clone)]
pub struct Inline {
    /// All component descriptors in the Installation, with the one in `spec.componentDescriptor.inline` first. The
    /// others are nested in it: a component reference in a descriptor can contain another descriptor in its label
    /// `landscaper.gardener.cloud/component-descriptor`.
    pub descriptors: Vec<Placed>,
    repository_context: Option<RepositoryContext>,
}

/// An inline component descriptor, with its JSON pointer in the Installation.
#[derive(Debug, Clone)]
pub struct Placed {
    /// JSON pointer of the descriptor in the Installation.
    pub pointer: String,
    /// The inline descriptor, parsed.
    pub descriptor: Arc<Descriptor>,
}

impl Inline {
    /// Reads the inline component descriptors of an Installation; `None` if the Installation has none.
    ///
    /// # Errors
    /// Fails if a descriptor is not valid. The error names the first field that cannot be read.
    pub fn of(installation: &Value) -> Option<Result<Self, DescriptorError>> {
        let value = installation.get("spec")?.get("componentDescriptor")?.get("inline")?;
        (!value.is_null()).then(|| Self::read(value))
    }

    fn read(value: &Value) -> Result<Self, DescriptorError> {
        let outermost = Descriptor::read_v2(value)?;
        let repository_context = outermost.repository_contexts.last().cloned();
        let mut inline = Self { descriptors: Vec::new(), repository_context };
        let nests = label(value.pointer("/component").unwrap_or(&Value::Null)).is_some();
        inline.place(
            "/spec/componentDescriptor/inline".to_owned(),
            outermost,
            value,
            if nests { MAX_NESTED } else { 0 },
        )?;
        Ok(inline)
    }

    fn place(&mut self, at: String, read: Descriptor, value: &Value, levels: usize) -> Result<(), DescriptorError> {
        let descriptor = Arc::new(read);
        self.descriptors.push(Placed { pointer: at.clone(), descriptor: descriptor.clone() });
        let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
        for number in 0..descriptor.references.len() {
            let pointer = descriptor.pointer(number);
            let Some((place, nested)) = value.pointer(&pointer).and_then(label) else { continue };
            self.place(format!("{at}{pointer}/labels/{place}/value"), Descriptor::read(nested)?, nested, levels)?;
        }
        Ok(())
    }

    /// Returns the inline descriptor that Landscaper uses for a reference. `None` if Landscaper reads the descriptor
    /// from a registry.
    pub fn find(&self, reference: &ComponentReference) -> Option<Arc<Descriptor>> {
        if self.repository_context.is_none() || self.repository_context != reference.repository_context {
            return None;
        }
        let is_it = |placed: &&Placed| {
            placed.descriptor.name == reference.component_name && placed.descriptor.version == reference.version
        };
        self.descriptors.iter().find(is_it).map(|placed| placed.descriptor.clone())
    }
}

/// Finds the label [`INLINE_LABEL`] of a component or of a component reference. Returns the index of the label in the
/// list of labels, and the value of the label. `None` if there is no such label.
fn label(value: &Value) -> Option<(usize, &Value)> {
    let labels = value.get("labels")?.as_array()?;
    let at = labels.iter().position(|label| label.get("name").is_some_and(|name| name == INLINE_LABEL))?;
    Some((at, labels.get(at)?.get("value")?))
}
