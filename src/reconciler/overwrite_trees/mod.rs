//! A controller that computes how overwrites change the component tree of an Installation. The tree contains all
//! component references that Landscaper follows, directly or indirectly. Component descriptors are read from OCI
//! registries.
//!
//! For each Installation, the controller writes these objects and fields:
//!
//! - ConfigMaps with a JSON Patch for each changed component descriptor. The Installation owns the ConfigMaps.
//! - An annotation of the Installation with a summary of the tree.
//! - Two annotations about the Installation's own component reference. The admission webhook writes the same
//!   annotations, but only when the Installation is written. The controller updates them when the overwrites change,
//!   unless the webhook also patches the spec of the Installation.
//! - If enabled, a condition in the status of the Installation. Landscaper writes the same condition.
//!
//! If overwrites change nothing in the tree any more, the controller deletes the ConfigMaps. If the Context of the
//! Installation names no overwrites any more, it also removes the annotations.

mod pull_secrets;
mod write;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use self::pull_secrets::PullSecrets;
use self::write::Write;
use super::{Controller, Failure, Next, Permission, Tools, events};
use crate::admission::Metadata;
use crate::catalog::{Catalog, Change, Kind, LiveReads, Reference, Stored, View};
use crate::landscaper::annotations::{PATCH_ANNOTATION, SOURCE_ANNOTATION, TREE_ANNOTATION};
use crate::landscaper::components::cache::ComponentCache;
use crate::landscaper::components::closure::{Closure, Gap};
use crate::landscaper::components::inline::Inline;
use crate::landscaper::context::Context;
use crate::landscaper::kinds::{
    CONTEXTS, CONTEXTS_BY_OVERWRITES, GROUP, INSTALLATIONS, INSTALLATIONS_BY_CONTEXT, OVERWRITES,
};
use crate::landscaper::overwrites::effect::{self, Effect, Evaluation};
use crate::landscaper::overwrites::message;
use crate::landscaper::overwrites::record::Record;

/// Timeout for fetching the component descriptors of one Installation's component tree. It is shorter than the timeout
/// of a reconciliation, so that the controller can write a partial result. The next reconciliation fetches the missing
/// descriptors.
const FETCH_TIMEOUT: Duration = Duration::from_secs(40);
/// Interval between reconciliations of an Installation whose component tree has missing or unreadable components.
const INCOMPLETE_INTERVAL: Duration = Duration::from_secs(90);
/// Interval between reconciliations of an Installation whose component tree is complete. The interval is long because
/// component versions are usually immutable.
const COMPLETE_INTERVAL: Duration = Duration::from_secs(3600);
/// Maximum number of Installations of one Context that are queued when the Context or its ComponentVersionOverwrites
/// change. The number is equal to the capacity of the queue.
const MAX_INSTALLATIONS: usize = 100_000;
/// Maximum number of Contexts whose Installations are queued after a change of overwrites. It bounds the work for one
/// change. Usually, only a few Contexts name the same overwrites.
const MAX_CONTEXTS: usize = 1_000;

/// The settings of the controller `overwrite-trees`.
#[derive(Clone, Default)]
pub struct TreeSettings {
    /// The component cache. Without a cache, reconciliations of overwritten components fail.
    pub component_cache: Option<Arc<ComponentCache>>,
    /// Whether to write the condition about overwrites into the status of Installations, as Landscaper does.
    pub writes_condition: bool,
}

impl std::fmt::Debug for TreeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeSettings").field("writes_condition", &self.writes_condition).finish_non_exhaustive()
    }
}

/// A controller that computes and stores the effect of overwrites on the component trees of Installations.
pub(super) struct OverwriteTrees {
    settings: TreeSettings,
    pull_secrets: PullSecrets,
}

static WATCHED: [&Kind; 3] = [&CONTEXTS, &INSTALLATIONS, &OVERWRITES];

impl OverwriteTrees {
    pub(super) fn new(settings: TreeSettings) -> Self {
        Self { settings, pull_secrets: PullSecrets::default() }
    }
}

impl Controller for OverwriteTrees {
    fn name(&self) -> &'static str {
        "overwrite-trees"
    }

    fn family(&self) -> Option<&'static str> {
        Some("OW")
    }

    fn summary(&self) -> &'static str {
        "precomputes the effect of overwrites on every reference in component trees"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &WATCHED
    }

    fn permissions(&self) -> &'static [Permission] {
        &[
            Permission {
                group: GROUP,
                resources: &["installations", "installations/status"],
                names: &[],
                verbs: &["patch"],
            },
            Permission {
                group: "",
                resources: &["configmaps"],
                names: &[],
                verbs: &["create", "delete", "get", "patch"],
            },
            Permission { group: "", resources: &["secrets"], names: &[], verbs: &["get"] },
            events::RIGHT,
        ]
    }

    fn is_optional(&self) -> bool {
        true
    }

    /// Returns the Installations whose component trees a change may affect.
    fn affected(&self, change: &Change, catalog: &Catalog) -> Vec<Reference> {
        let object = change.reference();
        if std::ptr::eq(change.kind, &INSTALLATIONS) {
            let same = self.part(change.before.as_deref()) == self.part(change.now.as_deref());
            return if same { Vec::new() } else { vec![object] };
        }
        if std::ptr::eq(change.kind, &CONTEXTS) {
            return installations(&object.namespace, &object.name, catalog);
        }
        let (index, namespace) = (&CONTEXTS_BY_OVERWRITES, object.namespace.as_str());
        let contexts = catalog.indexed(&CONTEXTS, index, namespace, &object.name, MAX_CONTEXTS);
        contexts.iter().flat_map(|context| installations(namespace, context.name(), catalog)).collect()
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            // Contexts and overwrites are watched because Installations use them.
            if !std::ptr::eq(object.kind, &INSTALLATIONS) {
                return Ok(Next::Done);
            }
            match tools.catalog.find(&INSTALLATIONS, &object.namespace, &object.name) {
                Some(stored) if !Metadata::of(stored.value()).is_deleting() => self.keep(object, &stored, tools).await,
                // The ConfigMaps of a deleted Installation are garbage collected.
                _ => Ok(Next::Done),
            }
        })
    }
}

impl OverwriteTrees {
    /// Returns the fields of an Installation that affect its component tree, or that affect the objects and fields that
    /// this controller writes. A change of other fields, such as most of the status, requires no reconciliation.
    fn part(&self, stored: Option<&Stored>) -> Option<Value> {
        let value = stored?.value();
        let at = |pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
        let annotations = [PATCH_ANNOTATION, SOURCE_ANNOTATION, TREE_ANNOTATION].map(|key| own(value, key));
        let conditions = if self.settings.writes_condition { at("/status/conditions") } else { Value::Null };
        let metadata = Metadata::of(value);
        let (is_deleting, uid) = (metadata.is_deleting(), metadata.uid());
        let spec = (at("/spec/context"), at("/spec/componentDescriptor"));
        Some(serde_json::json!([annotations, conditions, is_deleting, uid, spec.0, spec.1]))
    }

    async fn keep(&self, object: &Reference, stored: &Stored, tools: &Tools) -> Result<Next, Failure> {
        let setting = {
            let nothing = LiveReads::new();
            effect::of(stored.value(), &object.namespace, &View::new(&tools.catalog, &nothing))
        };
        let write = Write { object, installation: stored.value(), tools };
        let effect = match setting {
            // A missing object triggers a reconciliation when it is created.
            Evaluation::Unknown => return Ok(Next::Done),
            Evaluation::Overwritten(effect) => effect,
            _ => return write.clear().await.map(|()| Next::Done),
        };
        let closure = self.closure(object, stored, &effect, tools).await?;
        let record = Record::of(&object.name, &effect, &closure);
        write.record(&effect, &record).await?;
        if self.settings.writes_condition {
            write.condition(&message::condition(&effect.substitution)).await?;
        }
        Ok(Next::Again(next(&closure)))
    }

    async fn closure(
        &self,
        object: &Reference,
        stored: &Stored,
        effect: &Effect,
        tools: &Tools,
    ) -> Result<Closure, Failure> {
        let Some(component_cache) = &self.settings.component_cache else {
            return Err(Failure::Unknown("the component cache is not configured".to_owned()));
        };
        let context = tools.catalog.find(&CONTEXTS, &object.namespace, &effect.context);
        let secrets = context.map(|context| context.view(Context::of).registry_pull_secrets).unwrap_or_default();
        let keyring = self.pull_secrets.keyring(&object.namespace, &secrets, tools).await;
        let inline = Inline::of(stored.value()).and_then(Result::ok);
        let inside = |reference: &_| inline.as_ref().and_then(|inline| inline.find(reference));
        let original = effect.substitution.original.clone();
        Ok(component_cache
            .closure(&original, &effect.overwrites.entries, &keyring, inside, Instant::now() + FETCH_TIMEOUT)
            .await)
    }
}

fn own(object: &Value, annotation: &str) -> Option<String> {
    Metadata::of(object).annotation(annotation).map(str::to_owned)
}

fn next(closure: &Closure) -> Duration {
    let is_pending = closure.gaps().any(|(_, gap)| *gap == Gap::Pending);
    match closure.is_complete() {
        true => COMPLETE_INTERVAL,
        false if is_pending => Duration::ZERO,
        false => INCOMPLETE_INTERVAL,
    }
}

fn installations(namespace: &str, context: &str, catalog: &Catalog) -> Vec<Reference> {
    let found = catalog.indexed(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, context, MAX_INSTALLATIONS);
    found.iter().map(|stored| Reference::new(&INSTALLATIONS, namespace, stored.name())).collect()
}
