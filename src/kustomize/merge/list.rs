//! Merges lists by the keys of their elements.
//!
//! Reproduces the steps of kustomize exactly, even if the result is probably not intended.
//!
//! Source: `kyaml/yaml/walk/associative_sequence.go`.

use std::collections::HashSet;

use super::directive::{self, Directive};
use super::element::{self, is_empty, text};
use super::keys::{self, Values};
use super::quotes::with_quotes;
use super::walk::{Side, Sources, Walked, Walker};
use super::{MergeError, Problem};
use crate::kustomize::node::{Entry, Kind, Node};
use crate::kustomize::schema::FieldSchema;

/// A placeholder for the merge key of a list without merge keys. The elements of such a list are compared as a whole.
const ITSELF: &str = "";

/// The lists of the object and the patch, while they are merged.
struct Lists {
    dest: Vec<Node>,
    patch: Vec<Node>,
    /// Whether kustomize has only one list in memory for the object and the patch, for example because the object had
    /// no such list. `dest` and `patch` are then equal, and each change must be made in both.
    same: bool,
    /// The resulting list. The merged elements are added first. Then `append` adds the elements of `dest`. Each of
    /// these replaces an element of the result with the same values of the merge keys, if there is one.
    first: Vec<Node>,
}

impl Walker<'_> {
    /// Merges the object's list and the patch's list by the merge keys in `schema`, the schema of the lists.
    pub(super) fn list(self, sources: Sources, schema: Option<FieldSchema<'_>>) -> Result<Walked, MergeError> {
        let (sources, side) = match visit_list(sources)? {
            Ok(visited) => visited,
            Err(walked) => return Ok(walked),
        };
        let Some(dest) = sources.dest else { return Ok(Walked::removed()) };
        let keys: Vec<&str> = schema.into_iter().flat_map(FieldSchema::keys).collect();
        let mut lists = Lists {
            patch: if sources.same { dest.items().to_vec() } else { items(sources.patch.as_ref()).to_vec() },
            dest: dest.items().to_vec(),
            same: sources.same,
            first: Vec::new(),
        };
        let elements = schema.and_then(FieldSchema::elements);
        let merged = if keys.is_empty() {
            let values = lists.own_values();
            self.elements(&mut lists, values, &[ITSELF], elements)?
        } else {
            let values = lists.values(&keys);
            self.elements(&mut lists, values, &keys, elements)?
        };
        Ok(match merged {
            // The list is copied, so that it is shared with neither the object nor the patch.
            true => {
                Walked::from(Side::Patch, Some(Node { style: dest.style, ..Node::seq(lists.first).at(dest.origin) }))
            }
            false => Walked::from(side, Some(Node { kind: Node::seq(lists.dest).kind, ..dest })),
        })
    }

    /// Merges the list of the object with the list of the patch. Elements with the same values of the merge keys `keys`
    /// are merged into one element. `all` contains these values for the elements of both lists, without duplicates.
    /// `schema` is the schema of an element.
    ///
    /// Returns `false` and merges nothing if `all` is empty, because both lists are then empty.
    fn elements(
        self,
        lists: &mut Lists,
        mut all: Vec<Values>,
        keys: &[&str],
        schema: Option<FieldSchema<'_>>,
    ) -> Result<bool, MergeError> {
        if keys.len() > 1 {
            keys::unite(&mut all);
        }
        let mut valid_keys = Vec::new();
        for values in &all {
            let valid_values;
            (valid_keys, valid_values) = keys::valid(&all, values, keys);
            let merged = self.element(lists, &valid_keys, &valid_values, schema)?;
            if let Some(merged) = merged {
                element::set(&mut lists.first, Some(&merged), &valid_keys, &valid_values)?;
            }
        }
        if all.is_empty() {
            return Ok(false);
        }
        append(&mut lists.first, &lists.dest, &valid_keys)?;
        Ok(true)
    }

    /// Merges two elements: one of the object's list and one of the patch's list, whose fields `keys` have the values
    /// `values`. One of the two elements may be missing. Returns the merged element, or `None` if no element remains.
    fn element(
        self,
        lists: &mut Lists,
        keys: &[&str],
        values: &[&str],
        schema: Option<FieldSchema<'_>>,
    ) -> Result<Option<Node>, MergeError> {
        let (dest, patch) = lists.find(keys, values);
        let sources = Sources {
            dest: dest.map(|at| lists.dest[at].clone()),
            patch: patch.map(|at| lists.patch[at].clone()),
            same: lists.same && dest.is_some(),
        };
        let walked = self.walk(sources, schema)?;
        lists.take_directive(dest, patch);
        let Some(mut merged) = walked.node.filter(|node| !is_empty(node)) else {
            for _ in keys {
                element::set(&mut lists.dest, None, keys, values)?;
            }
            lists.follow();
            return Ok(None);
        };
        complete(&mut merged, keys, values);
        lists.put(walked.side, dest, patch, &merged);
        Ok(Some(merged))
    }
}

/// Applies the directive `$patch` of a list in a patch, such as `$patch: delete`. If no elements remain to be merged,
/// returns `Ok(Err(…))` with the final result.
///
/// Otherwise, returns `Ok(Ok(…))` with the two lists whose elements must still be merged. The `Side` says which list
/// kustomize uses as the target of the merge: that of the object or that of the patch.
///
/// Source: `Merger.VisitList`.
fn visit_list(mut sources: Sources) -> Result<Result<(Sources, Side), Walked>, Problem> {
    let is_present = |node: &Option<Node>| node.as_ref().is_some_and(|node| !node.is_null());
    let Some(patch) = sources.patch.as_mut() else { return Ok(Ok((sources, Side::Dest))) };
    if !is_present(&sources.dest) {
        let node = Some(patch.clone());
        return Ok(Ok((Sources { dest: node.clone(), patch: node, same: true }, Side::Patch)));
    }
    if patch.is_null() {
        return Ok(Err(Walked::removed()));
    }
    Ok(match directive::take(patch)? {
        Directive::Delete => Err(Walked::removed()),
        Directive::Replace => {
            let node = Some(patch.clone());
            Ok((Sources { dest: node.clone(), patch: node, same: true }, Side::Patch))
        }
        Directive::Merge if sources.same => Ok((Sources { dest: sources.patch.clone(), ..sources }, Side::Dest)),
        Directive::Merge => Ok((sources, Side::Dest)),
    })
}

impl Lists {
    /// Returns the values of the scalar elements of the object's list and the patch's list, without duplicates. The
    /// values of the patch's list come first.
    fn own_values(&self) -> Vec<Values> {
        self.distinct(|item| vec![text(item).to_owned()])
    }

    /// Returns the values of the fields `keys` of each element of the object's list and the patch's list, without
    /// duplicates. The values of the patch's list come first.
    fn values(&self, keys: &[&str]) -> Vec<Values> {
        let value = |item: &Node, key: &str| {
            item.get(key).filter(|value| !value.is_null_or_empty()).map(text).unwrap_or_default().to_owned()
        };
        self.distinct(|item| keys.iter().map(|key| value(item, key)).collect())
    }

    fn distinct(&self, values: impl Fn(&Node) -> Values) -> Vec<Values> {
        let mut seen = HashSet::new();
        let all = self.patch.iter().chain(&self.dest).map(values);
        all.filter(|values| seen.insert(values.clone())).collect()
    }

    /// Finds the first element of the object's list, and the first element of the patch's list, whose fields `keys`
    /// have the values `values`. Returns the index of each of the two elements; `None` if a list has no such element.
    /// Keys with an empty value are ignored, unless all values are empty.
    fn find(&self, keys: &[&str], values: &[&str]) -> (Option<usize>, Option<usize>) {
        let own: Values = values.iter().map(|value| (*value).to_owned()).collect();
        let (keys, values) = keys::valid(std::slice::from_ref(&own), &own, keys);
        (element::find(&self.dest, &keys, &values), element::find(&self.patch, &keys, &values))
    }

    /// Removes the key `$patch` from one element of the patch's list. `patch` is the index of this element. Does
    /// nothing if `patch` is `None`, or if the element has no key `$patch` with a known value.
    ///
    /// If `self.same` is set, kustomize has only one list in memory for the object and the patch, so the removal
    /// changes both lists. This method then copies the changed element to the object's list, at index `dest`.
    fn take_directive(&mut self, dest: Option<usize>, patch: Option<usize>) {
        if let Some(element) = patch.and_then(|at| self.patch.get_mut(at))
            && element.is_map()
            && element.get(directive::KEY).is_some()
        {
            // an unknown directive stays
            let _ = directive::take(element);
            if let Some(same) = dest.filter(|_| self.same).and_then(|at| self.dest.get_mut(at)) {
                same.clone_from(element);
            }
        }
    }

    /// Replaces one element of a list with `merged`. `side` selects the object's list or the patch's list. `dest` is
    /// the index of the element in the object's list, and `patch` is its index in the patch's list.
    ///
    /// If `self.same` is set, kustomize has only one list in memory for the object and the patch. In this case,
    /// replaces the element at index `dest` in both lists.
    fn put(&mut self, side: Side, dest: Option<usize>, patch: Option<usize>, merged: &Node) {
        let place = match side {
            Side::Dest => dest.and_then(|at| self.dest.get_mut(at)),
            Side::Patch if self.same => dest.and_then(|at| self.dest.get_mut(at)),
            Side::Patch => patch.and_then(|at| self.patch.get_mut(at)),
        };
        if let Some(place) = place {
            *place = merged.clone();
        }
        self.follow();
    }

    /// Replaces the patch's list with a copy of the object's list if `self.same` is set. In kustomize, both are then
    /// the same list in memory, so a change of one also changes the other.
    fn follow(&mut self) {
        if self.same {
            self.patch.clone_from(&self.dest);
        }
    }
}

/// Adds missing merge keys to a merged list element: the key `keys[i]` gets the value `values[i]`. Skips empty values.
/// If the element is not a mapping, for example a scalar, replaces it with the last value in `values` that is not
/// empty.
fn complete(element: &mut Node, keys: &[&str], values: &[&str]) {
    for (key, value) in keys.iter().zip(values) {
        if value.is_empty() || element.get(key).is_some() {
            continue;
        }
        match &element.kind {
            Kind::Map(_) => {
                let value = with_quotes(Node::scalar(*value));
                if let Some(entries) = element.entries_mut() {
                    entries.push(Entry::new(*key, value));
                }
            }
            _ => *element = Node { style: element.style, ..Node::scalar(*value).at(element.origin) },
        }
    }
}

/// Appends the elements `others` to a list. If the list already contains an element whose fields `keys` have the same
/// values, replaces this element. If there are several keys, the replacement moves to the end of the list.
fn append(items: &mut Vec<Node>, others: &[Node], keys: &[&str]) -> Result<(), Problem> {
    for other in others {
        if keys == [ITSELF] {
            element::set(items, Some(other), keys, &[text(other)])?;
            continue;
        }
        let values = values_or_append(items, other, keys)?;
        if keys.len() > 1 {
            element::set(items, None, keys, &values)?;
        }
        element::set(items, Some(other), keys, &values)?;
    }
    Ok(())
}

/// Returns the values that the list element `other` has for the merge keys `keys`. Keys that the element does not have
/// are skipped, so the result may be shorter than `keys`.
///
/// Also appends a copy of the element to `items`, the merged list, for each skipped key. The reason is that kustomize
/// appends elements without a merge key instead of merging them. If several keys are missing, it appends the element
/// several times.
fn values_or_append<'n>(items: &mut Vec<Node>, other: &'n Node, keys: &[&str]) -> Result<Vec<&'n str>, Problem> {
    let mut values = Vec::new();
    for key in keys {
        if !other.is_map() && !other.is_null() {
            return Err(element::wrong_kind("a mapping", other));
        }
        match other.get(key) {
            Some(value) => values.push(text(value)),
            None => items.push(other.clone()),
        }
    }
    Ok(values)
}

fn items(node: Option<&Node>) -> &[Node] {
    node.map(Node::items).unwrap_or_default()
}
