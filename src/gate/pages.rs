//! Formats the page of one rule, and the list of all rules. The list is formatted as Markdown, as a table or as JSON.

use serde_json::{Value, json};

use super::Registry;
use crate::rule::{Match, RuleInfo};

/// Returns the documentation page of a rule as Markdown, followed by a list of the requests that the rule matches.
pub fn page(registry: &Registry, info: &RuleInfo) -> String {
    let matches = registry.rule(info.id).map_or(&[][..], |rule| rule.matchers);
    let matches: String = matches.iter().map(|one| format!("- {}\n", describe(one))).collect();
    let list = if matches.is_empty() { "- trees of kustomization files\n" } else { &matches };
    format!("{}\n## Matched requests\n\n{list}", info.page)
}

fn describe(matches: &Match) -> String {
    let operations: Vec<_> = matches.operations.iter().map(|operation| operation.as_str()).collect();
    let operations = operations.join(", ");
    if matches.is_declared() {
        return format!("{} of the selected definitions: {operations}", matches.plural);
    }
    let subresource = if matches.subresource.is_empty() { String::new() } else { format!("/{}", matches.subresource) };
    format!("`{}.{}{subresource}`: {operations}", matches.plural, matches.group)
}

/// Returns the content of `docs/rules/README.md`: all rules and mutators as Markdown tables.
pub fn index(registry: &Registry) -> String {
    let row = |info: &RuleInfo| {
        let RuleInfo { id, name, level, summary, .. } = info;
        format!("| [{id}]({id}.md) | {name} | `{level}` | {summary} |\n")
    };
    let rows: String = registry.infos().into_iter().map(row).collect();
    let mutator = |mutator: &&'static crate::rule::Mutator| format!("| {} | {} |\n", mutator.name, mutator.summary);
    let mutators: String = registry.mutators().iter().map(mutator).collect();
    format!(
        "# Rules\n\n| id | name | default level | what it reports |\n|---|---|---|---|\n{rows}\n\
         # Mutators\n\n| name | what it adds |\n|---|---|\n{mutators}"
    )
}

/// Returns all rules as a table for a terminal. Each rule has one line.
pub fn table(registry: &Registry) -> String {
    let infos = registry.infos();
    let width = infos.iter().map(|info| info.name.len()).max().unwrap_or_default();
    let line = |info: &RuleInfo| format!("{}  {:width$}  {:5}  {}\n", info.id, info.name, info.level, info.summary);
    infos.into_iter().map(line).collect()
}

/// Returns all rules as a JSON object with the list `rules`.
pub fn json(registry: &Registry) -> Value {
    let entry = |info: &RuleInfo| {
        let matches = registry.rule(info.id).map_or(&[][..], |rule| rule.matchers);
        json!({
            "id": info.id,
            "name": info.name,
            "family": info.family(),
            "level": info.level,
            "summary": info.summary,
            "looks_at": if registry.is_about_trees(info) { "trees" } else { "requests" },
            "resources": matches.iter().map(resource).collect::<Vec<_>>(),
            "page": format!("docs/rules/{}.md", info.id),
        })
    };
    json!({"rules": registry.infos().into_iter().map(entry).collect::<Vec<_>>()})
}

fn resource(matches: &Match) -> Value {
    json!({
        "group": matches.group,
        "versions": matches.versions,
        "resource": matches.plural,
        "subresource": matches.subresource,
        "operations": matches.operations.iter().map(|operation| operation.as_str()).collect::<Vec<_>>(),
    })
}
