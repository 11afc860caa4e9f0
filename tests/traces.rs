//! Tests of spans that continue the traces of the API server, with a simulated collector.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

#[path = "support/collector.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests")]
#[allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
mod collector;
mod support;

use std::cell::RefCell;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use collector::{Collector, ReceivedSpan};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use portcullis::server::Traces;
use rustls::ALL_VERSIONS;
use support::client::{self, Connection, Reply};
use support::harness::{Server, eventually, get, review, review_of, within_deadline};
use support::pki::{Authority, SecretMount};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A server that exports its spans to a collector.
struct TracedServer {
    server: Server,
    collector: Collector,
    traces: Traces,
}

impl TracedServer {
    async fn start(change: impl FnOnce(&mut portcullis::server::Options)) -> Self {
        let collector = Collector::start();
        let traces = Traces::to(&collector.endpoint()).unwrap();
        let server = Server::start_with(|options| {
            options.traces = Some(traces.clone());
            change(options);
        });
        Self { server: server.await, collector, traces }
    }

    async fn post(&self, path: &str, body: &[u8], more: &[(&str, &str)]) -> Reply {
        let headers: Vec<_> = [JSON].into_iter().chain(more.iter().copied()).collect();
        within_deadline(self.server.connect().await.request("POST", path, &headers, body)).await.unwrap()
    }

    /// Stops the export, and returns all spans that the collector has received.
    async fn spans(self) -> Vec<ReceivedSpan> {
        self.traces.finish().await;
        self.collector.spans()
    }

    /// Sends one request to the server, and returns the only span that the server exports.
    async fn span_of(self, path: &str, body: &[u8]) -> ReceivedSpan {
        self.post(path, body, &[("traceparent", SAMPLED)]).await;
        let spans = self.spans().await;
        assert_eq!(spans.len(), 1, "{spans:#?}");
        spans.into_iter().next().unwrap()
    }
}

async fn span_of(path: &str, body: &[u8]) -> ReceivedSpan {
    TracedServer::start(|_| {}).await.span_of(path, body).await
}

fn assert_attributes(received: &ReceivedSpan, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(received.attribute(name), *value, "{name} in {:#?}", received.attributes);
    }
}

#[tokio::test]
async fn a_traced_call_has_a_child_span() {
    let traced = TracedServer::start(|_| {}).await;
    let headers = [("traceparent", SAMPLED), ("tracestate", "congo=t61")];
    assert_eq!(
        traced.post("/validate?timeout=10s", &review("denied"), &headers).await.json()["response"]["allowed"],
        false
    );
    // The span is exported without a flush.
    eventually("the span is exported", async || !traced.collector.spans().is_empty()).await;
    let received = traced.spans().await.remove(0);
    assert_eq!((received.trace(), received.parent()), (TRACE.to_owned(), PARENT.to_owned()));
    let span = &received.span;
    assert_eq!((span.name.as_str(), span.kind()), ("POST /validate", SpanKind::Server));
    assert_eq!(span.trace_state, "congo=t61");
    assert!(span.start_time_unix_nano < span.end_time_unix_nano);
    assert_eq!(span.status.clone().unwrap_or_default().code(), StatusCode::Unset, "a denial is no error");
    let expected = [
        ("http.request.method", "POST"),
        ("http.route", "/validate"),
        ("url.path", "/validate"),
        ("url.scheme", "https"),
        ("http.response.status_code", "200"),
        ("portcullis.phase", "validate"),
        ("portcullis.uid", "uid-of-denied"),
        ("portcullis.operation", "CREATE"),
        ("portcullis.resource", "widgets.example.org"),
        ("portcullis.namespace", "shop"),
        ("portcullis.name", "denied"),
        ("portcullis.dry_run", "false"),
        ("portcullis.decision", "deny"),
        ("portcullis.shadow", "false"),
        ("portcullis.level", "deny"),
        ("portcullis.rules", "OW001"),
        ("portcullis.findings", "1"),
    ];
    assert_attributes(&received, &expected);
    assert_eq!(received.attributes.len(), expected.len(), "the span has other attributes: {:#?}", received.attributes);
    let whole = format!("{received:?}");
    assert!(!whole.contains("swordfish") && !whole.contains("alice"), "neither objects nor users: {whole}");
    assert_eq!(received.resource["service.name"], "portcullis");
    assert_eq!(received.resource["service.version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn spans_contain_the_decision() {
    let patched = span_of("/mutate", &review("patched")).await;
    assert_eq!(patched.span.name, "POST /mutate");
    assert_attributes(
        &patched,
        &[("portcullis.decision", "patch"), ("portcullis.findings", "0"), ("portcullis.level", "")],
    );
    let shadowed =
        TracedServer::start(|options| options.shadow = true).await.span_of("/validate", &review("denied")).await;
    assert_attributes(&shadowed, &[("portcullis.decision", "deny"), ("portcullis.shadow", "true")]);
    let unhandled = span_of("/validate", &review_of("gadgets", "one", 0)).await;
    assert_attributes(
        &unhandled,
        &[("portcullis.decision", "unhandled"), ("portcullis.resource", "gadgets.example.org")],
    );
    // The decision about a large body is made on a separate thread.
    let large = span_of("/validate", &review_of("widgets", "warned", 200 * 1024)).await;
    assert_attributes(&large, &[("portcullis.decision", "warn"), ("portcullis.level", "warn")]);
    let long = span_of("/validate", &review(&"ä".repeat(10_000))).await;
    assert_eq!(long.attribute("portcullis.name"), "ä".repeat(126), "long texts are truncated");
}

#[tokio::test]
async fn a_call_without_decision_is_an_error_span() {
    let error = |received: &ReceivedSpan, kind: &str, status: &str, decision: &str| {
        let code = received.span.status.clone().unwrap_or_default().code();
        assert_eq!(code, StatusCode::Error, "{:#?}", received.attributes);
        let expected = [("error.type", kind), ("http.response.status_code", status), ("portcullis.decision", decision)];
        assert_attributes(received, &expected);
        assert!(!format!("{received:?}").contains("swordfish"), "{received:?}");
    };
    error(&span_of("/validate", &review("panics")).await, "500", "500", "");
    error(&span_of("/validate", b"no review").await, "400", "400", "");
    let unreadable = br#"{"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "operation": "swordfish"}}"#;
    error(&span_of("/validate", unreadable).await, "unreadable", "200", "deny");
    error(&span_of("/validate?timeout=1s", &review("never")).await, "undecided", "200", "deny");
    let full = TracedServer::start(|options| options.limits.in_flight = 0).await;
    error(&full.span_of("/validate", &review("one")).await, "429", "429", "shed");
}

#[tokio::test]
async fn a_cancelled_call_has_a_span_without_an_answer() {
    let traced = TracedServer::start(|_| {}).await;
    let body = review("held");
    let mut connection = traced.server.connect().await;
    let head = format!(
        "POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\ntraceparent: {SAMPLED}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    connection.send(&[head.as_bytes(), &body].concat()).await.unwrap();
    traced.server.stub.wait_until_begun(1).await;
    drop(connection);
    eventually("the span has ended", async || !traced.collector.spans().is_empty()).await;
    let received = traced.spans().await.remove(0);
    assert_attributes(&received, &[("http.response.status_code", ""), ("portcullis.decision", "")]);
}

#[tokio::test]
async fn an_untraced_call_has_no_span() {
    let traced = TracedServer::start(|_| {}).await;
    let wrong = SAMPLED.to_uppercase();
    let zero = SAMPLED.replace(TRACE, &"0".repeat(32));
    let untraced: [&[(&str, &str)]; 5] = [
        &[],
        &[("traceparent", UNSAMPLED)],
        &[("traceparent", &wrong)],
        &[("traceparent", &zero)],
        &[("traceparent", SAMPLED), ("traceparent", SAMPLED)],
    ];
    let expected = traced.post("/validate", &review("denied"), &[("traceparent", SAMPLED)]).await;
    for headers in untraced {
        let reply = traced.post("/validate", &review("denied"), headers).await;
        assert_eq!((reply.status, reply.body), (expected.status, expected.body.clone()), "{headers:?}");
    }
    let spans = traced.spans().await;
    assert_eq!(spans.len(), 1, "only the first call has a span: {spans:#?}");
}

/// A running `portcullis serve` that exports spans.
struct Process {
    child: RefCell<Child>,
    address: SocketAddr,
    admin: SocketAddr,
    authority: Authority,
    folder: tempfile::TempDir,
    _certs: SecretMount,
}

impl Process {
    async fn start(endpoint: &str) -> Self {
        let authority = Authority::new();
        let certs = SecretMount::new(&authority.leaf());
        let folder = tempfile::tempdir().unwrap();
        let (address, admin) = (free_address(), free_address());
        let child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["serve", "--listen", &address.to_string(), "--admin-listen", &admin.to_string(), "--certs"])
            .arg(certs.path())
            .args(["--lame-duck", "0", "--manifests", "examples/landscaper", "--otlp-endpoint", endpoint])
            .env("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=portcullis-0")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20word")
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .expect("the binary is there");
        let process = Self { child: child.into(), address, admin, authority, folder, _certs: certs };
        eventually("the server is ready", async || matches!(get(process.admin, "/readyz").await, Ok((200, _)))).await;
        process
    }

    async fn decide(&self, calls: usize) {
        let config = Arc::new(client::config(&self.authority.root, ALL_VERSIONS));
        let mut connection = Connection::open(self.address, config).await.unwrap();
        let review = std::fs::read("examples/reviews/refused.json").unwrap();
        for _ in 0..calls {
            let headers = [JSON, ("traceparent", SAMPLED)];
            let reply = within_deadline(connection.request("POST", "/validate", &headers, &review)).await.unwrap();
            assert_eq!(reply.json()["response"]["allowed"], false);
        }
    }

    async fn wait_for_log(&self, words: &str) {
        eventually(words, async || self.log().contains(words)).await;
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Terminates the process with SIGTERM, and returns its log. Panics if the process does not end in time. In a
    /// cluster, the kubelet would kill it after 30 seconds.
    async fn terminate(self) -> String {
        let pid = self.child.borrow().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let ended = || self.child.borrow_mut().try_wait().unwrap();
        eventually("the server ends", async || ended().is_some()).await;
        assert!(ended().is_some_and(|status| status.success()), "{}", self.log());
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn flushes_spans_at_exit() {
    let collector = Collector::start();
    let process = Process::start(&collector.endpoint()).await;
    process.decide(600).await;
    process.terminate().await;
    let spans = collector.trace(TRACE);
    assert_eq!(spans.len(), 600);
    assert!(spans.iter().all(|received| received.attribute("portcullis.decision") == "deny"), "{:#?}", spans[0]);
    let resource = &spans[0].resource;
    assert_eq!((&*resource["service.name"], &*resource["k8s.pod.name"]), ("portcullis", "portcullis-0"));
    assert_eq!(collector.authorization().expect("the header is sent"), "Bearer word");
}

#[tokio::test]
async fn an_unreachable_collector_only_costs_a_log_record() {
    let process = Process::start(&format!("http://{}", free_address())).await;
    process.decide(10).await;
    process.wait_for_log("cannot export spans to the collector").await;
    // These are more spans than the queue can hold.
    process.decide(2_000).await;
    let log = process.terminate().await;
    assert_eq!(log.matches("cannot export spans to the collector").count(), 1, "{log}");
    assert!(log.contains("nothing listens on this port"), "{log}");
}

#[tokio::test]
async fn does_not_wait_for_a_slow_collector() {
    let collector = Collector::start();
    collector.stop_answering();
    let process = Process::start(&collector.endpoint()).await;
    process.decide(10).await;
    eventually("the collector was asked", async || collector.requests() > 0).await;
    process.decide(2_000).await;
    let log = process.terminate().await;
    assert!(log.contains("the last spans may not have reached the collector"), "{log}");
}

#[test]
fn rejects_an_invalid_collector_url() {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["serve", "--otlp-endpoint", "collector:4317"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("--otlp-endpoint: \"collector:4317\" is not a valid collector address")
            && stderr.contains(":4318"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
