//! Merges EnvironmentConfigs and records the origin of each key.
//!
//! Maps are merged. Other values are replaced. `null` is an ordinary value. The behavior of Crossplane is recorded in
//! `tests/vectors/crossplane/env_merge.json`.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::admission::FieldPath;
use crate::go::floats;

/// The largest integer such that a float64 represents every integer up to it exactly.
const MAX_EXACT: u64 = 1 << 53;

/// A layer of an environment: data that is merged over lower layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The origin of the data, such as an EnvironmentConfig.
    pub name: LayerName,
    /// The path in the environment under which the data is merged; `None` for the root.
    pub to_field_path: Option<String>,
    /// The data of this layer alone, before it is merged over the lower layers.
    pub data: Map<String, Value>,
}

/// The name of a layer, which says where the data of the layer comes from. A layer is data that is merged into an
/// environment, such as the data of an EnvironmentConfig.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerName {
    /// `defaultData` of the Composition.
    DefaultData,
    /// The environment from earlier steps of the pipeline.
    Earlier,
    /// The EnvironmentConfig with this name.
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

/// The origin of a key in merged data: the layer that set the value, and the values that were replaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The index in `Merged::layers` of the layer that set the value. A layer is data that is merged into the
    /// environment, such as the data of an EnvironmentConfig. If several layers were merged into a map, this is the
    /// first of them.
    pub layer: usize,
    /// The previous values of the key, oldest first. Each of them comes from a layer, and a later layer replaced it.
    pub replaced: Vec<Replaced>,
    /// The origins of the keys inside the value, if the value is a map.
    pub members: BTreeMap<String, Origin>,
}

/// A value that a later layer replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Replaced {
    /// The index in `Merged::layers` of the layer that set the value.
    pub layer: usize,
    /// The value that was replaced.
    pub value: Value,
}

/// A key that a later layer sets again.
#[derive(Debug, Clone, PartialEq)]
pub struct Overwrite<'m> {
    /// The path of the key in the environment.
    pub path: FieldPath,
    /// The index in `Merged::layers` of the layer that set the old value. A layer is data that is merged into the
    /// environment, such as the data of an EnvironmentConfig.
    pub from: usize,
    /// The value of the key before the later layer replaced it.
    pub old: &'m Value,
    /// The index in `Merged::layers` of the layer that replaced the old value. A layer is data that is merged into the
    /// environment, such as the data of an EnvironmentConfig.
    pub by: usize,
    /// The value of the key in the merged environment.
    pub new: &'m Value,
}

/// An environment that was merged from several sources of data, such as EnvironmentConfigs. It also says from which
/// source each key comes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Merged {
    /// The merged data.
    pub data: Map<String, Value>,
    /// The origins of the keys in the merged data.
    pub origins: BTreeMap<String, Origin>,
    /// The layers that were merged, such as the data of an EnvironmentConfig. If two layers have the same key, the
    /// later layer takes precedence.
    pub layers: Vec<Layer>,
    /// The paths of integers that a float64 cannot represent exactly. Merging changes these integers.
    pub imprecise: Vec<FieldPath>,
}

impl Merged {
    /// Merges `layers` into one environment. A layer is, for example, the data of an EnvironmentConfig. Values in later
    /// layers replace values in earlier layers, and maps are merged. All numbers become float64, as in Crossplane.
    pub fn of(layers: Vec<Layer>) -> Self {
        let mut merged = Self::default();
        for (at, layer) in layers.iter().enumerate() {
            // Building paths allocates memory, and few layers have integers of this size.
            if layer.data.values().any(has_imprecise) {
                imprecise(&layer.data, &FieldPath::root(), &mut merged.imprecise);
            }
            for (key, value) in &layer.data {
                put(&mut merged.data, &mut merged.origins, key.clone(), floats(value.clone()), at);
            }
        }
        merged.layers = layers;
        merged
    }

    /// Returns the keys whose values were replaced during the merge, sorted by path. For example, a value is replaced
    /// if two EnvironmentConfigs set the same key. If a value was replaced several times, returns only the last
    /// replacement.
    pub fn overwrites(&self) -> Vec<Overwrite<'_>> {
        let mut found = Vec::new();
        overwrites(&self.data, &self.origins, &FieldPath::root(), &mut found);
        found
    }

    /// Returns whether function-environment-configs decides at random which of the two values of an overwritten key
    /// remains. True if both values come from EnvironmentConfigs with different `toFieldPath`. The function groups
    /// EnvironmentConfigs by `toFieldPath`, and merges the groups in random order. Portcullis merges EnvironmentConfigs
    /// in the order of the list.
    pub fn is_random(&self, overwrite: &Overwrite<'_>) -> bool {
        let layer = |at: usize| self.layers.get(at).filter(|layer| matches!(layer.name, LayerName::Config(_)));
        match (layer(overwrite.from), layer(overwrite.by)) {
            (Some(from), Some(by)) => from.to_field_path != by.to_field_path,
            _ => false,
        }
    }

    /// Returns the origin of the key at a path. If no origin is recorded for the key, returns the origin of its nearest
    /// parent that has one. `None` if no parent has an origin.
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

/// Sets `key` in the merged data, and records in `origins` that the layer with index `layer` set it. If the old and the
/// new value are objects, calls itself for each key of the new value. So the recursion is as deep as `value` is nested.
fn put(data: &mut Map<String, Value>, origins: &mut BTreeMap<String, Origin>, key: String, value: Value, layer: usize) {
    match (data.get_mut(&key), value) {
        (Some(Value::Object(there)), Value::Object(members)) => {
            let origin = origins.entry(key).or_default();
            for (key, member) in members {
                put(there, &mut origin.members, key, member, layer);
            }
        }
        (there, value) => {
            let before = there.map(std::mem::take);
            let mut origin = Origin { layer, members: members(&value, layer), ..Origin::default() };
            if let Some(old) = before {
                let last = origins.remove(&key).unwrap_or_default();
                origin.replaced = last.replaced;
                origin.replaced.push(Replaced { layer: last.layer, value: old });
            }
            data.insert(key.clone(), value);
            origins.insert(key, origin);
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

/// Returns whether a value contains an integer that a float64 cannot represent exactly.
fn has_imprecise(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_imprecise(number),
        Value::Array(items) => items.iter().any(has_imprecise),
        Value::Object(members) => members.values().any(has_imprecise),
        _ => false,
    }
}

fn is_imprecise(number: &Number) -> bool {
    let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    // Larger integers are exact if their lowest bits are zero.
    let is_exact = |magnitude: u64| {
        magnitude <= MAX_EXACT || magnitude.trailing_zeros() + 53 >= u64::BITS - magnitude.leading_zeros()
    };
    magnitude.is_some_and(|magnitude| !is_exact(magnitude))
}

fn imprecise(data: &Map<String, Value>, path: &FieldPath, found: &mut Vec<FieldPath>) {
    for (key, value) in data {
        imprecise_value(value, &path.key(key), found);
    }
}

fn imprecise_value(value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
    match value {
        Value::Number(number) if is_imprecise(number) => found.push(path.clone()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| imprecise_value(item, &path.index(at), found));
        }
        Value::Object(members) => imprecise(members, path, found),
        _ => {}
    }
}
