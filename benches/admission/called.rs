//! A server with a client's connections to it, and the calls that are made over them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::process::Process;
use super::report::Memory;
use super::support::client::Connection;

/// What an API server keeps open to a webhook.
pub const CONNECTIONS: usize = 25;
/// From here on the server decides on a thread apart, and sends away what would wait for it: such calls are made one by one.
const LARGE: usize = 128 * 1024;

/// A call that is made again and again.
pub struct Call {
    pub name: &'static str,
    /// Bytes of its body.
    pub size: usize,
    /// How many times the floor it is to cost at most.
    pub aim: Option<f64>,
    message: Bytes,
    expected: &'static str,
}

impl Call {
    /// A call with its whole HTTP message; `expected` is in the answer to it.
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

/// A server, and the connections to it.
pub struct Called {
    process: Process,
    connections: Vec<Connection>,
}

impl Called {
    pub async fn connect(process: Process, client: &Arc<ClientConfig>) -> Self {
        let opened = (0..CONNECTIONS).map(|_| Connection::open(process.address, client.clone()));
        let connections = join_all(opened).await.into_iter().map(Result::unwrap).collect();
        Self { process, connections }
    }

    /// Makes a call `count` times over all connections.
    pub async fn post(&mut self, call: &Call, count: usize) {
        let each = count.div_ceil(CONNECTIONS);
        let at_once = Arc::new(Semaphore::new(if call.size < LARGE { CONNECTIONS } else { 1 }));
        let busy = self.connections.drain(..).map(|connection| {
            let (message, expected, at_once) = (call.message.clone(), call.expected, Arc::clone(&at_once));
            tokio::spawn(async move { repeat(connection, &message, expected, each, &at_once).await })
        });
        let busy: Vec<_> = busy.collect();
        self.connections = join_all(busy).await.into_iter().map(Result::unwrap).collect();
    }

    /// The microseconds of CPU time that a call costs the server.
    pub async fn cost(&mut self, call: &Call, count: usize) -> f64 {
        let before = self.process.cpu();
        self.post(call, count).await;
        let made = count.div_ceil(CONNECTIONS) * CONNECTIONS;
        (self.process.cpu() - before).as_secs_f64() * 1e6 / made as f64
    }

    /// The resident memory of the server.
    pub fn memory(&self, when: &str) -> Memory {
        let [resident, anonymous] = ["VmRSS", "RssAnon"].map(|key| self.process.status(key));
        Memory { when: when.to_owned(), resident, anonymous }
    }
}

async fn repeat(
    mut connection: Connection,
    message: &[u8],
    expected: &str,
    count: usize,
    at_once: &Semaphore,
) -> Connection {
    for at in 0..count {
        let _turn = at_once.acquire().await.unwrap();
        connection.send(message).await.unwrap();
        let reply = connection.reply().await.unwrap();
        assert_eq!(reply.status, 200);
        // One look is enough: the client is to cost little.
        let text = if at == 0 { str::from_utf8(&reply.body).unwrap() } else { expected };
        assert!(text.contains(expected), "{text}");
    }
    connection
}
