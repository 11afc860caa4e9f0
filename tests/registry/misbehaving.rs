//! Tests with registries that send wrong content, respond slowly, redirect, or require tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use portcullis::landscaper::components::cache::Freshness;
use portcullis::landscaper::components::closure::Gap;
use portcullis::oci::Keyring;
use serde_json::json;

use crate::deadline::deadline;
use crate::fake::{Content, FakeRegistry, ready_response, respond};
use crate::push::v2;
use crate::{component_cache, component_versions, default_component_cache, gaps, repository_context, resolve, root};

fn content() -> Content {
    let content = Content::default();
    content.add(&v2("example.org/app", "v1", &[("log", "example.org/log", "v1")]));
    content.add(&v2("example.org/log", "v1", &[]));
    content
}

async fn serve_content(content: Content) -> FakeRegistry {
    FakeRegistry::start(move |path, _| ready_response(content.answer(&path))).await
}

async fn unreadable_reason(fake: &FakeRegistry) -> String {
    let closure = resolve(
        &default_component_cache(),
        &root(&repository_context(&fake.url()), "example.org/app"),
        &[],
        &Keyring::default(),
    )
    .await;
    match gaps(&closure).into_iter().next() {
        Some((_, Gap::Unreadable(why))) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rejects_content_with_a_wrong_digest() {
    let corrupted = content();
    corrupted.replace(|path| path.contains("/blobs/"), b"{\"componentDescriptorLayer\": {}}");
    let why = unreadable_reason(&serve_content(corrupted).await).await;
    assert!(why.contains("the content of sha256:") && why.contains("has the digest sha256:"), "{why}");
}

#[tokio::test]
async fn rejects_a_manifest_with_a_wrong_digest() {
    let content = content();
    let fake = FakeRegistry::start(move |path, _| {
        let mut response = content.answer(&path);
        let digest = format!("sha256:{}", "0".repeat(64));
        response.headers_mut().insert("docker-content-digest", digest.parse().unwrap());
        ready_response(response)
    })
    .await;
    let why = unreadable_reason(&fake).await;
    assert!(why.contains("the registry states sha256:0000"), "{why}");
}

#[tokio::test]
async fn rejects_oversized_content() {
    let fake = FakeRegistry::start(|_, _| ready_response(respond(StatusCode::OK, &[], vec![b' '; 5 << 20]))).await;
    let why = unreadable_reason(&fake).await;
    assert!(why.contains("4194304 bytes are read at most"), "{why}");
}

#[tokio::test]
async fn reports_invalid_content() {
    let fake = FakeRegistry::start(|_, _| ready_response(respond(StatusCode::OK, &[], b"<html>".to_vec()))).await;
    assert!(unreadable_reason(&fake).await.contains("v1 does not have an artifact manifest"));
    let fake =
        FakeRegistry::start(|_, _| ready_response(respond(StatusCode::INTERNAL_SERVER_ERROR, &[], Vec::new()))).await;
    assert!(unreadable_reason(&fake).await.contains("HTTP status 500"));
}

/// Checks that Portcullis sends only one request to a slow registry. After this request has timed out, look-ups of
/// other components in the same registry fail immediately.
#[tokio::test]
async fn requests_a_slow_registry_once() {
    let fake = FakeRegistry::start(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            respond(StatusCode::OK, &[], Vec::new())
        })
    })
    .await;
    let component_cache = component_cache(None, Duration::from_millis(200), Freshness::default());
    for name in ["example.org/a", "example.org/b", "example.org/c"] {
        let closure =
            resolve(&component_cache, &root(&repository_context(&fake.url()), name), &[], &Keyring::default()).await;
        let Some((_, Gap::Unreadable(why))) = gaps(&closure).into_iter().next() else {
            panic!("the closure must have an unreadable gap")
        };
        assert!(why.contains("did not answer within 200ms"), "{why}");
    }
    assert_eq!(fake.requests().len(), 1);
}

/// Checks that a component tree is returned at the deadline, although it is incomplete. Component versions that were
/// not fetched in time are pending.
#[tokio::test]
async fn returns_a_partial_tree_after_the_timeout() {
    let content = content();
    let fake = FakeRegistry::start(move |path, _| {
        let (content, is_slow) = (content.clone(), path.contains("/log/"));
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(if is_slow { 60 } else { 0 })).await;
            content.answer(&path)
        })
    })
    .await;
    // This time is sufficient for the fast responses, even on a busy machine.
    let until = tokio::time::Instant::now() + deadline() / 12;
    let root = root(&repository_context(&fake.url()), "example.org/app");
    let closure = default_component_cache().closure(&root, &[], &Keyring::default(), |_| None, until).await;
    assert_eq!(component_versions(&closure), ["example.org/app@v1"]);
    assert_eq!(gaps(&closure), [("log".to_owned(), Gap::Pending)]);
}

fn keyring(host: &str) -> Keyring {
    let mut keyring = Keyring::default();
    keyring.add(json!({"auths": {host: {"username": "me", "password": "hidden"}}}).to_string().as_bytes()).unwrap();
    keyring
}

/// Starts a registry that requires bearer tokens. `realm` is the URL of its token service.
async fn registry_with_tokens(realm: String) -> FakeRegistry {
    let content = content();
    FakeRegistry::start(move |path, authorization| {
        let challenge = format!("Bearer realm=\"{realm}\",service=\"test\",scope=\"repository:*:*\"");
        match authorization.as_deref() {
            Some("Bearer good") => ready_response(content.answer(&path)),
            _ => ready_response(respond(StatusCode::UNAUTHORIZED, &[("www-authenticate", &challenge)], Vec::new())),
        }
    })
    .await
}

async fn token_service() -> FakeRegistry {
    let token = b"{\"token\": \"good\", \"expires_in\": 300}".to_vec();
    FakeRegistry::start(move |_, _| ready_response(respond(StatusCode::OK, &[], token.clone()))).await
}

#[tokio::test]
async fn a_token_is_fetched_once_for_each_repository_and_for_reading_only() {
    let service = token_service().await;
    let fake = registry_with_tokens(format!("{}/token", service.url())).await;
    let (host, root) = (fake.address.to_string(), root(&repository_context(&fake.url()), "example.org/app"));
    let closure = resolve(&default_component_cache(), &root, &[], &keyring(&host)).await;
    assert_eq!((component_versions(&closure).len(), gaps(&closure)), (2, Vec::new()));
    let requests = service.requests();
    assert_eq!(requests.len(), 2, "expected one token request for each repository: {requests:?}");
    assert_eq!(
        requests[0].0,
        "/token?service=test&scope=repository%3Acomponent-descriptors%2Fexample.org%2Fapp%3Apull"
    );
    // The token service has the same host, so it may receive the credentials; the registry itself never receives the
    // password.
    assert!(requests.iter().all(|(_, who)| who.as_deref() == Some("Basic bWU6aGlkZGVu")), "{requests:?}");
    let registry_requests = fake.requests();
    assert!(
        registry_requests.iter().all(|(_, who)| who.as_deref().is_none_or(|who| who == "Bearer good")),
        "{registry_requests:?}"
    );
}

#[tokio::test]
async fn a_password_is_not_sent_to_a_token_service_of_another_host() {
    let service = token_service().await;
    // The token service has the same address, but another host name.
    let fake = registry_with_tokens(format!("http://localhost:{}/token", service.address.port())).await;
    let host = fake.address.to_string();
    resolve(
        &default_component_cache(),
        &root(&repository_context(&fake.url()), "example.org/app"),
        &[],
        &keyring(&host),
    )
    .await;
    let requests = service.requests();
    assert!(!requests.is_empty() && requests.iter().all(|(_, who)| who.is_none()), "{requests:?}");
}

#[tokio::test]
async fn sends_no_token_to_redirect_targets() {
    let storage = serve_content(content()).await;
    let (redirect_target, redirects) =
        (format!("http://localhost:{}", storage.address.port()), Arc::new(AtomicUsize::new(0)));
    let content = content();
    let counter = redirects.clone();
    let fake = FakeRegistry::start(move |path, authorization| {
        if authorization.is_none() {
            return ready_response(respond(
                StatusCode::UNAUTHORIZED,
                &[("www-authenticate", "Basic realm=\"x\"")],
                Vec::new(),
            ));
        }
        if path.contains("/blobs/") {
            counter.fetch_add(1, Ordering::Relaxed);
            let target = format!("{redirect_target}{path}");
            return ready_response(respond(StatusCode::TEMPORARY_REDIRECT, &[("location", &target)], Vec::new()));
        }
        ready_response(content.answer(&path))
    })
    .await;
    let host = fake.address.to_string();
    let closure = resolve(
        &default_component_cache(),
        &root(&repository_context(&fake.url()), "example.org/app"),
        &[],
        &keyring(&host),
    )
    .await;
    assert_eq!((component_versions(&closure).len(), gaps(&closure)), (2, Vec::new()));
    let storage_requests = storage.requests();
    assert_eq!(storage_requests.len(), redirects.load(Ordering::Relaxed));
    assert!(
        !storage_requests.is_empty() && storage_requests.iter().all(|(_, who)| who.is_none()),
        "{storage_requests:?}"
    );
}

#[tokio::test]
async fn stops_at_redirect_cycles() {
    let fake =
        FakeRegistry::start(|path, _| ready_response(respond(StatusCode::FOUND, &[("location", &path)], Vec::new())))
            .await;
    assert!(unreadable_reason(&fake).await.contains("more than 5 redirects"));
    assert_eq!(fake.requests().len(), 6);
}
