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
use crate::fake::{Content, Fake, now, respond};
use crate::push::v2;
use crate::{at, component_cache, gaps, met, patient, resolve, root};

fn content() -> Content {
    let content = Content::default();
    content.add(&v2("example.org/app", "v1", &[("log", "example.org/log", "v1")]));
    content.add(&v2("example.org/log", "v1", &[]));
    content
}

async fn honest(content: Content) -> Fake {
    Fake::start(move |path, _| now(content.answer(&path))).await
}

async fn why(fake: &Fake) -> String {
    let closure = resolve(&patient(), &root(&at(&fake.url()), "example.org/app"), &[], &Keyring::default()).await;
    match gaps(&closure).into_iter().next() {
        Some((_, Gap::Unreadable(why))) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rejects_content_with_a_wrong_digest() {
    let lying = content();
    lying.replace(|path| path.contains("/blobs/"), b"{\"componentDescriptorLayer\": {}}");
    let why = why(&honest(lying).await).await;
    assert!(why.contains("the content of sha256:") && why.contains("has the digest sha256:"), "{why}");
}

#[tokio::test]
async fn rejects_a_manifest_with_a_wrong_digest() {
    let content = content();
    let fake = Fake::start(move |path, _| {
        let mut response = content.answer(&path);
        let digest = format!("sha256:{}", "0".repeat(64));
        response.headers_mut().insert("docker-content-digest", digest.parse().unwrap());
        now(response)
    })
    .await;
    let why = why(&fake).await;
    assert!(why.contains("the registry states sha256:0000"), "{why}");
}

#[tokio::test]
async fn rejects_oversized_content() {
    let fake = Fake::start(|_, _| now(respond(StatusCode::OK, &[], vec![b' '; 5 << 20]))).await;
    let why = why(&fake).await;
    assert!(why.contains("4194304 bytes are read at most"), "{why}");
}

#[tokio::test]
async fn reports_invalid_content() {
    let fake = Fake::start(|_, _| now(respond(StatusCode::OK, &[], b"<html>".to_vec()))).await;
    assert!(why(&fake).await.contains("v1 does not have an artifact manifest"));
    let fake = Fake::start(|_, _| now(respond(StatusCode::INTERNAL_SERVER_ERROR, &[], Vec::new()))).await;
    assert!(why(&fake).await.contains("HTTP status 500"));
}

/// Checks that a slow registry is requested only once. After the timeout, other components of the same registry fail
/// immediately.
#[tokio::test]
async fn requests_a_slow_registry_once() {
    let fake = Fake::start(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            respond(StatusCode::OK, &[], Vec::new())
        })
    })
    .await;
    let component_cache = component_cache(None, Duration::from_millis(200), Freshness::default());
    for name in ["example.org/a", "example.org/b", "example.org/c"] {
        let closure = resolve(&component_cache, &root(&at(&fake.url()), name), &[], &Keyring::default()).await;
        let Some((_, Gap::Unreadable(why))) = gaps(&closure).into_iter().next() else { panic!("it is a gap") };
        assert!(why.contains("did not answer within 200ms"), "{why}");
    }
    assert_eq!(fake.asked().len(), 1);
}

/// Checks that a component tree is returned at the deadline, although it is incomplete. Component versions that were
/// not fetched in time are pending.
#[tokio::test]
async fn returns_a_partial_tree_after_the_timeout() {
    let content = content();
    let fake = Fake::start(move |path, _| {
        let (content, is_slow) = (content.clone(), path.contains("/log/"));
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(if is_slow { 60 } else { 0 })).await;
            content.answer(&path)
        })
    })
    .await;
    // This time is sufficient for the fast responses, even on a busy machine.
    let until = tokio::time::Instant::now() + deadline() / 12;
    let root = root(&at(&fake.url()), "example.org/app");
    let closure = patient().closure(&root, &[], &Keyring::default(), |_| None, until).await;
    assert_eq!(met(&closure), ["example.org/app@v1"]);
    assert_eq!(gaps(&closure), [("log".to_owned(), Gap::Pending)]);
}

fn keyring(host: &str) -> Keyring {
    let mut keyring = Keyring::default();
    keyring.add(json!({"auths": {host: {"username": "me", "password": "hidden"}}}).to_string().as_bytes()).unwrap();
    keyring
}

/// Starts a registry that requires bearer tokens. `realm` is the URL of its token service.
async fn behind_tokens(realm: String) -> Fake {
    let content = content();
    Fake::start(move |path, authorization| {
        let challenge = format!("Bearer realm=\"{realm}\",service=\"test\",scope=\"repository:*:*\"");
        match authorization.as_deref() {
            Some("Bearer good") => now(content.answer(&path)),
            _ => now(respond(StatusCode::UNAUTHORIZED, &[("www-authenticate", &challenge)], Vec::new())),
        }
    })
    .await
}

async fn token_service() -> Fake {
    let token = b"{\"token\": \"good\", \"expires_in\": 300}".to_vec();
    Fake::start(move |_, _| now(respond(StatusCode::OK, &[], token.clone()))).await
}

#[tokio::test]
async fn a_token_is_fetched_once_for_each_repository_and_for_reading_only() {
    let service = token_service().await;
    let fake = behind_tokens(format!("{}/token", service.url())).await;
    let (host, root) = (fake.address.to_string(), root(&at(&fake.url()), "example.org/app"));
    let closure = resolve(&patient(), &root, &[], &keyring(&host)).await;
    assert_eq!((met(&closure).len(), gaps(&closure)), (2, Vec::new()));
    let asked = service.asked();
    assert_eq!(asked.len(), 2, "one for each repository: {asked:?}");
    assert_eq!(asked[0].0, "/token?service=test&scope=repository%3Acomponent-descriptors%2Fexample.org%2Fapp%3Apull");
    // The token service has the same host, so it may receive the credentials; the registry itself never receives the
    // password.
    assert!(asked.iter().all(|(_, who)| who.as_deref() == Some("Basic bWU6aGlkZGVu")), "{asked:?}");
    let seen = fake.asked();
    assert!(seen.iter().all(|(_, who)| who.as_deref().is_none_or(|who| who == "Bearer good")), "{seen:?}");
}

#[tokio::test]
async fn a_password_is_not_sent_to_a_token_service_of_another_host() {
    let service = token_service().await;
    // The token service has the same address, but another host name.
    let fake = behind_tokens(format!("http://localhost:{}/token", service.address.port())).await;
    let host = fake.address.to_string();
    resolve(&patient(), &root(&at(&fake.url()), "example.org/app"), &[], &keyring(&host)).await;
    let asked = service.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(_, who)| who.is_none()), "{asked:?}");
}

#[tokio::test]
async fn sends_no_token_to_redirect_targets() {
    let storage = honest(content()).await;
    let (elsewhere, asked) = (format!("http://localhost:{}", storage.address.port()), Arc::new(AtomicUsize::new(0)));
    let content = content();
    let counted = asked.clone();
    let fake = Fake::start(move |path, authorization| {
        if authorization.is_none() {
            return now(respond(StatusCode::UNAUTHORIZED, &[("www-authenticate", "Basic realm=\"x\"")], Vec::new()));
        }
        if path.contains("/blobs/") {
            counted.fetch_add(1, Ordering::Relaxed);
            let target = format!("{elsewhere}{path}");
            return now(respond(StatusCode::TEMPORARY_REDIRECT, &[("location", &target)], Vec::new()));
        }
        now(content.answer(&path))
    })
    .await;
    let host = fake.address.to_string();
    let closure = resolve(&patient(), &root(&at(&fake.url()), "example.org/app"), &[], &keyring(&host)).await;
    assert_eq!((met(&closure).len(), gaps(&closure)), (2, Vec::new()));
    let stored = storage.asked();
    assert_eq!(stored.len(), asked.load(Ordering::Relaxed));
    assert!(!stored.is_empty() && stored.iter().all(|(_, who)| who.is_none()), "{stored:?}");
}

#[tokio::test]
async fn stops_at_redirect_cycles() {
    let fake = Fake::start(|path, _| now(respond(StatusCode::FOUND, &[("location", &path)], Vec::new()))).await;
    assert!(why(&fake).await.contains("more than 5 redirects"));
    assert_eq!(fake.asked().len(), 6);
}
