//! The output of findings with their positions in files. The formats are text, JSON, SARIF and GitHub annotations.

mod render;
mod table;
mod words;

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::pretty;
use crate::admission::{Finding, Level};
use crate::catalog::manifests::{Manifest, ManifestError, Source};
use crate::gate::Registry;
use crate::yaml::Place;

/// The output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// Human-readable text, with the source lines
    Text,
    /// JSON for programs
    Json,
    /// SARIF 2.1.0 for code scanning
    Sarif,
    /// Annotations for GitHub Actions
    Github,
}

/// A finding with its position in a file.
#[derive(Clone)]
pub(super) struct Located {
    pub(super) rule: &'static str,
    pub(super) level: Level,
    pub(super) source: Arc<Source>,
    pub(super) place: Place,
    /// The path of the field with the problem, such as `spec.template`. The path starts at the root of the object or of
    /// the kustomization file.
    pub(super) path: String,
    pub(super) message: String,
    pub(super) found: Option<String>,
    pub(super) allowed: Option<String>,
    pub(super) help: Option<String>,
    /// API version, kind, namespace and name of the Kubernetes object that contains the finding. `null` for a finding
    /// in a file.
    pub(super) object: Value,
    /// Whether `portcullis check` lowered the severity level of the finding, because no Flux Kustomization or similar
    /// object uses the file with the finding.
    pub(super) is_unused: bool,
}

/// The results of checking one kustomize root.
pub(super) struct Root {
    pub(super) root: String,
    pub(super) profile: &'static str,
    pub(super) verdict: &'static str,
    pub(super) reasons: Vec<String>,
    /// The objects that refer to the checked folder, each as kind, namespace and name, such as `Kustomization
    /// flux-system/apps`.
    pub(super) owners: Vec<String>,
    /// Whether the root is unused. A root is unused if no object in the checked files, such as a Flux Kustomization,
    /// builds it.
    pub(super) is_unused: bool,
    /// The findings in the root. A finding that several roots share is stored only once.
    pub(super) findings: Vec<Rc<Located>>,
}

/// The result of `portcullis check`.
#[derive(Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Rc<Located>>,
    pub(super) errors: Vec<ManifestError>,
    pub(super) roots: Vec<Root>,
    pub(super) objects: usize,
    pub(super) files: usize,
    /// The Kustomizations whose source is not the checked repository, each with the repository that it is built from.
    pub(super) elsewhere: Vec<(String, String)>,
    /// The Kustomizations that are built from ExternalArtifacts, each with its artifact.
    pub(super) composed: Vec<(String, String)>,
    /// Number of findings in unused files. Their level was lowered, because no Flux Kustomization or similar object
    /// uses these files.
    pub(super) unused: usize,
    /// Messages about kustomizations for which `portcullis check` assumed options of kustomize, such as
    /// `--enable-helm`. It assumes options that scripts in the repository use. Each message names the file and line of
    /// the script.
    pub(super) assumptions: Vec<String>,
    /// Problems that concern the whole check and not a single file or kustomize root, such as an exceeded limit.
    pub(super) problems: Vec<String>,
    /// The time at which the run of `portcullis check` began.
    pub(super) begun: Option<Instant>,
    /// Whether the text output lists every place of each finding (`--verbose`).
    pub(super) is_verbose: bool,
}

impl Report {
    /// Returns the number of findings with the level `level`.
    pub(super) fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|located| located.level == level).count()
    }

    /// Writes the report to `out` in the given format.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub(super) fn write(&self, output: Output, registry: &Registry, out: &mut dyn Write) -> io::Result<()> {
        match output {
            Output::Text => out.write_all(render::text(self).as_bytes()),
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                out.write_all(b"\n")
            }
            Output::Sarif => out.write_all(pretty(&render::sarif(self, registry)).as_bytes()),
            Output::Github => out.write_all(render::github(self).as_bytes()),
        }
    }
}

/// Serializes the report as a JSON object. The JSON has a list of findings for each kustomize root, which is a folder
/// that is built. A finding in several roots therefore appears several times in the JSON, but only once in memory.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(9))?;
        members.serialize_entry("artifacts", &self.composed.iter().map(artifact_json).collect::<Vec<_>>())?;
        members.serialize_entry("assumptions", &self.assumptions)?;
        members.serialize_entry("elsewhere", &self.elsewhere.iter().map(elsewhere_json).collect::<Vec<_>>())?;
        members.serialize_entry("errors", &self.errors.iter().map(error_json).collect::<Vec<_>>())?;
        members.serialize_entry("files", &self.files)?;
        members.serialize_entry("findings", &Each(&self.findings))?;
        members.serialize_entry("objects", &self.objects)?;
        members.serialize_entry("problems", &self.problems)?;
        members.serialize_entry("roots", &self.roots)?;
        members.end()
    }
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(7))?;
        members.serialize_entry("findings", &Each(&self.findings))?;
        members.serialize_entry("owners", &self.owners)?;
        members.serialize_entry("profile", self.profile)?;
        members.serialize_entry("reasons", &self.reasons)?;
        members.serialize_entry("root", &self.root)?;
        members.serialize_entry("unused", &self.is_unused)?;
        members.serialize_entry("verdict", self.verdict)?;
        members.end()
    }
}

/// A list of findings that is serialized as JSON. Converts only one finding at a time, so the JSON values of all
/// findings are never in memory together.
struct Each<'a>(&'a [Rc<Located>]);

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|located| located.json()))
    }
}

impl Located {
    /// Adds the file position to a finding about an object. This is the position of the finding's field in the
    /// manifest.
    pub(super) fn in_manifest(finding: Finding, manifest: &Manifest) -> Self {
        let Finding { rule, level, field, message, location: within, found, allowed, help, .. } = finding;
        let message = within.map(|within| format!("{message} ({within})")).unwrap_or(message);
        let (place, path) = (manifest.place(&field), field.to_string());
        let (source, object) = (manifest.source.clone(), identity(&manifest.object));
        Self { rule, level, source, place, path, message, found, allowed, help, object, is_unused: false }
    }

    /// Returns rule, path and message of the finding in one line.
    pub(super) fn headline(&self) -> String {
        match self.path.as_str() {
            "" => format!("{} {}", self.rule, self.message),
            path => format!("{} {path}: {}", self.rule, self.message),
        }
    }

    /// Returns the finding as JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "rule": self.rule, "level": self.level, "message": self.message,
            "found": self.found, "allowed": self.allowed, "help": self.help,
            "file": self.source.name, "line": self.place.line, "column": self.place.column,
            "path": self.path, "object": self.object,
        })
    }
}

/// Returns a JSON object with API version, kind, namespace and name of `object`.
pub(super) fn identity(object: &Value) -> Value {
    let metadata = |key| object.get("metadata").and_then(|metadata| metadata.get(key));
    json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"),
           "namespace": metadata("namespace"), "name": metadata("name")})
}

fn elsewhere_json((owner, repository): &(String, String)) -> Value {
    json!({"owner": owner, "repository": repository})
}

fn artifact_json((owner, artifact): &(String, String)) -> Value {
    json!({"owner": owner, "artifact": artifact})
}

fn error_json(error: &ManifestError) -> Value {
    let place = error.place.as_ref().map(|(_, place)| place);
    json!({"file": error.name, "line": place.map(|place| place.line), "column": place.map(|place| place.column),
           "message": error.problem})
}
