//! Evaluates other fields of a kustomization: `openapi`, `configurations`, `crds`, `vars`, `sortOptions`.

use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::Accumulator;
use crate::kustomize::file::{self, Definitions};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz008, kz017};
use crate::yaml::Document;

/// The schema that is built into kustomize 5.
const BUILT_IN_SCHEMA: &str = "v1.21.2";
/// The lists of a configuration that change which names and namespaces are rewritten.
const NAMING: [&str; 3] = ["namePrefix", "nameSuffix", "namespace"];

impl Walk<'_> {
    /// Evaluates `openapi` of a folder, before all other fields.
    pub(super) fn schema(&mut self, layer: &Layer<'_>, is_root: bool) {
        let openapi = &layer.kustomization().openapi;
        let field = FieldPath::of(["openapi"]);
        if let Some(path) = openapi.get("path") {
            let site = layer.site(field.key("path"));
            self.own_schema = true;
            if self.named(layer, &site, path).is_some() {
                self.uncertainty(
                    &site,
                    "a schema of its own may change what is cluster-scoped and how lists are merged",
                );
            }
        }
        let Some(version) = openapi.get("version").filter(|version| *version != BUILT_IN_SCHEMA) else { return };
        let site = layer.site(field.key("version"));
        if is_root && !version.is_empty() {
            self.report(kz017::schema_version(site, version, BUILT_IN_SCHEMA));
        } else if !version.is_empty() {
            self.uncertainty(&site, format!("the schema {version} is refused unless another one was set before"));
        }
    }

    /// Files of `configurations`, which are decoded strictly.
    pub(super) fn configurations(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        for (index, text) in layer.kustomization().configurations.iter().enumerate() {
            let site = layer.site(FieldPath::of(["configurations"]).index(index));
            let uncertainties = self.uncertainties;
            self.configuration(layer, &site, text, acc);
            // An unread file may have any effect.
            acc.custom_names |= self.uncertainties > uncertainties;
            acc.custom_replicas |= self.uncertainties > uncertainties;
        }
    }

    fn configuration(&mut self, layer: &Layer<'_>, site: &Site, text: &str, acc: &mut Accumulator) {
        let Some(path) = self.named(layer, site, text) else { return };
        let bytes = match self.tree.read(&path) {
            Ok(bytes) => bytes,
            Err(why) => return self.uncertainty(site, format!("{path} cannot be read: {why}")),
        };
        let of_file = Site::of_file(path.clone());
        match file::configuration(&bytes) {
            Ok((value, faults, document)) => {
                for fault in faults {
                    let place = document.as_ref().map_or(of_file.place, |d| d.nearest(&fault.path));
                    let (finding, _) = kz008::fault(Site::new(path.clone(), place, fault.path.clone()), &fault);
                    self.report(finding);
                }
                for twice in document.iter().flat_map(Document::duplicates) {
                    self.report(kz008::twice(Site::new(path.clone(), twice.kept, twice.path)));
                }
                acc.custom_names |= NAMING.into_iter().any(|list| value.get(list).is_some());
                acc.custom_replicas |= value.get("replicas").is_some();
            }
            Err(file::BadFile::Yaml(error)) => {
                let at = Site { place: error.place, ..of_file };
                self.report(kz008::malformed(at, &error.problem.to_string()));
            }
            Err(_) => self.uncertainty(site, format!("{path} is not read")),
        }
    }

    /// Files of `crds`: schemas by name.
    pub(super) fn crds(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        for (index, text) in layer.kustomization().crds.iter().enumerate() {
            let site = layer.site(FieldPath::of(["crds"]).index(index));
            let uncertainties = self.uncertainties;
            self.definitions(layer, site, text, acc);
            acc.custom_names |= self.uncertainties > uncertainties;
        }
    }

    fn definitions(&mut self, layer: &Layer<'_>, site: Site, text: &str, acc: &mut Accumulator) {
        let Some((path, content)) = self.named_text(layer, &site, text) else { return };
        if content.is_empty() {
            return self.report(kz017::crds(site, text, "is empty"));
        }
        let Definitions { fault, unknown: uncertainty, names } = file::definitions(&content);
        acc.custom_names |= names;
        if let Some((place, why)) = fault {
            self.report(kz017::crds(Site { place, ..Site::of_file(path.clone()) }, text, &why));
        }
        if let Some((place, why)) = uncertainty {
            self.uncertainty(&Site { place, ..Site::of_file(path) }, format!("\"{text}\" {why}"));
        }
    }

    /// Evaluates `vars`, whose names must be unique in the whole build.
    pub(super) fn vars(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        for (index, var) in layer.kustomization().vars.iter().enumerate() {
            let site = layer.site(FieldPath::of(["vars"]).index(index));
            self.uncertainty(
                &site,
                format!("whether the variable {} can be resolved is not worked out here", var.name),
            );
            self.var(&var.name, site, acc);
        }
    }

    /// Adds a variable of a base.
    pub(super) fn var(&mut self, name: &str, site: Site, acc: &mut Accumulator) {
        match acc.vars.get(name) {
            Some(before) => {
                let finding = kz017::var(site, name, before);
                self.report(finding);
            }
            None => {
                acc.vars.insert(name.to_owned(), site);
            }
        }
    }

    /// Evaluates `sortOptions` of the root, after all other fields.
    pub(super) fn sort_options(&mut self, layer: &Layer<'_>) {
        let Some(options) = &layer.kustomization().sort_options else { return };
        let field = FieldPath::of(["sortOptions"]);
        if !["fifo", "legacy"].contains(&options.order.as_str()) {
            self.report(kz017::sort_order(layer.site(field.key("order")), &options.order));
        } else if options.order == "fifo" && options.legacy_sort_options.is_some() {
            self.report(kz017::sort_legacy(layer.site(field.key("legacySortOptions"))));
        }
    }
}
