//! Looks up component descriptors in the files of a folder.

use std::collections::HashMap;
use std::sync::Arc;

use super::closure::Found;
use super::descriptor::Descriptor;
use super::versions;
use crate::landscaper::component_reference::ComponentReference;
use crate::yaml;

/// The component descriptors in a folder, used instead of registries.
///
/// Descriptors are looked up by name and version. If several descriptors have the requested name and version, the
/// look-up prefers one whose last repository context equals the requested repository context. If no descriptor has this
/// repository context, the look-up returns the first descriptor, because descriptors in a folder often lack repository
/// contexts.
#[derive(Debug, Default)]
pub struct Folder {
    by_name: HashMap<String, Vec<Arc<Descriptor>>>,
}

impl Folder {
    /// Adds the component descriptors in the content of a file. Ignores other objects in the file.
    ///
    /// # Errors
    /// Fails if a document or field cannot be read. The message contains the line.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for document in yaml::documents(text, &yaml::Limits::default()) {
            let document = document.map_err(|error| error.to_string())?;
            let value = &document.value;
            let is_descriptor = value.pointer("/meta/schemaVersion").is_some()
                || value
                    .get("apiVersion")
                    .and_then(|version| version.as_str())
                    .is_some_and(|version| version.starts_with("ocm.software/"));
            if is_descriptor {
                let read = Descriptor::read(value);
                let read = read.map_err(|error| format!("line {}: {error}", document.nearest(&error.field).line))?;
                self.by_name.entry(read.name.clone()).or_default().push(Arc::new(read));
            }
        }
        Ok(())
    }

    /// Returns the number of descriptors that have been added.
    pub fn len(&self) -> usize {
        self.by_name.values().map(Vec::len).sum()
    }

    /// Reports whether no descriptors have been added.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Finds the descriptor of a component version. If the folder does not contain it, the result lists the closest
    /// versions in the folder.
    pub fn find(&self, reference: &ComponentReference) -> Found {
        let named = self.by_name.get(&reference.component_name).map(Vec::as_slice).unwrap_or_default();
        let mut fitting = named.iter().filter(|descriptor| descriptor.version == reference.version);
        let has_context = |descriptor: &&Arc<Descriptor>| {
            descriptor.repository_contexts.last() == reference.repository_context.as_ref()
        };
        match fitting.clone().find(has_context).or_else(|| fitting.next()) {
            Some(descriptor) => Found::Descriptor(descriptor.clone()),
            None => {
                let existing: Vec<_> = named.iter().map(|descriptor| descriptor.version.clone()).collect();
                Found::Missing { nearest: versions::nearest(&reference.version, &existing) }
            }
        }
    }
}
