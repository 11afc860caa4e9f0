//! Entries of `generators`, `transformers` and `validators`: objects that configure built-in plugins.
//!
//! Source: kustomize's `api/internal/plugins/loader`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::config::{Specs, WrittenSpec};
use super::configure::helm;
use super::field_spec::FieldSpec;
use super::generate::{Made, merged_options};
use super::json;
use super::namespace::Subjects;
use super::origin::OriginNote;
use super::read;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::{Run, Target};
use super::stop::{Step, Stop};
use super::target::Accumulator;
use super::transformer::{Transformer, What};
use super::value_add::ValueAdd;
use crate::kustomize::file::{Generator, Image, Patch, Replacement, Replica};
use crate::kustomize::finding::Site;
use crate::kustomize::node::{Entry, Node};

const BUILT_IN: &str = "builtin";
const GENERATORS: [&str; 4] =
    ["ConfigMapGenerator", "SecretGenerator", "HelmChartInflationGenerator", "IAMPolicyGenerator"];

/// The configuration of any built-in plugin: each reads the fields that it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    metadata: Metadata,
    annotations: BTreeMap<String, Text>,
    labels: BTreeMap<String, Text>,
    field_specs: Option<Vec<WrittenSpec>>,
    image_tag: Image,
    replica: Replica,
    unset_only: bool,
    set_role_binding_subjects: String,
    prefix: Text,
    suffix: Text,
    paths: Vec<String>,
    patches: String,
    json_op: String,
    replacements: Vec<Replacement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Text,
    namespace: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IamPolicy {
    metadata: Metadata,
    cloud: String,
    kubernetes_service: IamService,
    service_account: IamService,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IamService {
    name: String,
    namespace: String,
    project_id: String,
}

/// A text; kustomize reads numbers and truth values into it too.
#[derive(Debug, Default, Clone)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Null => Ok(Self::default()),
            value @ (Value::Bool(_) | Value::Number(_)) => Ok(Self(value.to_string())),
            _ => Err(serde::de::Error::custom("a string was expected")),
        }
    }
}

fn texts(map: BTreeMap<String, Text>) -> BTreeMap<String, String> {
    map.into_iter().map(|(key, text)| (key, text.0)).collect()
}

/// An object that configures a plugin, and its place.
struct Plugin {
    resource: Resource,
    site: Site,
    value: Value,
}

impl Plugin {
    fn decode<T: for<'de> Deserialize<'de>>(&self) -> Step<T> {
        serde_json::from_value(normal(self.value.clone()))
            .map_err(|error| self.refused(&format!("it cannot be configured: {error}")))
    }

    fn refused(&self, message: &str) -> Stop {
        Stop::refused(self.site.clone(), format!("plugin {}: {message}", self.resource.kind()))
    }
}

/// Fields of configurations with arbitrary keys.
const FREE: [&str; 4] = ["labels", "annotations", "commonLabels", "commonAnnotations"];
/// The names of all fields of configurations that have upper-case letters.
const FIELDS: [&str; 30] = [
    "allowKindChange",
    "allowNameChange",
    "annotationSelector",
    "apiVersion",
    "disableNameSuffixHash",
    "fieldPath",
    "fieldPaths",
    "fieldSpecs",
    "filePathPosition",
    "imageTag",
    "jsonOp",
    "kubernetesService",
    "labelSelector",
    "newName",
    "newTag",
    "notSelector",
    "projectId",
    "serviceAccount",
    "setRoleBindingSubjects",
    "sourceValue",
    "tagSuffix",
    "targetFilePath",
    "unsetOnly",
    "path",
    "digest",
    "name",
    "prefix",
    "suffix",
    "patch",
    "target",
];

/// Returns the same value as Go's JSON reads it: fields that are null count as absent, and names of fields come in any
/// case.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let field = |(key, value): (String, Value)| {
                let name =
                    FIELDS.iter().find(|name| name.eq_ignore_ascii_case(&key)).map_or(key, |name| (*name).to_owned());
                let is_free = FREE.contains(&name.as_str());
                (name, if is_free { value } else { normal(value) })
            };
            Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).map(field).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        other => other,
    }
}

impl Run<'_> {
    /// Runs the entries of `generators`.
    ///
    /// # Errors
    ///
    /// If an entry is not a generator.
    pub(super) fn plugin_generators(&mut self, target: &Target<'_>) -> Step<Vec<(Resource, Site)>> {
        let mut made = Vec::new();
        for plugin in self.plugins(target, "generators", &target.file.kustomization.generators)? {
            let note = target.note.as_ref().and_then(|_| OriginNote::plugin(&plugin.resource));
            let site = plugin.site.clone();
            let mut resource = match plugin.resource.kind() {
                "ConfigMapGenerator" => self.generator(target, &plugin, Made::ConfigMap)?,
                "SecretGenerator" => self.generator(target, &plugin, Made::Secret)?,
                "IAMPolicyGenerator" => iam_policy(&plugin)?,
                "HelmChartInflationGenerator" => return Err(helm(self, site)),
                _ => return Err(plugin.refused("it is no generator")),
            };
            resource.source = note;
            made.push((resource, site));
        }
        Ok(made)
    }

    fn generator(&self, target: &Target<'_>, plugin: &Plugin, made: Made) -> Step<Resource> {
        let mut generator: Generator = plugin.decode()?;
        let metadata = plugin.decode::<Config>()?.metadata;
        if generator.name.is_empty() {
            generator.name = metadata.name.0;
        }
        if generator.namespace.is_empty() {
            generator.namespace = metadata.namespace.0;
        }
        let options = merged_options(generator.options.as_ref(), None);
        self.generated(target, made, &generator, &options, &plugin.site)
    }

    /// Returns the transformers that a list configures.
    ///
    /// # Errors
    ///
    /// If an entry is not a transformer, or invalid.
    pub(super) fn plugin_transformers(
        &mut self,
        target: &Target<'_>,
        list: &str,
        entries: &[String],
    ) -> Step<Vec<Transformer>> {
        let mut transformers = Vec::new();
        for plugin in self.plugins(target, list, entries)? {
            let note = target.note.as_ref().and_then(|_| OriginNote::plugin(&plugin.resource));
            let origin = plugin.resource.node.origin;
            for what in self.plugin(target, &plugin)? {
                transformers.push(Transformer { what, site: plugin.site.clone(), origin, note: None });
            }
            if let Some(last) = transformers.last_mut() {
                last.note = note;
            }
        }
        Ok(transformers)
    }

    fn plugin(&self, target: &Target<'_>, plugin: &Plugin) -> Step<Vec<What>> {
        let kind = plugin.resource.kind().to_owned();
        if kind == "ReplacementTransformer" {
            let config: Config = plugin.decode()?;
            return Ok(vec![What::Replacement { replacements: self.replacements(target, &config.replacements)? }]);
        }
        if kind == "PatchTransformer" {
            return Ok(vec![self.patch(target, &plugin.decode()?, &plugin.site)?]);
        }
        if kind == "ValueAddTransformer" {
            return Ok(vec![What::ValueAdd { value: self.value_add(target, plugin)? }]);
        }
        let config: Config = plugin.decode()?;
        let specs = config.field_specs.map(|specs| Specs::new(specs.into_iter().map(FieldSpec::from).collect()));
        let given = specs.clone().ok_or_else(|| plugin.refused("fieldSpecs is not expected to be nil"));
        let specs = specs.unwrap_or_default();
        Ok(vec![match kind.as_str() {
            "AnnotationsTransformer" => What::Annotations { annotations: texts(config.annotations), specs },
            "LabelTransformer" => What::Label { labels: texts(config.labels), specs },
            "HashTransformer" => What::Hash,
            "ImageTagTransformer" => What::ImageTag { image: config.image_tag, specs },
            "NamespaceTransformer" => {
                let subjects = subjects(&config.set_role_binding_subjects, plugin)?;
                let namespace = config.metadata.namespace.0;
                What::Namespace { namespace, specs, unset_only: config.unset_only, subjects }
            }
            "PrefixTransformer" => What::Prefix { prefix: config.prefix.0, specs: given? },
            "SuffixTransformer" => What::Suffix { suffix: config.suffix.0, specs: given? },
            "PrefixSuffixTransformer" => {
                let specs = given?;
                let prefix = What::Prefix { prefix: config.prefix.0, specs: Arc::clone(&specs) };
                return Ok(vec![prefix, What::Suffix { suffix: config.suffix.0, specs }]);
            }
            "ReplicaCountTransformer" => What::ReplicaCount { replica: config.replica, specs },
            "PatchJson6902Transformer" => {
                let entry = Patch { patch: config.json_op, ..plugin.decode()? };
                self.json6902(target, &entry, &plugin.site)?
            }
            "PatchStrategicMergeTransformer" => self.strategic(target, plugin, &config.paths, &config.patches)?,
            _ => return Err(plugin.refused("it is no transformer")),
        }])
    }

    fn strategic(&self, target: &Target<'_>, plugin: &Plugin, paths: &[String], text: &str) -> Step<What> {
        if paths.is_empty() && text.is_empty() {
            return Err(plugin.refused("empty file path and empty patch content"));
        }
        let mut patches = if paths.is_empty() { Vec::new() } else { self.strategic_patches(target, paths)? };
        let read = read::objects_of_text(text, plugin.resource.node.origin.source);
        patches.extend(read.map_err(|bad| plugin.refused(&bad.to_string()))?);
        Ok(What::PatchStrategicMerge { patches })
    }

    fn value_add(&self, target: &Target<'_>, plugin: &Plugin) -> Step<ValueAdd> {
        let mut value: ValueAdd = plugin.decode()?;
        value.value = value.value.trim().to_owned();
        if value.value.is_empty() {
            value.value = target.loader.root.name().to_owned();
        }
        if !value.target_file_path.is_empty() {
            let (_, bytes) = self.load(&target.loader, &value.target_file_path, &plugin.site)?;
            let document = std::str::from_utf8(&bytes)
                .ok()
                .and_then(|text| crate::yaml::first(text, &crate::yaml::Limits::default()).ok().flatten());
            let read = document.and_then(|document| serde_json::from_value::<ValueAdd>(document.value).ok());
            let read = read.ok_or_else(|| plugin.refused("the file of its targets cannot be read"))?;
            value.targets.extend(read.targets);
        }
        if value.targets.is_empty() {
            return Err(plugin.refused("must specify at least one target"));
        }
        let is_wrong =
            |target: &super::value_add::ValueTarget| target.field_path.is_empty() || target.file_path_position < 0;
        match value.targets.iter().any(is_wrong) {
            true => Err(plugin.refused("a target has no fieldPath, or a negative position")),
            false => Ok(value),
        }
    }

    /// Returns the plugin configurations of a list: first inline ones, then those in files and folders.
    fn plugins(&mut self, target: &Target<'_>, list: &str, entries: &[String]) -> Step<Vec<Plugin>> {
        let mut acc = Accumulator { map: ResMap::new(self.scope()), ..Accumulator::default() };
        let mut paths = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let site = target.entry(list, index);
            match read::objects_of_text(entry, target.source) {
                Ok(mut resources) => {
                    if let Some(note) = &target.note {
                        let note = note.append(target.file.path.name());
                        resources.iter_mut().for_each(|resource| resource.source = Some(note.clone()));
                    }
                    for resource in resources.iter_mut() {
                        resource.node.origin = target.origin(&site);
                    }
                    acc.map.append_all(resources).map_err(|resource| self.conflict(&resource, &site))?;
                }
                Err(_) => paths.push((index, entry)),
            }
        }
        for (index, entry) in paths {
            acc = self.plugin_files(target, list, index, entry, acc)?;
        }
        acc.map.into_resources().into_iter().map(|resource| self.checked(resource, list)).collect()
    }

    fn checked(&self, resource: Resource, list: &str) -> Step<Plugin> {
        let site = self.site_of(resource.node.origin);
        let gvk = resource.gvk();
        if !(gvk.group.is_empty() && gvk.version == BUILT_IN) {
            let message = format!("external plugins disabled; unable to load external plugin '{}'", gvk.kind);
            return Err(if self.options.plugins { Stop::unknown(site, message) } else { Stop::refused(site, message) });
        }
        let value =
            json::of_node(&resource.node).map_err(|error| Stop::refused(site.clone(), error.kind.to_string()))?;
        let plugin = Plugin { resource, site, value };
        let is_generator = GENERATORS.contains(&plugin.resource.kind());
        match is_generator == (list == "generators") {
            true => Ok(plugin),
            false => Err(plugin.refused(&format!("it does not belong in {list}"))),
        }
    }
}

fn subjects(text: &str, plugin: &Plugin) -> Step<Subjects> {
    match text {
        "" | "defaultOnly" => Ok(Subjects::Default),
        "allServiceAccounts" => Ok(Subjects::ServiceAccounts),
        "none" => Ok(Subjects::None),
        other => Err(plugin.refused(&format!("`{other}` is no value of setRoleBindingSubjects"))),
    }
}

/// Returns a service account bound to one of Google Cloud.
fn iam_policy(plugin: &Plugin) -> Step<Resource> {
    let policy: IamPolicy = plugin.decode()?;
    if policy.cloud != "gke" {
        return Err(plugin.refused(&format!("cloud provider {} not supported yet", policy.cloud)));
    }
    let origin = plugin.resource.node.origin;
    let account =
        format!("{}@{}.iam.gserviceaccount.com", policy.service_account.name, policy.service_account.project_id);
    let text = |text: &str| Node::resolved(text).at(origin);
    let annotations = Node::map(vec![Entry::new("iam.gke.io/gcp-service-account", text(&account))]);
    let mut metadata =
        vec![Entry::new("annotations", annotations), Entry::new("name", text(&policy.kubernetes_service.name))];
    let own = &policy.metadata.namespace.0;
    let namespace =
        if policy.kubernetes_service.namespace.is_empty() { own } else { &policy.kubernetes_service.namespace };
    if !namespace.is_empty() {
        metadata.push(Entry::new("namespace", text(namespace)));
    }
    let entries = vec![
        Entry::new("apiVersion", text("v1")),
        Entry::new("kind", text("ServiceAccount")),
        Entry::new("metadata", Node::map(metadata)),
    ];
    Ok(Resource::new(Node::map(entries).at(origin)))
}
