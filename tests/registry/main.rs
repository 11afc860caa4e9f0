//! Tests of component trees in OCI registries: in a real registry on the loopback interface, and in a fake one that
//! sends wrong responses.
//!
//! The real registry is built with Go and stored in the cache; see `server.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells what it does")]
#![allow(dead_code, unreachable_pub)]

mod admission;
#[path = "../e2e/cache.rs"]
mod cache;
#[path = "../e2e/cleanup.rs"]
mod cleanup;
#[path = "../support/deadline.rs"]
mod deadline;
mod fake;
mod misbehaving;
#[path = "../support/pki.rs"]
mod pki;
mod push;
mod scale;
mod server;

use std::time::Duration;

use portcullis::landscaper::component_reference::ComponentReference;
use portcullis::landscaper::components::cache::{ComponentCache, Freshness};
use portcullis::landscaper::components::closure::{Closure, Gap};
use portcullis::landscaper::substitution::{Entry, read_entries};
use portcullis::oci::{Client, Keyring, Options as ClientOptions, digest};
use serde_json::{Value, json};

use crate::deadline::deadline;
use crate::pki::Authority;
use crate::push::{Packing, Pusher, v2, v3};
use crate::server::{Options, Registry};

fn component_cache(authority: Option<&Authority>, within: Duration, freshness: Freshness) -> ComponentCache {
    let authorities = authority.map(|authority| authority.root.clone()).into_iter().collect();
    ComponentCache::new(Client::new(&ClientOptions { authorities, within }).unwrap(), freshness)
}

fn default_component_cache() -> ComponentCache {
    component_cache(None, deadline(), Freshness::default())
}

fn root(context: &Value, name: &str) -> ComponentReference {
    let text = json!({"componentName": name, "version": "v1", "repositoryContext": context}).to_string();
    ComponentReference::parse(&text, &portcullis::admission::FieldPath::root(), &mut Vec::new())
}

fn repository_context(url: &str) -> Value {
    json!({"type": "ociRegistry", "baseUrl": url})
}

fn entries(list: &Value) -> Vec<Entry> {
    read_entries(&json!({"overwrites": list}), &mut Vec::new())
}

async fn resolve(
    component_cache: &ComponentCache,
    root: &ComponentReference,
    entries: &[Entry],
    keyring: &Keyring,
) -> Closure {
    let until = tokio::time::Instant::now() + deadline();
    component_cache.closure(root, entries, keyring, |_| None, until).await
}

fn component_versions(closure: &Closure) -> Vec<String> {
    let identity = |descriptor: &portcullis::landscaper::components::descriptor::Descriptor| {
        format!("{}@{}", descriptor.name, descriptor.version)
    };
    closure.components.iter().map(|component| identity(&component.descriptor)).collect()
}

fn gaps(closure: &Closure) -> Vec<(String, Gap)> {
    closure.gaps().map(|(step, gap)| (closure.path_to(step), gap.clone())).collect()
}

/// Pushes component versions into repositories below the path `below`. Together, the component versions use every
/// [`Packing`]. The references between them are several levels deep. Some component versions are referenced more than
/// once.
fn publish(pusher: &Pusher, below: &str) {
    let app = v2("example.org/app", "v1", &[("store", "example.org/store", "v1"), ("ui", "example.org/ui", "v1")]);
    pusher.component(below, &app, Packing::Archive);
    let store =
        v3("example.org/store", "v1", &[("db", "example.org/db", "v1.0.0+1"), ("log", "example.org/log", "v1")]);
    pusher.component(below, &store, Packing::Yaml);
    let ui = v2("example.org/ui", "v1", &[("log", "example.org/log", "v1")]);
    pusher.component(below, &ui, Packing::OldArchive);
    pusher.component(below, &v2("example.org/db", "v1.0.0+1", &[]), Packing::Json);
    pusher.component(below, &v2("example.org/db", "v2.0.0", &[("log", "example.org/log", "v1")]), Packing::Archive);
    pusher.component(below, &v2("example.org/log", "v1", &[]), Packing::Archive);
}

/// Runs code in a new thread, and returns its result. A [`Pusher`] has its own Tokio runtime, which cannot run in the
/// thread of an asynchronous test.
fn run_in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(work).join().expect("the thread must not panic")
}

/// Starts a registry that can be read without credentials, and pushes component versions into it.
fn start_open_registry() -> Registry {
    run_in_thread(|| {
        let registry = Registry::start(&Options::default());
        let pusher = Pusher::new(&registry.url(), None, None);
        publish(&pusher, "/components");
        // Also pushes two components into repositories that are named by the digest of the component name.
        for (name, references) in
            [("example.org/app", vec![("log", "example.org/log", "v1")]), ("example.org/log", vec![])]
        {
            let repository = format!("hashed/{}", digest::hex(name.as_bytes()));
            pusher.artifact(&repository, "v1", &v2(name, "v1", &references), Packing::Archive);
        }
        registry
    })
}

#[tokio::test]
async fn resolves_trees_in_every_packing() {
    let registry = start_open_registry();
    let root = root(&repository_context(&format!("{}/components", registry.url())), "example.org/app");
    let closure = resolve(&default_component_cache(), &root, &[], &Keyring::default()).await;
    assert_eq!(gaps(&closure), []);
    assert_eq!(
        component_versions(&closure),
        [
            "example.org/app@v1",
            "example.org/store@v1",
            "example.org/db@v1.0.0+1",
            "example.org/log@v1",
            "example.org/ui@v1"
        ]
    );
    assert_eq!(closure.steps.len(), 6, "the references to log are resolved twice, and its own references once");
}

#[tokio::test]
async fn overwrites_select_other_descriptors() {
    let registry = start_open_registry();
    let root = root(&repository_context(&format!("{}/components", registry.url())), "example.org/app");
    let entries = entries(&json!([
        {"source": {"componentName": "example.org/db"}, "substitution": {"version": "v2.0.0"}},
        {"source": {"componentName": "example.org/ui"}, "substitution": {"version": "v7"}},
    ]));
    let closure = resolve(&default_component_cache(), &root, &entries, &Keyring::default()).await;
    assert_eq!(gaps(&closure), [("ui".to_owned(), Gap::Missing { nearest: vec!["v1".to_owned()] })]);
    assert!(component_versions(&closure).contains(&"example.org/db@v2.0.0".to_owned()));
    let failure = closure.failure().expect("resolution must stop at the gap");
    assert!(failure.starts_with("unable to resolve component reference ui with component name example.org/ui"));
}

#[tokio::test]
async fn supports_digest_names_and_the_type_name_of_the_open_component_model() {
    let registry = start_open_registry();
    let context = json!({"type": "OCIRegistry", "baseUrl": registry.url(), "subPath": "hashed",
                         "componentNameMapping": "sha256-digest"});
    let closure =
        resolve(&default_component_cache(), &root(&context, "example.org/app"), &[], &Keyring::default()).await;
    assert_eq!((component_versions(&closure).len(), gaps(&closure)), (2, Vec::new()));
}

#[tokio::test]
async fn distinguishes_missing_and_invalid_components() {
    let registry = start_open_registry();
    let url = registry.url();
    let url_of_image = url.clone();
    run_in_thread(move || {
        let pusher = Pusher::new(&url_of_image, None, None);
        pusher.artifact(
            "images/component-descriptors/example.org/app",
            "v1",
            &v2("example.org/other", "v1", &[]),
            Packing::Json,
        );
    });
    let gap = async |context: Value| {
        let closure =
            resolve(&default_component_cache(), &root(&context, "example.org/app"), &[], &Keyring::default()).await;
        gaps(&closure).remove(0).1
    };
    assert_eq!(gap(repository_context(&format!("{url}/nowhere"))).await, Gap::Missing { nearest: Vec::new() });
    let Gap::Unreadable(why) = gap(repository_context(&format!("{url}/images"))).await else {
        panic!("the gap must be unreadable")
    };
    assert!(why.ends_with(":v1 contains the descriptor of example.org/other v1, not of example.org/app v1"), "{why}");
    let Gap::Unreadable(why) = gap(json!({"type": "local", "filePath": "/"})).await else {
        panic!("the gap must be unreadable")
    };
    assert!(why.contains("is not an OCI registry"), "{why}");
}

fn keyring(host: &str, password: &str) -> Keyring {
    let mut keyring = Keyring::default();
    let auths = json!({"auths": {host: {"username": "reader", "password": password}}});
    keyring.add(auths.to_string().as_bytes()).unwrap();
    keyring
}

/// Checks that Portcullis can read a registry that has a certificate of a private CA, and that requires the credentials
/// of a pull secret.
#[tokio::test]
async fn reads_a_private_registry_with_ca_and_credentials() {
    let authority = Authority::new();
    let leaf = authority.leaf();
    let root_certificate = authority.root.clone();
    let registry = run_in_thread(move || {
        let registry = Registry::start(&Options { tls: Some((leaf.chain, leaf.key)), requires_login: true });
        publish(&Pusher::new(&registry.url(), Some(&root_certificate), Some(("reader", "secret"))), "");
        registry
    });
    let host = registry.host();
    let root = root(&repository_context(&host), "example.org/app");
    let cache_with_ca = || component_cache(Some(&authority), deadline(), Freshness::default());

    let closure = resolve(&cache_with_ca(), &root, &[], &keyring(&host, "secret")).await;
    assert_eq!((component_versions(&closure).len(), gaps(&closure)), (5, Vec::new()));

    let why = async |component_cache: ComponentCache, keyring: Keyring| {
        let closure = resolve(&component_cache, &root, &[], &keyring).await;
        match gaps(&closure).remove(0).1 {
            Gap::Unreadable(why) => why,
            other => panic!("{other:?}"),
        }
    };
    let without_credentials = why(cache_with_ca(), Keyring::default()).await;
    assert!(
        without_credentials.ends_with("denies access: no pull secret has credentials for this repository"),
        "{without_credentials}"
    );
    let wrong = why(cache_with_ca(), keyring(&host, "wrong")).await;
    assert!(wrong.ends_with("the credentials in the pull secret do not suffice"), "{wrong}");
    let unknown = why(default_component_cache(), keyring(&host, "secret")).await;
    assert!(unknown.contains("cannot be reached") && unknown.contains("UnknownIssuer"), "{unknown}");

    // A cached descriptor is not returned to a caller whose credentials do not allow reading it.
    let component_cache = cache_with_ca();
    resolve(&component_cache, &root, &[], &keyring(&host, "secret")).await;
    assert_eq!(gaps(&resolve(&component_cache, &root, &[], &Keyring::default()).await).len(), 1);
}

#[tokio::test]
async fn cached_components_are_available_without_the_registry() {
    let mut registry = run_in_thread(|| {
        let registry = Registry::start(&Options::default());
        publish(&Pusher::new(&registry.url(), None, None), "");
        registry
    });
    // All entries of the component cache expire immediately.
    let immediate_expiry =
        Freshness { descriptor: Duration::ZERO, missing: Duration::ZERO, failure: Duration::from_millis(1) };
    let component_cache = component_cache(None, deadline(), immediate_expiry);
    let root = root(&repository_context(&registry.url()), "example.org/app");
    let before = resolve(&component_cache, &root, &[], &Keyring::default()).await;
    assert_eq!(gaps(&before), []);
    registry.stop();
    assert_eq!(resolve(&component_cache, &root, &[], &Keyring::default()).await, before);
    // A component version that is not in the cache becomes a gap. The reason must not contain `connection refused`,
    // which Landscaper treats as an outage of a webhook.
    let entries =
        entries(&json!([{"source": {"componentName": "example.org/db"}, "substitution": {"version": "v2.0.0"}}]));
    let closure = resolve(&component_cache, &root, &entries, &Keyring::default()).await;
    let (path, gap) = gaps(&closure).remove(0);
    assert_eq!(path, "store → db");
    let Gap::Unreadable(why) = gap else { panic!("{gap:?}") };
    assert!(why.contains("cannot be reached: nothing listens on this port"), "{why}");
    // The missing component version is found as soon as the registry runs again.
    let registry = run_in_thread(move || {
        registry.restart();
        registry
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(gaps(&resolve(&component_cache, &root, &entries, &Keyring::default()).await), []);
    drop(registry);
}

/// Checks that the cache requests each component version only once, even if overwrites change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_installations_request_every_version_once() {
    let scale_test = scale::ScaleTest::new().await;
    let totals = scale_test.compute_records().await;
    assert_eq!((totals.complete, totals.overwritten), (scale::INSTALLATIONS_COUNT, 0));
    assert_eq!(
        scale_test.count_requests(),
        (1, 3 * 1_000),
        "expected three requests for each component version: manifest, configuration and layer"
    );
    scale_test.overwrite(&scale::example_overwrite());
    let totals = scale_test.compute_records().await;
    assert_eq!(totals.complete, scale::INSTALLATIONS_COUNT);
    assert!(totals.overwritten > 0);
    assert_eq!(scale_test.count_requests(), (1, 3 * 1_000), "a change of overwrites must not repeat requests");
}

/// Checks that admission never contacts a registry, even if the registry does not respond.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_never_contacts_a_registry() {
    let unresponsive = fake::FakeRegistry::start(|_, _| Box::pin(std::future::pending())).await;
    let root = root(&repository_context(&unresponsive.url()), "example.org/app");
    admission::admit(&unresponsive.url());
    assert!(unresponsive.requests().is_empty(), "admission must not send requests to the registry");
    // Meanwhile, the component cache of the controller manager waits for a response of the registry.
    let component_cache = component_cache(None, deadline(), Freshness::default());
    let waiting = tokio::spawn(async move { gaps(&resolve(&component_cache, &root, &[], &Keyring::default()).await) });
    while unresponsive.requests().is_empty() {
        assert!(!waiting.is_finished(), "the request to the registry must still be pending");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    admission::admit(&unresponsive.url());
    assert!(!waiting.is_finished(), "the request to the registry must still be pending");
    waiting.abort();
    assert_eq!(unresponsive.requests().len(), 1, "admission must not send requests to the registry");
}
