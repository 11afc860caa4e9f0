//! The field specs of all transformers. A field spec names a field that a transformer changes. Some field specs are
//! built in. Others come from files that are listed in the fields `configurations` and `crds`.
//!
//! Source: kustomize's `api/internal/plugins/builtinconfig`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::field_spec::{Conflict, FieldSpec, Text, merge_all};
use super::sort;
use crate::kustomize::identity::Gvk;

// the built-in field specs, as `build.rs` writes them from `field_specs.txt`
include!(concat!(env!("OUT_DIR"), "/field_specs.rs"));

/// A list of field specs. It is reference-counted, because most values of [`Config`] use the same list.
pub(super) type Specs = Arc<Cow<'static, [FieldSpec]>>;

/// The fields that refer to objects of a kind by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameReference {
    /// The API group of the referenced objects; empty for any.
    pub group: Text,
    /// The version of the referenced objects; empty for any.
    pub version: Text,
    /// The kind of the referenced objects; empty for any.
    pub kind: Text,
    /// The fields that contain the name of a referenced object, such as `spec/volumes/configMap/name`.
    pub referrers: Cow<'static, [FieldSpec]>,
}

impl NameReference {
    /// Returns the group, version and kind of the referenced objects.
    pub(super) fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }
}

/// The field specs of all transformers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the file of `configurations`")]
pub(super) struct Config {
    pub name_prefix: Specs,
    pub name_suffix: Specs,
    pub namespace: Specs,
    pub common_labels: Specs,
    pub labels: Specs,
    pub template_labels: Specs,
    pub common_annotations: Specs,
    pub name_reference: Cow<'static, [NameReference]>,
    pub var_reference: Specs,
    pub images: Specs,
    pub replicas: Specs,
}

static DEFAULT: LazyLock<Arc<Config>> = LazyLock::new(|| Arc::new(built_in()));
static EMPTY: LazyLock<Arc<Config>> = LazyLock::new(Arc::default);

impl Config {
    /// Returns the built-in field specs.
    pub(super) fn built_in() -> Arc<Self> {
        Arc::clone(&DEFAULT)
    }

    /// Returns a configuration without field specs. All callers share its memory.
    pub(super) fn empty() -> Arc<Self> {
        Arc::clone(&EMPTY)
    }

    /// Adds the field specs of another configuration, except those that this configuration already has.
    ///
    /// # Errors
    ///
    /// If two specs of the same field have different values of `create`.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), Conflict> {
        for (own, others) in self.lists_mut().into_iter().zip(other.lists()) {
            merge_specs(own, others)?;
        }
        for reference in &*other.name_reference {
            self.merge_reference(reference)?;
        }
        self.sort();
        Ok(())
    }

    fn merge_reference(&mut self, reference: &NameReference) -> Result<(), Conflict> {
        let mut is_known = false;
        let all = self.name_reference.to_mut();
        for own in all.iter_mut().filter(|own| own.gvk() == reference.gvk()) {
            merge_all(own.referrers.to_mut(), &reference.referrers)?;
            is_known = true;
        }
        if !is_known {
            all.push(reference.clone());
        }
        Ok(())
    }

    /// Sorts the field specs in each list by kind, in the order in which kustomize sorts kinds.
    fn sort(&mut self) {
        for list in self.lists_mut() {
            let is_sorted = list.is_sorted_by(|a, b| sort::by_kind(&a.gvk(), &b.gvk()).is_le());
            if !is_sorted {
                Arc::make_mut(list).to_mut().sort_by(|a, b| sort::by_kind(&a.gvk(), &b.gvk()));
            }
        }
        self.name_reference.to_mut().sort_by(|a, b| sort::by_kind(&a.gvk(), &b.gvk()));
    }

    fn lists(&self) -> [&Specs; 10] {
        [
            &self.name_prefix,
            &self.name_suffix,
            &self.namespace,
            &self.common_annotations,
            &self.common_labels,
            &self.labels,
            &self.template_labels,
            &self.var_reference,
            &self.images,
            &self.replicas,
        ]
    }

    fn lists_mut(&mut self) -> [&mut Specs; 10] {
        [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_annotations,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.var_reference,
            &mut self.images,
            &mut self.replicas,
        ]
    }

    fn list(&mut self, name: &str) -> Option<&mut Specs> {
        Some(match name {
            "namePrefix" => &mut self.name_prefix,
            "nameSuffix" => &mut self.name_suffix,
            "namespace" => &mut self.namespace,
            "commonLabels" => &mut self.common_labels,
            "labels" => &mut self.labels,
            "templateLabels" => &mut self.template_labels,
            "commonAnnotations" => &mut self.common_annotations,
            "varReference" => &mut self.var_reference,
            "images" => &mut self.images,
            "replicas" => &mut self.replicas,
            _ => return None,
        })
    }
}

/// Adds the field specs in `others` to `own`, except those that `own` already has.
fn merge_specs(own: &mut Specs, others: &Specs) -> Result<(), Conflict> {
    if Arc::ptr_eq(own, others) || others.is_empty() {
        return Ok(());
    }
    merge_all(Arc::make_mut(own).to_mut(), others)
}

/// Adds the field specs of `other` to the configuration `own`. A field spec names a field that a transformer changes.
/// If `own` is empty and `other` is kustomize's built-in configuration, `own` then shares the memory of `other`.
///
/// # Errors
///
/// If two specs of the same field have different values of `create`.
pub(super) fn merge_shared(own: &mut Arc<Config>, other: &Arc<Config>) -> Result<(), Conflict> {
    if Arc::ptr_eq(own, other) {
        return Ok(());
    }
    // merging a list into an empty one can drop specs, see `FieldSpec::covers`, but drops no built-in spec
    let is_empty = Arc::ptr_eq(own, &EMPTY) || *own == *EMPTY;
    if is_empty && Arc::ptr_eq(other, &DEFAULT) {
        own.clone_from(other);
        return Ok(());
    }
    Arc::make_mut(own).merge(other)
}

/// Returns the built-in field specs. Their lists are sorted.
fn built_in() -> Config {
    let mut config = Config { name_reference: Cow::Borrowed(&NAME_REFERENCES), ..Config::default() };
    for (name, specs) in LISTS {
        if let Some(list) = config.list(name) {
            *list = Arc::new(Cow::Borrowed(specs));
        }
    }
    config
}

/// A field spec as it is written in a file of `configurations`, in `fields` of `labels`, or in a plugin configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenSpec {
    group: String,
    version: String,
    kind: String,
    path: String,
    create: bool,
}

impl From<WrittenSpec> for FieldSpec {
    fn from(spec: WrittenSpec) -> Self {
        let WrittenSpec { group, version, kind, path, create } = spec;
        Self { group: group.into(), version: version.into(), kind: kind.into(), path: path.into(), create }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrittenReference {
    group: String,
    version: String,
    kind: String,
    field_specs: Vec<WrittenSpec>,
}

/// The decoded content of a file that is listed in the field `configurations`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Written {
    name_prefix: Vec<WrittenSpec>,
    name_suffix: Vec<WrittenSpec>,
    namespace: Vec<WrittenSpec>,
    common_labels: Vec<WrittenSpec>,
    labels: Vec<WrittenSpec>,
    template_labels: Vec<WrittenSpec>,
    common_annotations: Vec<WrittenSpec>,
    name_reference: Vec<WrittenReference>,
    var_reference: Vec<WrittenSpec>,
    images: Vec<WrittenSpec>,
    replicas: Vec<WrittenSpec>,
}

impl From<Written> for Config {
    fn from(written: Written) -> Self {
        let specs = |list: Vec<WrittenSpec>| list.into_iter().map(FieldSpec::from).collect::<Vec<_>>();
        let list = |written| Arc::new(specs(written).into());
        let reference = |written: WrittenReference| NameReference {
            group: written.group.into(),
            version: written.version.into(),
            kind: written.kind.into(),
            referrers: specs(written.field_specs).into(),
        };
        let mut config = Self {
            name_prefix: list(written.name_prefix),
            name_suffix: list(written.name_suffix),
            namespace: list(written.namespace),
            common_labels: list(written.common_labels),
            labels: list(written.labels),
            template_labels: list(written.template_labels),
            common_annotations: list(written.common_annotations),
            name_reference: written.name_reference.into_iter().map(reference).collect(),
            var_reference: list(written.var_reference),
            images: list(written.images),
            replicas: list(written.replicas),
        };
        config.sort();
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_lists_are_sorted() {
        let mut sorted = built_in();
        sorted.sort();
        assert!(sorted == built_in());
        assert_eq!(sorted.name_reference.len(), 16);
    }

    #[test]
    fn every_line_of_the_table_is_a_field_spec() {
        let lines = include_str!("field_specs.txt").lines().filter(|line| line.starts_with(' ')).count();
        let mut config = built_in();
        let lists: usize = LISTS.iter().map(|(name, _)| config.list(name).map_or(0, |list| list.len())).sum();
        let referrers: usize = config.name_reference.iter().map(|reference| reference.referrers.len()).sum();
        assert_eq!(lists + referrers, lines);
    }
}
