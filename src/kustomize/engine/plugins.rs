//! Entries of `generators`, `transformers` and `validators`: objects that configure built-in plugins.
//!
//! Source: kustomize's `api/internal/plugins/loader`.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::accumulator::Accumulator;
use super::config::Specs;
use super::configure::PatchSite;
use super::field_spec::FieldSpec;
use super::generate::{Made, merged_options};
use super::generators::Spot;
use super::json;
use super::lost::Lost;
use super::namespace::Subjects;
use super::plugin_config::{Config, IamPolicy, normal, texts};
use super::read;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Cause, Step, Stop};
use super::target::{Entry, Target};
use super::transformer::{Transformer, What};
use super::value_add::ValueAdd;
use crate::admission::FieldPath;
use crate::kustomize::file::{Generator, Patch};
use crate::kustomize::finding::Site;
use crate::kustomize::node::{Node, Origin};
use crate::kustomize::rules::{kz013, kz014, kz015, kz031};
use crate::yaml::{self, Limits};

const BUILT_IN: &str = "builtin";
const GENERATORS: [&str; 4] =
    ["ConfigMapGenerator", "SecretGenerator", "HelmChartInflationGenerator", "IAMPolicyGenerator"];
const TRANSFORMERS: [&str; 14] = [
    "AnnotationsTransformer",
    "HashTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "SuffixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "ValueAddTransformer",
];

/// An object that configures a built-in generator or transformer, with its position.
pub(super) struct Plugin {
    resource: Resource,
    /// The position of the object that configures the plugin.
    pub site: Site,
    value: Value,
}

impl Plugin {
    fn decode<T: for<'de> Deserialize<'de>>(&self) -> Step<T> {
        serde_json::from_value(normal(self.value.clone()))
            .map_err(|error| self.refused(&format!("it cannot be configured: {error}")))
    }

    fn refused(&self, message: &str) -> Stop {
        Stop::refused(kz031::found(self.site.clone(), &format!("plugin {}: {message}", self.resource.kind())))
    }
}

impl Run<'_> {
    /// Returns the objects in the list `generators` of a kustomization. Each object configures a generator.
    ///
    /// `lost` is the kind of data that is missing from the build so far. If an object is missing because of an error,
    /// and `lost` is [`Lost::Nothing`], this function changes it to [`Lost::Objects`].
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if an entry does not configure a built-in
    /// generator.
    pub(super) fn plugin_generators(&mut self, target: &Target<'_>, lost: &mut Lost) -> Step<Vec<Plugin>> {
        let (plugins, is_whole) = self.plugins(target, "generators", &target.file.kustomization.generators)?;
        if !is_whole {
            *lost = Lost::Objects.max(*lost);
        }
        Ok(plugins)
    }

    /// Runs the generator that `plugin` configures, and returns the generated object. `plugin` is an object in the list
    /// `generators`.
    ///
    /// # Errors
    ///
    /// If the configuration or one of its files is invalid, or if the generator needs a Helm chart.
    pub(super) fn generated_by(&self, target: &Target<'_>, plugin: &Plugin) -> Step<Resource> {
        let note = target.note.as_ref().and_then(|_| plugin.resource.plugin_note());
        let resource = match plugin.resource.kind() {
            "ConfigMapGenerator" => self.generator(target, plugin, Made::ConfigMap)?,
            "SecretGenerator" => self.generator(target, plugin, Made::Secret)?,
            "IAMPolicyGenerator" => iam_policy(plugin)?,
            _ => return Err(self.helm(plugin.site.clone())),
        };
        Ok(Resource { source: note, ..resource })
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
        self.generated(&Spot::of_object(target, plugin.site.clone()), made, &generator, &options)
    }

    /// Returns the transformers that the entries of `transformers` or `validators` configure. `list` is the name of the
    /// list.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if an entry does not configure a built-in
    /// transformer, or its configuration is invalid.
    pub(super) fn plugin_transformers(
        &mut self,
        target: &Target<'_>,
        list: &'static str,
        entries: &[String],
    ) -> Step<Vec<Transformer>> {
        let (plugins, is_whole) = self.plugins(target, list, entries)?;
        let left_out = |site: Site| Transformer { what: What::LeftOut, site, origin: Origin::default(), note: None };
        let mut transformers = Vec::new();
        if !is_whole {
            transformers.push(left_out(target.site(FieldPath::of([list]))));
        }
        for plugin in plugins {
            let note = target.note.as_ref().and_then(|_| plugin.resource.plugin_note());
            let origin = plugin.resource.node.origin;
            let configured = self.plugin(target, &plugin);
            let Some(whats) = self.recover(&mut Lost::Nothing, Lost::Nothing, configured)? else {
                transformers.push(left_out(plugin.site));
                continue;
            };
            for what in whats {
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
            let mut replacements = self.replacements(target, &config.replacements)?;
            replacements.iter_mut().for_each(|sited| sited.site = plugin.site.clone());
            return Ok(vec![What::Replacement { replacements }]);
        }
        if kind == "PatchTransformer" {
            return Ok(vec![self.patch(target, &plugin.decode()?, &PatchSite::of_object(plugin.site.clone()))?]);
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
                self.json6902(target, &entry, &PatchSite::of_object(plugin.site.clone()))?
            }
            "PatchStrategicMergeTransformer" => self.strategic(target, plugin, &config.paths, &config.patches)?,
            _ => return Err(Stop::refused(kz015::unknown(plugin.site.clone(), &kind, "transformers"))),
        }])
    }

    fn strategic(&self, target: &Target<'_>, plugin: &Plugin, paths: &[String], text: &str) -> Step<What> {
        if paths.is_empty() && text.is_empty() {
            return Err(plugin.refused("empty file path and empty patch content"));
        }
        let mut patches = if paths.is_empty() { Vec::new() } else { self.strategic_patches(target, paths)?.0 };
        patches.iter_mut().for_each(|(_, site)| *site = plugin.site.clone());
        let read = read::objects_of_text(text, plugin.resource.node.origin.source);
        let read = read.map_err(|bad| Stop::refused(kz014::unreadable(plugin.site.clone(), &bad.to_string())))?;
        patches.extend(read.into_iter().map(|patch| (patch, plugin.site.clone())));
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

    /// Returns the plugin configurations of a list, such as `transformers`. Inline configurations come first, then the
    /// configurations in files and folders. The second result is `false` if some configurations are missing because of
    /// errors.
    fn plugins(&mut self, target: &Target<'_>, list: &'static str, entries: &[String]) -> Step<(Vec<Plugin>, bool)> {
        if entries.is_empty() {
            return Ok((Vec::new(), true));
        }
        let mut acc = Accumulator::new(self.scope());
        let (mut paths, mut sites) = (Vec::new(), HashMap::new());
        for (index, text) in entries.iter().enumerate() {
            let entry = target.list_entry(list, index, text);
            let resources = match read::objects_of_text(text, target.source) {
                Ok(resources) => resources,
                Err(bad) if bad.is_open() => {
                    let stop = Stop::unknown(entry.site.clone(), format!("the entry {bad}"));
                    self.recover(&mut acc.map.lost, Lost::Objects, Err::<(), _>(stop))?;
                    continue;
                }
                Err(_) => {
                    paths.push(entry);
                    continue;
                }
            };
            let resources = resources.into_iter().map(|resource| inline(resource, target, &entry)).collect::<Vec<_>>();
            sites.extend(resources.iter().map(|resource| (resource.uid, entry.site.clone())));
            let looked_up = self.looked_up(&resources);
            self.recover(&mut acc.map.lost, Lost::Nothing, looked_up)?;
            self.append_all(&mut acc.map, resources, &entry.site)?;
        }
        for entry in paths {
            self.resource(target, &entry, &mut acc)?;
        }
        let mut is_whole = acc.map.lost == Lost::Nothing;
        let mut plugins = Vec::new();
        for resource in acc.map.into_resources() {
            let site = sites.remove(&resource.uid).unwrap_or_else(|| self.site_of(resource.origin));
            let plugin = self.checked(resource, site, list);
            match self.recover(&mut Lost::Nothing, Lost::Nothing, plugin)? {
                Some(plugin) => plugins.push(plugin),
                None => is_whole = false,
            }
        }
        Ok((plugins, is_whole))
    }

    fn checked(&self, resource: Resource, site: Site, list: &str) -> Step<Plugin> {
        let gvk = resource.gvk();
        if !(gvk.group.is_empty() && gvk.version == BUILT_IN) {
            let not_run = format!("the external plugin {} is not run here", gvk.kind);
            return Err(match self.options.plugins {
                true => Stop::unknown_by(Cause::Program, site, not_run),
                false => Stop::refused(kz015::external(site, gvk.kind)),
            });
        }
        let kind = gvk.kind.to_owned();
        let is_known = match list {
            "generators" => GENERATORS.contains(&&*kind),
            _ => TRANSFORMERS.contains(&&*kind),
        };
        if !is_known {
            return Err(Stop::refused(kz015::unknown(site, &kind, list)));
        }
        let value = json::of_node(&resource.node).map_err(|error| {
            let words = resource.id(&self.scope()).words();
            Stop::refused(kz013::unprintable(self.site_of(error.origin), &words, &error))
        })?;
        Ok(Plugin { resource, site, value })
    }
}

/// Sets the origin of a plugin configuration that is inline in a kustomization file, and returns the configuration.
fn inline(mut resource: Resource, target: &Target<'_>, entry: &Entry<'_>) -> Resource {
    resource.source = target.note.as_ref().map(|note| note.append(target.file.path.name()));
    resource.node.origin = target.origin(&entry.site);
    resource.origin = resource.node.origin;
    resource
}

fn subjects(text: &str, plugin: &Plugin) -> Step<Subjects> {
    match text {
        "" | "defaultOnly" => Ok(Subjects::Default),
        "allServiceAccounts" => Ok(Subjects::ServiceAccounts),
        "none" => Ok(Subjects::None),
        other => Err(plugin.refused(&format!("`{other}` is not a valid value of setRoleBindingSubjects"))),
    }
}

/// Creates the object of an `IAMPolicyGenerator`: a ServiceAccount that is bound to a service account of Google Cloud.
fn iam_policy(plugin: &Plugin) -> Step<Resource> {
    let policy: IamPolicy = plugin.decode()?;
    if policy.cloud != "gke" {
        return Err(plugin.refused(&format!("cloud provider {} not supported yet", policy.cloud)));
    }
    let (account, service) = (&policy.service_account, &policy.kubernetes_service);
    let mut text = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    \
         iam.gke.io/gcp-service-account: {}@{}.iam.gserviceaccount.com\n  name: {}\n",
        account.name, account.project_id, service.name
    );
    let own = &policy.metadata.namespace.0;
    let namespace = if service.namespace.is_empty() { own } else { &service.namespace };
    if !namespace.is_empty() {
        text.push_str(&format!("\n  namespace: {namespace}"));
    }
    // kustomize also formats and parses a text, so an account without a name, for example, is an error
    let origin = plugin.resource.node.origin;
    let parsed = yaml::node(&text, origin.source, &Limits::default());
    let mut node = parsed.map_err(|error| plugin.refused(&error.to_string()))?.unwrap_or_else(Node::null);
    place(&mut node, origin);
    Ok(Resource::new(node))
}

/// Sets the origin of a node and of all nodes in it. The origin is a file and a line.
fn place(node: &mut Node, origin: Origin) {
    node.origin = origin;
    node.entries_mut().into_iter().flatten().for_each(|entry| place(&mut entry.value, origin));
    node.items_mut().into_iter().flatten().for_each(|item| place(item, origin));
}
