//! `generators`, `transformers` and `validators`: configurations of plugins (`configureExternalGenerators`,
//! `configureExternalTransformers`, `Loader.loadAndConfigurePlugin`).

use std::sync::Arc;

use super::resources::inline;
use super::{Entry, Layer, Walk};
use crate::kustomize::accumulate::keys::{self, Unwritable};
use crate::kustomize::accumulate::manifests::Manifest;
use crate::kustomize::accumulate::{Accumulator, Object};
use crate::kustomize::rules::kz015;

/// Plugins that make objects.
const GENERATORS: [&str; 4] =
    ["ConfigMapGenerator", "SecretGenerator", "HelmChartInflationGenerator", "IAMPolicyGenerator"];
/// Plugins that change objects, and whether they may change identities.
const TRANSFORMERS: [(&str, bool); 14] = [
    ("AnnotationsTransformer", false),
    ("HashTransformer", false),
    ("ImageTagTransformer", false),
    ("LabelTransformer", false),
    ("NamespaceTransformer", true),
    ("PatchJson6902Transformer", true),
    ("PatchStrategicMergeTransformer", true),
    ("PatchTransformer", true),
    ("PrefixSuffixTransformer", true),
    ("PrefixTransformer", true),
    ("SuffixTransformer", true),
    ("ReplacementTransformer", true),
    ("ReplicaCountTransformer", false),
    ("ValueAddTransformer", true),
];

/// The possible effects of the plugins in `transformers`.
pub(super) struct Plugged {
    any: bool,
    rewrites: bool,
}

impl Plugged {
    /// Leaves uncertain what they may have changed.
    pub(super) fn run(&self, acc: &mut Accumulator) {
        if self.any {
            for object in acc.objects_mut() {
                object.invalidate("");
                object.sure &= !self.rewrites;
            }
        }
    }
}

impl Walk<'_> {
    /// Evaluates the list `generators`.
    pub(super) fn plugin_generators(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let plugins = self.plugins(layer, "generators", &layer.kustomization().generators);
        acc.complete &= plugins.complete;
        for plugin in plugins.objects() {
            acc.complete = false;
            let kind = plugin.id.kind.as_str();
            if !is_builtin(plugin) {
                self.external(plugin);
            } else if kind == "HelmChartInflationGenerator" && !self.options.helm {
                self.report(kz015::helm((*plugin.site).clone()));
            } else if GENERATORS.contains(&kind) {
                self.uncertainty(&plugin.site, format!("what the plugin {kind} makes is not worked out here"));
            } else {
                self.report(kz015::unknown((*plugin.site).clone(), kind, "generators"));
            }
        }
    }

    /// Evaluates the list `transformers`: whether there are any, and whether they may change identities.
    pub(super) fn plugin_transformers(&mut self, layer: &Layer<'_>) -> Plugged {
        let plugins = self.plugins(layer, "transformers", &layer.kustomization().transformers);
        let rewrites = self.configured(&plugins, "transformers");
        Plugged { any: !plugins.objects().is_empty() || !plugins.complete, rewrites: rewrites || !plugins.complete }
    }

    /// Evaluates the list `validators`.
    pub(super) fn validators(&mut self, layer: &Layer<'_>) {
        let plugins = self.plugins(layer, "validators", &layer.kustomization().validators);
        self.configured(&plugins, "validators");
    }

    /// Returns whether one of the plugins may change identities.
    fn configured(&mut self, plugins: &Accumulator, list: &'static str) -> bool {
        let mut rewrites = false;
        for plugin in plugins.objects() {
            let kind = plugin.id.kind.as_str();
            match TRANSFORMERS.iter().find(|(name, _)| *name == kind) {
                _ if !is_builtin(plugin) => {
                    rewrites = true;
                    self.external(plugin);
                }
                Some((_, may_rewrite)) => {
                    rewrites |= may_rewrite;
                    self.uncertainty(&plugin.site, format!("what the plugin {kind} does is not worked out here"));
                }
                None => self.report(kz015::unknown((*plugin.site).clone(), kind, list)),
            }
        }
        rewrites
    }

    fn external(&mut self, plugin: &Object) {
        if self.options.plugins {
            self.uncertainty(&plugin.site, format!("the external plugin {} is not run here", plugin.id.kind));
        } else {
            self.report(kz015::external((*plugin.site).clone(), &plugin.id.kind));
        }
    }

    /// Returns the configurations of a list: inline ones first, then those in files.
    fn plugins(&mut self, layer: &Layer<'_>, list: &'static str, texts: &[String]) -> Accumulator {
        let mut plugins = Accumulator::default();
        let mut named: Vec<Entry<'_>> = Vec::new();
        for entry in layer.entries(list, texts) {
            match inline(entry.text) {
                Some(Err(reason)) => {
                    plugins.complete = false;
                    self.uncertainty(&entry.site, reason);
                }
                Some(Ok(objects)) => {
                    for Manifest { value, keys, .. } in objects {
                        let mut object = Object::new(value, Arc::new(entry.site.clone()));
                        object.unwritable_mut().extend(keys.into_iter().map(|key| Unwritable {
                            pointer: keys::pointer(&key.path),
                            fault: key.fault,
                            site: Arc::new(entry.site.clone()),
                        }));
                        self.append(&entry.site, object, &mut plugins);
                    }
                }
                None => named.push(entry),
            }
        }
        for entry in named {
            self.resource(layer, &entry, &mut plugins);
        }
        if plugins.complete {
            // An unsupported plugin is rejected before it is written.
            self.written(plugins.objects().iter().filter(|plugin| is_builtin(plugin)));
        }
        plugins
    }
}

fn is_builtin(plugin: &Object) -> bool {
    plugin.id.group.is_empty() && plugin.id.version == "builtin"
}
