//! OW004: reports a ComponentVersionOverwrites entry whose `source` matches every component.

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::landscaper::substitution::Entries;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore)];

/// The definition of rule OW004.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW004",
        name: "source-matches-everything",
        level: Level::Warn,
        summary: "a source that matches every component, intentionally or by mistake",
        page: include_str!("../../../docs/rules/OW004.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let field = FieldPath::of(["overwrites"]);
    let entries = Entries::of(request);
    let general = entries.iter().enumerate().filter(|(_, entry)| entry.source.specified().next().is_none());
    let general = general.filter(|(at, _)| !entries.has_problem(*at));
    general.map(|(at, _)| finding(&field.index(at), request.object(), at)).collect()
}

fn finding(entry: &FieldPath, object: &Value, at: usize) -> Finding {
    let source = object.get("overwrites").and_then(|list| list.get(at)?.get("source")).unwrap_or(&Value::Null);
    let mistake =
        source.as_object().and_then(|members| members.iter().find_map(|(key, value)| ineffective(key, value)));
    let (field, why) = match mistake {
        Some((key, why)) => (entry.key("source").key(key), why),
        None => (entry.key("source"), "the source specifies nothing".to_owned()),
    };
    let message = format!("{why}: the entry matches every component of every Installation in the context");
    RULE.finding(field, message).help("set componentName to the component that you mean")
}

/// Explains why a field in the `source` of an `overwrites` entry has no effect. Returns the key of the field and the
/// reason; `None` if the field has an effect.
fn ineffective<'k>(key: &'k str, value: &Value) -> Option<(&'k str, String)> {
    if Attribute::ALL.iter().any(|attribute| attribute.as_str() == key) {
        return (value == "").then(|| (key, "an empty string means any value".to_owned()));
    }
    let meant = Attribute::ALL.iter().find(|attribute| attribute.as_str().eq_ignore_ascii_case(key));
    let hint = match meant {
        Some(attribute) => format!("; did you mean {attribute}?"),
        None if key.eq_ignore_ascii_case("component") || key.eq_ignore_ascii_case("name") => {
            "; did you mean componentName?".to_owned()
        }
        None => "; the known names are componentName, version and repositoryContext".to_owned(),
    };
    Some((key, format!("unknown names are ignored{hint}")))
}
