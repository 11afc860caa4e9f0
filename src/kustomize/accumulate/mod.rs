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

/// The objects gathered so far, and what is known of them.
#[derive(Debug, Clone)]
pub struct Accumulator {
    objects: Vec<Object>,
    /// Whether all objects are here: nothing before was refused or unknown.
    pub complete: bool,
    /// The variables, and where each was said.
    pub vars: BTreeMap<String, Site>,
    /// The components that worked on these objects, and where each was listed.
    pub components: BTreeMap<TreePath, Site>,
    /// Whether configurations change which names and namespaces are rewritten.
    pub custom_names: bool,
    /// Whether configurations say what has replicas.
    pub custom_replicas: bool,
    /// Where each identity is, unless something changed since.
    index: Option<HashMap<Id, usize>>,
}

/// Why what a generator made cannot be taken in.
#[derive(Debug)]
pub enum Clash {
    /// It is there already, at the index, and the generator does not say merge or replace.
    Exists(usize),
    /// It is not there.
    Nothing,
    /// It is there more than once.
    Several,
    /// It may be there, or more than once, or not.
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
    /// The objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The objects, to be changed.
    pub fn objects_mut(&mut self) -> &mut Vec<Object> {
        self.index = None;
        &mut self.objects
    }

    /// No objects, with others before them that are not known.
    pub fn incomplete() -> Self {
        Self { complete: false, ..Self::default() }
    }

    /// Whether all objects and their identities are known.
    pub fn is_certain(&self) -> bool {
        self.complete && self.objects.iter().all(|object| object.sure)
    }

    /// Adds an object, or gives it back with the index of the one that has its identity (`Append`).
    ///
    /// # Errors
    ///
    /// When there is one, both being certain.
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

    /// The indexes of the objects that have or had an identity.
    pub fn matching(&self, id: &Id) -> Vec<usize> {
        let effective = id.effective();
        let objects = self.objects.iter().enumerate();
        objects.filter(|(_, object)| object.is_or_was(&effective)).map(|(at, _)| at).collect()
    }

    /// Takes in what a generator made (`appendReplaceOrMerge`).
    ///
    /// # Errors
    ///
    /// When its behavior does not agree with what is there.
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
                matching.iter().for_each(|at| self.objects.get_mut(*at).into_iter().for_each(|object| object.blur("")));
                Err(Clash::Perhaps)
            }
        }
    }

    /// Puts what a generator made in the place of an object, with the data of both if it is to be merged.
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
    made.blur_like(old);
}
