//! `portcullis explain dry-run`: shows which objects of a Landscaper Installation are in dry run and why. For objects
//! in dry run, also shows the values of their exports.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::fragment::{path_in, skeleton, yaml};
use super::installations::Explanation;
use crate::admission::json as wire;
use crate::catalog::{Kind, Stored, View};
use crate::landscaper::dry_run::export::{Export, Failure};
use crate::landscaper::dry_run::fragment::Identity;
use crate::landscaper::dry_run::item::items;
use crate::landscaper::dry_run::owner_chain::{self, Root};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{BY_OWNER, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS, INSTALLATIONS, owner_key};

/// Maximum number of objects shown per Installation. The limit also ends the search if owner references form a cycle.
const MAX_OBJECTS: usize = 10_000;

/// An Installation with all objects that it owns directly or indirectly, and the values of their exports.
pub(super) struct DryRun {
    name: String,
    why: String,
    is_dry_run: bool,
    configuration: Option<(String, bool)>,
    objects: Vec<Object>,
    missing: Vec<Value>,
}

/// An object that an Installation owns directly or indirectly, with its exports.
struct Object {
    kind: &'static str,
    name: String,
    is_annotated: bool,
    exports: Vec<Explained>,
}

/// An export of a DeployItem, or of a template in an Execution. Contains its value in dry run, or the reason why the
/// export has no value.
struct Explained {
    template: Option<String>,
    export: Export,
    value: Result<Option<Value>, String>,
}

impl DryRun {
    pub(super) fn of(installation: &Stored, view: &View<'_>) -> Self {
        let (namespace, value) = (installation.namespace(), installation.value());
        let (why, annotations) = why(value, namespace, view);
        let found =
            annotations.configuration.as_ref().and_then(|name| view.find(&DRY_RUN_CONFIGURATIONS, namespace, name));
        let nothing = Value::Null;
        let configuration = found.as_ref().map_or(&nothing, |found| found.value());
        let mut missing = BTreeMap::new();
        let below = below(installation, view);
        let explain = |(kind, stored): (&'static Kind, Arc<Stored>)| Object {
            kind: kind.kind,
            name: stored.name().to_owned(),
            is_annotated: DryRunAnnotations::of(stored.value()).is_dry_run(),
            exports: exports(kind, &stored, configuration, annotations.is_dry_run, &mut missing, view),
        };
        let objects = below.into_iter().map(explain).collect();
        Self {
            name: format!("{namespace}/{}", installation.name()),
            why,
            is_dry_run: annotations.is_dry_run,
            configuration: annotations.configuration.map(|name| (name, found.is_some())),
            objects,
            missing: missing
                .iter()
                .map(|(identity, paths)| skeleton(identity, paths.iter().map(String::as_str)))
                .collect(),
        }
    }
}

/// The dry-run annotations that an Installation inherits from its root Installation.
struct RootAnnotations {
    is_dry_run: bool,
    configuration: Option<String>,
}

fn why(value: &Value, namespace: &str, view: &View<'_>) -> (String, RootAnnotations) {
    let word = |annotations: DryRunAnnotations<'_>| RootAnnotations {
        is_dry_run: annotations.is_dry_run(),
        configuration: annotations.configuration.map(str::to_owned).filter(|_| annotations.is_dry_run()),
    };
    let says = |annotations: &DryRunAnnotations<'_>| match annotations.dry_run {
        Some("true") => "yes".to_owned(),
        Some(other) if other != "false" => format!("no: its annotation is {other:?}, not \"true\""),
        _ => "no".to_owned(),
    };
    match owner_chain::root(value, namespace, view).0 {
        Root::Own => (says(&DryRunAnnotations::of(value)), word(DryRunAnnotations::of(value))),
        Root::Of(root) => {
            let annotations = DryRunAnnotations::of(root.value());
            (format!("{}, inherited from its root {:?}", says(&annotations), root.name()), word(annotations))
        }
        Root::Replaced(above) => {
            let (kind, name) = (above.by.kind.kind, &above.by.name);
            let text = format!("unknown: {kind} {name:?} in its owner chain was deleted and created again");
            (text, word(DryRunAnnotations::default()))
        }
        Root::Orphan(above) | Root::Unknown(above) => {
            let text = format!("unknown: {} {:?} in its owner chain does not exist", above.kind.kind, above.name);
            (text, word(DryRunAnnotations::default()))
        }
    }
}

/// Returns all objects that an Installation owns directly or indirectly. Each object comes after its owner.
fn below(installation: &Stored, view: &View<'_>) -> Vec<(&'static Kind, Arc<Stored>)> {
    let namespace = installation.namespace();
    let mut found: Vec<(&'static Kind, Arc<Stored>)> = Vec::new();
    let mut open = VecDeque::from([owner_key(INSTALLATIONS.kind, installation.name())]);
    while let Some(key) = open.pop_front() {
        for kind in [&EXECUTIONS, &DEPLOY_ITEMS, &INSTALLATIONS] {
            let left = MAX_OBJECTS.saturating_sub(found.len());
            for stored in view.indexed(kind, &BY_OWNER, namespace, &key, left) {
                open.push_back(owner_key(kind.kind, stored.name()));
                found.push((kind, stored));
            }
        }
    }
    found
}

/// Returns the exports of a DeployItem with their values. For an Execution without DeployItems, returns the exports of
/// its templates. Returns an empty list for other objects.
///
/// The values are read from `configuration`, the DryRunConfiguration. An export may read an object that `configuration`
/// does not contain. If `is_dry_run` is true, this function adds such objects to `missing`. For each object, `missing`
/// lists the JSON paths that exports read.
fn exports(
    kind: &'static Kind,
    stored: &Stored,
    configuration: &Value,
    is_dry_run: bool,
    missing: &mut BTreeMap<Identity, Vec<String>>,
    view: &View<'_>,
) -> Vec<Explained> {
    let key = owner_key(kind.kind, stored.name());
    let has_items = view.count(&DEPLOY_ITEMS, &BY_OWNER, stored.namespace(), &key) > 0;
    if std::ptr::eq(kind, &INSTALLATIONS) || has_items {
        return Vec::new();
    }
    let mut explained = Vec::new();
    for item in items(stored.value()).unwrap_or_default() {
        for export in &item.exports {
            let value = export.evaluate(configuration);
            if let (true, Err(Failure::Missing(identity))) = (is_dry_run, &value) {
                missing.entry(identity.clone()).or_default().push(path_in(export, identity).to_owned());
            }
            let value = value.map_err(|failure| problem(&failure));
            explained.push(Explained { template: item.template.clone(), export: export.clone(), value });
        }
    }
    explained
}

fn problem(failure: &Failure) -> String {
    match failure {
        Failure::Missing(identity) => format!("there is no fragment of {identity}"),
        Failure::Path { identity, error, .. } => format!("{error}, on {identity}"),
        Failure::Reference { identity, problem } => {
            format!("the value in {identity} does not name an object: {problem}")
        }
        Failure::Key(error) => error.to_string(),
    }
}

impl Explanation for DryRun {
    fn text(&self) -> String {
        let configuration = match &self.configuration {
            None => "none".to_owned(),
            Some((name, true)) => name.clone(),
            Some((name, false)) => format!("{name}, which does not exist"),
        };
        let mut text = format!("Installation {}\n  dry run        {}\n", self.name, self.why);
        if self.is_dry_run {
            text.push_str(&format!("  configuration  {configuration}\n"));
        }
        for object in &self.objects {
            text.push_str(&object.text(self.is_dry_run));
        }
        if !self.missing.is_empty() {
            text.push_str("\n  add to spec.exports of the DryRunConfiguration:\n\n");
            text.push_str(&yaml(&self.missing));
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "installation": self.name,
            "dryRun": self.is_dry_run,
            "why": self.why,
            "configuration": self.configuration.as_ref().map(|(name, exists)| json!({"name": name, "exists": exists})),
            "objects": self.objects.iter().map(|object| object.json(self.is_dry_run)).collect::<Vec<_>>(),
            "missingFragments": self.missing,
        })
    }
}

impl Object {
    fn text(&self, is_dry_run: bool) -> String {
        let Self { kind, name, is_annotated, exports } = self;
        let annotations = match (is_dry_run, is_annotated) {
            (true, true) => "in dry run",
            (true, false) => "not in dry run yet: it is annotated with its next write",
            (false, true) => "still in dry run: its annotation is removed with its next write",
            (false, false) => "not in dry run",
        };
        let mut text = format!("\n  {kind} {name}: {annotations}\n");
        for explained in exports {
            text.push_str(&explained.text(is_dry_run));
        }
        text
    }

    fn json(&self, is_dry_run: bool) -> Value {
        let exports: Vec<_> = self.exports.iter().map(|explained| explained.json(is_dry_run)).collect();
        json!({"kind": self.kind, "name": self.name, "marked": self.is_annotated, "exports": exports})
    }
}

impl Explained {
    fn text(&self, is_dry_run: bool) -> String {
        let Self { template, export, value } = self;
        let of = template.as_ref().map(|template| format!(" of template {template:?}")).unwrap_or_default();
        let from =
            export.from_resource.as_ref().map_or_else(|| "the deployer's own data".to_owned(), Identity::to_string);
        let through =
            export.from_object_ref.as_ref().map(|next| format!(", then {} of that {}", next.json_path, next.kind));
        let outcome = match value {
            _ if !is_dry_run => String::new(),
            Ok(Some(value)) => format!("      = {}\n", wire::brief(value)),
            Ok(None) => {
                "      has no value in dry run: it has no fromResource, so the deployer provides its value\n".to_owned()
            }
            Err(problem) => format!("      has no value: {problem}\n"),
        };
        format!("    {}{of}: {} of {from}{}\n{outcome}", export.key, export.json_path, through.unwrap_or_default())
    }

    fn json(&self, is_dry_run: bool) -> Value {
        let Self { template, export, value } = self;
        let mut explained = json!({
            "template": template,
            "field": export.field.to_string(),
            "key": export.key,
            "jsonPath": export.json_path,
            "fromResource": export.from_resource.as_ref().map(Identity::to_string),
        });
        match value {
            _ if !is_dry_run => {}
            Ok(value) => explained["value"] = json!(value),
            Err(problem) => explained["problem"] = json!(problem),
        }
        explained
    }
}
