//! Findings with their place in a file: for people, as JSON, as SARIF, as GitHub annotations.

mod render;

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};

use super::pretty;
use crate::admission::{Finding, Level};
use crate::catalog::manifests::{Manifest, ManifestError, Source};
use crate::gate::Registry;
use crate::yaml::Place;

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// For people: the offending text underlined
    Text,
    /// For programs
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// For GitHub Actions: annotations of the changed lines
    Github,
}

/// A finding at its place in a file.
pub(super) struct Located {
    pub(super) rule: &'static str,
    pub(super) level: Level,
    pub(super) source: Arc<Source>,
    pub(super) place: Place,
    /// The path of the field in its object or file.
    pub(super) path: String,
    pub(super) message: String,
    pub(super) found: Option<String>,
    pub(super) allowed: Option<String>,
    pub(super) help: Option<String>,
    /// The Kubernetes object that it is about; `null` where it is about a file.
    pub(super) object: Value,
}

/// A kustomize root that was judged.
pub(super) struct Root {
    pub(super) root: String,
    pub(super) profile: &'static str,
    pub(super) verdict: &'static str,
    pub(super) reasons: Vec<String>,
    /// What many roots have in common is there once.
    pub(super) findings: Vec<Rc<Located>>,
}

/// What a run came to.
#[derive(Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Rc<Located>>,
    pub(super) errors: Vec<ManifestError>,
    pub(super) roots: Vec<Root>,
    pub(super) objects: usize,
    pub(super) files: usize,
}

impl Report {
    /// How many findings there are of a level.
    pub(super) fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|located| located.level == level).count()
    }

    /// It as a text for standard output.
    pub(super) fn render(&self, output: Output, registry: &Registry) -> String {
        match output {
            Output::Text => render::text(self),
            Output::Json => pretty(&self.json()),
            Output::Sarif => pretty(&render::sarif(self, registry)),
            Output::Github => render::github(self),
        }
    }

    fn json(&self) -> Value {
        json!({
            "findings": self.findings.iter().map(|located| located.json()).collect::<Vec<_>>(),
            "roots": self.roots.iter().map(Root::json).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(error_json).collect::<Vec<_>>(),
            "objects": self.objects,
            "files": self.files,
        })
    }
}

impl Root {
    fn json(&self) -> Value {
        json!({
            "root": self.root, "profile": self.profile, "verdict": self.verdict, "reasons": self.reasons,
            "findings": self.findings.iter().map(|located| located.json()).collect::<Vec<_>>(),
        })
    }
}

impl Located {
    /// A finding about an object in a file.
    pub(super) fn in_manifest(finding: Finding, manifest: &Manifest) -> Self {
        let Finding { rule, level, field, message, place: within, found, allowed, help, .. } = finding;
        let message = within.map(|within| format!("{message} ({within})")).unwrap_or(message);
        let (place, path) = (manifest.place(&field), field.to_string());
        let (source, object) = (manifest.source.clone(), identity(&manifest.object));
        Self { rule, level, source, place, path, message, found, allowed, help, object }
    }

    /// Rule, path and message in a line.
    pub(super) fn headline(&self) -> String {
        match self.path.as_str() {
            "" => format!("{} {}", self.rule, self.message),
            path => format!("{} {path}: {}", self.rule, self.message),
        }
    }

    /// It for programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "rule": self.rule, "level": self.level, "message": self.message,
            "found": self.found, "allowed": self.allowed, "help": self.help,
            "file": self.source.name, "line": self.place.line, "column": self.place.column,
            "path": self.path, "object": self.object,
        })
    }
}

fn identity(object: &Value) -> Value {
    let metadata = |key| object.get("metadata").and_then(|metadata| metadata.get(key));
    json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"),
           "namespace": metadata("namespace"), "name": metadata("name")})
}

fn error_json(error: &ManifestError) -> Value {
    let place = error.place.as_ref().map(|(_, place)| place);
    json!({"file": error.name, "line": place.map(|place| place.line), "column": place.map(|place| place.column),
           "message": error.problem})
}
