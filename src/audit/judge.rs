//! Runs the rules on one stored object.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::finding::{Audited, Entry, Subject};
use super::target::{Chosen, Served, Target};
use crate::admission::{Level, Object, Operation, Phase, Refusal, Request, Resource, User, Verdict, json};
use crate::gate::Gate;

/// The user name in the requests that an audit creates. Rules and exemptions that depend on the user are evaluated with
/// this name.
pub(super) const USER: &str = "portcullis:audit";

/// Parses `text`, the JSON text of one object in a list response. Sets the API version and the kind of the object,
/// because they may be missing in list responses.
///
/// # Errors
///
/// If `text` is not a valid JSON object. The error is an audit result that reports that the object cannot be parsed.
pub(super) fn value(text: &str, served: &Served) -> Result<Value, Audited> {
    let (why, mut object) = match json::parse(text) {
        Ok(Value::Object(object)) => (None, object),
        Ok(_) => (Some("it is not an object".to_owned()), Map::new()),
        Err(error) => (Some(error.to_string()), Map::new()),
    };
    object.insert("apiVersion".to_owned(), served.api_version().into());
    object.insert("kind".to_owned(), served.target.kind.as_str().into());
    match why {
        None => Ok(Value::Object(object)),
        Some(why) => {
            let entries = vec![Entry::unreadable(&Subject::of(&Value::Object(object)), why)];
            Err(Audited { entries, objects: 1, ..Audited::default() })
        }
    }
}

/// Runs the rules on a stored object, and returns their findings. Rules need a request, so this function simulates an
/// update that changes nothing. For rules that check only the creation of objects, it simulates a creation.
pub(super) async fn judge(gate: &Gate, chosen: &Chosen, target: &Target, object: Value) -> Audited {
    let subject = Subject::of(&object);
    let mut entries: Vec<Entry> = Vec::new();
    for subresource in &target.subresources {
        for operation in [Operation::Update, Operation::Create] {
            let is_of_creation = operation == Operation::Create;
            if is_of_creation && target.of_creation.is_empty() {
                continue;
            }
            let request = request(target, &subject, &object, operation, subresource);
            let verdict = gate.decide(Phase::Validate, &request).await;
            let wanted = |rule: &str| !is_of_creation || target.of_creation.contains(rule);
            add(&mut entries, &subject, verdict, |rule| wanted(rule) && is_chosen(gate, chosen, rule));
        }
    }
    let found: HashSet<_> = entries.iter().map(|entry| entry.rule).collect();
    let asked = target.asked.iter().chain(&target.of_creation);
    let passes = asked.filter(|rule| !found.contains(**rule)).count();
    let passes = [(subject.namespace, passes)].into();
    Audited { entries, objects: 1, passes, ..Audited::default() }
}

fn is_chosen(gate: &Gate, chosen: &Chosen, rule: &str) -> bool {
    gate.registry().info(rule).is_some_and(|info| chosen.has(info.id, info.family()))
}

fn add(entries: &mut Vec<Entry>, subject: &Subject, verdict: Verdict, is_wanted: impl Fn(&str) -> bool) {
    let refused = verdict.refusal.map(|refusal| match refusal {
        Refusal::Unreadable(why) | Refusal::Undecided(why) => Entry::unreadable(subject, why),
    });
    let wanted = verdict.findings.into_iter().filter(|finding| finding.level > Level::Off && is_wanted(finding.rule));
    for entry in refused.into_iter().chain(wanted.map(|finding| Entry::new(subject, finding))) {
        // An object and its status may have the same finding.
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
}

fn request(
    target: &Target,
    subject: &Subject,
    object: &Value,
    operation: Operation,
    subresource: &'static str,
) -> Request<'static> {
    let version = subject.api_version.rsplit_once('/').map_or(&*subject.api_version, |(_, version)| version);
    let old = (operation == Operation::Update).then(|| Object::parsed(object.clone()));
    Request {
        uid: "audit".into(),
        resource: Resource {
            group: target.group.clone().into(),
            version: version.to_owned().into(),
            plural: target.plural.clone().into(),
            kind: target.kind.clone().into(),
            subresource: subresource.into(),
        },
        name: subject.name.clone().into(),
        namespace: subject.namespace.clone().into(),
        operation,
        user: User { name: USER.into(), groups: Vec::new() },
        dry_run: true,
        object: Object::parsed(object.clone()),
        old_object: old.unwrap_or_default(),
        deadline: None,
    }
}
