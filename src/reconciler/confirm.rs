//! Decisions that must not rest on what the watches last said.

use crate::catalog::{Confirmation, Confirmed, Reference, View};
use crate::reconciler::Tools;

/// As often as the gate lets a rule ask: an object, its parent, what that belongs to, and so on.
const ROUNDS: usize = 8;

/// What `ask` answers once it wants nothing more confirmed, or has asked often enough.
pub(super) async fn confirmed<T>(tools: &Tools, ask: impl Fn(&View<'_>) -> (T, Option<Reference>)) -> T {
    let mut confirmed = Confirmed::new();
    for _ in 0..ROUNDS {
        let (answer, wanted) = ask(&View::new(&tools.catalog, &confirmed));
        let Some(reference) = wanted else { return answer };
        let said = match tools.catalog.confirm(&reference).await {
            Ok(Some(stored)) => Confirmation::Exists(stored),
            Ok(None) => Confirmation::Gone,
            Err(error) => Confirmation::Unknown(error),
        };
        confirmed.insert(reference, said);
    }
    ask(&View::new(&tools.catalog, &confirmed)).0
}
