//! Formats an audit as text: a table of rules, then a line for each finding.

use std::collections::BTreeMap;

use crate::audit::{Audited, Entry, Outcome};
use crate::gate::Registry;

/// Formats an audit as text. `before` is the version of Portcullis that wrote the earlier policy reports. `None` if
/// there are no earlier reports.
pub(super) fn text(audited: &Audited, before: Option<&str>, registry: &Registry) -> String {
    let mut text = String::new();
    if !audited.entries.is_empty() {
        text.push_str(&table(&audited.entries, registry));
        text.push('\n');
    }
    let (new, old): (Vec<_>, Vec<_>) = audited.entries.iter().partition(|entry| entry.is_new == Some(true));
    if let Some(before) = before {
        text.push_str(&section(&format!("New since the reports of {before}:"), &new));
        text.push_str(&section("As before:", &old));
    } else {
        text.push_str(&section("Findings:", &old));
    }
    for unread in &audited.unread {
        text.push_str(&format!("not read: {}: {}\n", unread.resource, unread.why));
    }
    text + &summary(audited, before, &new)
}

fn section(title: &str, entries: &[&Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let lines: String = entries.iter().map(|entry| line(entry)).collect();
    format!("{title}\n{lines}\n")
}

/// Returns the word for the outcome of a finding, such as `denied`.
fn word(entry: &Entry) -> &'static str {
    match entry.outcome() {
        Outcome::Error => "unreadable",
        Outcome::Fail => "denied",
        Outcome::Warn if entry.level == crate::admission::Level::Audit => "recorded",
        Outcome::Warn => "warned",
        Outcome::Skip => "exempt",
    }
}

fn line(entry: &Entry) -> String {
    let subject = &entry.subject;
    let namespace = if subject.namespace.is_empty() { "-" } else { &subject.namespace };
    let field = if entry.field.is_empty() { String::new() } else { format!("{}: ", entry.field) };
    let message = entry.message.lines().next().unwrap_or_default();
    let (word, rule, kind, name) = (word(entry), entry.rule, &subject.kind, &subject.name);
    format!("  {word:<10} {rule:<10} {namespace} {kind} {name}: {field}{message}\n")
}

/// Returns a table with the number of findings of each rule. It has a row per rule, and a column per outcome, such as
/// `denied`.
fn table(entries: &[Entry], registry: &Registry) -> String {
    const WORDS: [&str; 5] = ["denied", "warned", "recorded", "exempt", "unreadable"];
    let mut rules: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for entry in entries {
        let at = WORDS.iter().position(|known| *known == word(entry)).unwrap_or_default();
        rules.entry(entry.rule).or_default()[at] += 1;
    }
    let name = |rule| registry.info(rule).map_or("", |info| info.name);
    let width = rules.keys().map(|rule| name(rule).len()).max().unwrap_or_default();
    let heads: String = WORDS.iter().map(|word| format!("  {word:>10}")).collect();
    let mut table = format!("{:<10}  {:width$}{heads}\n", "rule", "");
    for (rule, counts) in &rules {
        let counts: String = counts.iter().map(|count| format!("  {count:>10}")).collect();
        table.push_str(&format!("{rule:<10}  {:width$}{counts}\n", name(rule)));
    }
    table
}

fn summary(audited: &Audited, before: Option<&str>, new: &[&Entry]) -> String {
    let denied = |entry: &&Entry| entry.outcome() >= Outcome::Fail;
    let total = audited.entries.iter().filter(denied).count();
    let others = audited.entries.len() - total;
    let mut text =
        format!("audited {} objects: {total} denied at their next update, {others} other findings\n", audited.objects);
    if audited.cut > 0 {
        text.push_str(&format!("{} more findings are omitted: select rules with --rules\n", audited.cut));
    }
    if let Some(before) = before {
        let denied = new.iter().copied().filter(denied).count();
        text.push_str(&format!("since the reports of {before}: {} new findings, {denied} of them denied\n", new.len()));
    }
    text
}
