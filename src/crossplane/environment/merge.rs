//! Merging EnvironmentConfigs, and knowing of every key where it comes from.
//!
//! Maps are merged, everything else takes the place of what is there; `null` is a value like any other. What upstream
//! makes of it is recorded in `tests/vectors/crossplane/env_merge.json`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::admission::FieldPath;
use crate::crossplane::go::floats;

/// The largest integer up to which a floating-point number has every one.
const MAX_EXACT: u64 = 1 << 53;

/// What is merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Where the data comes from.
    pub name: LayerName,
    /// Where in the environment it goes, if not at its root.
    pub to_field_path: Option<String>,
    /// The data, as it is merged.
    pub data: Map<String, Value>,
}

/// Where a layer's data comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerName {
    /// `defaultData`.
    DefaultData,
    /// What earlier steps of the pipeline have computed.
    Earlier,
    /// The EnvironmentConfig of this name.
    Config(String),
}

impl std::fmt::Display for LayerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DefaultData => f.write_str("defaultData"),
            Self::Earlier => f.write_str("earlier steps"),
            Self::Config(name) => write!(f, "EnvironmentConfig {name}"),
        }
    }
}

/// Where a key comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The layer that set it; of a map, the one that first had it.
    pub layer: usize,
    /// What stood there before, and of which layer it was, the oldest first.
    pub replaced: Vec<Replaced>,
    /// The keys of a map.
    pub members: BTreeMap<String, Origin>,
}

/// A value that another has taken the place of.
#[derive(Debug, Clone, PartialEq)]
pub struct Replaced {
    /// The layer that had set it.
    pub layer: usize,
    /// The value.
    pub value: Value,
}

/// A key that a later layer has set again.
#[derive(Debug, Clone, PartialEq)]
pub struct Overwrite<'m> {
    /// The key.
    pub path: FieldPath,
    /// Whose value it was.
    pub from: usize,
    /// The value that it had.
    pub old: &'m Value,
    /// Whose value it is.
    pub by: usize,
    /// The value that it has in the end.
    pub new: &'m Value,
}

/// Merged layers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merged {
    /// The data.
    pub data: Map<String, Value>,
    /// Where its keys come from.
    pub origins: BTreeMap<String, Origin>,
    /// What was merged, lowest first.
    pub layers: Vec<Layer>,
    /// Integers that no floating-point number has, so that merging changes them.
    pub imprecise: Vec<FieldPath>,
}

impl Merged {
    /// Merges layers, the lowest first. All numbers become floating-point numbers, as upstream reads them.
    pub fn of(layers: Vec<Layer>) -> Self {
        let mut merged = Self::default();
        for (at, layer) in layers.iter().enumerate() {
            imprecise(&layer.data, &FieldPath::root(), &mut merged.imprecise);
            for (key, value) in &layer.data {
                put(&mut merged.data, &mut merged.origins, key, floats(value.clone()), at);
            }
        }
        merged.layers = layers;
        merged
    }

    /// The keys that a later layer has set again, in their order.
    pub fn overwrites(&self) -> Vec<Overwrite<'_>> {
        let mut found = Vec::new();
        overwrites(&self.data, &self.origins, &FieldPath::root(), &mut found);
        found
    }

    /// Where the value at a path comes from, or the nearest that is above it.
    pub fn origin(&self, path: &FieldPath) -> Option<&Origin> {
        let mut origins = &self.origins;
        let mut found = None;
        for segment in path.segments() {
            let crate::admission::Segment::Key(key) = segment else { break };
            let Some(origin) = origins.get(key) else { break };
            found = Some(origin);
            origins = &origin.members;
        }
        found
    }
}

/// Sets a key. The recursion is as deep as the value.
fn put(data: &mut Map<String, Value>, origins: &mut BTreeMap<String, Origin>, key: &str, value: Value, layer: usize) {
    match (data.get_mut(key), value) {
        (Some(Value::Object(there)), Value::Object(members)) => {
            let origin = origins.entry(key.to_owned()).or_default();
            for (key, member) in members {
                put(there, &mut origin.members, &key, member, layer);
            }
        }
        (there, value) => {
            let before = there.map(std::mem::take);
            let mut origin = Origin { layer, members: members(&value, layer), ..Origin::default() };
            if let Some(old) = before {
                let last = origins.remove(key).unwrap_or_default();
                origin.replaced = last.replaced;
                origin.replaced.push(Replaced { layer: last.layer, value: old });
            }
            data.insert(key.to_owned(), value);
            origins.insert(key.to_owned(), origin);
        }
    }
}

fn members(value: &Value, layer: usize) -> BTreeMap<String, Origin> {
    let member = |(key, value): (&String, &Value)| {
        (key.clone(), Origin { layer, members: members(value, layer), ..Origin::default() })
    };
    value.as_object().into_iter().flatten().map(member).collect()
}

fn overwrites<'m>(
    data: &'m Map<String, Value>,
    origins: &'m BTreeMap<String, Origin>,
    path: &FieldPath,
    found: &mut Vec<Overwrite<'m>>,
) {
    for (key, origin) in origins {
        let (path, Some(new)) = (path.key(key), data.get(key)) else { continue };
        if let Some(last) = origin.replaced.last() {
            let overwrite = Overwrite { path: path.clone(), from: last.layer, old: &last.value, by: origin.layer, new };
            found.push(overwrite);
        }
        if let Value::Object(members) = new {
            overwrites(members, &origin.members, &path, found);
        }
    }
}

fn imprecise(data: &Map<String, Value>, path: &FieldPath, found: &mut Vec<FieldPath>) {
    for (key, value) in data {
        imprecise_value(value, &path.key(key), found);
    }
}

fn imprecise_value(value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
    match value {
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            // Beyond that limit some are exact all the same: those with zeros at the end.
            let is_exact = |magnitude: u64| {
                magnitude <= MAX_EXACT || magnitude.trailing_zeros() + 53 >= u64::BITS - magnitude.leading_zeros()
            };
            if magnitude.is_some_and(|magnitude| !is_exact(magnitude)) {
                found.push(path.clone());
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| imprecise_value(item, &path.index(at), found));
        }
        Value::Object(members) => imprecise(members, path, found),
        _ => {}
    }
}
