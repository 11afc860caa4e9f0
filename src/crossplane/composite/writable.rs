//! Where a mutating webhook may write into a composite.
//!
//! The status and most of the metadata belong to others. What the definition's schema calls immutable, by a transition rule
//! such as `self == oldSelf`, stays as it is once the composite is there: the API server would refuse the whole request.

use serde_json::Value;

use super::{PATCHES_ANNOTATION, SOURCE_ANNOTATION};
use crate::admission::{Operation, Request};
use crate::catalog::View;
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::kinds::DEFINITIONS;

/// A schema of more parts is not looked through: what is written there is left to Crossplane. The API server bounds the
/// size of a definition to three million bytes; few have a thousand fields.
const MAX_PARTS: usize = 10_000;

/// Where may be written.
pub(super) struct Writable {
    /// The schema, where what is immutable counts.
    schema: Option<Value>,
}

impl Writable {
    /// Where a request's composite may be written.
    pub(super) fn of(request: &Request<'_>, view: &View<'_>) -> Self {
        let resource = &request.resource;
        let is_there = request.operation == Operation::Update;
        let definition =
            is_there.then(|| view.find(&DEFINITIONS, "", &format!("{}.{}", resource.plural, resource.group)));
        let schema = definition.flatten().and_then(|definition| {
            let versions = definition.value().get("spec")?.get("versions")?.as_array()?;
            let version =
                versions.iter().find(|version| version.get("name").is_some_and(|name| *name == *resource.version))?;
            version.get("schema")?.get("openAPIV3Schema").cloned()
        });
        Self { schema }
    }

    /// Whether a path may be written.
    pub(super) fn has(&self, path: &Path) -> bool {
        is_ours(path) && !self.schema.as_ref().is_some_and(|schema| is_immutable(schema, path))
    }
}

fn is_ours(path: &Path) -> bool {
    let mut names = path.segments().iter().map(|segment| match segment {
        Segment::Field(name) => name.as_str(),
        Segment::Index(_) => "",
    });
    match (names.next(), names.next(), names.next()) {
        (Some("spec"), inner, _) => !matches!(inner, Some("environmentConfigRefs" | "resourceRefs" | "crossplane")),
        (Some("metadata"), Some("labels" | "annotations"), Some(key)) => {
            ![PATCHES_ANNOTATION, SOURCE_ANNOTATION].contains(&key)
        }
        _ => false,
    }
}

/// Whether a schema calls what stands at a path, above or below it immutable.
fn is_immutable(schema: &Value, path: &Path) -> bool {
    let mut schema = schema;
    for (at, segment) in path.segments().iter().enumerate() {
        if keeps(schema, &path.segments()[at..]) {
            return true;
        }
        let next = match segment {
            Segment::Field(name) => schema
                .get("properties")
                .and_then(|properties| properties.get(name))
                .or_else(|| schema.get("additionalProperties")),
            Segment::Index(_) => schema.get("items"),
        };
        let Some(next) = next else { return false };
        schema = next;
    }
    let (mut left, mut parts) = (vec![schema], 0);
    while let Some(part) = left.pop() {
        parts += 1;
        if parts > MAX_PARTS || rules(part).any(|rule| rule.contains("==oldSelf") || rule.contains("oldSelf==")) {
            return true;
        }
        left.extend(part.get("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.values()));
        left.extend(["items", "additionalProperties"].into_iter().filter_map(|key| part.get(key)));
    }
    false
}

/// Whether a rule of this part of the schema keeps all of it, or what stands at the rest of the path.
fn keeps(schema: &Value, rest: &[Segment]) -> bool {
    rules(schema).any(|rule| {
        let mut name = String::new();
        let names = rest.iter().map_while(|segment| match segment {
            Segment::Field(name) => Some(name),
            Segment::Index(_) => None,
        });
        let mut all = vec![String::new()];
        for part in names {
            name = format!("{name}.{part}");
            all.push(name.clone());
        }
        all.iter().any(|name| {
            let (now, before) = (format!("self{name}"), format!("oldSelf{name}"));
            ends(&rule, &format!("{now}=={before}")) || ends(&rule, &format!("{before}=={now}"))
        })
    })
}

/// Whether an expression holds these words, and they are not the beginning of longer ones.
fn ends(rule: &str, words: &str) -> bool {
    rule.match_indices(words).any(|(at, _)| {
        let (before, after) = (rule[..at].chars().next_back(), rule[at + words.len()..].chars().next());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        !before.is_some_and(is_part) && !after.is_some_and(|c| is_part(c) || c == '[')
    })
}

/// The rules of a part of a schema, without spaces.
fn rules(schema: &Value) -> impl Iterator<Item = String> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    let rules = rules.filter_map(|rule| rule.get("rule")?.as_str());
    rules.map(|rule| rule.chars().filter(|c| !c.is_whitespace()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn immutable(schema: &Value, path: &str) -> bool {
        is_immutable(schema, &Path::parse(path).unwrap())
    }

    #[test]
    fn what_a_transition_rule_keeps_is_immutable() {
        let rule = |rule: &str| json!([{"rule": rule}]);
        let schema = json!({"properties": {"spec": {
            "x-kubernetes-validations": rule("!has(oldSelf.zone) || self.zone == oldSelf.zone"),
            "properties": {
                "region": {"type": "string", "x-kubernetes-validations": rule("self == oldSelf")},
                "zone": {"type": "string"},
                "zones": {"type": "string"},
                "size": {"type": "integer", "x-kubernetes-validations": rule("self >= oldSelf")},
                "network": {"properties": {"vpc": {"x-kubernetes-validations": rule("oldSelf==self")}, "name": {}}},
                "list": {"items": {"x-kubernetes-validations": rule("self == oldSelf")}},
            },
        }}});
        for path in
            ["spec.region", "spec.zone", "spec.network", "spec.network.vpc", "spec.network.vpc.id", "spec.list[0]"]
        {
            assert!(immutable(&schema, path), "{path}");
        }
        for path in ["spec.zones", "spec.size", "spec.network.name", "spec.other", "metadata.labels.a"] {
            assert!(!immutable(&schema, path), "{path}");
        }
    }
}
