//! The pages of rules, and the list of them: written from the registry.

use serde_json::{Value, json};

use super::{Registry, Row};
use crate::admission::Operation;
use crate::kustomize::rule::{TreeExample, TreeRule};
use crate::landscaper;
use crate::rule::{Example, Match, Rule};

/// The Markdown page of a rule: `docs/rules/<ID>.md`.
pub fn page(row: Row) -> String {
    match row {
        Row::Request(rule) => request_page(rule),
        Row::Tree(rule) => tree_page(rule),
    }
}

fn tree_page(rule: &TreeRule) -> String {
    let page = &rule.page;
    format!(
        "# {id}: {name}\n\n{summary}.\n\nDefault level: `{level}`.\n\n## Why\n\n{why}\n\n## Looks at\n\n\
         - trees of kustomization files\n\n## Wrong\n\n{wrong}\n## Right\n\n{right}\n## How to mend it\n\n{mend}\n",
        id = rule.id,
        name = rule.name,
        summary = capitalised(rule.summary),
        level = rule.level,
        why = page.why,
        wrong = tree(&page.wrong),
        right = tree(&page.right),
        mend = page.mend,
    )
}

fn tree(example: &TreeExample) -> String {
    let files = example.files.iter().map(|(path, text)| format!("`{path}`:\n\n```yaml\n{text}```\n\n"));
    let components = match example.components {
        [] => String::new(),
        components => format!(", and `spec.components` is `{}`", components.join("`, `")),
    };
    let built = format!("`{}` is built by {}{components}.\n", example.root, example.profile);
    files.chain([built]).collect()
}

fn request_page(rule: &Rule) -> String {
    let page = &rule.page;
    let scope: Vec<_> = rule.scope.iter().map(|scope| format!("- {}", describe(scope))).collect();
    format!(
        "# {id}: {name}\n\n{summary}.\n\nDefault level: `{level}`.\n\n## Why\n\n{why}\n\n## Looks at\n\n{scope}\n\n\
         {configuration}## Wrong\n\n{wrong}\n## Right\n\n{right}\n## How to mend it\n\n{mend}\n",
        id = rule.id,
        name = rule.name,
        summary = capitalised(rule.summary),
        level = rule.level,
        why = page.why,
        scope = scope.join("\n"),
        wrong = example(rule, &page.wrong),
        right = example(rule, &page.right),
        configuration = configuration(rule),
        mend = page.mend,
    )
}

fn describe(scope: &Match) -> String {
    let operations: Vec<_> = scope.operations.iter().map(|operation| operation.as_str()).collect();
    let subresource = if scope.subresource.is_empty() { String::new() } else { format!("/{}", scope.subresource) };
    if scope.is_declared() {
        return format!(
            "{} of the definitions that are [chosen](../configuration.md#composites): {}",
            scope.plural,
            operations.join(", ")
        );
    }
    format!("`{}.{}{subresource}`: {}", scope.plural, scope.group, operations.join(", "))
}

/// What the examples of a rule's page are judged under, where that is not every default.
fn configuration(rule: &Rule) -> String {
    let Some(section) = landscaper::sections().into_iter().find(|section| section.rules.contains(&rule.id)) else {
        return String::new();
    };
    let (example, user) = (section.example, section.user);
    format!("## Configuration\n\n```yaml\n{example}```\n\nBelow, `{user}` acts under this configuration.\n\n")
}

fn example(rule: &Rule, example: &Example) -> String {
    let stored = match example.stored {
        "" => String::new(),
        stored => format!("In the cluster:\n\n```yaml\n{stored}```\n\n"),
    };
    let is_status = rule.scope.first().is_some_and(|scope| scope.subresource == "status");
    let verb = match example.operation {
        Operation::Delete => "Deleted",
        _ if is_status => "Its status is updated to",
        _ => "Applied",
    };
    format!("{stored}{verb}:\n\n```yaml\n{}```\n", example.object)
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// The index of the pages: `docs/rules/README.md`, and `portcullis rules --output markdown`.
pub fn index(registry: &Registry) -> String {
    let row = |row: Row| {
        format!("| [{id}]({id}.md) | {} | `{}` | {} |\n", row.name(), row.level(), row.summary(), id = row.id())
    };
    let rows: String = registry.rows().into_iter().map(row).collect();
    let mutator = |mutator: &&'static crate::rule::Mutator| format!("| {} | {} |\n", mutator.name, mutator.summary);
    let mutators: String = registry.mutators().iter().map(mutator).collect();
    format!(
        "# Rules\n\n| id | name | default level | what it says no to |\n|---|---|---|---|\n{rows}\n\
         # Mutators\n\n| name | what it adds |\n|---|---|\n{mutators}"
    )
}

/// The rules as a table for a terminal.
pub fn table(registry: &Registry) -> String {
    let rows = registry.rows();
    let width = rows.iter().map(|row| row.name().len()).max().unwrap_or_default();
    let line = |row: Row| format!("{}  {:width$}  {:5}  {}\n", row.id(), row.name(), row.level(), row.summary());
    rows.into_iter().map(line).collect()
}

/// The rules as JSON.
pub fn json(registry: &Registry) -> Value {
    let row = |row: Row| {
        let scope = match row {
            Row::Request(rule) => rule.scope,
            Row::Tree(_) => &[],
        };
        json!({
            "id": row.id(),
            "name": row.name(),
            "family": row.family(),
            "level": row.level(),
            "summary": row.summary(),
            "looks_at": if matches!(row, Row::Tree(_)) { "trees" } else { "requests" },
            "resources": scope.iter().map(resource).collect::<Vec<_>>(),
            "page": format!("docs/rules/{}.md", row.id()),
        })
    };
    json!({"rules": registry.rows().into_iter().map(row).collect::<Vec<_>>()})
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
    files.extend(registry.rows().into_iter().map(|row| (format!("{}.md", row.id()), page(row))));
    files
}
