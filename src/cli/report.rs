//! Findings with their place in a file: for people, as JSON, as SARIF.

use std::io::IsTerminal;

use annotate_snippets::{AnnotationKind, Group, Level as Mark, Renderer, Snippet};
use serde_json::{Value, json};

use super::pretty;
use crate::admission::{Finding, Level};
use crate::catalog::manifests::{Manifest, ManifestError};
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
}

/// A finding, and the object it is about.
pub(super) struct Located {
    pub(super) manifest: Manifest,
    pub(super) finding: Finding,
}

/// What a run came to.
#[derive(Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Located>,
    pub(super) errors: Vec<ManifestError>,
    pub(super) objects: usize,
    pub(super) files: usize,
}

impl Report {
    /// How many findings there are of a level.
    pub(super) fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|located| located.finding.level == level).count()
    }

    /// It as a text for standard output.
    pub(super) fn render(&self, output: Output, registry: &Registry) -> String {
        match output {
            Output::Text => self.text(),
            Output::Json => pretty(&self.json()),
            Output::Sarif => pretty(&self.sarif(registry)),
        }
    }

    fn text(&self) -> String {
        let renderer = if std::io::stdout().is_terminal() { Renderer::styled() } else { Renderer::plain() };
        let shown = self.findings.iter().filter(|located| located.finding.level > Level::Audit);
        let mut text: String = shown.map(|located| located.text(&renderer) + "\n\n").collect();
        for error in &self.errors {
            text.push_str(&unreadable(error, &renderer));
            text.push_str("\n\n");
        }
        text + &self.summary()
    }

    fn summary(&self) -> String {
        let plural = |count, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let mut parts = vec![format!("{} denied", self.count(Level::Deny)), plural(self.count(Level::Warn), "warning")];
        if !self.errors.is_empty() {
            parts.push(format!("{} unreadable", self.errors.len()));
        }
        let (objects, files) = (plural(self.objects, "object"), plural(self.files, "file"));
        format!("checked {objects} in {files}: {}\n", parts.join(", "))
    }

    fn json(&self) -> Value {
        json!({
            "findings": self.findings.iter().map(Located::json).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(error_json).collect::<Vec<_>>(),
            "objects": self.objects,
            "files": self.files,
        })
    }

    fn sarif(&self, registry: &Registry) -> Value {
        let rule = |rule: &&crate::rule::Rule| {
            json!({
                "id": rule.id,
                "name": rule.name,
                "shortDescription": {"text": rule.summary},
                "fullDescription": {"text": rule.page.why},
                "help": {"text": rule.page.mend},
                "defaultConfiguration": {"level": sarif_level(rule.level)},
            })
        };
        let driver = json!({
            "name": "portcullis",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": registry.rules().iter().map(rule).collect::<Vec<_>>(),
        });
        let notifications: Vec<_> = self.errors.iter().map(sarif_notification).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": driver},
                "invocations": [{
                    "executionSuccessful": self.errors.is_empty(),
                    "toolExecutionNotifications": notifications,
                }],
                "results": self.findings.iter().map(Located::sarif).collect::<Vec<_>>(),
            }],
        })
    }
}

impl Located {
    fn place(&self) -> Place {
        self.manifest.place(&self.finding.field)
    }

    fn text(&self, renderer: &Renderer) -> String {
        let Finding { rule, level, message, help, .. } = &self.finding;
        let mark = if *level == Level::Deny { Mark::ERROR } else { Mark::WARNING };
        let source = &self.manifest.source;
        let mut group =
            mark.primary_title(message).id(*rule).element(snippet(&source.text, &source.name, self.place()));
        if let Some(help) = help {
            group = group.element(Mark::HELP.message(help));
        }
        renderer.render(&[group]).to_string()
    }

    fn json(&self) -> Value {
        let Finding { rule, level, field, message, found, allowed, help } = &self.finding;
        let place = self.place();
        json!({
            "rule": rule, "level": level, "message": message, "found": found, "allowed": allowed, "help": help,
            "file": self.manifest.source.name, "line": place.line, "column": place.column,
            "path": field.to_string(), "object": self.object(),
        })
    }

    fn object(&self) -> Value {
        let object = &self.manifest.object;
        let metadata = |key| object.get("metadata").and_then(|metadata| metadata.get(key));
        json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"),
               "namespace": metadata("namespace"), "name": metadata("name")})
    }

    fn sarif(&self) -> Value {
        let Finding { rule, level, field, help, .. } = &self.finding;
        let mut text = self.finding.headline();
        if let Some(help) = help {
            text.push_str(&format!(". Help: {help}"));
        }
        json!({
            "ruleId": rule,
            "level": sarif_level(*level),
            "message": {"text": text},
            "locations": [{
                "physicalLocation": physical(&self.manifest.source.name, self.place()),
                "logicalLocations": [{"fullyQualifiedName": field.to_string()}],
            }],
        })
    }
}

fn snippet<'a>(text: &'a str, name: &'a str, place: Place) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    // A block of several lines is marked at its first.
    let end = text.get(place.start..place.end).and_then(|marked| marked.find('\n')).map(|length| place.start + length);
    let span = place.start..end.unwrap_or(place.end).max(place.start);
    Snippet::source(text).path(name).fold(true).annotation(AnnotationKind::Primary.span(span))
}

fn unreadable(error: &ManifestError, renderer: &Renderer) -> String {
    let title = Mark::ERROR.primary_title(&error.problem);
    let group: Group<'_> = match &error.place {
        Some((source, place)) => title.element(snippet(&source.text, &source.name, *place)),
        None => return format!("error: {error}"),
    };
    renderer.render(&[group]).to_string()
}

fn error_json(error: &ManifestError) -> Value {
    let place = error.place.as_ref().map(|(_, place)| place);
    json!({"file": error.name, "line": place.map(|place| place.line), "column": place.map(|place| place.column),
           "message": error.problem})
}

fn sarif_notification(error: &ManifestError) -> Value {
    let mut notification = json!({"level": "error", "message": {"text": error.to_string()}});
    if let Some((_, place)) = &error.place {
        notification["locations"] = json!([{"physicalLocation": physical(&error.name, *place)}]);
    }
    notification
}

fn sarif_level(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Audit => "note",
        Level::Off => "none",
    }
}

fn physical(file: &str, place: Place) -> Value {
    json!({
        "artifactLocation": {"uri": file},
        "region": {"startLine": place.line, "startColumn": place.column,
                   "byteOffset": place.start, "byteLength": place.end.saturating_sub(place.start)},
    })
}
