//! Creates snapshots of objects, without the data that differs between runs, such as UIDs and times. Also compares two
//! snapshots.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::context::Snapshot;

/// Fields of `metadata` that the API server sets. They differ between runs, so snapshots do not contain them.
const VOLATILE: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"];
/// Prefix of the annotations and labels that portcullis adds.
const PORTCULLIS_PREFIX: &str = "portcullis.dev/";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("the pattern is valid")
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)").expect("the pattern is valid")
});
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d+(\.\d+)?(ms|µs|s)\b").expect("the pattern is valid"));

/// Matches the start time of a deployer in seconds, which is the suffix of the deployer's identity.
static START_TIME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-\d{10}\b").expect("the pattern is valid"));

/// Matches the generated suffix in the name of a Secret that contains the exports of a DeployItem.
static EXPORT_SUFFIX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("-[a-z0-9]{5}-export$").expect("the pattern is valid"));

/// Matches a digest. Landscaper uses digests as the names of DataObjects.
static DIGEST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[a-z2-7]{32}\b").expect("the pattern is valid"));

/// Returns a snapshot of the objects, without the data that differs between runs. In the snapshot, the key of an object
/// contains its kind and name. `addresses` contains network addresses, each with the text that replaces it.
pub fn snapshot(objects: &[Value], addresses: &[(String, String)]) -> Snapshot {
    let replacements = replacements(objects, addresses);
    let mut snapshot = Snapshot::new();
    for object in objects {
        let object = normalize(object.clone(), &replacements);
        let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
        let number = (1..).map(|number| if number == 1 { name.clone() } else { format!("{name} ({number})") });
        let key = number.into_iter().find(|key| !snapshot.contains_key(key));
        snapshot.insert(key.expect("the range is infinite"), object);
    }
    snapshot
}

/// Returns an object as indented JSON, without `managedFields`.
pub fn readable(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the texts to replace in objects, each with its replacement. The texts are the generated names of `objects`,
/// and the entries of `addresses`. The longest text comes first.
fn replacements(objects: &[Value], addresses: &[(String, String)]) -> Vec<(String, String)> {
    let generated = objects.iter().filter_map(|object| {
        let (prefix, name) = (&object["metadata"]["generateName"], &object["metadata"]["name"]);
        Some((name.as_str()?.to_owned(), format!("{}<generated>", prefix.as_str()?)))
    });
    let mut replacements: Vec<_> = generated.chain(addresses.iter().cloned()).collect();
    replacements.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
    replacements
}

fn normalize(mut object: Value, replacements: &[(String, String)]) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !VOLATILE.contains(&key.as_str()));
        for place in ["annotations", "labels"] {
            if let Some(map) = metadata.get_mut(place).and_then(Value::as_object_mut) {
                map.retain(|key, _| !key.starts_with(PORTCULLIS_PREFIX) && key != LAST_APPLIED);
            }
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    replace_in(object, replacements)
}

fn replace_in(value: Value, replacements: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => Value::String(replace_in_text(text, replacements)),
        Value::Array(elements) => elements.into_iter().map(|element| replace_in(element, replacements)).collect(),
        Value::Object(members) => {
            let members: Map<_, _> = members
                .into_iter()
                .filter(|(key, _)| key != "uid")
                .map(|(key, value)| {
                    let value = replace_in(value, replacements);
                    let value = if key == "conditions" { sort_conditions(value) } else { value };
                    (replace_in_text(key, replacements), value)
                })
                .collect();
            Value::Object(members)
        }
        other => other,
    }
}

/// Sorts conditions by type. Controllers append a condition when they first set it, so the order depends on timing.
fn sort_conditions(mut conditions: Value) -> Value {
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.sort_by(|a, b| text(&a["type"]).cmp(text(&b["type"])));
    }
    conditions
}

fn replace_in_text(mut text: String, replacements: &[(String, String)]) -> String {
    for (word, replacement) in replacements {
        text = text.replace(word, replacement);
    }
    let text = UUID.replace_all(&text, "<uuid>");
    let text = TIME.replace_all(&text, "<time>");
    let text = DIGEST.replace_all(&text, "<digest>");
    let text = EXPORT_SUFFIX.replace_all(&text, "-<generated>-export");
    let text = START_TIME.replace_all(&text, "-<started>");
    DURATION.replace_all(&text, "<duration>").into_owned()
}

/// Returns the differences between two snapshots, one line for each.
pub fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let keys: BTreeMap<_, _> = before.keys().chain(after.keys()).map(|key| (key, ())).collect();
    let mut lines = Vec::new();
    for key in keys.keys() {
        match (before.get(*key), after.get(*key)) {
            (Some(before), Some(after)) => compare(key, before, after, &mut lines),
            (Some(_), None) => lines.push(format!("{key}: only without webhooks")),
            _ => lines.push(format!("{key}: only with webhooks")),
        }
    }
    lines
}

fn compare(path: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            let keys: BTreeMap<_, _> = b.keys().chain(a.keys()).map(|key| (key, ())).collect();
            for key in keys.keys() {
                let at = |map: &Map<String, Value>| map.get(*key).cloned().unwrap_or(Value::Null);
                compare(&format!("{path} .{key}"), &at(b), &at(a), lines);
            }
        }
        (Value::Array(b), Value::Array(a)) if b.len() == a.len() => {
            b.iter().zip(a).enumerate().for_each(|(index, (b, a))| compare(&format!("{path}[{index}]"), b, a, lines));
        }
        _ if before != after => lines.push(format!("{path}: {before} without, {after} with webhooks")),
        _ => {}
    }
}
