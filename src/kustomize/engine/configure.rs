//! Creates the transformers of a kustomization from its fields.
//!
//! Source: kustomize's `api/internal/target/kusttarget_configplugin.go`.

use std::slice;
use std::sync::Arc;

use serde_json::Value;

use super::config::{Config, Specs};
use super::field_spec::{FieldSpec, merge_all, merge_one};
use super::json6902;
use super::lost::Lost;
use super::namespace::Subjects;
use super::patch::{BadPatch, Patch};
use super::read;
use super::replacements::Sited;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Step, Stop};
use super::target::Target;
use super::transformer::{Transformer, What};
use crate::admission::FieldPath;
use crate::kustomize::file::{self, Kustomization, Label, Patch as WrittenPatch, Replacement};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz014, kz017, kz031};
use crate::yaml::{self, Limits};

const LABELS: &str = "metadata/labels";

/// The position of a kustomization entry with a patch, and the position of its field `path`.
pub(super) struct PatchSite {
    /// The position of the kustomization entry with the patch.
    pub site: Site,
    /// The position of the field `path`, which names the file that contains the patch. Errors about this file are
    /// reported at this position.
    pub path: Site,
}

impl PatchSite {
    fn of_entry(target: &Target<'_>, list: &str, index: usize) -> Self {
        let field = FieldPath::of([list]).index(index);
        Self { site: target.site(field.clone()), path: target.site(field.key("path")) }
    }

    /// Creates the `PatchSite` of a patch that an object configures, such as a `PatchTransformer`. All errors about the
    /// patch are reported at `site`, the position of this object.
    pub(super) fn of_object(site: Site) -> Self {
        Self { path: site.clone(), site }
    }
}

impl Run<'_> {
    /// Returns the built-in transformers that the fields of a kustomization configure, such as `namePrefix` and
    /// `patches`. The transformers are in the order in which kustomize runs them.
    ///
    /// # Errors
    ///
    /// If a patch, a replacement or an entry of `labels` is invalid or cannot be read. Only a build that stops at its
    /// first error returns these errors.
    pub(super) fn built_in_transformers(&self, target: &Target<'_>, config: &Config) -> Step<Vec<Transformer>> {
        let kustomization = &target.file.kustomization;
        let mut list = List { target, transformers: Vec::new() };
        if !kustomization.patches_strategic_merge.is_empty() {
            let site = target.site(FieldPath::of(["patchesStrategicMerge"]));
            let (patches, is_whole) = self.strategic_patches(target, &kustomization.patches_strategic_merge)?;
            if !is_whole {
                list.add(What::LeftOut, site.clone());
            }
            list.add(What::PatchStrategicMerge { patches }, site);
        }
        for (index, entry) in kustomization.patches.iter().enumerate() {
            let site = PatchSite::of_entry(target, "patches", index);
            let what = self.patch(target, entry, &site);
            list.add(self.configured(what)?, site.site);
        }
        list.simple(kustomization, config);
        self.labels(&mut list, kustomization, config)?;
        if !kustomization.common_annotations.is_empty() {
            let annotations = kustomization.common_annotations.clone();
            let what = What::Annotations { annotations, specs: Arc::clone(&config.common_annotations) };
            list.add(what, target.site(FieldPath::of(["commonAnnotations"])));
        }
        for (index, entry) in kustomization.patches_json6902.iter().enumerate() {
            let site = PatchSite::of_entry(target, "patchesJson6902", index);
            let what = self.json6902(target, entry, &site);
            list.add(self.configured(what)?, site.site);
        }
        list.counts_and_images(kustomization, config);
        if !kustomization.replacements.is_empty() {
            let replacements = self.replacements(target, &kustomization.replacements)?;
            list.add(What::Replacement { replacements }, target.site(FieldPath::of(["replacements"])));
        }
        Ok(list.transformers)
    }

    /// Returns the transformer in `what`. If `what` is an error, records the error, and returns a placeholder that
    /// changes no objects, so that the build can continue.
    ///
    /// # Errors
    ///
    /// Returns the error in `what` if the build stops at its first error, or if the error is an exceeded limit.
    fn configured(&self, what: Step<What>) -> Step<What> {
        Ok(self.recover(&mut Lost::Nothing, Lost::Nothing, what)?.unwrap_or(What::LeftOut))
    }

    fn labels(&self, list: &mut List<'_>, kustomization: &Kustomization, config: &Config) -> Step<()> {
        for (index, label) in kustomization.labels.iter().enumerate() {
            let site = list.target.entry("labels", index);
            let what = label_specs(label, config)
                .map(|specs| What::Label { labels: label.pairs.clone(), specs })
                .map_err(|message| Stop::refused(kz031::found(site.clone(), &message)));
            list.add(self.configured(what)?, site);
        }
        if !kustomization.labels.is_empty() || !kustomization.common_labels.is_empty() {
            let labels = kustomization.common_labels.clone();
            let site = list.target.site(FieldPath::of(["commonLabels"]));
            list.add(What::Label { labels, specs: Arc::clone(&config.common_labels) }, site);
        }
        Ok(())
    }

    /// Reads the entries of `patchesStrategicMerge`. An entry is a patch, or the path of a file with patches. Returns
    /// the patches, and whether all entries could be read.
    ///
    /// # Errors
    ///
    /// If an entry is neither a patch nor the path of a file with patches, or if there are no patches. Only a build
    /// that stops at its first error returns these errors.
    pub(super) fn strategic_patches(
        &self,
        target: &Target<'_>,
        entries: &[String],
    ) -> Step<(Vec<(Resource, Site)>, bool)> {
        let (mut patches, mut is_whole) = (Vec::new(), true);
        for (index, entry) in entries.iter().enumerate() {
            let site = target.entry("patchesStrategicMerge", index);
            let read = self.strategic_patch(target, entry, &site);
            match self.recover(&mut Lost::Nothing, Lost::Nothing, read)? {
                Some(objects) => patches.extend(objects.into_iter().map(|object| (object, site.clone()))),
                None => is_whole = false,
            }
        }
        if patches.is_empty() && is_whole {
            let site = target.site(FieldPath::of(["patchesStrategicMerge"]));
            let stop = Stop::refused(kz014::empty_list(site));
            self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(stop))?;
        }
        Ok((patches, is_whole))
    }

    fn strategic_patch(&self, target: &Target<'_>, entry: &str, site: &Site) -> Step<Vec<Resource>> {
        match read::objects_of_text(entry, target.source) {
            Ok(objects) => return Ok(objects),
            Err(bad) if bad.is_open() => return Err(Stop::unknown(site.clone(), format!("the patch {bad}"))),
            Err(_) => {}
        }
        let (path, bytes) = self.load(&target.loader, entry, site)?;
        read::objects(&bytes, self.sources.add(&path)).map_err(|bad| match bad.is_open() {
            true => Stop::unknown(self.site_at(&path, bad.line()), format!("the patch {bad}")),
            false => Stop::refused(kz014::unreadable(site.clone(), &format!("{bad} ({path}:{})", bad.line()))),
        })
    }

    /// Reads an entry of `patches`, and returns the transformer that applies the patch. `at` says where the entry is in
    /// the kustomization file.
    ///
    /// # Errors
    ///
    /// If the entry has no patch. If it has both an inline patch and a path. If the patch is invalid or cannot be read.
    pub(super) fn patch(&self, target: &Target<'_>, entry: &WrittenPatch, at: &PatchSite) -> Step<What> {
        let site = || at.site.clone();
        let inline = entry.patch.trim_matches(|c: char| c.is_whitespace());
        let patch = match (inline.is_empty(), entry.path.is_empty()) {
            (true, true) => return Err(Stop::refused(kz014::without_patch(site()))),
            (false, false) => return Err(Stop::refused(kz014::path_and_patch(site()))),
            (false, true) => Patch::read(inline, target.source),
            (true, false) => {
                let (path, bytes) = self.load(&target.loader, &entry.path, &at.path)?;
                let text = file::text(&bytes).map_err(|_| Stop::refused(kz014::unreadable(site(), NO_TEXT)))?;
                let source = self.sources.add(&path);
                self.patches.map_or_else(|| Patch::read(text, source), |cache| cache.read(&path, text, source))
            }
        };
        let patch = patch.map_err(|bad| match &bad {
            BadPatch::Neither(objects) if objects.is_open() => Stop::unknown(site(), format!("the patch {bad}")),
            bad => Stop::refused(kz014::unreadable(site(), &bad.to_string())),
        })?;
        Ok(What::Patch { patch, target: entry.target.clone(), options: entry.options.clone() })
    }

    /// Reads an entry of `patchesJson6902`, and returns the transformer that applies the patch. `at` says where the
    /// entry is in the kustomization file.
    ///
    /// # Errors
    ///
    /// If the entry has no patch, or no target with a name. If it has both an inline patch and a path. If the patch is
    /// empty, invalid or cannot be read.
    pub(super) fn json6902(&self, target: &Target<'_>, entry: &WrittenPatch, at: &PatchSite) -> Step<What> {
        let unreadable = |why: &str| Stop::refused(kz014::unreadable(at.site.clone(), why));
        let Some(selector) = entry.target.clone().filter(|target| !target.name.is_empty()) else {
            return Err(Stop::refused(kz014::unnamed_target(at.site.clone())));
        };
        let text = match (entry.path.is_empty(), entry.patch.is_empty()) {
            (true, true) => return Err(Stop::refused(kz014::without_patch(at.site.clone()))),
            (false, false) => return Err(Stop::refused(kz014::path_and_patch(at.site.clone()))),
            (true, false) => entry.patch.clone(),
            (false, true) => {
                let (_, bytes) = self.load(&target.loader, &entry.path, &at.path)?;
                file::text(&bytes).map_err(|_| unreadable(NO_TEXT))?.to_owned()
            }
        };
        let patch = json6902::Patch::read(&text).map_err(|_| unreadable("is not a list of operations"))?;
        if patch.is_empty() {
            return Err(Stop::refused(kz014::empty_list(at.site.clone())));
        }
        Ok(What::PatchJson6902 { patch, target: selector })
    }

    /// Returns all replacements of the list `replacements`, including those in files to which entries of the list
    /// refer.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or an entry is invalid. Only a build that stops at its first error returns these
    /// errors.
    pub(super) fn replacements(&self, target: &Target<'_>, entries: &[Replacement]) -> Step<Vec<Sited>> {
        let mut replacements = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let site = target.entry("replacements", index);
            let read = self.replacement(target, entry, index);
            let read = self.recover(&mut Lost::Nothing, Lost::Nothing, read)?.unwrap_or_default();
            replacements.extend(read.into_iter().map(|replacement| Sited { replacement, site: site.clone() }));
        }
        Ok(replacements)
    }

    fn replacement(&self, target: &Target<'_>, entry: &Replacement, index: usize) -> Step<Vec<Replacement>> {
        if entry.path.is_empty() {
            // kustomize omits an empty list when it passes the entry on
            let targets = entry.targets.clone().filter(|targets| !targets.is_empty());
            return Ok(vec![Replacement { targets, ..entry.clone() }]);
        }
        let site = target.entry("replacements", index);
        if entry.source.is_some() || entry.targets.as_ref().is_some_and(|targets| !targets.is_empty()) {
            return Err(Stop::refused(kz017::invalid_replacement(site, "has both a path and a source or targets")));
        }
        let site = target.site(FieldPath::of(["replacements"]).index(index).key("path"));
        let (path, bytes) = self.load(&target.loader, &entry.path, &site)?;
        let refused = |site: Site, why: &str| Stop::refused(kz017::invalid_replacement(site, why));
        let text = file::text(&bytes).map_err(|_| refused(site.clone(), "contains bytes that YAML does not allow"))?;
        let document = yaml::first(text, &Limits::default()).map_err(|error| {
            let at = Site { place: error.place, ..Site::of_file(path.clone()) };
            match error.problem.is_open() {
                true => Stop::unknown(at, error.problem.to_string()),
                false => refused(at, &format!("is not YAML: {}", error.problem)),
            }
        })?;
        let value = document.as_ref().map_or(&Value::Null, |document| &document.value);
        let (items, is_list) = match value {
            Value::Array(items) => (items.as_slice(), true),
            Value::Object(_) => (slice::from_ref(value), false),
            _ => return Err(refused(site, "is neither a replacement nor a list of them")),
        };
        let read = items.iter().enumerate().map(|(index, item)| {
            file::replacement(item).map_err(|(at, why)| {
                let at = if is_list { FieldPath::root().index(index).join(&at) } else { at };
                refused(site.clone(), &format!("cannot be read: {at}: {why}"))
            })
        });
        read.collect()
    }
}

/// The error message for bytes that go-yaml rejects.
const NO_TEXT: &str = "contains bytes that YAML does not allow";

struct List<'t> {
    target: &'t Target<'t>,
    transformers: Vec<Transformer>,
}

impl List<'_> {
    fn add(&mut self, what: What, site: Site) {
        let origin = self.target.origin(&site);
        let file = self.target.file.path.name();
        let note = self.target.note.as_ref().map(|note| note.built_in(file, what.name()));
        self.transformers.push(Transformer { what, site, origin, note });
    }

    fn simple(&mut self, kustomization: &Kustomization, config: &Config) {
        let site = |field: &str| self.target.site(FieldPath::of([field]));
        let sites = [site("namespace"), site("namePrefix"), site("nameSuffix")];
        let [namespace_site, prefix_site, suffix_site] = sites;
        if !kustomization.namespace.is_empty() {
            let namespace = kustomization.namespace.clone();
            let specs = Arc::clone(&config.namespace);
            let what = What::Namespace { namespace, specs, unset_only: false, subjects: Subjects::Default };
            self.add(what, namespace_site);
        }
        if !kustomization.name_prefix.is_empty() {
            let prefix = kustomization.name_prefix.clone();
            self.add(What::Prefix { prefix, specs: Arc::clone(&config.name_prefix) }, prefix_site);
        }
        if !kustomization.name_suffix.is_empty() {
            let suffix = kustomization.name_suffix.clone();
            self.add(What::Suffix { suffix, specs: Arc::clone(&config.name_suffix) }, suffix_site);
        }
    }

    fn counts_and_images(&mut self, kustomization: &Kustomization, config: &Config) {
        for (index, replica) in kustomization.replicas.iter().enumerate() {
            let site = self.target.entry("replicas", index);
            self.add(What::ReplicaCount { replica: replica.clone(), specs: Arc::clone(&config.replicas) }, site);
        }
        for (list, images) in [("images", &kustomization.images), ("imageTags", &kustomization.image_tags)] {
            for (index, image) in images.iter().enumerate() {
                let site = self.target.entry(list, index);
                self.add(What::ImageTag { image: image.clone(), specs: Arc::clone(&config.images) }, site);
            }
        }
    }
}

/// Returns the field specs of the fields in which an entry of `labels` sets its labels. Returns an error message if a
/// field spec of the entry is invalid or conflicts with another one.
fn label_specs(label: &Label, config: &Config) -> Result<Specs, String> {
    let decode =
        |value: &Value| serde_json::from_value::<super::config::WrittenSpec>(value.clone()).map(FieldSpec::from);
    let mut specs: Vec<FieldSpec> =
        label.fields.iter().map(decode).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let merged =
        merge_all(&mut specs, &config.labels).and_then(|()| match (label.include_selectors, label.include_templates) {
            (true, _) => merge_all(&mut specs, &config.common_labels),
            (false, templates) => {
                if templates {
                    merge_all(&mut specs, &config.template_labels)?;
                }
                merge_one(&mut specs, &FieldSpec::of_all(LABELS, true))
            }
        });
    merged.map_err(|conflict| format!("failed to merge labels: {conflict}"))?;
    Ok(Arc::new(specs.into()))
}

impl What {
    /// Returns the name of the transformer in kustomize, such as `PatchTransformer`. It is empty for [`What::LeftOut`].
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::PatchStrategicMerge { .. } => "PatchStrategicMergeTransformer",
            Self::Patch { .. } => "PatchTransformer",
            Self::PatchJson6902 { .. } => "PatchJson6902Transformer",
            Self::Namespace { .. } => "NamespaceTransformer",
            Self::Prefix { .. } => "PrefixTransformer",
            Self::Suffix { .. } => "SuffixTransformer",
            Self::Label { .. } => "LabelTransformer",
            Self::Annotations { .. } => "AnnotationsTransformer",
            Self::ReplicaCount { .. } => "ReplicaCountTransformer",
            Self::ImageTag { .. } => "ImageTagTransformer",
            Self::Replacement { .. } => "ReplacementTransformer",
            Self::Hash => "HashTransformer",
            Self::ValueAdd { .. } => "ValueAddTransformer",
            Self::LeftOut => "",
        }
    }
}
