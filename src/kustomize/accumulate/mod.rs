//! The objects that a build has gathered so far.
//!
//! Source: `resWrangler` in kustomize's `api/resmap/reswrangler.go` and `ResAccumulator` in `api/internal/accumulator`.

pub mod json_patch;
pub mod keys;
pub(in crate::kustomize) mod labels;
pub mod manifests;
pub mod merge;
mod object;
pub(in crate::kustomize) mod scope;
pub mod select;
pub mod writable;

use std::collections::{BTreeMap, HashMap};

pub use object::{Behavior, Id, Object};

use super::finding::Site;
use super::tree::TreePath;

/// The objects gathered so far.
#[derive(Debug, Clone)]
pub struct Accumulator {
    objects: Vec<Object>,
    /// Whether all objects are known: no error or unknown part came before.
    pub complete: bool,
    /// The variables, with their positions.
    pub vars: BTreeMap<String, Site>,
    /// The components that were applied to these objects, with their positions.
    pub components: BTreeMap<TreePath, Site>,
    /// Whether configurations change which names and namespaces are rewritten.
    pub custom_names: bool,
    /// Whether configurations define further kinds with replicas.
    pub custom_replicas: bool,
    /// The index of each identity; `None` after a change.
    index: Option<HashMap<Id, usize>>,
}

/// Why a generated object conflicts with an existing one.
#[derive(Debug)]
pub enum Clash {
    /// It already exists at this index, and the generator's behavior is neither merge nor replace.
    Exists(usize),
    /// It does not exist.
    Nothing,
    /// It exists more than once.
    Several,
    /// It is not known whether it exists, or how often.
    Perhaps,
}

impl Default for Accumulator {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            complete: true,
            vars: BTreeMap::new(),
            components: BTreeMap::new(),
            custom_names: false,
            custom_replicas: false,
            index: None,
        }
    }
}

impl Accumulator {
    /// Returns the objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the objects, to be changed.
    pub fn objects_mut(&mut self) -> &mut Vec<Object> {
        self.index = None;
        &mut self.objects
    }

    /// Creates an empty accumulator with unknown earlier objects.
    pub fn incomplete() -> Self {
        Self { complete: false, ..Self::default() }
    }

    /// Returns whether all objects and their identities are known.
    pub fn is_certain(&self) -> bool {
        self.complete && self.objects.iter().all(|object| object.sure)
    }

    /// Adds an object, or returns it with the index of the object with the same identity (`Append`).
    ///
    /// # Errors
    ///
    /// If there is one, and both identities are certain.
    pub fn append(&mut self, object: Object) -> Result<(), (Box<Object>, usize)> {
        let id = object.id.effective();
        let index = self.index.get_or_insert_with(|| {
            let sure = self.objects.iter().enumerate().filter(|(_, object)| object.sure);
            sure.map(|(at, object)| (object.id.effective(), at)).collect()
        });
        if object.sure {
            if let Some(at) = index.get(&id) {
                let at = *at;
                return Err((Box::new(object), at));
            }
            index.insert(id, self.objects.len());
        }
        self.objects.push(object);
        Ok(())
    }

    /// Returns the indexes of the objects that have or had an identity.
    pub fn matching(&self, id: &Id) -> Vec<usize> {
        let effective = id.effective();
        let objects = self.objects.iter().enumerate();
        objects.filter(|(_, object)| object.matches_current_or_previous(&effective)).map(|(at, _)| at).collect()
    }

    /// Adds a generated object by its behavior (`appendReplaceOrMerge`).
    ///
    /// # Errors
    ///
    /// If its behavior conflicts with the existing objects.
    pub fn absorb(&mut self, mut made: Object, behavior: Behavior) -> Result<(), Clash> {
        let matching = self.matching(&made.id);
        let sure: Vec<_> =
            matching.iter().filter(|at| self.objects.get(**at).is_some_and(|object| object.sure)).collect();
        match (matching.as_slice(), sure.as_slice(), behavior) {
            ([], _, Behavior::Create) => self.append(made).map_err(|(_, at)| Clash::Exists(at)),
            ([], ..) => Err(Clash::Nothing),
            ([at], _, Behavior::Merge | Behavior::Replace) => self.put_over(*at, made, behavior),
            (_, [_, _, ..], _) => Err(Clash::Several),
            (_, [at], Behavior::Create) => Err(Clash::Exists(**at)),
            (_, [], Behavior::Create) => {
                made.sure = false;
                self.objects_mut().push(made);
                Err(Clash::Perhaps)
            }
            _ => {
                matching
                    .iter()
                    .for_each(|at| self.objects.get_mut(*at).into_iter().for_each(|object| object.invalidate("")));
                Err(Clash::Perhaps)
            }
        }
    }

    /// Replaces an object by a generated one, with merged data if the behavior is merge.
    fn put_over(&mut self, at: usize, mut made: Object, behavior: Behavior) -> Result<(), Clash> {
        let Some(old) = self.objects_mut().get_mut(at) else { return Err(Clash::Nothing) };
        made.stand_for(old);
        if behavior == Behavior::Merge {
            merge_data(old, &mut made);
        }
        made.write_generated();
        *old = made;
        Ok(())
    }
}

/// Puts the data of `old` under that of `made`.
fn merge_data(old: &Object, made: &mut Object) {
    for field in ["data", "binaryData"] {
        let Some(before) = old.raw()[field].as_object() else { continue };
        let mut data = before.clone();
        if let Some(added) = made.raw()[field].as_object() {
            data.extend(added.clone());
        }
        made.raw_mut()[field] = serde_json::Value::Object(data);
    }
    made.invalidate_like(old);
}
