//! Reads the current version of objects from the API server, for decisions of controllers. The cached objects can be
//! outdated, because the cache receives changes with a delay.

use crate::catalog::{LiveRead, LiveReads, Reference, View};
use crate::reconciler::Tools;

/// Maximum number of reads from the API server for one decision of a controller. The reads depend on each other: for
/// example, one reads an object, and the next one reads the owner of this object.
const ROUNDS: usize = 8;

/// Returns the result of `compute`, and reads the objects that `compute` needs from the API server.
///
/// If `compute` needs another object, it returns a reference to this object. This function then reads the object, and
/// calls `compute` again. After `ROUNDS` reads, it calls `compute` a last time, and ignores the reference.
pub(super) async fn with_live_reads<T>(tools: &Tools, compute: impl Fn(&View<'_>) -> (T, Option<Reference>)) -> T {
    let mut with_live_reads = LiveReads::new();
    for _ in 0..ROUNDS {
        let (answer, wanted) = compute(&View::new(&tools.catalog, &with_live_reads));
        let Some(reference) = wanted else { return answer };
        let said = match tools.catalog.read_live(&reference).await {
            Ok(Some(stored)) => LiveRead::Exists(stored),
            Ok(None) => LiveRead::Gone,
            Err(error) => LiveRead::Unknown(error),
        };
        with_live_reads.insert(reference, said);
    }
    compute(&View::new(&tools.catalog, &with_live_reads)).0
}
