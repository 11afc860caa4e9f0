//! A proxy between a controller manager and the API server. It stops at a chosen write, to simulate that the controller
//! manager is killed at this write.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::daemon::PAUSE;
use crate::deadline::deadline;
use crate::user::User;

/// The point at which the proxy stops, relative to a write that the test selects by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPoint {
    /// The proxy stops when it receives the write. The API server does not receive the write.
    Before,
    /// The proxy stops after the API server has processed the write. The client receives no response to the write.
    After,
}

/// A proxy to the API server with the rights of the controller manager. It ends when this value is dropped.
pub struct Proxy {
    state: Arc<State>,
    port: u16,
    task: JoinHandle<()>,
}

struct State {
    client: Client,
    /// The number of the write request before or after which the proxy stops, as `stop_point` says. The first write
    /// request has the number 0.
    at: usize,
    stop_point: StopPoint,
    writes: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Proxy {
    /// Starts a proxy that forwards requests to the API server until it receives write number `at`, counted from 0.
    /// Writes of Leases and Events are not counted. `stop_point` says whether the proxy still forwards this write.
    pub fn start(cluster: &Cluster, at: usize, stop_point: StopPoint) -> Self {
        let (writes, is_stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let state =
            Arc::new(State { client: cluster.client_as(User::ControllerManager), at, stop_point, writes, is_stopped });
        let (port, task) = cluster.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let port = listener.local_addr().expect("the socket is bound").port();
            (port, tokio::spawn(serve(listener, Arc::clone(&state))))
        });
        Self { state, port, task }
    }

    /// Writes a kubeconfig for the proxy, and returns the path of the file.
    pub fn kubeconfig(&self, cluster: &Cluster) -> io::Result<PathBuf> {
        let port = self.port;
        let file = cluster.folder().join(format!("proxy-{port}.kubeconfig"));
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: p, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
             contexts: [{{name: p, context: {{cluster: p, user: p}}}}]\nusers: [{{name: p, user: {{}}}}]\n\
             current-context: p\n"
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    /// Stops the proxy. Afterwards, requests get no response.
    pub fn stop(&self) {
        self.state.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Waits until the proxy has stopped, or until `done` returns true. Returns whether the proxy has stopped.
    pub fn wait_until_stopped_or(&self, done: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        loop {
            if self.state.is_stopped.load(Ordering::SeqCst) {
                return true;
            }
            if done() {
                return false;
            }
            assert!(start.elapsed() < deadline(), "timed out: the proxy did not stop, and the work is not done");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let forward = service_fn(|request| forward(request, Arc::clone(&state)));
            // An error means that the client was killed.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), forward).await;
        });
    }
}

/// Sends a request to the API server, and returns the response. After the proxy has stopped, requests get no response.
async fn forward(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Body>, Infallible> {
    let is_write = is_write(&request);
    let is_stop_point = is_write && state.writes.fetch_add(1, Ordering::SeqCst) == state.at;
    if is_stop_point && state.stop_point == StopPoint::Before {
        state.is_stopped.store(true, Ordering::SeqCst);
    }
    if state.is_stopped.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let (mut parts, body) = request.into_parts();
    parts.headers.remove("host");
    let body = body.collect().await.expect("the controller manager sends whole requests").to_bytes();
    let answer = state.client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await;
    if is_stop_point {
        state.is_stopped.store(true, Ordering::SeqCst);
        std::future::pending::<()>().await;
    }
    Ok(answer.expect("the API server answers"))
}

fn is_write<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    let is_ignored = path.contains("/leases") || path.contains("/events");
    ![Method::GET, Method::HEAD].contains(request.method()) && !is_ignored
}
