//! Counts the requests to a registry for the component trees of 10,000 Installations. The trees contain 1,000 component
//! versions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use portcullis::catalog::{Catalog, LiveReads, View};
use portcullis::landscaper::components::cache::{ComponentCache, Freshness};
use portcullis::landscaper::kinds::{CONTEXTS, INSTALLATIONS, OVERWRITES};
use portcullis::landscaper::overwrites::effect::{self, Evaluation};
use portcullis::landscaper::overwrites::record::Record;
use portcullis::oci::{Client, Keyring, Options};
use serde_json::{Value, json};

use crate::fake::{Content, FakeRegistry, ready_response};
use crate::push::v2;

pub const INSTALLATIONS_COUNT: usize = 10_000;
const ROOTS: usize = 100;
const MIDDLE: usize = 300;
const LEAVES: usize = 600;
/// The number of workers of the controller manager.
const WORKERS: usize = 4;

/// A fake registry, a catalog with the Installations of one namespace, and a component cache.
pub struct ScaleTest {
    pub fake: FakeRegistry,
    pub component_cache: ComponentCache,
    catalog: Catalog,
}

/// Totals over the component trees of all Installations.
pub struct RecordTotals {
    /// Number of component trees in which no component version is missing.
    pub complete: usize,
    /// Number of component references that the overwrites change.
    pub overwritten: usize,
}

impl ScaleTest {
    /// Starts a fake registry with 1,000 component versions, and creates the Installations in a catalog.
    pub async fn new() -> Self {
        let content = Content::default();
        for descriptor in descriptors() {
            content.add(&descriptor);
        }
        let fake = FakeRegistry::start(move |path, _| ready_response(content.answer(&path))).await;
        let client = Client::new(&Options { authorities: Vec::new(), within: Duration::from_secs(30) }).unwrap();
        let catalog = Catalog::of([&CONTEXTS, &INSTALLATIONS, &OVERWRITES], objects(&fake.url(), &json!([])));
        Self { fake, component_cache: ComponentCache::new(client, Freshness::default()), catalog }
    }

    /// Replaces the entries of the ComponentVersionOverwrites.
    pub fn overwrite(&self, entries: &Value) {
        self.catalog.insert(&OVERWRITES, overwrites(entries));
    }

    /// Computes the component tree of each Installation, and a summary (a `Record`) of this tree, as the controller
    /// manager does. Returns the totals of the summaries.
    pub async fn compute_records(&self) -> RecordTotals {
        let all = self.catalog.all(&INSTALLATIONS);
        let one = async |stored: Arc<portcullis::catalog::Stored>| {
            let no_live_reads = LiveReads::new();
            let Evaluation::Overwritten(effect) =
                effect::of(stored.value(), "ns", &View::new(&self.catalog, &no_live_reads))
            else {
                panic!("the Installation must have overwrites");
            };
            let (original, entries) = (&effect.substitution.original, &effect.overwrites.entries);
            let until = tokio::time::Instant::now() + Duration::from_secs(60);
            let closure = self.component_cache.closure(original, entries, &Keyring::default(), |_| None, until).await;
            Record::of(stored.name(), &effect, &closure).note
        };
        let notes: Vec<_> = futures::stream::iter(all).map(one).buffer_unordered(WORKERS).collect().await;
        RecordTotals {
            complete: notes.iter().filter(|note| note.complete).count(),
            overwritten: notes.iter().map(|note| note.overwritten).sum(),
        }
    }

    /// Returns the maximum number of requests for the same path, and the number of all requests.
    pub fn count_requests(&self) -> (usize, usize) {
        let mut times: HashMap<String, usize> = HashMap::new();
        let requests = self.fake.requests();
        for (path, _) in &requests {
            *times.entry(path.clone()).or_default() += 1;
        }
        (times.into_values().max().unwrap_or_default(), requests.len())
    }
}

fn descriptors() -> Vec<Value> {
    let named = |kind: &str, at: usize| (format!("r{at}"), format!("example.org/{kind}-{at}"));
    let component = |name: String, below: Vec<(String, String)>| {
        let references: Vec<_> =
            below.iter().map(|(name, component)| (name.as_str(), component.as_str(), "v1")).collect();
        v2(&name, "v1", &references)
    };
    let roots =
        (0..ROOTS).map(|at| component(named("root", at).1, (0..3).map(|next| named("mid", at * 3 + next)).collect()));
    // Each of these components refers to two leaves with consecutive numbers, and to one of the first seven leaves,
    // which many of these components share.
    let middle = (0..MIDDLE).map(|at| {
        let leaves = [2 * at, 2 * at + 1, at % 7].map(|leaf| named("leaf", leaf));
        let mut leaves: Vec<_> = leaves.into_iter().collect();
        leaves.dedup();
        component(named("mid", at).1, leaves)
    });
    let leaves = (0..LEAVES).map(|at| component(named("leaf", at).1, Vec::new()));
    roots.chain(middle).chain(leaves).collect()
}

fn overwrites(entries: &Value) -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
           "metadata": {"name": "mine", "namespace": "ns"}, "overwrites": entries})
}

/// Returns the objects in the namespace `ns`: a Context with the registry, ComponentVersionOverwrites, and the
/// Installations.
pub fn objects(registry: &str, entries: &Value) -> Vec<Value> {
    let context = json!({"type": "ociRegistry", "baseUrl": registry});
    let api = "landscaper.gardener.cloud/v1alpha1";
    let mut objects = vec![
        overwrites(entries),
        json!({"apiVersion": api, "kind": "Context", "metadata": {"name": "default", "namespace": "ns"},
               "componentVersionOverwrites": "mine", "repositoryContext": context}),
    ];
    objects.extend((0..INSTALLATIONS_COUNT).map(|at| {
        let reference = json!({"componentName": format!("example.org/root-{}", at % ROOTS), "version": "v1"});
        json!({"apiVersion": api, "kind": "Installation", "metadata": {"name": format!("app-{at}"), "namespace": "ns"},
               "spec": {"componentDescriptor": {"ref": reference}, "blueprint": {"ref": {"resourceName": "blueprint"}}}})
    }));
    objects
}

/// Returns an overwrite that replaces the component `leaf-3` with `leaf-9`. Many component trees contain `leaf-3`.
pub fn example_overwrite() -> Value {
    json!([{"source": {"componentName": "example.org/leaf-3"}, "substitution": {"componentName": "example.org/leaf-9"}}])
}
