//! What generators make (`runGenerators`), ConfigMaps and Secrets first.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::{Accumulator, Behavior, Clash, Object};
use crate::kustomize::file::Generator;
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz015, kz016, kz030};

impl Walk<'_> {
    /// Runs all generators.
    pub(super) fn generators(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let kustomization = layer.kustomization();
        self.charts(layer, acc);
        self.plugin_generators(layer, acc);
        for (kind, list, generators) in [
            ("ConfigMap", "configMapGenerator", &kustomization.config_map_generator),
            ("Secret", "secretGenerator", &kustomization.secret_generator),
        ] {
            for (index, generator) in generators.iter().enumerate() {
                let field = FieldPath::of([list]).index(index);
                self.generate(layer, kind, generator, &field, acc);
            }
        }
    }

    fn charts(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let kustomization = layer.kustomization();
        let lists = [
            ("helmCharts", &kustomization.helm_charts),
            ("helmChartInflationGenerator", &kustomization.helm_chart_inflation_generator),
        ];
        for (list, charts) in lists.into_iter().filter(|(_, charts)| !charts.is_empty()) {
            acc.complete = false;
            let site = layer.site(FieldPath::of([list]));
            self.adds(format!("{} Helm charts", charts.len()));
            if self.options.helm {
                self.uncertainty(&site, "Helm charts are not inflated here");
            } else {
                self.report(kz015::helm(site));
            }
        }
    }

    fn generate(
        &mut self,
        layer: &Layer<'_>,
        kind: &str,
        generator: &Generator,
        field: &FieldPath,
        acc: &mut Accumulator,
    ) {
        let site = layer.site(field.clone());
        if generator.name.is_empty() {
            acc.complete = false;
            self.report(kz016::nameless(site, kind));
            return;
        }
        let uncertainties = self.uncertainties;
        let Some(data) = self.data(layer, generator, field) else {
            acc.complete = false;
            if self.uncertainties > uncertainties {
                // it may go into any of them
                acc.objects_mut().iter_mut().for_each(|object| object.invalidate(""));
            }
            return;
        };
        let object = made(layer, kind, generator, &data, &site);
        let behavior = Behavior::of(&generator.behavior);
        self.adds(format!("{} ({})", object.id.words(), word(behavior)));
        let id = object.id.clone();
        if let Err(clash) = acc.absorb(object, behavior) {
            self.clash(site, &clash, &id, acc);
        }
    }

    fn clash(&mut self, site: Site, clash: &Clash, id: &crate::kustomize::accumulate::Id, acc: &Accumulator) {
        let unknown_may_match = !acc.is_certain();
        match clash {
            Clash::Exists(at) => {
                let other = acc.objects().get(*at).map(|other| Arc::clone(&other.site));
                self.report(kz030::exists(site, id, other.as_deref()));
            }
            Clash::Nothing if !acc.complete => {}
            Clash::Nothing if unknown_may_match => {
                self.uncertainty(&site, format!("whether {} is there depends on patches", id.words()));
            }
            Clash::Perhaps => self.uncertainty(&site, format!("whether {} is there is not certain", id.words())),
            Clash::Nothing => self.report(kz030::nothing_to_merge(site, id)),
            Clash::Several => self.report(kz030::several(site, id)),
        }
    }

    /// Returns the data of a generator: files of variables, literals, files, in this order.
    fn data(
        &mut self,
        layer: &Layer<'_>,
        generator: &Generator,
        field: &FieldPath,
    ) -> Option<BTreeMap<String, String>> {
        let mut data = Data { values: BTreeMap::new(), whole: true };
        let env = Some((&generator.env, field.key("env"))).filter(|(env, _)| !env.is_empty());
        let envs = generator.envs.iter().enumerate().map(|(at, text)| (text, field.key("envs").index(at)));
        for (text, path) in envs.chain(env) {
            let site = layer.site(path);
            match self.named_text(layer, &site, text) {
                Some((_, content)) => self.variables(&site, generator, &content, &mut data),
                None => data.whole = false,
            }
        }
        for (at, literal) in generator.literals.iter().enumerate() {
            let site = layer.site(field.key("literals").index(at));
            match literal.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    self.put(&site, generator, &mut data, key, unquoted(value));
                }
                _ => {
                    data.whole = false;
                    self.report(kz016::literal(site, literal));
                }
            }
        }
        for (at, source) in generator.files.iter().enumerate() {
            let site = layer.site(field.key("files").index(at));
            self.file_source(layer, &site, generator, source, &mut data);
        }
        data.whole.then_some(data.values)
    }

    fn file_source(&mut self, layer: &Layer<'_>, site: &Site, generator: &Generator, source: &str, data: &mut Data) {
        let (key, path) = match source.split('=').collect::<Vec<_>>().as_slice() {
            [path] => (path.trim_end_matches('/').rsplit('/').next().unwrap_or_default(), *path),
            [key, path] if !key.is_empty() && !path.is_empty() => (*key, *path),
            _ => {
                data.whole = false;
                self.report(kz016::source(site.clone(), source));
                return;
            }
        };
        match self.named(layer, site, path) {
            Some(path) => {
                let bytes = self.tree.read(&path).unwrap_or_default();
                self.put(site, generator, data, key, &String::from_utf8_lossy(&bytes));
            }
            None => data.whole = false,
        }
    }

    fn variables(&mut self, site: &Site, generator: &Generator, content: &str, data: &mut Data) {
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        for line in content.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            if !key.is_empty() {
                self.put(site, generator, data, key, value);
            }
        }
    }

    fn put(&mut self, site: &Site, generator: &Generator, data: &mut Data, key: &str, value: &str) {
        if data.values.insert(key.to_owned(), value.to_owned()).is_some() {
            data.whole = false;
            self.report(kz016::repeated(site.clone(), &generator.name, key));
        }
    }
}

/// The data from a generator's sources.
struct Data {
    values: BTreeMap<String, String>,
    /// Whether all sources could be read.
    whole: bool,
}

/// Returns the object that a generator makes of its data.
fn made(layer: &Layer<'_>, kind: &str, generator: &Generator, data: &BTreeMap<String, String>, site: &Site) -> Object {
    let made = Arc::new(site.clone());
    let mut object = Object::new(content(kind, generator, data), Arc::clone(&made));
    let options = || generator.options.iter().chain(&layer.kustomization().generator_options);
    object.hashed = !options().any(|options| options.disable_name_suffix_hash);
    if options().any(|options| !options.labels.is_empty()) {
        object.invalidate("/metadata/labels");
    }
    if options().any(|options| !options.annotations.is_empty()) {
        object.invalidate("/metadata/annotations");
    }
    object.write_generated();
    for options in options() {
        let maps = [("/metadata/labels", &options.labels), ("/metadata/annotations", &options.annotations)];
        for (mapping, pairs) in maps {
            pairs.keys().for_each(|key| object.write_key(mapping, key, &made));
        }
    }
    object
}

fn content(kind: &str, generator: &Generator, data: &BTreeMap<String, String>) -> Value {
    let mut content = json!({
        "apiVersion": "v1",
        "kind": kind,
        // kustomize keeps the behavior in an annotation
        "metadata": {"name": generator.name, "annotations": {}},
    });
    if !generator.namespace.is_empty() {
        content["metadata"]["namespace"] = generator.namespace.as_str().into();
    }
    if !data.is_empty() {
        content["data"] = json!(data);
    }
    if kind == "Secret" {
        content["type"] = "Opaque".into();
    }
    content
}

fn word(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Create => "create",
        Behavior::Replace => "replace",
        Behavior::Merge => "merge",
    }
}

fn unquoted(value: &str) -> &str {
    let quoted = |quote| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    if quoted('"') || quoted('\'') { &value[1..value.len() - 1] } else { value }
}
