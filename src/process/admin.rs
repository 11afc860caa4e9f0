//! The plain HTTP port for the kubelet and Prometheus: `/livez`, `/readyz`, `/metrics`. It is read-only, and does not
//! show objects of the cluster.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::readiness::{Readiness, State as Condition};

/// Maximum number of open connections. The kubelet and a few Prometheus servers need only a few.
const CONNECTIONS: usize = 32;
/// Timeout for receiving the head of a request. It also closes idle connections, which is safe because clients only
/// send GET requests and can retry them.
const HEAD: Duration = Duration::from_secs(10);
/// Maximum duration of a connection. Without it, a client that does not read responses could keep a connection open
/// forever.
const MAX_LIFETIME: Duration = Duration::from_secs(300);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A source of the readiness conditions and current measurements of a process.
pub trait Report: Send + Sync + 'static {
    /// Returns all readiness conditions of the process, both those that are met and those that are not met.
    fn conditions(&self) -> BoxFuture<'_, Vec<Condition>>;

    /// Updates gauges that are computed only when metrics are scraped. The default implementation does nothing.
    fn measure(&self) {}
}

impl Report for Readiness {
    fn conditions(&self) -> BoxFuture<'_, Vec<Condition>> {
        let report = self.report();
        Box::pin(async move { report })
    }
}

/// The HTTP server, without TLS, that serves `/livez`, `/readyz` and `/metrics` to the kubelet and Prometheus.
pub struct Admin {
    /// The source of the readiness conditions that `/readyz` returns.
    pub report: Arc<dyn Report>,
    /// The metrics that `/metrics` returns.
    pub registry: Registry,
}

impl Admin {
    /// Accepts and serves connections. Never returns.
    pub async fn serve(self, listener: TcpListener) {
        let router = Router::new()
            .route("/livez", get(async || "ok"))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(Arc::new(self));
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let router = router.clone();
                    tokio::spawn(async move {
                        serve_connection(stream, router).await;
                        drop(slot);
                    });
                }
                // Most likely, the process has no free file descriptor. Other connections will release some.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // An error means that the client disconnected or that the connection reached its maximum lifetime.
    let _ = timeout(MAX_LIFETIME, connection).await;
}

async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    let conditions = admin.report.conditions().await;
    let mut text = String::new();
    for condition in &conditions {
        // Writing to a string cannot fail.
        let _ = match (&condition.unmet, &condition.note) {
            (None, None) => writeln!(text, "[+] {} ok", condition.name),
            (None, Some(note)) => writeln!(text, "[+] {} ok, but {note}", condition.name),
            (Some(reason), _) => writeln!(text, "[-] {}: {reason}", condition.name),
        };
    }
    let ready = conditions.iter().all(|condition| condition.unmet.is_none());
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn metrics(State(admin): State<Arc<Admin>>) -> Response {
    admin.report.measure();
    let mut text = String::new();
    match text::encode(&mut text, &admin.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
