//! Updates the condition `ComponentReferenceOverwrite` in the conditions of an Installation, as Landscaper does. Sets
//! `lastUpdateTime` if any field of the condition changes, and `lastTransitionTime` if its status changes.
//!
//! Source: `GetOrInitCondition`, `UpdatedCondition` and `MergeConditions` in Landscaper's
//! `apis/core/v1alpha1/helper/helpers.go`.

use serde_json::{Value, json};

use super::message::{CONDITION_TYPE, Condition};

/// Returns the status conditions of an Installation, with the condition `wanted` added or updated. `conditions` are the
/// current conditions. Returns `None` if they already contain the same condition.
///
/// `now` is the current time in RFC 3339 format, with a precision of seconds.
pub fn with(conditions: &[Value], wanted: &Condition, now: &str) -> Option<Vec<Value>> {
    let index =
        conditions.iter().position(|condition| condition.get("type").is_some_and(|kind| kind == CONDITION_TYPE));
    let before = index.and_then(|at| conditions.get(at));
    let text = |key: &str| before.and_then(|condition| condition.get(key)?.as_str()).unwrap_or_default();
    let (status, reason) = (text("status"), text("reason"));
    if status == wanted.status && reason == wanted.reason && text("message") == wanted.message {
        return None;
    }
    let since = if status == wanted.status { text("lastTransitionTime") } else { now };
    let condition = json!({
        "type": CONDITION_TYPE,
        "status": wanted.status,
        "lastTransitionTime": if since.is_empty() { now } else { since },
        "lastUpdateTime": now,
        "reason": wanted.reason,
        "message": wanted.message,
    });
    let mut all = conditions.to_vec();
    match index.and_then(|at| all.get_mut(at)) {
        Some(place) => *place = condition,
        None => all.push(condition),
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(status: &'static str, message: &str) -> Condition {
        Condition { status, reason: "FoundOverwrite", message: message.to_owned() }
    }

    #[test]
    fn changes_the_times_as_landscaper_does() {
        let other = json!({"type": "ValidateImports", "status": "True"});
        let first = with(std::slice::from_ref(&other), &condition("True", "a"), "1").unwrap();
        assert_eq!(first[0], other);
        assert_eq!((&first[1]["lastTransitionTime"], &first[1]["lastUpdateTime"]), (&json!("1"), &json!("1")));
        assert_eq!(with(&first, &condition("True", "a"), "2"), None);
        let second = with(&first, &condition("True", "b"), "3").unwrap();
        assert_eq!((&second[1]["lastTransitionTime"], &second[1]["lastUpdateTime"]), (&json!("1"), &json!("3")));
        let third = with(&second, &condition("False", "b"), "4").unwrap();
        assert_eq!((&third[1]["lastTransitionTime"], &third[1]["lastUpdateTime"]), (&json!("4"), &json!("4")));
        assert_eq!(third.len(), 2);
    }
}
