//! The output formats of a report.

use std::io::IsTerminal;

use annotate_snippets::{AnnotationKind, Group, Level as Mark, Renderer, Snippet};
use serde_json::{Value, json};

use super::{Located, Report};
use crate::admission::Level;
use crate::catalog::manifests::ManifestError;
use crate::gate::Registry;
use crate::rule::RuleInfo;
use crate::yaml::Place;

/// Formats every finding with its source lines, and a summary line.
pub(super) fn text(report: &Report) -> String {
    let renderer = if std::io::stdout().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    let shown = report.findings.iter().filter(|located| located.level > Level::Audit);
    let mut text: String = shown.map(|located| diagnostic(located, &renderer) + "\n\n").collect();
    for error in &report.errors {
        text.push_str(&unreadable(error, &renderer));
        text.push_str("\n\n");
    }
    text + &summary(report)
}

fn diagnostic(located: &Located, renderer: &Renderer) -> String {
    let Located { rule, level, source, place, message, help, .. } = located;
    let mark = if *level == Level::Deny { Mark::ERROR } else { Mark::WARNING };
    let mut group = mark.primary_title(message).id(*rule).element(snippet(&source.text, &source.name, *place));
    if let Some(help) = help {
        group = group.element(Mark::HELP.message(help));
    }
    renderer.render(&[group]).to_string()
}

fn unreadable(error: &ManifestError, renderer: &Renderer) -> String {
    let title = Mark::ERROR.primary_title(&error.problem);
    let group: Group<'_> = match &error.place {
        Some((source, place)) => title.element(snippet(&source.text, &source.name, *place)),
        None => return format!("error: {error}"),
    };
    renderer.render(&[group]).to_string()
}

fn snippet<'a>(text: &'a str, name: &'a str, place: Place) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    // A block of several lines is underlined at its first line.
    let end = text.get(place.start..place.end).and_then(|marked| marked.find('\n')).map(|length| place.start + length);
    let span = place.start..end.unwrap_or(place.end).max(place.start);
    Snippet::source(text).path(name).fold(true).annotation(AnnotationKind::Primary.span(span))
}

fn summary(report: &Report) -> String {
    let plural = |count, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let denied = format!("{} denied", report.count(Level::Deny));
    let mut parts = vec![denied, plural(report.count(Level::Warn), "warning")];
    if !report.errors.is_empty() {
        parts.push(format!("{} unreadable", report.errors.len()));
    }
    let (objects, files) = (plural(report.objects, "object"), plural(report.files, "file"));
    let roots = match report.roots.len() {
        0 => String::new(),
        count => format!(" and {}", plural(count, "kustomize root")),
    };
    format!("checked {objects} in {files}{roots}: {}\n", parts.join(", "))
}

/// Formats each finding as a workflow command of GitHub Actions.
pub(super) fn github(report: &Report) -> String {
    let found = report.findings.iter().filter(|located| located.level > Level::Audit).map(|located| {
        let command = if located.level == Level::Deny { "error" } else { "warning" };
        let help = located.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
        let text = format!("{}{help}", located.headline());
        annotation(command, &located.source.name, Some(located.place), located.rule, &text)
    });
    let failed = report.errors.iter().map(|error| {
        let place = error.place.as_ref().map(|(_, place)| *place);
        annotation("error", &error.name, place, "unreadable", &error.problem)
    });
    found.chain(failed).collect::<String>() + &summary(report)
}

fn annotation(command: &str, file: &str, place: Option<Place>, title: &str, text: &str) -> String {
    let place = place.map(|place| format!(",line={},col={}", place.line, place.column)).unwrap_or_default();
    format!(
        "::{command} file={}{place},title={title}::{}\n",
        escaped(file).replace(':', "%3A").replace(',', "%2C"),
        escaped(text)
    )
}

/// Escapes a value of a workflow command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Formats the report as SARIF 2.1.0.
pub(super) fn sarif(report: &Report, registry: &Registry) -> Value {
    let driver = json!({
        "name": "portcullis",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": registry.infos().into_iter().map(sarif_rule).collect::<Vec<_>>(),
    });
    let notifications: Vec<_> = report.errors.iter().map(sarif_notification).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": report.errors.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": report.findings.iter().map(|located| sarif_result(located)).collect::<Vec<_>>(),
        }],
    })
}

fn sarif_rule(info: &RuleInfo) -> Value {
    json!({
        "id": info.id,
        "name": info.name,
        "shortDescription": {"text": info.summary},
        "fullDescription": {"text": format!("{}\n\n{}", info.section("What it does"), info.section("Why it is bad"))},
        "help": {"text": info.section("How to fix")},
        "defaultConfiguration": {"level": sarif_level(info.level)},
    })
}

fn sarif_result(located: &Located) -> Value {
    let help = located.help.as_ref().map(|help| format!(". Help: {help}")).unwrap_or_default();
    json!({
        "ruleId": located.rule,
        "level": sarif_level(located.level),
        "message": {"text": format!("{}{help}", located.headline())},
        "locations": [{
            "physicalLocation": physical(&located.source.name, located.place),
            "logicalLocations": [{"fullyQualifiedName": located.path}],
        }],
    })
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
