//! Merges the spec of a Flux Kustomization into the kustomization file in the folder `spec.path`.
//!
//! Flux does not transform objects itself. It edits the kustomization file. kustomize then applies the transformations
//! in its own order.

use crate::admission::FieldPath;
use crate::admission::field::Segment;
use crate::kustomize::file::{Image, Kustomization, KustomizationFile};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::FluxSpec;
use crate::kustomize::rules::kz011;

/// A record of which parts of a kustomization file come from the spec of a Flux Kustomization. For lists, it stores how
/// many entries the file had before Flux added entries.
#[derive(Debug, Clone, Copy)]
pub(in crate::kustomize) struct Own {
    components: usize,
    patches: usize,
    images: usize,
    namespace: bool,
    name_prefix: bool,
    name_suffix: bool,
}

/// The build metadata that Flux adds to a kustomization file without resources. Without this build metadata, the file
/// could be empty, and kustomize rejects empty files.
const ORIGINS: &str = "originAnnotations";

impl Own {
    /// Counts the components, patches and images of a kustomization file. Must be called before the spec of the Flux
    /// Kustomization is merged into the file, because the merge adds entries to these lists.
    pub(in crate::kustomize) fn of(kustomization: &Kustomization) -> Self {
        let (components, patches) = (kustomization.components.len(), kustomization.patches.len());
        let images = kustomization.images.len();
        Self { components, patches, images, namespace: true, name_prefix: true, name_suffix: true }
    }

    /// Returns the path in the Flux Kustomization from which a field of the merged kustomization file was copied. For
    /// example, returns `spec.targetNamespace` for `namespace`. Returns `None` if the field was not copied from the
    /// Flux Kustomization.
    pub(in crate::kustomize) fn in_spec(&self, field: &FieldPath) -> Option<FieldPath> {
        let spec = |name: &str| FieldPath::of(["spec", name]);
        let (first, rest) = field.segments().split_first()?;
        let Segment::Key(key) = first else { return None };
        let (moved, rest) = match (&**key, rest) {
            ("components", [Segment::Index(at), rest @ ..]) => {
                (spec("components").index(at.checked_sub(self.components)?), rest)
            }
            ("patches", [Segment::Index(at), rest @ ..]) => {
                (spec("patches").index(at.checked_sub(self.patches)?), rest)
            }
            ("images", [Segment::Index(at), ..]) if *at >= self.images => (spec("images"), &[][..]),
            ("namespace", rest) if !self.namespace => (spec("targetNamespace"), rest),
            ("namePrefix", rest) if !self.name_prefix => (spec("namePrefix"), rest),
            ("nameSuffix", rest) if !self.name_suffix => (spec("nameSuffix"), rest),
            _ => return None,
        };
        Some(rest.iter().fold(moved, |path, segment| match segment {
            Segment::Key(key) => path.key(key),
            Segment::Index(index) => path.index(*index),
        }))
    }
}

/// Sets `buildMetadata` to `originAnnotations` if the kustomization file has no resources, as Flux does. Otherwise the
/// file could be empty, and kustomize rejects empty files. Flux does this before it merges the spec of the Flux
/// Kustomization into the file.
pub(in crate::kustomize) fn complete(kustomization: &mut Kustomization) {
    if kustomization.resources.is_empty() {
        kustomization.build_metadata = vec![ORIGINS.to_owned()];
    }
}

/// Merges the spec of a Flux Kustomization into `file`, the kustomization file of the folder `spec.path`. `is_there`
/// returns whether a component exists.
///
/// Returns a record of the parts that come from the spec, and the errors that Flux reports.
pub(in crate::kustomize) fn merge(
    file: &mut KustomizationFile,
    spec: &FluxSpec,
    is_there: &dyn Fn(&str) -> bool,
) -> (Own, Vec<TreeFinding>) {
    let mut own = Own::of(&file.kustomization);
    let kustomization = &mut file.kustomization;
    own.namespace = !replace(&mut kustomization.namespace, spec.target_namespace.as_ref());
    own.name_prefix = !replace(&mut kustomization.name_prefix, spec.name_prefix.as_ref());
    own.name_suffix = !replace(&mut kustomization.name_suffix, spec.name_suffix.as_ref());
    kustomization.patches.extend(spec.patches.iter().cloned());
    spec.images.iter().for_each(|image| set_image(&mut kustomization.images, image));
    if !spec.build_metadata.is_empty() {
        kustomization.build_metadata.clone_from(&spec.build_metadata);
    }
    let mut findings = Vec::new();
    for (index, entry) in spec.components.iter().enumerate() {
        if !kz011::is_local(entry) {
            let field = FieldPath::of(["spec", "components"]).index(index);
            findings.push(kz011::found(Site { field, ..Site::of_file(file.path.clone()) }, entry));
        } else if !spec.ignore_missing_components || is_there(entry) {
            kustomization.components.push(entry.clone());
        }
    }
    (own, findings)
}

/// Adds `image` to the list `images`. If the list already has an image with the same name, changes this image instead:
/// overwrites its `new_name` if `image` sets `new_name`, and overwrites both its tag and its digest if `image` sets one
/// of them.
fn set_image(images: &mut Vec<Image>, image: &Image) {
    let Some(own) = images.iter_mut().find(|own| own.name == image.name) else {
        return images.push(image.clone());
    };
    if !image.new_name.is_empty() {
        own.new_name.clone_from(&image.new_name);
    }
    if !image.new_tag.is_empty() || !image.digest.is_empty() {
        own.new_tag.clone_from(&image.new_tag);
        own.digest.clone_from(&image.digest);
    }
}

fn replace(field: &mut String, by: Option<&String>) -> bool {
    by.inspect(|text| field.clone_from(text)).is_some()
}
