//! Formats the report of `portcullis check` as text, GitHub annotations or SARIF.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;

use annotate_snippets::{AnnotationKind, Group, Level as Mark, Renderer, Snippet};
use serde_json::{Value, json};

use super::words::plural;
use super::{Located, Report, table};
use crate::admission::Level;
use crate::catalog::manifests::ManifestError;
use crate::gate::Registry;
use crate::rule::RuleInfo;
use crate::yaml::Place;

/// Maximum number of places that are shown for findings with the same text, so that the output stays short.
const MAX_PLACES: usize = 3;

/// Formats findings with their source lines, denials first, then a table of the roots and a summary line.
pub(super) fn text(report: &Report) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    let renderer = if is_terminal { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for alike in groups(report) {
        text.push_str(&diagnostic(&alike, &renderer));
        text.push_str("\n\n");
    }
    for error in &report.errors {
        text.push_str(&unreadable(error, &renderer));
        text.push_str("\n\n");
    }
    for problem in &report.problems {
        text.push_str(&format!("note: {problem}\n\n"));
    }
    text.push_str(&table::text(report));
    let time = report.begun.filter(|_| is_terminal).map(|begun| format!(" in {:.2} s", begun.elapsed().as_secs_f64()));
    text + summary(report).trim_end() + &time.unwrap_or_default() + "\n"
}

/// Returns the findings to show in groups, denials first. A group contains the findings with the same rule, level and
/// text. Findings about manifests that no kustomization lists are grouped by the kustomization file that could list the
/// manifests. With `--verbose`, each finding is a group of its own.
fn groups(report: &Report) -> Vec<Vec<&Located>> {
    let least = if report.is_verbose { Level::Audit } else { Level::Warn };
    let mut groups: Vec<Vec<&Located>> = Vec::new();
    let mut known = HashMap::new();
    for located in report.findings.iter().filter(|located| located.level >= least) {
        let next = groups.len();
        let place = (&*located.source.name, located.place.start);
        let (text, place) = match located.rule {
            FORGOTTEN => ("", Some(place)),
            _ => (&*located.message, None),
        };
        let text = (located.rule, located.level, text, place);
        let at = if report.is_verbose { next } else { *known.entry(text).or_insert(next) };
        if at == next {
            groups.push(Vec::new());
        }
        groups[at].push(located);
    }
    groups.sort_by_key(|alike| alike.first().map(|located| Reverse(located.level)));
    groups
}

fn diagnostic(alike: &[&Located], renderer: &Renderer) -> String {
    let Some((first, others)) = alike.split_first() else { return String::new() };
    let Located { rule, level, source, place, message, help, .. } = first;
    let mark = match level {
        Level::Deny => Mark::ERROR,
        Level::Warn => Mark::WARNING,
        Level::Audit | Level::Off => Mark::NOTE,
    };
    let mut group = mark.primary_title(message).id(*rule).element(snippet(&source.text, &source.name, *place));
    let others = (!others.is_empty()).then(|| also(first, others));
    if let Some(others) = &others {
        group = group.element(Mark::NOTE.message(others));
    }
    // Help is shown only if it is the same for all findings. Help that names a folder differs.
    if let Some(help) = help.as_ref().filter(|_| alike.iter().all(|other| other.help == *help)) {
        group = group.element(Mark::HELP.message(help));
    }
    renderer.render(&[group]).to_string()
}

/// Returns the line below the finding `first` that mentions the other findings of its group. If all findings have the
/// same message, the line lists the positions of the other findings, up to a limit. Otherwise, it contains the message
/// of the second finding, and the number of remaining findings.
fn also(first: &Located, others: &[&Located]) -> String {
    if others.iter().any(|other| other.message != first.message) {
        return match others {
            [other] => format!("also {}", other.message),
            [other, rest @ ..] => format!("also {}, and {} more; --verbose lists them", other.message, rest.len()),
            [] => String::new(),
        };
    }
    let place = |located: &&Located| format!("{}:{}:{}", located.source.name, located.place.line, located.place.column);
    let shown = others.iter().take(MAX_PLACES - 1).map(place).collect::<Vec<_>>().join(", ");
    match others.len().saturating_sub(MAX_PLACES - 1) {
        0 => format!("also at {shown}"),
        rest => format!("also at {shown} and {rest} more; --verbose lists them"),
    }
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

/// The id of the rule that reports manifests that no kustomization lists.
const FORGOTTEN: &str = "KZ026";
/// The id of the rule that reports deprecated fields. The summary counts its findings.
const DEPRECATED: &str = "KZ024";

/// Returns the last part of the summary line. It contains the number of Flux Kustomizations that are built from another
/// repository or an ExternalArtifact, and the number of findings in unused files.
fn elsewhere(report: &Report) -> String {
    let part = |list: &[(String, String)], word: &str| {
        let sources: HashSet<_> = list.iter().map(|(_, source)| source).collect();
        let from = plural(sources.len(), word);
        match list.len() {
            0 => String::new(),
            1 => format!("; 1 Kustomization builds from {from}"),
            count => format!("; {count} Kustomizations build from {from}"),
        }
    };
    let unused = match report.unused {
        0 => String::new(),
        count => format!("; {} in unused files (--verbose lists them)", plural(count, "finding")),
    };
    part(&report.elsewhere, "other repository") + &part(&report.composed, "ExternalArtifact") + &unused
}

fn summary(report: &Report) -> String {
    let denied = format!("{} denied", report.count(Level::Deny));
    let mut parts = vec![denied, plural(report.count(Level::Warn), "warning")];
    if !report.errors.is_empty() {
        parts.push(format!("{} unreadable", report.errors.len()));
    }
    match report.findings.iter().filter(|located| located.rule == DEPRECATED && located.level == Level::Audit).count() {
        0 => {}
        count => parts.push(plural(count, "deprecated field")),
    }
    let (objects, files) = (plural(report.objects, "object"), plural(report.files, "file"));
    let roots = match report.roots.len() {
        0 => String::new(),
        count => format!(" and {}", plural(count, "kustomize root")),
    };
    format!("checked {objects} in {files}{roots}: {}{}\n", parts.join(", "), elsewhere(report))
}

/// Formats each finding as a workflow command of GitHub Actions, which GitHub shows as an annotation in the pull
/// request.
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

/// Escapes a value for a workflow command of GitHub Actions, such as `::error file=…`.
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
