//! Compares recorded decisions with new ones.

use json_patch::Patch;
use serde::Serialize;
use serde_json::Value;

use super::Answer;
use super::answer::Finding;
use crate::admission::Level;

/// The aspect in which two decisions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspect {
    /// The decisions differ in whether they allow the request. Or both deny it, but for different reasons other than
    /// findings, such as an expired deadline.
    Decision,
    /// The findings differ in their rules, levels or fields. Only findings with the level `deny` or `warn` are
    /// compared.
    Findings,
    /// The decisions differ in their number of notices. A notice is a message from a mutator to the user.
    Notices,
    /// The decisions differ in the patches of the mutators. The recorded patch and the new patch give different results
    /// when they are applied to the object in the request.
    Patch,
    /// Some findings or notices of the decisions differ only in their wording.
    Wording,
}

/// A difference between two decisions about one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The aspect in which the recorded decision and the new decision differ, such as `Findings`.
    pub aspect: Aspect,
    /// The parts of the recorded decision that the new decision does not have, such as findings. Each string describes
    /// one part.
    pub before: Vec<String>,
    /// The parts of the new decision that the recorded decision does not have, such as findings. Each string describes
    /// one part.
    pub now: Vec<String>,
}

impl Difference {
    fn of(aspect: Aspect, before: Vec<String>, now: Vec<String>) -> Option<Self> {
        (before != now).then_some(Self { aspect, before, now })
    }
}

/// Returns the differences between the decisions `before` and `now` about the same request. `object` is the object in
/// the request.
pub(super) fn differences(before: &Answer, now: &Answer, object: &Value) -> Vec<Difference> {
    let mut wording = (Vec::new(), Vec::new());
    let decision = Difference::of(Aspect::Decision, decision(before), decision(now));
    let findings = findings(before, now, &mut wording);
    let notices = notices(before, now, &mut wording);
    let patch = patches(before.patch.as_ref(), now.patch.as_ref(), object);
    let wording = Difference::of(Aspect::Wording, wording.0, wording.1);
    [decision, findings, notices, patch, wording].into_iter().flatten().collect()
}

fn decision(answer: &Answer) -> Vec<String> {
    let text = match &answer.refusal {
        Some(why) => format!("denied: {why}"),
        None if answer.allowed => "allowed".to_owned(),
        None => "denied".to_owned(),
    };
    vec![text]
}

type Texts = (Vec<String>, Vec<String>);

/// Compares the findings that users see (`warn` and `deny`) by rule, level and field. Adds findings that differ only in
/// their message to `wording`.
fn findings(before: &Answer, now: &Answer, wording: &mut Texts) -> Option<Difference> {
    let shown = |answer: &Answer| -> Vec<Finding> {
        answer.findings.iter().filter(|finding| finding.level >= Level::Warn).cloned().collect()
    };
    let (mut gone, mut new) = without_common(shown(before), shown(now), |one, other| one == other);
    let is_same =
        |one: &Finding, other: &Finding| (&one.rule, one.level, &one.field) == (&other.rule, other.level, &other.field);
    let reworded = |one: &Finding, others: &[Finding]| others.iter().any(|other| is_same(one, other));
    wording.0.extend(gone.iter().filter(|one| reworded(one, &new)).map(ToString::to_string));
    wording.1.extend(new.iter().filter(|one| reworded(one, &gone)).map(ToString::to_string));
    (gone, new) = without_common(gone, new, is_same);
    let texts = |findings: Vec<Finding>| findings.iter().map(ToString::to_string).collect();
    Difference::of(Aspect::Findings, texts(gone), texts(new))
}

/// Compares the notices, which are messages from mutators to the user. Notices have no id that could be compared. If
/// both decisions have the same number of notices, different texts count only as a difference in wording.
fn notices(before: &Answer, now: &Answer, wording: &mut Texts) -> Option<Difference> {
    let (gone, new) = without_common(before.notices.clone(), now.notices.clone(), |one, other| one == other);
    if gone.len() != new.len() {
        return Difference::of(Aspect::Notices, gone, new);
    }
    wording.0.extend(gone);
    wording.1.extend(new);
    None
}

/// Removes common elements from two lists. Each element of `one` cancels at most one equal element of `other`. Returns
/// the remaining elements of both lists.
fn without_common<T>(one: Vec<T>, mut other: Vec<T>, is_same: impl Fn(&T, &T) -> bool) -> (Vec<T>, Vec<T>) {
    let mut left = Vec::new();
    for entry in one {
        match other.iter().position(|candidate| is_same(&entry, candidate)) {
            Some(at) => drop(other.remove(at)),
            None => left.push(entry),
        }
    }
    (left, other)
}

/// Applies each patch to `object`, and compares the two results field by field. If one of the patches cannot be
/// applied, compares the texts of the patches.
fn patches(before: Option<&Patch>, now: Option<&Patch>, object: &Value) -> Option<Difference> {
    if before == now {
        return None;
    }
    let (one, other) = (patched(object, before), patched(object, now));
    let (Some(one), Some(other)) = (one, other) else {
        let text = |patch: Option<&Patch>| patch.map(ToString::to_string).into_iter().collect();
        return Difference::of(Aspect::Patch, text(before), text(now));
    };
    Difference::of(Aspect::Patch, fields(&other, &one), fields(&one, &other))
}

fn patched(object: &Value, patch: Option<&Patch>) -> Option<Value> {
    let mut object = object.clone();
    patch.map_or(Ok(()), |patch| json_patch::patch(&mut object, patch)).ok()?;
    Some(object)
}

/// Returns the fields in which `to` differs from `from`, with their values in `to`.
fn fields(from: &Value, to: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    collect(Some(from), to, "", &mut fields);
    fields
}

fn collect(from: Option<&Value>, to: &Value, path: &str, fields: &mut Vec<String>) {
    match (from, to) {
        (Some(from), to) if from == to => {}
        (from, Value::Object(members)) if from.map_or(!members.is_empty(), Value::is_object) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(
                    from.and_then(|from| from.pointer(&format!("/{key}"))),
                    value,
                    &format!("{path}/{key}"),
                    fields,
                );
            }
        }
        _ => fields.push(format!("{path}: {to}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(value: Value) -> Answer {
        serde_json::from_value(value).unwrap()
    }

    fn finding(level: &str, message: &str) -> Value {
        json!({"rule": "OW001", "level": level, "field": "spec.a", "message": message})
    }

    #[test]
    fn reports_what_is_decided_otherwise() {
        let before = answer(json!({"allowed": true, "findings": [finding("warn", "is odd")]}));
        let now = answer(json!({"allowed": false, "findings": [finding("deny", "is odd")]}));
        let found = differences(&before, &now, &Value::Null);
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].before[0], &*found[0].now[0]), ("allowed", "denied"));
        assert_eq!(found[1].aspect, Aspect::Findings);
        assert_eq!(
            (&*found[1].before[0], &*found[1].now[0]),
            ("warn OW001 spec.a: is odd", "deny OW001 spec.a: is odd")
        );
    }

    #[test]
    fn other_words_are_no_other_decision() {
        let before = answer(json!({"allowed": true, "findings": [finding("warn", "is odd")], "notices": ["a"]}));
        let now = answer(json!({"allowed": true, "findings": [finding("warn", "is strange")], "notices": ["b"]}));
        let found = differences(&before, &now, &Value::Null);
        assert_eq!(found.iter().map(|difference| difference.aspect).collect::<Vec<_>>(), [Aspect::Wording]);
        assert_eq!(found[0].now, ["warn OW001 spec.a: is strange", "b"]);
        assert!(differences(&before, &before, &Value::Null).is_empty());
    }

    #[test]
    fn patches_are_compared_by_what_they_lead_to() {
        let patch = |operations: Value| answer(json!({"allowed": true, "patch": operations}));
        let object = json!({"metadata": {"annotations": {}}});
        let before = patch(json!([{"op": "add", "path": "/metadata/annotations/a", "value": "1"}]));
        let same = patch(json!([{"op": "replace", "path": "/metadata/annotations", "value": {"a": "1"}}]));
        assert!(differences(&before, &same, &object).is_empty());
        let other = patch(json!([{"op": "add", "path": "/metadata/annotations/a", "value": "2"}]));
        let found = differences(&before, &other, &object);
        assert_eq!(found[0].before, ["/metadata/annotations/a: \"1\""]);
        assert_eq!(found[0].now, ["/metadata/annotations/a: \"2\""]);
        let none = answer(json!({"allowed": true}));
        let found = differences(&before, &none, &object);
        assert_eq!((found[0].before.len(), found[0].now.len()), (1, 0));
    }
}
