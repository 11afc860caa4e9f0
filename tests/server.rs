//! Tests of the server over HTTPS: every HTTP status, every limit, and every kind of failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod support;

use std::fs;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::server::lifecycle::Stage;
use portcullis::server::{Certificates, Clients, Floor, Format, Pair, Telemetry, limits};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use support::client::{self, Connection, Reply};
use support::deadline::deadline;
use support::harness::{Server, eventually, get, review, review_of, within_deadline};
use support::pki::{Authority, SecretMount};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn decides_over_one_connection() {
    let server = Server::start().await;
    let mut connection = server.connect().await;

    let denied = connection.post("/validate?timeout=5s", &review("denied")).await.unwrap();
    assert_eq!((denied.status, &*denied.headers["content-type"]), (200, "application/json"));
    let answer = denied.json();
    assert_eq!(answer["response"]["uid"], "uid-of-denied");
    assert_eq!(answer["response"]["allowed"], false);
    assert!(answer.get("request").is_none());

    let allowed = connection.post("/validate", &review("fine")).await.unwrap();
    assert_eq!(allowed.json()["response"], json!({"uid": "uid-of-fine", "allowed": true}));
    assert!(!allowed.closes_connection());

    let one =
        |allowed| format!(r#"portcullis_decisions_total{{phase="validate",operation="CREATE",allowed="{allowed}"}}"#);
    assert_eq!(server.metric(&one(true)).await, 1.0);
    assert_eq!(server.metric(&one(false)).await, 1.0);
    assert_eq!(server.metric(r#"portcullis_findings_total{rule="OW001",level="deny"}"#).await, 1.0);
    assert_eq!(server.metric("portcullis_connections").await, 1.0);
    assert_eq!(server.metric("portcullis_requests_in_flight").await, 0.0);
}

#[tokio::test]
async fn only_the_mutating_webhook_sends_patches() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let mutated = connection.post("/mutate", &review("patched")).await.unwrap().json();
    assert_eq!(mutated["response"]["patchType"], "JSONPatch");
    let validated = connection.post("/validate", &review("patched")).await.unwrap().json();
    assert_eq!(validated["response"], json!({"uid": "uid-of-patched", "allowed": true}));
}

#[tokio::test]
async fn admits_and_counts_requests_that_no_rule_matches() {
    let server = Server::start().await;
    let reply = server.connect().await.post("/mutate", &review_of("gadgets", "panics", 0)).await.unwrap();
    assert_eq!(reply.json()["response"], json!({"uid": "uid-of-panics", "allowed": true}));
    assert_eq!(server.metric(r#"portcullis_unhandled_total{phase="mutate"}"#).await, 1.0);
}

#[tokio::test]
async fn an_unreadable_review_is_denied_with_its_uid() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let reply = connection.post("/validate", br#"{"request":{"uid":"u1","operation":7}}"#).await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["response"]["uid"], "u1");
    assert_eq!(reply.json()["response"]["allowed"], false);

    for body in ["", "{", "[]", r#"{"request":{}}"#] {
        let reply = connection.post("/validate", body.as_bytes()).await.unwrap();
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.json()["error"].as_str().unwrap().contains("request.uid"));
    }
    assert_eq!(server.metric(r#"portcullis_bad_requests_total{class="unreadable"}"#).await, 1.0);
    assert_eq!(server.metric(r#"portcullis_bad_requests_total{class="no_uid"}"#).await, 4.0);
}

#[tokio::test]
async fn rejects_other_paths_methods_and_types() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let json = [("Content-Type", "application/json")];
    for path in ["/", "/validate/", "/metrics", "/debug/pprof/", "/readyz"] {
        let reply = connection.request("POST", path, &json, b"{}").await.unwrap();
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.json()["error"].as_str().unwrap().contains("/validate"));
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let reply = connection.request(method, "/mutate", &json, b"{}").await.unwrap();
        assert_eq!((reply.status, &*reply.headers["allow"]), (405, "POST"));
        assert!(reply.json()["error"].as_str().unwrap().contains("POST"));
    }
    for headers in [&[][..], &[("Content-Type", "application/yaml")], &[("Content-Type", "application/jsonp")]] {
        let reply = connection.request("POST", "/validate", headers, &review("fine")).await.unwrap();
        assert_eq!(reply.status, 415);
        assert!(reply.json()["error"].as_str().unwrap().contains("application/json"));
    }
    let with_charset = [("Content-Type", "Application/JSON; charset=utf-8")];
    let reply = connection.request("POST", "/validate", &with_charset, &review("fine")).await.unwrap();
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn the_largest_legal_update_is_read() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let reply = connection.post("/validate", &review_of("widgets", "denied", 6 * MIB)).await.unwrap();
    assert_eq!(reply.json()["response"]["uid"], "uid-of-denied");
}

#[tokio::test]
async fn oversized_requests_receive_413() {
    let server = Server::start().await;
    let body = review_of("widgets", "fine", 8 * MIB);
    for _ in 0..3 {
        let reply = server.connect().await.post("/validate", &body).await.unwrap();
        assert_eq!((reply.status, reply.closes_connection()), (413, true));
        assert!(reply.json()["error"].as_str().unwrap().contains("7340032 bytes"));
    }
    for _ in 0..3 {
        let mut connection = server.connect().await;
        let head = "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        connection.send(head.as_bytes()).await.unwrap();
        for chunk in body.chunks(MIB) {
            connection.send(format!("{:x}\r\n", chunk.len()).as_bytes()).await.unwrap();
            connection.send(chunk).await.unwrap();
            connection.send(b"\r\n").await.unwrap();
        }
        connection.send(b"0\r\n\r\n").await.unwrap();
        let reply = connection.reply().await.unwrap();
        assert_eq!((reply.status, reply.closes_connection()), (413, true));
    }
}

#[tokio::test]
async fn reads_a_body_in_chunks() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let head =
        "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes()).await.unwrap();
    for piece in review("denied").chunks(100) {
        connection.send(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
        connection.send(piece).await.unwrap();
        connection.send(b"\r\n").await.unwrap();
    }
    connection.send(b"0\r\n\r\n").await.unwrap();
    assert_eq!(connection.reply().await.unwrap().json()["response"]["uid"], "uid-of-denied");
    let reply = connection.post("/validate", &review("fine")).await.unwrap();
    assert_eq!(reply.status, 200, "the connection can be used again");
}

#[tokio::test]
async fn rejects_and_counts_invalid_or_large_heads() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send(b"\x16\x03\x01 what\r\n\r\n").await.unwrap();
    assert_eq!(within_deadline(connection.reply()).await.unwrap().status, 400);
    let mut connection = server.connect().await;
    let head = format!("POST /validate HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    connection.send(head.as_bytes()).await.unwrap();
    assert_eq!(within_deadline(connection.reply()).await.unwrap().status, 431);
    let metric = r#"portcullis_bad_requests_total{class="malformed_head"}"#;
    eventually("both are counted", async || server.metric(metric).await == 2.0).await;
}

#[tokio::test]
async fn rejects_before_100_continue() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let head = "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 9000000\r\n\r\n";
    connection.send(head.as_bytes()).await.unwrap();
    assert_eq!(within_deadline(connection.reply()).await.unwrap().status, 413);
}

#[tokio::test]
async fn reports_a_missed_deadline() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let reply = within_deadline(connection.post("/validate?timeout=1s", &review("never"))).await.unwrap();
    assert_eq!(reply.status, 200);
    let response = &reply.json()["response"];
    assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(504)));
    assert_eq!(response["status"]["message"], "portcullis reached no decision within 500ms; try again");
    assert_eq!(server.metric(r#"portcullis_undecided_total{phase="validate"}"#).await, 1.0);
}

/// In shadow mode, every request is admitted unchanged, and the decision is recorded in audit annotations.
#[tokio::test]
async fn shadow_mode_admits_everything_and_records_decisions() {
    let server = Server::start_with(|options| options.shadow = true).await;
    let mut connection = server.connect().await;
    let annotations = [
        ("denied", json!({"OW001": "deny spec.replicas: is too large", "shadow": "deny"})),
        ("warned", json!({"OW001": "warn spec.replicas: is too large", "shadow": "warn"})),
        ("patched", json!({"shadow": "patch"})),
        ("fine", json!({"shadow": "allow"})),
        ("panics", json!({"shadow": "deny: the decision failed inside portcullis; its log has the reason"})),
        ("never", json!({"shadow": "deny: portcullis reached no decision within 500ms; try again"})),
    ];
    for (name, annotations) in annotations {
        let reply = within_deadline(connection.post("/mutate?timeout=1s", &review(name))).await.unwrap();
        assert_eq!(reply.status, 200, "{name}");
        let reported = json!({"uid": format!("uid-of-{name}"), "allowed": true, "auditAnnotations": annotations});
        assert_eq!(reply.json()["response"], reported);
    }
    let unreadable = connection.post("/validate", br#"{"request":{"uid":"u1","operation":7}}"#).await.unwrap().json();
    assert_eq!((&unreadable["response"]["uid"], &unreadable["response"]["allowed"]), (&json!("u1"), &json!(true)));
    let reported = unreadable["response"]["auditAnnotations"]["shadow"].as_str().unwrap();
    assert!(reported.starts_with("deny: this AdmissionReview cannot be read: "), "{reported}");
    // Without a uid, the API server would reject the answer as invalid.
    assert_eq!(connection.post("/validate", b"{}").await.unwrap().status, 400);

    assert_eq!(server.metric("portcullis_shadow").await, 1.0);
    for (would, count) in [("deny", 4.0), ("patch", 1.0), ("warn", 1.0), ("allow", 1.0)] {
        let metric = format!(r#"portcullis_shadowed_total{{would="{would}"}}"#);
        assert_eq!(server.metric(&metric).await, count, "{would}");
    }
    let denied = r#"portcullis_decisions_total{phase="mutate",operation="CREATE",allowed="false"}"#;
    assert_eq!(server.metric(denied).await, 0.0);
}

#[tokio::test]
async fn a_panic_fails_only_one_request() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    assert_eq!(connection.post("/validate", &review("panics")).await.unwrap().status, 500);
    assert_eq!(connection.post("/validate", &review("fine")).await.unwrap().status, 200);
    assert_eq!(server.metric("portcullis_panics_total").await, 1.0);
    assert_eq!(server.metric("portcullis_requests_in_flight").await, 0.0);
}

#[tokio::test]
async fn rejects_requests_over_the_limit() {
    let server = Server::start_with(|options| options.limits.in_flight = 1).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let held_review = review("held");
    let held = async {
        let reply = first.post("/validate", &held_review).await.unwrap();
        assert_eq!(reply.status, 200);
    };
    let shed = async {
        server.stub.wait_until_begun(1).await;
        let reply = second.post("/validate", &review_of("widgets", "fine", MIB)).await.unwrap();
        assert_eq!((reply.status, &*reply.headers["retry-after"], reply.closes_connection()), (429, "1", true));
        server.stub.hold_permits.add_permits(1);
    };
    within_deadline(async { tokio::join!(held, shed) }).await;
    assert_eq!(server.metric(r#"portcullis_shed_total{reason="in_flight"}"#).await, 1.0);
}

#[tokio::test]
async fn rejects_requests_over_the_limit_of_bytes() {
    let server = Server::start_with(|options| options.limits.buffered = MIB).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let held_review = review_of("widgets", "held", 700_000);
    let held = async {
        let reply = first.post("/validate", &held_review).await.unwrap();
        assert_eq!(reply.status, 200);
    };
    let shed = async {
        server.stub.wait_until_begun(1).await;
        let reply = second.post("/validate", &review_of("widgets", "fine", 700_000)).await.unwrap();
        assert_eq!((reply.status, reply.closes_connection()), (429, true));
        server.stub.hold_permits.add_permits(1);
    };
    within_deadline(async { tokio::join!(held, shed) }).await;
    let reply = server.connect().await.post("/validate", &review_of("widgets", "fine", 700_000)).await.unwrap();
    assert_eq!(reply.status, 200, "the bytes of the first request are released");
}

/// Starts a server that computes only one decision at a time. `waiting` is the maximum number of queued requests, and
/// `deadline` is their queue deadline under overload.
async fn start_with_one_permit(waiting: usize, deadline: Duration) -> Server {
    Server::start_with(|options| {
        options.limits.deciding = 1;
        options.limits.waiting = waiting;
        (options.limits.overload_deadline, options.limits.burst, options.limits.burst_length) =
            (deadline, Duration::ZERO, 0);
        // A decision of the stub may block its thread until another request has been read. With zero, the thread yields
        // to the runtime before each decision, and the runtime reads other requests.
        options.limits.yield_after = Duration::ZERO;
    })
    .await
}

/// Sends an AdmissionReview over a new connection, in a new task.
fn spawn_post(server: &Server, review: Vec<u8>) -> JoinHandle<Reply> {
    let (address, config) = (server.address, Arc::new(server.client()));
    let post =
        async move { Connection::open(address, config).await.unwrap().post("/validate", &review).await.unwrap() };
    tokio::spawn(post)
}

const WAITING: &str = "portcullis_requests_waiting";

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn queues_requests_and_rejects_the_oldest() {
    let server = start_with_one_permit(2, deadline()).await;
    let busy = spawn_post(&server, review("busy"));
    server.stub.wait_until_begun(1).await;
    let mut waiting = Vec::new();
    for (name, count) in [("first", 1.0), ("second", 2.0), ("third", 2.0)] {
        waiting.push(spawn_post(&server, review(name)));
        let shed = async || server.metric(r#"portcullis_shed_total{reason="waiting"}"#).await;
        let is_queued = async || server.metric(WAITING).await == count && (name != "third" || shed().await == 1.0);
        eventually("the request is queued", is_queued).await;
    }
    let [first, second, third] = waiting.try_into().unwrap();
    let rejected: Reply = within_deadline(first).await.unwrap();
    assert_eq!((rejected.status, &*rejected.headers["retry-after"], rejected.closes_connection()), (429, "1", true));
    server.stub.release_busy();
    for served in [busy, second, third] {
        assert_eq!(within_deadline(served).await.unwrap().status, 200);
    }
    assert_eq!(server.stub.order(), ["busy", "second", "third"]);
    assert_eq!(server.metric(WAITING).await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn rejects_requests_after_the_queue_deadline() {
    let server = start_with_one_permit(9, Duration::from_millis(1)).await;
    let busy = spawn_post(&server, review("busy"));
    server.stub.wait_until_begun(1).await;
    assert_eq!(within_deadline(spawn_post(&server, review("fine"))).await.unwrap().status, 429);
    server.stub.release_busy();
    assert_eq!(within_deadline(busy).await.unwrap().status, 200);
    assert_eq!(
        within_deadline(spawn_post(&server, review("fine"))).await.unwrap().status,
        200,
        "a request is decided if a permit is free"
    );
}

#[tokio::test]
async fn requests_that_wait_need_no_permit() {
    let server = start_with_one_permit(9, deadline()).await;
    let held = [spawn_post(&server, review("held")), spawn_post(&server, review("held"))];
    server.stub.wait_until_begun(2).await;
    assert_eq!(within_deadline(spawn_post(&server, review("fine"))).await.unwrap().status, 200);
    server.stub.hold_permits.add_permits(2);
    for held in held {
        assert_eq!(within_deadline(held).await.unwrap().status, 200);
    }
}

/// The test runs on a runtime with one thread. If the server computed decisions about large bodies on this thread, they
/// would block all other requests.
#[tokio::test]
async fn large_bodies_do_not_delay_small_ones() {
    let server = start_with_one_permit(9, deadline()).await;
    let large = [(); 2].map(|()| spawn_post(&server, review_of("widgets", "busy", 2 * MIB)));
    server.stub.wait_until_begun(1).await;
    let mut connection = server.connect().await;
    for _ in 0..100 {
        assert_eq!(within_deadline(connection.post("/validate", &review("fine"))).await.unwrap().status, 200);
    }
    let order = server.stub.order();
    assert_eq!(
        order.iter().filter(|name| *name == "busy").count(),
        1,
        "large ones are decided one at a time: {order:?}"
    );
    server.stub.release_busy();
    for large in large {
        assert_eq!(within_deadline(large).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn rejects_too_many_large_bodies() {
    let server = start_with_one_permit(9, deadline()).await;
    // The large bodies that the server accepts: one whose decision is computed, and those in the queue.
    let accepted = 1 + limits::LARGE_WAITING;
    let large: Vec<_> =
        (0..=accepted).map(|_| spawn_post(&server, review_of("widgets", "busy", limits::LARGE))).collect();
    let shed = r#"portcullis_shed_total{reason="large"}"#;
    eventually("one is rejected", async || server.metric(shed).await == 1.0).await;
    server.stub.release_busy();
    let mut statuses = Vec::new();
    for large in large {
        statuses.push(within_deadline(large).await.unwrap().status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), accepted, "{statuses:?}");
}

#[tokio::test]
async fn some_rejections_keep_the_connection() {
    let server = Server::start_with(|options| {
        options.limits.in_flight = 0;
        options.limits.closes = 0;
    })
    .await;
    let mut connection = server.connect().await;
    for _ in 0..3 {
        let reply = connection.post("/validate", &review_of("widgets", "fine", MIB)).await.unwrap();
        assert_eq!((reply.status, reply.closes_connection()), (429, false));
    }
}

#[tokio::test]
async fn a_panic_about_a_large_body_fails_only_one_request() {
    let server = start_with_one_permit(9, deadline()).await;
    let mut connection = server.connect().await;
    for _ in 0..3 {
        let reply = connection.post("/validate", &review_of("widgets", "panics", MIB)).await.unwrap();
        assert_eq!(reply.status, 500);
    }
    assert_eq!(connection.post("/validate", &review_of("widgets", "fine", MIB)).await.unwrap().status, 200);
    assert_eq!(server.metric("portcullis_buffered_bytes").await, 0.0);
}

#[tokio::test]
async fn closes_slow_heads_but_not_idle_connections() {
    let server = Server::start_with(|options| options.limits.head = Duration::from_millis(200)).await;
    let (mut idle, mut fresh, mut slow) = (server.connect().await, server.connect().await, server.connect().await);
    assert_eq!(idle.post("/validate", &review("fine")).await.unwrap().status, 200);
    slow.send(b"POST /validate HTTP/1.1\r\nHost: ").await.unwrap();
    within_deadline(slow.wait_until_closed()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(idle.post("/validate", &review("fine")).await.unwrap().status, 200);
    assert_eq!(fresh.post("/validate", &review("fine")).await.unwrap().status, 200);
    assert_eq!(server.metric(r#"portcullis_bad_requests_total{class="slow_head"}"#).await, 1.0);
}

#[tokio::test]
async fn closes_trickling_heads() {
    let server = Server::start_with(|options| options.limits.head = Duration::from_millis(300)).await;
    let mut slow = server.connect().await;
    let trickle = async {
        while slow.send(b"P").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    within_deadline(trickle).await;
}

#[tokio::test]
async fn a_slow_body_is_answered_with_408() {
    let server = Server::start_with(|options| options.limits.body_arrival = Duration::from_millis(100)).await;
    let mut connection = server.connect().await;
    let head = "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    connection.send(head.as_bytes()).await.unwrap();
    let reply = within_deadline(connection.reply()).await.unwrap();
    assert_eq!((reply.status, reply.closes_connection()), (408, true));
}

#[tokio::test]
async fn closes_idle_connections_after_a_timeout() {
    let server = Server::start_with(|options| {
        options.limits.handshake = Duration::from_millis(100);
        options.limits.idle = Duration::from_millis(100);
        options.limits.head = Duration::from_millis(100);
    })
    .await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(within_deadline(silent.read(&mut [0; 1])).await.unwrap(), 0);
    within_deadline(server.connect().await.wait_until_closed()).await.unwrap();
    assert_eq!(server.metric("portcullis_failed_handshakes_total").await, 1.0);
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let server = Server::start_with(|options| options.limits.connections = 1).await;
    let first = server.connect().await;
    let second = tokio::spawn({
        let (address, config) = (server.address, Arc::new(server.client()));
        async move { Connection::open(address, config).await.unwrap().post("/validate", &review("fine")).await.unwrap() }
    });
    sleep(Duration::from_millis(200)).await;
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(within_deadline(second).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_swap_of_the_data_link_rotates_the_certificate() {
    let server = Server::start().await;
    let mut before = server.connect().await;
    let next = server.authority.leaf();
    server.mount.publish(&next.chain, &next.key);
    eventually("the new certificate is served", async || server.connect().await.leaf() != before.leaf()).await;
    assert_eq!(before.post("/validate", &review("fine")).await.unwrap().status, 200, "open connections keep working");
    assert_eq!(server.metric(r#"portcullis_certificate_reloads_total{result="loaded"}"#).await, 1.0);
    assert_eq!(server.metric(r#"portcullis_certificate_reloads_total{result="failed"}"#).await, 0.0);
    assert!(server.metric("portcullis_certificate_expiry_timestamp_seconds").await > 1.7e9);
}

#[tokio::test]
async fn an_invalid_pair_keeps_the_previous_one() {
    let server = Server::start().await;
    let before = server.connect().await.leaf();
    let (next, other) = (server.authority.leaf(), server.authority.leaf());
    let half = &next.chain[..next.chain.len() / 4];
    let failed = r#"portcullis_certificate_reloads_total{result="failed"}"#;
    for (count, chain, key) in [(1.0, half, &next.key), (2.0, &next.chain, &other.key)] {
        server.mount.publish(chain, key);
        eventually("the change is seen", async || server.metric(failed).await >= count).await;
        assert_eq!(server.connect().await.leaf(), before);
    }
    sleep(Duration::from_millis(500)).await;
    assert_eq!(server.metric(failed).await, 2.0, "each change is reported once");
    server.mount.publish(&next.chain, &next.key);
    eventually("the whole pair is served", async || server.connect().await.leaf() != before).await;
}

#[test]
fn an_invalid_pair_is_reported_with_its_file() {
    let authority = Authority::new();
    let (one, two) = (authority.leaf(), authority.leaf());
    let mount = SecretMount::new(&one);
    let problem = |chain: &str, key: &str| {
        mount.publish(chain, key);
        Certificates::from_folder(mount.path()).unwrap_err().to_string()
    };
    let file = |name: &str| mount.path().join(name).display().to_string();
    assert!(problem(&one.chain, &two.key).starts_with(&file("tls.key")));
    assert!(problem(&one.chain, "").starts_with(&file("tls.key")));
    assert!(problem(&one.chain, &one.key[..40]).starts_with(&file("tls.key")));
    assert!(problem("", &one.key).starts_with(&file("tls.crt")));
    assert!(problem(&one.chain[..200], &one.key).starts_with(&file("tls.crt")));
    fs::remove_file(mount.path().join("..data")).unwrap();
    assert!(Certificates::from_folder(mount.path()).unwrap_err().to_string().starts_with(&file("tls.crt")));
    assert!(Pair::parse(one.chain.as_bytes(), one.key.as_bytes()).is_ok());
}

#[tokio::test]
async fn reloads_from_a_plain_folder() {
    let server = Server::start().await;
    let before = server.connect().await.leaf();
    let next = server.authority.leaf();
    for (file, text) in [("tls.crt", &next.chain), ("tls.key", &next.key)] {
        fs::write(server.mount.path().join(file), text).unwrap();
    }
    eventually("the new certificate is served", async || server.connect().await.leaf() != before).await;
}

#[tokio::test]
async fn enforces_the_minimum_tls_version() {
    let default = Server::start().await;
    for version in [&TLS12, &TLS13] {
        let connection = default.connect_with(client::config(&default.authority.root, &[version])).await.unwrap();
        assert_eq!(connection.stream.get_ref().get_ref().1.protocol_version(), Some(version.version));
    }
    let strict = Server::start_with(|options| options.floor = Floor::Tls13).await;
    assert!(strict.connect_with(client::config(&strict.authority.root, &[&TLS12])).await.is_err());
    assert!(strict.connect_with(client::config(&strict.authority.root, &[&TLS13])).await.is_ok());
}

#[tokio::test]
async fn negotiates_only_http1_without_tickets() {
    let server = Server::start().await;
    let mut config = server.client();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut connection = server.connect_with(config).await.unwrap();
    connection.post("/validate", &review("fine")).await.unwrap();
    let tls = connection.stream.get_ref().get_ref().1;
    assert_eq!(tls.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(tls.tls13_tickets_received(), 0);

    let mut config = server.client();
    config.alpn_protocols = vec![b"h2".to_vec()];
    assert!(server.connect_with(config).await.is_err());
}

#[tokio::test]
async fn readiness_lists_each_condition() {
    let server = Server::start().await;
    assert_eq!(get(server.admin, "/livez").await.unwrap(), (200, "ok".to_owned()));
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!((status, &*text), (200, "[+] serving ok\n[+] webhook port ok\n"));

    let catalog = server.readiness.condition("catalog", "contexts not listed yet");
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 503);
    assert!(text.contains("[-] catalog: contexts not listed yet\n"), "{text}");
    catalog.noted(Some("an hour old".to_owned()));
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 200);
    assert!(text.contains("[+] catalog ok, but an hour old\n"), "{text}");
    catalog.met();
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 200);
    assert!(text.contains("[+] catalog ok\n"), "{text}");
}

#[tokio::test]
async fn is_not_ready_without_a_listener() {
    let server = Server::start_with(|options| options.limits.connections = 1).await;
    let _only = server.connect().await;
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 503);
    assert!(text.contains("[-] webhook port: 127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn shutdown_loses_no_requests() {
    let server = Server::start_with(|options| options.lame_duck = Duration::from_secs(1)).await;
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    assert_eq!(idle.post("/validate", &review("fine")).await.unwrap().status, 200);
    let in_flight = tokio::spawn(async move { busy.post("/validate?timeout=30s", &review("held")).await });
    server.stub.wait_until_begun(2).await;
    server.shutdown.begin();

    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 503);
    assert!(text.contains("[-] serving: shutting down"), "{text}");
    assert_eq!(get(server.admin, "/livez").await.unwrap().0, 200);
    let late = server.connect().await.post("/validate", &review("fine")).await.unwrap();
    assert_eq!(
        (late.status, late.closes_connection()),
        (200, true),
        "in the lame-duck period, requests are decided and their connections are closed"
    );

    within_deadline(server.shutdown.reached(Stage::Draining)).await;
    within_deadline(idle.wait_until_closed()).await.unwrap();
    assert!(server.connect_with(server.client()).await.is_err(), "no connection is accepted while the server drains");
    server.stub.hold_permits.add_permits(1);
    let reply = within_deadline(in_flight).await.unwrap().unwrap();
    assert_eq!((reply.status, reply.closes_connection()), (200, true));
    assert_eq!(within_deadline(server.running.finished()).await.unwrap().cut_off, 0);
}

#[tokio::test]
async fn serves_connections_during_the_lame_duck_period() {
    let server = Server::start_with(|options| options.lame_duck = Duration::from_millis(300)).await;
    let mut last = server.connect().await;
    server.shutdown.begin();
    within_deadline(server.shutdown.reached(Stage::Draining)).await;
    let reply = last.post("/validate", &review("fine")).await.unwrap();
    assert_eq!((reply.status, reply.closes_connection()), (200, true));
    assert_eq!(within_deadline(server.running.finished()).await.unwrap().cut_off, 0);
}

#[tokio::test]
async fn shutdown_is_bounded() {
    let server = Server::start_with(|options| {
        options.lame_duck = Duration::ZERO;
        options.drain = Duration::from_millis(200);
    })
    .await;
    let mut stuck = server.connect().await;
    let stuck = tokio::spawn(async move { stuck.post("/validate?timeout=30s", &review("never")).await });
    server.stub.wait_until_begun(1).await;
    server.shutdown.begin();
    assert_eq!(within_deadline(server.running.finished()).await.unwrap().cut_off, 1);
    assert!(within_deadline(stuck).await.unwrap().is_err());
}

#[tokio::test]
async fn sigterm_begins_the_shutdown() {
    let server = Server::start_with(|options| options.lame_duck = Duration::ZERO).await;
    // A signal handler of the test, so that the signal does not end the process.
    let mut terminated = signal(SignalKind::terminate()).unwrap();
    let running = tokio::spawn(server.running.until_signalled());
    tokio::task::yield_now().await;
    while server.shutdown.stage() == Stage::Serving {
        let me = std::process::id().to_string();
        std::process::Command::new("kill").args(["-TERM", &me]).status().unwrap();
        within_deadline(terminated.recv()).await;
        // The signal is repeated only if the server had not installed its handler yet. A second signal would shorten
        // the shutdown.
        let _ = timeout(Duration::from_secs(5), server.shutdown.reached(Stage::LameDuck)).await;
    }
    assert_eq!(running.await.unwrap().unwrap().cut_off, 0);
}

/// A writer that collects the log output.
#[derive(Clone, Default)]
struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a server, and runs `calls`, which sends requests to the server. Returns the log output of the server.
async fn logged_during(format: Format, calls: impl AsyncFnOnce(&Server)) -> String {
    let written = LogWriter::default();
    let (telemetry, subscriber) = Telemetry::new(format, "info", written.clone()).unwrap();
    {
        let _here = tracing::subscriber::set_default(subscriber);
        calls(&Server::start().await).await;
    }
    drop(telemetry);
    String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
}

async fn logged(format: Format) -> String {
    let calls = async |server: &Server| {
        let mut connection = server.connect().await;
        connection.post("/validate", &review("warned")).await.unwrap();
        connection.post("/validate", &review_of("gadgets", "fine", 0)).await.unwrap();
    };
    logged_during(format, calls).await
}

#[tokio::test]
async fn failed_handshakes_and_connections_are_logged_with_their_peer() {
    let peers = Mutex::new(Vec::new());
    let fail = async |server: &Server| {
        // Three clients: one does not use TLS, one does not trust the certificate, and one does not send HTTP.
        let mut plain = TcpStream::connect(server.address).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        peers.lock().unwrap().push(("TLS handshake failed", plain.local_addr().unwrap()));
        let distrusting = client::config(&Authority::new().root, &[&TLS13, &TLS12]);
        let stream = TcpStream::connect(server.address).await.unwrap();
        peers.lock().unwrap().push(("TLS handshake failed", stream.local_addr().unwrap()));
        let name = ServerName::try_from("localhost").unwrap();
        assert!(TlsConnector::from(Arc::new(distrusting)).connect(name, stream).await.is_err());
        let mut garbage = server.connect().await;
        peers.lock().unwrap().push(("connection failed", garbage.stream.get_ref().get_ref().0.local_addr().unwrap()));
        garbage.stream.write_all(b"no request\r\n\r\n").await.unwrap();
        eventually("the failures are counted", async || {
            server.metric("portcullis_failed_handshakes_total").await >= 2.0
                && server.metric("portcullis_connections").await == 0.0
        })
        .await;
    };
    let text = logged_during(Format::Json, fail).await;
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (message, peer) in peers.into_inner().unwrap() {
        let is_logged = |line: &serde_json::Value| line["message"] == message && line["peer"] == peer.to_string();
        assert!(lines.iter().any(is_logged), "{message} {peer} in {text}");
    }
}

#[tokio::test]
async fn logs_one_record_per_decision() {
    let text = logged(Format::Json).await;
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions: Vec<_> = lines.iter().filter(|line| line["target"] == "decision").collect();
    let [decision] = decisions[..] else { panic!("{text}") };
    let reported = [
        ("uid", json!("uid-of-warned")),
        ("webhook", json!("validate")),
        ("operation", json!("CREATE")),
        ("group", json!("example.org")),
        ("resource", json!("widgets")),
        ("namespace", json!("shop")),
        ("name", json!("warned")),
        ("user", json!("alice\nbob")),
        ("dry_run", json!(false)),
        ("allowed", json!(true)),
        ("rules", json!("OW001=warn")),
    ];
    for (key, value) in reported {
        assert_eq!(decision[key], value, "{key}");
    }
    assert!(decision["micros"].is_u64());
    assert!(!text.contains("swordfish"));
}

#[tokio::test]
async fn users_cannot_forge_log_records() {
    let text = logged(Format::Text).await;
    assert_eq!(text.lines().filter(|line| line.contains("decision")).count(), 1, "{text}");
    assert!(text.contains(r#"user="alice\nbob""#), "{text}");
}

#[test]
fn rejects_invalid_log_filters() {
    let error = Telemetry::new(Format::Text, "decision=loud", io::sink()).err().unwrap();
    assert!(error.to_string().contains("decision=loud"));
}

/// Starts a server that accepts only clients with a certificate from `authority` and with one of the names in `names`.
/// Returns the server, and the temporary folder that contains the CA file.
async fn start_with_clients(authority: &Authority, names: &[&str]) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    fs::write(&file, authority.root_pem()).unwrap();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let clients = Arc::new(Clients::from_file(&file, names).unwrap());
    (Server::start_with(|options| options.clients = Some(clients)).await, folder)
}

/// Sends an AdmissionReview to a server. Returns the HTTP status, or the error of the connection or of the request. In
/// TLS 1.3, a client learns only after the handshake that the server rejects its certificate, so the request fails.
async fn call(server: &Server, config: rustls::ClientConfig) -> Result<u16, String> {
    let mut connection = server.connect_with(config).await.map_err(|error| error.to_string())?;
    let reply = connection.post("/validate", &review("fine")).await.map_err(|error| error.to_string())?;
    Ok(reply.status)
}

#[tokio::test]
async fn accepts_only_listed_clients_of_the_ca() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (server, _folder) =
        start_with_clients(&ours, &["kube-apiserver", "spiffe://cluster/api", "api.example.org"]).await;
    let root = &server.authority.root;
    for leaf in [
        ours.client("kube-apiserver", &[]),
        ours.client("somebody", &["spiffe://cluster/api"]),
        ours.client("somebody", &["other.example.org", "api.example.org"]),
    ] {
        assert_eq!(call(&server, client::config_with_client_certificate(root, &leaf)).await, Ok(200));
    }
    let refused =
        call(&server, client::config_with_client_certificate(root, &ours.client("kube-apiserver2", &["x.org"]))).await;
    assert!(refused.as_ref().unwrap_err().contains("AccessDenied"), "{refused:?}");
    let refused =
        call(&server, client::config_with_client_certificate(root, &theirs.client("kube-apiserver", &[]))).await;
    assert!(refused.as_ref().unwrap_err().contains("UnknownCA"), "{refused:?}");
    let refused = call(&server, server.client()).await;
    assert!(refused.as_ref().unwrap_err().contains("CertificateRequired"), "{refused:?}");
    for reason in ["name", "authority", "no_certificate"] {
        let metric = format!(r#"portcullis_refused_clients_total{{reason="{reason}"}}"#);
        assert_eq!(server.metric(&metric).await, 1.0, "{reason}");
    }
    let (status, text) = get(server.admin, "/readyz").await.unwrap();
    assert_eq!(status, 200, "the probe of the server itself is accepted: {text}");
}

#[tokio::test]
async fn without_a_list_accepts_every_client_of_the_ca() {
    let ours = Authority::new();
    let (server, _folder) = start_with_clients(&ours, &[]).await;
    let config = client::config_with_client_certificate(&server.authority.root, &ours.client("whoever", &[]));
    assert_eq!(call(&server, config).await, Ok(200));
    assert!(call(&server, server.client()).await.is_err());
}

#[tokio::test]
async fn reloads_the_client_ca_unless_invalid() {
    let (before, after) = (Authority::new(), Authority::new());
    let (server, folder) = start_with_clients(&before, &[]).await;
    let root = server.authority.root.clone();
    let (old, new) = (before.client("a", &[]), after.client("b", &[]));
    let is_accepted = async |leaf| call(&server, client::config_with_client_certificate(&root, leaf)).await.is_ok();
    assert!(is_accepted(&old).await && !is_accepted(&new).await);

    fs::write(folder.path().join("ca.crt"), "-----BEGIN CERTIFICATE-----\nbroken").unwrap();
    let failed = r#"portcullis_client_ca_reloads_total{result="failed"}"#;
    eventually("the invalid CA is reported", async || server.metric(failed).await >= 1.0).await;
    assert!(is_accepted(&old).await, "the last valid CA stays in use");

    // An update of a mounted ConfigMap also replaces the file instead of writing to it.
    fs::write(folder.path().join("next"), before.root_pem() + &after.root_pem()).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("ca.crt")).unwrap();
    eventually("clients of both CAs are accepted", async || is_accepted(&new).await && is_accepted(&old).await).await;
}

#[test]
fn reports_an_invalid_client_ca_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let message = || Clients::from_file(&file, Vec::new()).unwrap_err().to_string();
    assert!(message().contains("cannot be read"));
    fs::write(&file, "").unwrap();
    assert!(
        message()
            .ends_with("ca.crt: contains no certificate; expected the CA that signs clients' certificates, in PEM")
    );
    fs::write(&file, "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n").unwrap();
    assert!(message().contains("contains a certificate that cannot be a CA"), "{}", message());
}
