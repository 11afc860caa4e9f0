//! Records the history of one field: the value of the field after each build step that changed it.

use std::collections::HashMap;

use super::path;
use super::resmap::ResMap;
use crate::kustomize::finding::Site;
use crate::kustomize::node::{Node, Origin, text_of};

/// The recorded changes of one field, in all objects of one kind, during a build.
#[derive(Debug, Default)]
pub(super) struct History {
    kind: String,
    steps: Vec<String>,
    last: HashMap<u64, Option<String>>,
    changes: Vec<(u64, Change)>,
}

/// A change of a field by a step of the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The position of the new value in the file that contains it, such as a patch. If no file contains the value, this
    /// is the position of the kustomization entry or object that configures the build step.
    pub site: Site,
    /// The build step that changed the field: `read`, `generated`, `hashes`, `name references`, `vars`, or the name of
    /// a transformer.
    pub step: String,
    /// The new value as YAML; `None` if the step removed the field.
    pub value: Option<String>,
}

impl History {
    pub(super) fn new(kind: &str, field: &str) -> Self {
        Self { kind: kind.to_owned(), steps: path::split(field, '.'), ..Self::default() }
    }

    /// Compares the tracked field of each object with its value at the previous call, and records a change if the value
    /// is different. `step` is the name of the build step that has just run.
    ///
    /// The position of a change is the file and line from which the new value comes, converted with `site_of`. If the
    /// value comes from no file, the position is `site`, the entry or object that configures the build step.
    pub(super) fn record(&mut self, map: &ResMap, step: &str, site: &Site, site_of: impl Fn(Origin) -> Site) {
        for resource in map.resources().iter().filter(|resource| resource.kind() == self.kind) {
            let node = path::lookup(&resource.node, &self.steps);
            let value = node.map(|node| text_of(node).trim_end().to_owned());
            let last = self.last.get(&resource.uid);
            if last.is_none_or(|last| *last != value) && (last.is_some() || value.is_some()) {
                let written = node.map(first_origin).filter(|origin| origin.line > 0);
                let site = written.map_or_else(|| site.clone(), &site_of);
                self.changes.push((resource.uid, Change { site, step: step.to_owned(), value: value.clone() }));
            }
            self.last.insert(resource.uid, value);
        }
    }

    /// Returns the recorded changes of the object `uid`, in the order of the build steps.
    pub(super) fn into_changes(self, uid: u64) -> Vec<Change> {
        self.changes.into_iter().filter(|(own, _)| *own == uid).map(|(_, change)| change).collect()
    }
}

/// Returns the file and line from which a node comes. For a mapping or sequence, these are the file and line of its
/// first scalar, because the values of a merged mapping can come from several files.
pub(super) fn first_origin(node: &Node) -> Origin {
    let inner = node.entries().first().map(|entry| &entry.value).or_else(|| node.items().first());
    inner.map_or(node.origin, first_origin)
}
