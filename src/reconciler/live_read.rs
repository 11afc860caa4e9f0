//! Reads objects from the API server for controllers, if a decision must not use a stale catalog.

use crate::catalog::{LiveRead, LiveReads, Reference, View};
use crate::reconciler::Tools;

/// Maximum number of rounds of reads from the API server, as in admission requests. For example, one round reads an
/// object, and the next round reads its parent.
const ROUNDS: usize = 8;

/// Calls `compute` until it requests no further object, but makes at most `ROUNDS` reads. After each call, reads the
/// requested object from the API server, and passes the object to the next call. Returns the last result of `compute`.
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
