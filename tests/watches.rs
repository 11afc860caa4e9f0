//! Tests of watches and live reads when the API server stops, restarts, or does not answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use futures::StreamExt as _;
use futures::stream::{once, pending};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube::client::ClientBuilder;
use portcullis::catalog::metrics::{Counted, show};
use portcullis::catalog::{Catalog, Coverage, Freshness, Kind, Reference, Scope, Storage, cluster};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::deadline::deadline;
use support::harness::eventually;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

static THINGS: Kind = Kind {
    group: "example.org",
    version: "v1",
    kind: "Thing",
    plural: "things",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::Whole,
};

const LIST: &str = "/apis/example.org/v1/things";

fn thing(name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name, "namespace": "ns"}})
}

/// Returns the item of a list for the object `name`. If `name` is `number`, `deep` or `long`, the catalog cannot store
/// the item.
fn item(name: &str) -> Value {
    match name {
        "number" => json!(5),
        "deep" => {
            let mut deep = thing(name);
            deep["spec"] = (0..200).fold(json!({}), |inner, _| json!({"a": inner}));
            deep
        }
        "long" => thing(&"x".repeat(10_000)),
        name => thing(name),
    }
}

/// Returns the response of a simulated API server to a request. The server has objects with the names `names`, at
/// resource version `version`.
fn answer(request: &Request<Incoming>, version: usize, names: &[&str]) -> Response<Body> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let is_watch = query.contains("watch=true");
    let json = match path {
        LIST if is_watch && !query.contains(&format!("resourceVersion={version}")) => {
            return watch(json!({"type": "ERROR", "object": status(410, "Expired")}));
        }
        _ if is_watch => {
            let metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
            let object = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata});
            return watch(json!({"type": "BOOKMARK", "object": object}));
        }
        LIST => list("example.org/v1", "ThingList", version, names.iter().map(|name| item(name)).collect()),
        "/apis/example.org/v1/namespaces/ns/things/a" => thing("a"),
        path if path.starts_with("/apis/apiextensions") => {
            list("meta.k8s.io/v1", "PartialObjectMetadataList", version, Vec::new())
        }
        _ => {
            let not_found = Body::from(status(404, "NotFound").to_string());
            return Response::builder().status(404).body(not_found).unwrap();
        }
    };
    Response::new(Body::from(json.to_string()))
}

fn list(api_version: &str, kind: &str, version: usize, items: Vec<Value>) -> Value {
    let metadata = json!({"resourceVersion": version.to_string()});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items})
}

fn status(code: u16, reason: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason})
}

/// Returns the response to a watch. It contains one event and does not end.
fn watch(event: Value) -> Response<Body> {
    let first = once(async move { Ok::<_, Infallible>(format!("{event}\n")) });
    Response::new(Body::from_stream(first.chain(pending())))
}

/// Starts a simulated API server, and returns its address and its task. If the task is aborted, all connections of the
/// server are closed.
async fn api_server(
    address: SocketAddr,
    version: usize,
    names: &'static [&'static str],
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(move |request: Request<Incoming>| async move {
                if request.uri().path().ends_with("/silent") {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(answer(&request, version, names))
            });
            connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    };
    (address, tokio::spawn(serve))
}

fn client(address: SocketAddr, freshness: &Freshness) -> kube::Client {
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    ClientBuilder::try_from(config).unwrap().with_layer(freshness).build()
}

fn any_address() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn has_metric(registry: &Registry, line: &str) -> bool {
    let mut text = String::new();
    text::encode(&mut text, registry).unwrap();
    text.lines().any(|shown| shown.starts_with(line))
}

#[tokio::test]
async fn decides_with_the_catalog_while_the_api_server_is_down() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (address, server) = api_server(any_address(), 1, &["a"]).await;
    let (freshness, catalog, mut registry) =
        (Freshness::default(), Arc::new(Catalog::new([&THINGS])), Registry::default());
    show(&mut registry, Arc::clone(&catalog), Some(freshness.clone()));
    assert_eq!(freshness.age(&THINGS), None);
    tokio::spawn(cluster::follow(client(address, &freshness), Arc::clone(&catalog)));
    let has = |name| catalog.find(&THINGS, "ns", name).is_some();
    eventually("the objects are listed", async || has("a") && catalog.coverage(&THINGS) == Coverage::Complete).await;
    assert!(has_metric(&registry, r#"catalog_objects{kind="things.example.org"} 1"#));
    assert!(has_metric(&registry, r#"catalog_silence_seconds{kind="things.example.org"} 0"#));

    server.abort();
    let age = || freshness.age(&THINGS).unwrap();
    eventually("no event arrives any more", async || age() > Duration::from_millis(500)).await;
    assert!(has("a") && catalog.coverage(&THINGS) == Coverage::Complete, "the catalog keeps the listed objects");

    let before = age();
    let (_, _restarted_server) = api_server(address, 2, &["a", "b"]).await;
    eventually("the objects are listed again", async || has("b")).await;
    assert!(has("a"));
    eventually("events arrive again", async || age() < before).await;
}

#[tokio::test]
async fn undecodable_objects_of_a_page_are_counted_and_the_others_stored() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (address, _server) = api_server(any_address(), 1, &["a", "number", "deep", "long", "b"]).await;
    let (freshness, catalog, mut registry) =
        (Freshness::default(), Arc::new(Catalog::new([&THINGS])), Registry::default());
    show(&mut registry, Arc::clone(&catalog), Some(freshness.clone()));
    tokio::spawn(cluster::follow(client(address, &freshness), Arc::clone(&catalog)));
    eventually("the objects are listed", async || catalog.coverage(&THINGS) == Coverage::Complete).await;
    assert!(catalog.contains(&THINGS, "ns", "a") && catalog.contains(&THINGS, "ns", "b"));
    assert!(has_metric(&registry, r#"catalog_objects{kind="things.example.org"} 2"#));
    assert!(has_metric(&registry, r#"catalog_undecodable{kind="things.example.org"} 3"#));
}

#[tokio::test]
async fn live_reads_time_out_and_are_counted() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (address, server) = api_server(any_address(), 1, &["a"]).await;
    let (mut catalog, mut registry) = (Catalog::new([&THINGS]), Registry::default());
    let reader = cluster::Reader::new(client(address, &Freshness::default()));
    catalog.set_live_reader(Arc::new(Counted::new(reader, &mut registry)));
    let read = async |name: &str, timeout| {
        let reference = Reference { kind: &THINGS, namespace: "ns".to_owned(), name: name.to_owned() };
        catalog.within(Instant::now() + timeout, catalog.read_live(&reference)).await
    };
    let long = deadline();
    assert!(read("a", long).await.unwrap().unwrap().is_some());
    assert!(read("b", long).await.unwrap().unwrap().is_none());
    assert!(read("silent", Duration::from_millis(50)).await.is_none());
    server.abort();
    assert!(server.await.is_err());
    assert!(read("a", long).await.unwrap().is_err());
    for result in ["found", "gone", "late", "failed"] {
        assert!(has_metric(&registry, &format!(r#"confirmed_reads_total{{result="{result}"}} 1"#)), "{result}");
    }
}
