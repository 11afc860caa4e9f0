//! From the fields of a kustomization to generators and transformers.
//!
//! Source: kustomize's `api/internal/target/kusttarget_configplugin.go`.

use std::sync::Arc;

use serde_json::Value;

use super::config::{Config, Specs, Written, merge_shared};
use super::field_spec::{FieldSpec, merge_all, merge_one};
use super::generate::{self, Made, Pairs};
use super::id::Gvk;
use super::json6902;
use super::namespace::Subjects;
use super::patches::Patch;
use super::resource::Resource;
use super::run::{Run, Target, bad_objects};
use super::stop::{Step, Stop};
use super::target::Accumulator;
use super::transformer::{Transformer, What};
use super::{crds, read};
use crate::admission::FieldPath;
use crate::kustomize::file::{
    self, BadFile, Generator, GeneratorOptions, Kustomization, Label, Patch as Written6902, Replacement,
};
use crate::kustomize::finding::Site;
use crate::kustomize::schema::Schema;
use crate::yaml::{self, Limits};

const LABELS: &str = "metadata/labels";
/// The one version of the built-in schema.
const SCHEMA_VERSION: &str = "v1.21.2";

impl Run<'_> {
    /// Uses the schema that a kustomization names, unless one is already set.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn openapi(&mut self, target: &Target<'_>, is_root: bool) -> Step<()> {
        let openapi = &target.file.kustomization.openapi;
        let site = |key: &str| target.site(FieldPath::of(["openapi", key]));
        let schema = match openapi.get("path") {
            Some(path) => Some(self.load(&target.loader, path, &site("path"))?.1),
            None => None,
        };
        if self.has_schema && !is_root {
            return Ok(());
        }
        let version = openapi.get("version");
        match (schema, version) {
            (Some(_), Some(_)) => {
                Err(Stop::refused(site("version"), "a version and a path of a schema cannot both be given"))
            }
            (Some(bytes), None) => {
                let text =
                    file::text(&bytes).map_err(|_| Stop::refused(site("path"), "it is not text that YAML allows"))?;
                let schema = Schema::read_beside(text, self.beside.get().filter(|_| !is_root))
                    .map_err(|message| Stop::refused(site("path"), message.to_string()))?;
                (self.schema, self.has_schema) = (schema, true);
                Ok(())
            }
            (None, Some(version)) if !version.is_empty() => {
                if version != SCHEMA_VERSION {
                    return Err(Stop::refused(site("version"), format!("the only version is {SCHEMA_VERSION}")));
                }
                self.has_schema = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Merges the built-in field specs and the files of `configurations`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or two specs disagree.
    pub(super) fn configurations(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let mut own = Config::built_in();
        let files = &target.file.kustomization.configurations;
        let mut read = Arc::new(Config::default());
        for (index, entry) in files.iter().enumerate() {
            let site = target.entry("configurations", index);
            let config = Arc::new(self.configuration(target, entry, &site)?);
            merge_shared(&mut read, &config).map_err(|conflict| Stop::refused(site, conflict.to_string()))?;
        }
        let site = || target.site(FieldPath::of(["configurations"]));
        if !files.is_empty() {
            merge_shared(&mut own, &read).map_err(|conflict| Stop::refused(site(), conflict.to_string()))?;
        }
        merge_shared(&mut acc.config, &own).map_err(|conflict| Stop::refused(site(), conflict.to_string()))
    }

    fn configuration(&self, target: &Target<'_>, entry: &str, site: &Site) -> Step<Config> {
        let (path, bytes) = self.load(&target.loader, entry, site)?;
        let refused = |message: String| Stop::refused(Site::of_file(path.clone()), message);
        let (value, faults, document) = file::configuration(&bytes).map_err(|bad| match bad {
            BadFile::Limit(error) => Stop::unknown(Site::of_file(path.clone()), error.problem.to_string()),
            BadFile::Yaml(error) => refused(error.problem.to_string()),
            BadFile::Encoding(_) | BadFile::Utf16 => refused("it is not text that YAML allows".to_owned()),
        })?;
        if let Some(fault) = faults.first() {
            return Err(refused(format!("{} cannot be decoded", fault.path)));
        }
        if let Some(duplicate) = document.and_then(|document| document.duplicates().into_iter().next()) {
            return Err(refused(format!("{} is defined more than once", duplicate.path)));
        }
        let written: Written = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        Ok(Config::from(written))
    }

    /// Merges the field specs of `crds`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or two specs conflict.
    pub(super) fn crds(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        for (index, entry) in target.file.kustomization.crds.iter().enumerate() {
            let site = target.entry("crds", index);
            let (path, bytes) = self.load(&target.loader, entry, &site)?;
            let read = crds::config(&bytes).map_err(|failed| failed.at(Site::of_file(path)))?;
            merge_shared(&mut acc.config, &Arc::new(read))
                .map_err(|conflict| Stop::refused(site, conflict.to_string()))?;
        }
        Ok(())
    }

    /// Runs `configMapGenerator`, `secretGenerator` and `helmCharts`.
    ///
    /// # Errors
    ///
    /// If a source cannot be read, or there are charts.
    pub(super) fn built_in_generators(&self, target: &Target<'_>) -> Step<Vec<(Resource, Site)>> {
        let kustomization = &target.file.kustomization;
        let lists = [
            ("configMapGenerator", Made::ConfigMap, &kustomization.config_map_generator),
            ("secretGenerator", Made::Secret, &kustomization.secret_generator),
        ];
        let mut made = Vec::new();
        for (list, kind, generators) in lists {
            for (index, generator) in generators.iter().enumerate() {
                let site = target.entry(list, index);
                let all = kustomization.generator_options.as_ref();
                let options = generate::merged_options(generator.options.as_ref(), all);
                let mut resource = self.generated(target, kind, generator, &options, &site)?;
                let name = if kind == Made::Secret { "SecretGenerator" } else { "ConfigMapGenerator" };
                resource.source = target.note.as_ref().map(|note| note.built_in(target.file.path.name(), name));
                made.push((resource, site));
            }
        }
        for list in ["helmCharts", "helmChartInflationGenerator"] {
            let charts = if list == "helmCharts" {
                &kustomization.helm_charts
            } else {
                &kustomization.helm_chart_inflation_generator
            };
            if !charts.is_empty() {
                return Err(helm(self, target.entry(list, 0)));
            }
        }
        Ok(made)
    }

    /// Makes the object of a generator.
    ///
    /// # Errors
    ///
    /// If a source cannot be read.
    pub(super) fn generated(
        &self,
        target: &Target<'_>,
        made: Made,
        generator: &Generator,
        options: &GeneratorOptions,
        site: &Site,
    ) -> Step<Resource> {
        let failed = |message: String| Stop::refused(site.clone(), message);
        if generator.name.is_empty() {
            return Err(failed("a generated object must have a name".to_owned()));
        }
        let name = generator.name.as_str();
        let mut pairs = Pairs::default();
        let env = Some(&generator.env).filter(|env| !env.is_empty());
        for entry in generator.envs.iter().chain(env) {
            let (_, bytes) = self.load(&target.loader, entry, site)?;
            pairs.env_file(name, &bytes).map_err(failed)?;
        }
        for literal in &generator.literals {
            pairs.literal(name, literal).map_err(failed)?;
        }
        for source in &generator.files {
            let (key, path) = generate::file_source(source).map_err(failed)?;
            let (_, bytes) = self.load(&target.loader, path, site)?;
            pairs.file(name, key, &bytes).map_err(failed)?;
        }
        Ok(generate::object(made, generator, options, pairs, target.origin(site)))
    }

    /// Returns the transformers of a kustomization's own fields, in kustomize's order.
    ///
    /// # Errors
    ///
    /// If a patch cannot be read, or field specs disagree.
    pub(super) fn built_in_transformers(&self, target: &Target<'_>, config: &Config) -> Step<Vec<Transformer>> {
        let kustomization = &target.file.kustomization;
        let mut list = List { target, transformers: Vec::new() };
        if !kustomization.patches_strategic_merge.is_empty() {
            let patches = self.strategic_patches(target, &kustomization.patches_strategic_merge)?;
            list.add(What::PatchStrategicMerge { patches }, target.site(FieldPath::of(["patchesStrategicMerge"])));
        }
        for (index, entry) in kustomization.patches.iter().enumerate() {
            let site = target.entry("patches", index);
            let what = self.patch(target, entry, &site)?;
            list.add(what, site);
        }
        list.simple(kustomization, config);
        list.labels(kustomization, config)?;
        if !kustomization.common_annotations.is_empty() {
            let annotations = kustomization.common_annotations.clone();
            let what = What::Annotations { annotations, specs: Arc::clone(&config.common_annotations) };
            list.add(what, target.site(FieldPath::of(["commonAnnotations"])));
        }
        for (index, entry) in kustomization.patches_json6902.iter().enumerate() {
            let site = target.entry("patchesJson6902", index);
            let what = self.json6902(target, entry, &site)?;
            list.add(what, site);
        }
        list.counts_and_images(kustomization, config);
        if !kustomization.replacements.is_empty() {
            let replacements = self.replacements(target, &kustomization.replacements)?;
            list.add(What::Replacement { replacements }, target.site(FieldPath::of(["replacements"])));
        }
        Ok(list.transformers)
    }

    /// Reads the entries of `patchesStrategicMerge`: patches, or paths of files with patches.
    ///
    /// # Errors
    ///
    /// If an entry is neither.
    pub(super) fn strategic_patches(&self, target: &Target<'_>, entries: &[String]) -> Step<Vec<Resource>> {
        let mut patches = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let site = target.entry("patchesStrategicMerge", index);
            match read::objects_of_text(entry, target.source) {
                Ok(objects) => patches.extend(objects),
                Err(bad) if bad.is_open() => return Err(Stop::unknown(site, bad.to_string())),
                Err(_) => {
                    let (path, bytes) = self.load(&target.loader, entry, &site)?;
                    patches.extend(self.objects(&path, &bytes)?);
                }
            }
        }
        if patches.is_empty() {
            let site = target.site(FieldPath::of(["patchesStrategicMerge"]));
            return Err(Stop::refused(site, "the patches are empty"));
        }
        Ok(patches)
    }

    /// Reads an entry of `patches`.
    ///
    /// # Errors
    ///
    /// If it has no patch, or one that cannot be read.
    pub(super) fn patch(&self, target: &Target<'_>, entry: &Written6902, site: &Site) -> Step<What> {
        let refused = |message: String| Stop::refused(site.clone(), message);
        let inline = entry.patch.trim_matches(|c: char| c.is_whitespace());
        let patch = match (inline.is_empty(), entry.path.is_empty()) {
            (true, true) => return Err(refused("must specify one of patch and path".to_owned())),
            (false, false) => return Err(refused("patch and path can't be set at the same time".to_owned())),
            (false, true) => Patch::read(inline, target.source),
            (true, false) => {
                let (path, bytes) = self.load(&target.loader, &entry.path, site)?;
                let text = file::text(&bytes).map_err(|_| refused(format!("{path} is not text that YAML allows")))?;
                Patch::read(text, self.sources.add(&path))
            }
        };
        let patch = patch.map_err(|bad| match &bad {
            super::patches::BadPatch::Neither(objects, _) if objects.is_open() => {
                bad_objects(objects, &target.file.path)
            }
            _ => refused(bad.to_string()),
        })?;
        Ok(What::Patch { patch, target: entry.target.clone(), options: entry.options.clone() })
    }

    /// Reads an entry of `patchesJson6902`.
    ///
    /// # Errors
    ///
    /// If it has no target, no patch, or one that cannot be read.
    pub(super) fn json6902(&self, target: &Target<'_>, entry: &Written6902, site: &Site) -> Step<What> {
        let refused = |message: &str| Stop::refused(site.clone(), message);
        let Some(selector) = entry.target.clone().filter(|target| !target.name.is_empty()) else {
            return Err(refused("must specify the target name"));
        };
        let text = match (entry.path.is_empty(), entry.patch.is_empty()) {
            (true, true) => return Err(refused("empty file path and empty jsonOp")),
            (false, false) => return Err(refused("must specify a file path or jsonOp, not both")),
            (true, false) => entry.patch.clone(),
            (false, true) => {
                let (_, bytes) = self.load(&target.loader, &entry.path, site)?;
                file::text(&bytes).map_err(|_| refused("the patch is not text that YAML allows"))?.to_owned()
            }
        };
        let patch = json6902::Patch::read(&text).map_err(|message| refused(&message))?;
        if patch.is_empty() {
            return Err(refused("the patch appears to be empty"));
        }
        Ok(What::PatchJson6902 { patch, target: selector })
    }

    /// Returns the replacements of a list, including those in files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub(super) fn replacements(&self, target: &Target<'_>, entries: &[Replacement]) -> Step<Vec<Replacement>> {
        let mut replacements = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let site = target.entry("replacements", index);
            if entry.path.is_empty() {
                replacements.push(entry.clone());
                continue;
            }
            if entry.source.is_some() || entry.targets.as_ref().is_some_and(|targets| !targets.is_empty()) {
                return Err(Stop::refused(site, "cannot specify both path and inline replacement"));
            }
            let (path, bytes) = self.load(&target.loader, &entry.path, &site)?;
            let refused = |message: String| Stop::refused(Site::of_file(path.clone()), message);
            let text = file::text(&bytes).map_err(|_| refused("it is not text that YAML allows".to_owned()))?;
            let document = yaml::first(text, &Limits::default()).map_err(|error| refused(error.to_string()))?;
            let value = document.map_or(Value::Null, |document| document.value);
            let read: Vec<Replacement> = match value {
                Value::Array(_) => serde_json::from_value(value),
                Value::Object(_) => serde_json::from_value(value).map(|one| vec![one]),
                _ => return Err(refused("it holds no replacements".to_owned())),
            }
            .map_err(|error| refused(error.to_string()))?;
            replacements.extend(read);
        }
        Ok(replacements)
    }
}

/// Returns the stop for Helm charts, which are not rendered.
pub(super) fn helm(run: &Run<'_>, site: Site) -> Stop {
    match run.options.helm {
        true => Stop::unknown(site, "charts are rendered by helm, which is not run"),
        false => Stop::refused(site, "must specify --enable-helm"),
    }
}

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

    fn labels(&mut self, kustomization: &Kustomization, config: &Config) -> Step<()> {
        for (index, label) in kustomization.labels.iter().enumerate() {
            let site = self.target.entry("labels", index);
            let specs = label_specs(label, config).map_err(|message| Stop::refused(site.clone(), message))?;
            self.add(What::Label { labels: label.pairs.clone(), specs }, site);
        }
        if !kustomization.labels.is_empty() || !kustomization.common_labels.is_empty() {
            let labels = kustomization.common_labels.clone();
            let site = self.target.site(FieldPath::of(["commonLabels"]));
            self.add(What::Label { labels, specs: Arc::clone(&config.common_labels) }, site);
        }
        Ok(())
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

/// Returns the field specs of an entry of `labels`.
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
                merge_one(&mut specs, &FieldSpec::new(Gvk::default(), LABELS, true))
            }
        });
    merged.map_err(|conflict| format!("failed to merge labels: {conflict}"))?;
    Ok(Arc::new(specs))
}

impl What {
    /// Returns the name of the transformer in kustomize.
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
        }
    }
}
