//! The pages of rules, and the list of them: written from the registry.

use serde_json::{Value, json};

use super::Registry;
use crate::admission::Operation;
use crate::rule::{Example, Match, Rule};

/// The Markdown page of a rule: `docs/rules/<ID>.md`.
pub fn page(rule: &Rule) -> String {
    let page = &rule.page;
    let scope: Vec<_> = rule.scope.iter().map(|scope| format!("- {}", describe(scope))).collect();
    format!(
        "# {id}: {name}\n\n{summary}.\n\nDefault level: `{level}`.\n\n## Why\n\n{why}\n\n## Looks at\n\n{scope}\n\n\
         ## Wrong\n\n{wrong}\n## Right\n\n{right}\n## How to mend it\n\n{mend}\n",
        id = rule.id,
        name = rule.name,
        summary = capitalised(rule.summary),
        level = rule.level,
        why = page.why,
        scope = scope.join("\n"),
        wrong = example(&page.wrong),
        right = example(&page.right),
        mend = page.mend,
    )
}

fn describe(scope: &Match) -> String {
    let operations: Vec<_> = scope.operations.iter().map(|operation| operation.as_str()).collect();
    let subresource = if scope.subresource.is_empty() { String::new() } else { format!("/{}", scope.subresource) };
    format!("`{}.{}{subresource}`: {}", scope.plural, scope.group, operations.join(", "))
}

fn example(example: &Example) -> String {
    let stored = match example.stored {
        "" => String::new(),
        stored => format!("In the cluster:\n\n```yaml\n{stored}```\n\n"),
    };
    let verb = if example.operation == Operation::Delete { "Deleted" } else { "Applied" };
    format!("{stored}{verb}:\n\n```yaml\n{}```\n", example.object)
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// The index of the pages: `docs/rules/README.md`, and `portcullis rules --output markdown`.
pub fn index(registry: &Registry) -> String {
    let row = |rule: &&Rule| {
        format!("| [{id}]({id}.md) | {} | `{}` | {} |\n", rule.name, rule.level, rule.summary, id = rule.id)
    };
    let rows: String = registry.rules().iter().map(row).collect();
    let mutator = |mutator: &&'static crate::rule::Mutator| format!("| {} | {} |\n", mutator.name, mutator.summary);
    let mutators: String = registry.mutators().iter().map(mutator).collect();
    format!(
        "# Rules\n\n| id | name | default level | what it says no to |\n|---|---|---|---|\n{rows}\n\
         # Mutators\n\n| name | what it adds |\n|---|---|\n{mutators}"
    )
}

/// The rules as a table for a terminal.
pub fn table(registry: &Registry) -> String {
    let width = registry.rules().iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let row = |rule: &&Rule| format!("{}  {:width$}  {:5}  {}\n", rule.id, rule.name, rule.level, rule.summary);
    registry.rules().iter().map(row).collect()
}

/// The rules as JSON.
pub fn json(registry: &Registry) -> Value {
    let row = |rule: &&Rule| {
        json!({
            "id": rule.id,
            "name": rule.name,
            "family": rule.family(),
            "level": rule.level,
            "summary": rule.summary,
            "resources": rule.scope.iter().map(resource).collect::<Vec<_>>(),
            "page": format!("docs/rules/{}.md", rule.id),
        })
    };
    json!({"rules": registry.rules().iter().map(row).collect::<Vec<_>>()})
}

fn resource(scope: &Match) -> Value {
    json!({
        "group": scope.group,
        "versions": scope.versions,
        "resource": scope.plural,
        "subresource": scope.subresource,
        "operations": scope.operations.iter().map(|operation| operation.as_str()).collect::<Vec<_>>(),
    })
}

/// Every file of `docs/rules/`: a page for each rule, and the index.
pub fn all(registry: &Registry) -> Vec<(String, String)> {
    let mut files = vec![("README.md".to_owned(), index(registry))];
    files.extend(registry.rules().iter().map(|rule| (format!("{}.md", rule.id), page(rule))));
    files
}
