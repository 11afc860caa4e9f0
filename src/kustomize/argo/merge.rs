//! Applies the kustomize options of an Argo CD source to the kustomization file of the source.
//!
//! Argo CD runs `kustomize edit` for each option except `patches`, so kustomize determines how the option changes the
//! file. Argo CD itself appends the entries of `patches` to the file. Then it builds the folder.
//!
//! Source: `Build` in argo-cd's `util/kustomize/kustomize.go` (3.5), and kustomize's `commands/edit` (5.8.1).

use std::collections::{BTreeMap, BTreeSet};

use crate::admission::FieldPath;
use crate::admission::field::Segment;
use crate::kustomize::file::{Image, Kustomization, KustomizationFile, Label, Replica};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::glob::matching;
use crate::kustomize::options::ArgoSpec;
use crate::kustomize::rules::{kz004, kz031};
use crate::kustomize::tree::{Tree, TreePath};

/// A record of which parts of a kustomization file come from the kustomize options of an Argo CD Application. Findings
/// about these parts name the field of the Application. The record does not include labels, annotations and replicas.
#[derive(Debug, Clone)]
pub(in crate::kustomize) struct Own {
    field: FieldPath,
    /// The number of entries in `patches` of the original kustomization file. Later entries come from the kustomize
    /// options of the Argo CD Application.
    patches: usize,
    /// The origin of the entries in `components` of the kustomization file. The first value is the number of entries in
    /// the original file. All later entries come from the option `components` of the Argo CD Application. The second
    /// value has one element for each later entry: the index in this option from which the entry comes.
    components: (usize, Vec<usize>),
    /// The fields `namePrefix`, `nameSuffix`, `namespace` and `images` of the kustomization file, if the Argo CD
    /// Application sets them. Each pair has the name of the field, and the name of the option in the Application that
    /// sets it.
    set: Vec<(&'static str, &'static str)>,
}

impl Own {
    /// Returns the field of the Argo CD Application from which a field of the merged kustomization file comes. `None`
    /// for a field of the original file. Also `None` for labels, annotations and replicas, because their origin is not
    /// recorded.
    pub(in crate::kustomize) fn in_spec(&self, field: &FieldPath) -> Option<FieldPath> {
        let (first, rest) = field.segments().split_first()?;
        let Segment::Key(key) = first else { return None };
        let (moved, rest) = match (&**key, rest) {
            ("patches", [Segment::Index(at), rest @ ..]) => {
                (self.field.key("patches").index(at.checked_sub(self.patches)?), rest)
            }
            ("components", [Segment::Index(at), rest @ ..]) => {
                let (own, others) = &self.components;
                (self.field.key("components").index(*others.get(at.checked_sub(*own)?)?), rest)
            }
            (key, _) => {
                let (_, option) = self.set.iter().find(|(field, _)| *field == key)?;
                (self.field.key(option), &[][..])
            }
        };
        Some(rest.iter().fold(moved, |path, segment| match segment {
            Segment::Key(key) => path.key(key),
            Segment::Index(index) => path.index(*index),
        }))
    }
}

/// Applies `spec`, the kustomize options of an Argo CD source, to the kustomization file in the folder `root` of
/// `tree`. Returns a record of the fields that the options set, and the errors that make Argo CD fail.
pub(in crate::kustomize) fn merge(
    file: &mut KustomizationFile,
    spec: &ArgoSpec,
    tree: &Tree,
    root: &TreePath,
) -> (Own, Vec<TreeFinding>) {
    let path = file.path.clone();
    let site = |option: &str| Site { field: spec.field.key(option), ..Site::of_file(path.clone()) };
    let kustomization = &mut file.kustomization;
    let (patches, components) = (kustomization.patches.len(), kustomization.components.len());
    let mut findings = Vec::new();
    let mut set = set_texts(kustomization, spec);
    findings.extend(set_images(kustomization, spec).map(|message| kz031::found(site("images"), &message)));
    if !spec.images.is_empty() {
        set.push(("images", "images"));
    }
    set_replicas(kustomization, &spec.replicas);
    if spec.label_include_templates && !spec.label_without_selector && !spec.common_labels.is_empty() {
        let message = "labelIncludeTemplates needs labelWithoutSelector";
        findings.push(kz031::found(site("labelIncludeTemplates"), message).help("set labelWithoutSelector: true"));
    }
    let labels = add_labels(kustomization, spec);
    findings.extend(labels.into_iter().map(|key| exists(&site("commonLabels"), &key, "forceCommonLabels")));
    let added = add(&mut kustomization.common_annotations, &spec.common_annotations, spec.force_common_annotations);
    let annotations = added.into_iter().map(|key| exists(&site("commonAnnotations"), &key, "forceCommonAnnotations"));
    findings.extend(annotations);
    kustomization.patches.extend(spec.patches.iter().cloned());
    let (added, missing) = add_components(kustomization, spec, tree, root, &site("components"));
    findings.extend(missing);
    (Own { field: spec.field.clone(), patches, components: (components, added), set }, findings)
}

/// Copies the options `namePrefix`, `nameSuffix` and `namespace` to the kustomization file. Returns a pair for each
/// copied option. The pair has the name of the field in the file, and the name of the option.
fn set_texts(kustomization: &mut Kustomization, spec: &ArgoSpec) -> Vec<(&'static str, &'static str)> {
    let mut set = Vec::new();
    for (field, option, value) in [
        ("namePrefix", &mut kustomization.name_prefix, &spec.name_prefix),
        ("nameSuffix", &mut kustomization.name_suffix, &spec.name_suffix),
        ("namespace", &mut kustomization.namespace, &spec.namespace),
    ] {
        if !value.is_empty() {
            option.clone_from(value);
            set.push((field, field));
        }
    }
    set
}

/// Adds components as `kustomize edit add component` does. For each added component, returns its index in the option
/// `components`. Also returns findings about missing components.
fn add_components(
    kustomization: &mut Kustomization,
    spec: &ArgoSpec,
    tree: &Tree,
    root: &TreePath,
    of_components: &Site,
) -> (Vec<usize>, Vec<TreeFinding>) {
    let (mut added, mut findings) = (Vec::new(), Vec::new());
    for (index, entry) in spec.components.iter().enumerate() {
        let site = || Site { field: of_components.field.index(index), ..of_components.clone() };
        // This also skips patterns, which are not existing paths.
        if spec.ignore_missing_components && tree.locate(root, entry).is_err() {
            continue;
        }
        match matching(tree, root, entry) {
            found if found.is_empty() => findings.push(kz004::missing(site(), entry, root, None, None)),
            found => {
                for component in found.into_iter().filter(|found| !spec.components[..index].contains(found)) {
                    if !kustomization.components.contains(&component) {
                        kustomization.components.push(component);
                        added.push(index);
                    }
                }
            }
        }
    }
    (added, findings)
}

/// Applies image options as `kustomize edit set image` does, and sorts the images by name. Returns an error message if
/// an option is invalid.
fn set_images(kustomization: &mut Kustomization, spec: &ArgoSpec) -> Option<String> {
    if spec.images.is_empty() {
        return None;
    }
    let mut images: BTreeMap<String, Image> = BTreeMap::new();
    for text in &spec.images {
        let Some(image) = image(text) else {
            return Some(format!("\"{text}\" sets neither a name nor a tag or digest"));
        };
        images.insert(image.name.clone(), image);
    }
    for old in &kustomization.images {
        let new = images.entry(old.name.clone()).or_insert_with(|| old.clone());
        let keep = |new: &mut String, old: &String| {
            if new == PRESERVE {
                new.clone_from(old);
            }
        };
        keep(&mut new.new_name, &old.new_name);
        keep(&mut new.new_tag, &old.new_tag);
        keep(&mut new.digest, &old.digest);
    }
    for image in images.values_mut() {
        let fields = [&mut image.new_name, &mut image.new_tag, &mut image.digest];
        fields.into_iter().filter(|field| *field == PRESERVE).for_each(String::clear);
    }
    kustomization.images = images.into_values().collect();
    None
}

/// A placeholder for the name, tag or digest in an image option. With this placeholder, the value in the kustomization
/// file is kept.
const PRESERVE: &str = "*";

/// Parses an image option of the form `[NAME=]IMAGE[:TAG][@DIGEST]`. `None` if the option sets no new name, no tag and
/// no digest.
fn image(text: &str) -> Option<Image> {
    let (key, value) = text.split_once('=').map_or((None, text), |(key, value)| (Some(key), value));
    let (name, tag, digest) = split(value);
    if name == text {
        return None;
    }
    let (name, new_name) = key.map_or((name, ""), |key| (key, name));
    let owned = str::to_owned;
    let (name, new_name, new_tag, digest) = (owned(name), owned(new_name), owned(tag), owned(digest));
    Some(Image { name, new_name, new_tag, digest, ..Image::default() })
}

/// Splits an image into name, tag and digest. A colon before the first slash belongs to the host.
fn split(image: &str) -> (&str, &str, &str) {
    let from = image.find('/').unwrap_or_default();
    let (rest, digest) = match image.get(from..).and_then(|rest| rest.find('@')) {
        Some(at) => (&image[..from + at], &image[from + at + 1..]),
        None => (image, ""),
    };
    match rest.get(from..).and_then(|rest| rest.find(':')) {
        Some(at) => (&rest[..from + at], &rest[from + at + 1..], digest),
        None => (rest, "", digest),
    }
}

/// Sets replica counts as `kustomize edit set replicas` does. Sorts the entries by name.
fn set_replicas(kustomization: &mut Kustomization, replicas: &[Replica]) {
    if replicas.is_empty() {
        return;
    }
    let by_name = |replica: &Replica| (replica.name.clone(), replica.clone());
    let mut all: BTreeMap<_, _> = kustomization.replicas.iter().map(by_name).collect();
    all.extend(replicas.iter().map(by_name));
    kustomization.replicas = all.into_values().collect();
}

/// Adds labels to a kustomization file, as `kustomize edit add label` does. The labels are from the option
/// `commonLabels` of an Argo CD Application. Returns the keys of labels that are not added, because the file already
/// has them.
fn add_labels(kustomization: &mut Kustomization, spec: &ArgoSpec) -> Vec<String> {
    if !spec.label_without_selector {
        return add(&mut kustomization.common_labels, &spec.common_labels, spec.force_common_labels);
    }
    if spec.common_labels.is_empty() {
        return Vec::new();
    }
    let is_like = |label: &Label| !label.include_selectors && label.include_templates == spec.label_include_templates;
    let at = kustomization.labels.iter().position(is_like).unwrap_or_else(|| {
        kustomization.labels.push(Label { include_templates: spec.label_include_templates, ..Label::default() });
        kustomization.labels.len() - 1
    });
    add(&mut kustomization.labels[at].pairs, &spec.common_labels, spec.force_common_labels)
}

/// Adds the labels or annotations in `new` to `known`. If a key is already in `known` and `is_forced` is true,
/// overwrites its value. If `is_forced` is false, keeps the value, and returns the key in the result.
fn add(known: &mut BTreeMap<String, String>, new: &BTreeMap<String, String>, is_forced: bool) -> Vec<String> {
    let existing: BTreeSet<String> = new.keys().filter(|key| !is_forced && known.contains_key(*key)).cloned().collect();
    let added = new.iter().filter(|(key, _)| !existing.contains(*key));
    known.extend(added.map(|(key, value)| (key.clone(), value.clone())));
    existing.into_iter().collect()
}

fn exists(site: &Site, key: &str, option: &str) -> TreeFinding {
    let site = Site { field: site.field.key(key), ..site.clone() };
    kz031::found(site, &format!("{key} is already set in the kustomization file, and Argo CD fails"))
        .help(format!("set {option}: true to overwrite it, or remove it here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_images_as_kustomize_does() {
        let parsed = |text: &str| {
            image(text).map(|Image { name, new_name, new_tag, digest, .. }| [name, new_name, new_tag, digest].join("|"))
        };
        assert_eq!(parsed("node:8.15").as_deref(), Some("node||8.15|"));
        assert_eq!(parsed("mysql=mariadb").as_deref(), Some("mysql|mariadb||"));
        assert_eq!(parsed("a=host:5000/b:1@sha256:x").as_deref(), Some("a|host:5000/b|1|sha256:x"));
        assert_eq!(parsed("alpine@sha256:x").as_deref(), Some("alpine|||sha256:x"));
        assert_eq!(parsed("host:5000/b"), None);
    }
}
