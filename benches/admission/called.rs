//! A running server with the client connections to it, and the calls that the benchmark makes over these connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use rustls::ClientConfig;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::process::Process;
use super::support::client::{Connection, Reply};

/// Number of connections to the server. An API server keeps up to 25 connections to a webhook.
pub const CONNECTIONS: usize = 25;
/// Minimum size in bytes of the bodies that the server processes on a separate thread. If too many of these bodies wait
/// for a thread, the server rejects new ones. So the client sends large bodies one at a time.
const LARGE: usize = 128 * 1024;
/// The HTTP status of rejected requests (Too Many Requests).
const TOO_MANY_REQUESTS: u16 = 429;
/// Delay before the client repeats a rejected call. It is shorter than the delay in the `Retry-After` header, which
/// would extend a measurement by seconds.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// A request that the client sends repeatedly, and a text that every answer must contain.
pub struct Call {
    pub name: &'static str,
    /// Size of the body in bytes.
    pub size: usize,
    /// Target for the cost of the call, as a multiple of the cost of the baseline. `None` if there is no target.
    pub aim: Option<f64>,
    message: Bytes,
    expected: &'static str,
}

impl Call {
    /// Creates a call: a POST request for `path` with the given `body`. The answer must contain `expected`.
    pub fn new(name: &'static str, path: &str, body: &[u8], expected: &'static str) -> Self {
        let head = format!(
            "POST {path}?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n\
             Content-Length: {}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n\
             Accept-Encoding: gzip\r\n\r\n",
            body.len()
        );
        Self { name, size: body.len(), aim: None, message: [head.as_bytes(), body].concat().into(), expected }
    }

    pub fn aim(self, ratio: f64) -> Self {
        Self { aim: Some(ratio), ..self }
    }
}

/// A server process, and open client connections to it.
pub struct ConnectedServer {
    process: Process,
    client: Arc<ClientConfig>,
    connections: Vec<Connection>,
}

impl ConnectedServer {
    pub async fn connect(process: Process, client: &Arc<ClientConfig>) -> Self {
        let opened = (0..CONNECTIONS).map(|_| Connection::open(process.address, client.clone()));
        let connections = join_all(opened).await.into_iter().map(Result::unwrap).collect();
        Self { process, client: Arc::clone(client), connections }
    }

    /// Sends the request `call` at least `count` times, equally often on each connection.
    pub async fn post(&mut self, call: &Call, count: usize) {
        let caller = Arc::new(Caller {
            address: self.process.address,
            client: Arc::clone(&self.client),
            message: call.message.clone(),
            expected: call.expected,
            concurrency: Semaphore::new(if call.size < LARGE { CONNECTIONS } else { 1 }),
        });
        let calls_per_connection = count.div_ceil(CONNECTIONS);
        let tasks: Vec<_> = self
            .connections
            .drain(..)
            .map(|connection| tokio::spawn(Arc::clone(&caller).repeat(connection, calls_per_connection)))
            .collect();
        self.connections = join_all(tasks).await.into_iter().map(Result::unwrap).collect();
    }

    /// Sends the request `call` at least `count` times. Returns the CPU time that the server used per request, in
    /// microseconds.
    pub async fn cost(&mut self, call: &Call, count: usize) -> f64 {
        let before = self.process.cpu();
        self.post(call, count).await;
        let made = count.div_ceil(CONNECTIONS) * CONNECTIONS;
        (self.process.cpu() - before).as_secs_f64() * 1e6 / made as f64
    }

    /// Returns the resident memory of the server. `when` says when it is measured, and is stored as [`Memory::when`]
    /// for the report.
    pub fn memory(&self, when: &str) -> Memory {
        let [resident, anonymous] = ["VmRSS", "RssAnon"].map(|key| self.process.status(key));
        Memory { when: when.to_owned(), resident, anonymous }
    }
}

/// Resident memory of a server, in KiB.
pub struct Memory {
    pub when: String,
    pub resident: usize,
    pub anonymous: usize,
}

/// The data that the tasks of [`ConnectedServer::post`] share. Each task repeats the same request on its own
/// connection.
struct Caller {
    address: SocketAddr,
    client: Arc<ClientConfig>,
    message: Bytes,
    expected: &'static str,
    concurrency: Semaphore,
}

impl Caller {
    async fn repeat(self: Arc<Self>, mut connection: Connection, count: usize) -> Connection {
        let mut made = 0;
        while made < count {
            let _permit = self.concurrency.acquire().await.unwrap();
            connection.send(&self.message).await.unwrap();
            let reply = connection.reply().await.unwrap();
            if reply.status == TOO_MANY_REQUESTS {
                connection = self.wait_before_retry(connection, &reply).await;
                continue;
            }
            assert_eq!(reply.status, 200);
            // Only the first answer of each connection is searched for the expected text, so that the client uses
            // little CPU time.
            let text = if made == 0 { str::from_utf8(&reply.body).unwrap() } else { self.expected };
            assert!(text.contains(self.expected), "{text}");
            made += 1;
        }
        connection
    }

    /// Waits before a rejected call is repeated, and returns the connection for the next attempt. This is `connection`,
    /// or a new connection if `reply` says that the server closes `connection`.
    async fn wait_before_retry(&self, connection: Connection, reply: &Reply) -> Connection {
        eprintln!("rejected once: other processes kept the CPUs busy");
        sleep(RETRY_DELAY).await;
        if reply.closes_connection() {
            Connection::open(self.address, self.client.clone()).await.unwrap()
        } else {
            connection
        }
    }
}
