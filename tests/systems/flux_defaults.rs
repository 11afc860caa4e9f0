//! Flux, with all levels as they are by default.

use crate::context::{Context, is};
use crate::flux;
use crate::gate;
use crate::system::{Scenario, System};

/// Flux at the default levels, at which nothing is denied to it.
pub const SYSTEM: System = System {
    name: "flux-defaults",
    title: || format!("{}, at default levels", (flux::SYSTEM.title)()),
    configuration: flux::hosts,
    in_force: |cluster| gate::warns(cluster, "/abs", flux::PROBE),
    scenarios: &[Scenario::new("broken", "a revision that does not build, and one that does", broken)],
    ..flux::SYSTEM
};

/// Issue 18, Flux 6: the controller manager reports the revision that does not build, with its error, on the Kustomization.
/// Without portcullis only Flux does.
fn broken(ctx: &Context<'_>) {
    let broken = flux::break_tree(ctx);
    if ctx.has_webhooks() {
        let note = ctx.event("Kustomization", "app", "BrokenRevision");
        assert!(note.contains("missing.yaml") && note.contains(&broken.commit[..7]), "{note}");
    }
    ctx.wait("kustomizations", "app", "not ready: it cannot be built", |object| is(object, "Ready", "False"));
    flux::repair(ctx, &broken);
}
