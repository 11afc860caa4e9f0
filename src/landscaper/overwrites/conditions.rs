//! The condition `ComponentReferenceOverwrite` among the others of an Installation, written as Landscaper writes it.
//!
//! Source: `GetOrInitCondition`, `UpdatedCondition` and `MergeConditions` in Landscaper's
//! `apis/core/v1alpha1/helper/helpers.go`: the time of an update moves when anything in the condition becomes another, the
//! time of a transition when its status does.

use serde_json::{Value, json};

use super::message::{CONDITION_TYPE, Condition};

/// The conditions with `wanted` among them; `None` where it stands there already. `now` is a time in RFC 3339, in seconds.
pub fn with(conditions: &[Value], wanted: &Condition, now: &str) -> Option<Vec<Value>> {
    let place =
        conditions.iter().position(|condition| condition.get("type").is_some_and(|kind| kind == CONDITION_TYPE));
    let before = place.and_then(|at| conditions.get(at));
    let says = |key: &str| before.and_then(|condition| condition.get(key)?.as_str()).unwrap_or_default();
    let (status, reason) = (says("status"), says("reason"));
    if status == wanted.status && reason == wanted.reason && says("message") == wanted.message {
        return None;
    }
    let since = if status == wanted.status { says("lastTransitionTime") } else { now };
    let condition = json!({
        "type": CONDITION_TYPE,
        "status": wanted.status,
        "lastTransitionTime": if since.is_empty() { now } else { since },
        "lastUpdateTime": now,
        "reason": wanted.reason,
        "message": wanted.message,
    });
    let mut all = conditions.to_vec();
    match place.and_then(|at| all.get_mut(at)) {
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
    fn times_move_as_landscaper_moves_them() {
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
