//! A client that sends requests on a schedule of random arrivals.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::process::Process;
use super::samples::{Sample, Samples};
use super::support::client::Connection;

/// Number of API servers that the client imitates.
const API_SERVERS: usize = 3;
/// Number of connections that an API server keeps to a webhook.
const CONNECTIONS: usize = 25;
/// Time for which an API server keeps an idle connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Default timeout of a webhook in the API server.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of unanswered requests. If there are more, the benchmark fails, because the client is then too slow,
/// and the results would not describe the server.
const MAX_IN_FLIGHT: usize = 20_000;

/// A request that the client sends repeatedly.
pub struct Call {
    pub path: &'static str,
    pub body: Vec<u8>,
    /// The weight of this request if the client sends several different requests. The probability of each request is
    /// proportional to its weight.
    pub share: u64,
}

/// The precision with which the client sends requests at their scheduled times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Sends each request within microseconds of its scheduled time. To do so, the client waits in a loop that uses CPU
    /// time (busy waiting).
    Exact,
    /// Sends each request within two milliseconds of its scheduled time. Waiting uses no CPU time.
    Relaxed,
}

/// A client with the connections of three API servers to one webhook.
pub struct Client {
    pools: Vec<Arc<Pool>>,
    open: Arc<AtomicUsize>,
    schedules: AtomicU64,
}

/// The connections of one API server, opened before the measurement. The most recently used connection is used first.
///
/// If all connections are in use, a request waits for one, and the wait counts as part of its latency. The client does
/// not open more connections. It has only one processor, which would soon spend all its time on TLS handshakes.
struct Pool {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    /// Idle connections, with the time of their last use.
    idle: Mutex<Vec<(Connection, Instant)>>,
    permits: Semaphore,
}

impl Pool {
    async fn open(address: SocketAddr, config: Arc<ClientConfig>, connections: usize) -> Self {
        let mut idle = Vec::new();
        for _ in 0..connections {
            idle.push((Connection::open(address, Arc::clone(&config)).await.unwrap(), Instant::now()));
        }
        Self { address, config, idle: Mutex::new(idle), permits: Semaphore::new(connections) }
    }

    /// Sends a request, and returns the status of the answer. If the connection was closed, a background task replaces
    /// it.
    async fn post(self: &Arc<Self>, call: &Call) -> io::Result<u16> {
        let permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let idle = self.idle.lock().unwrap().pop().filter(|(_, since)| since.elapsed() < IDLE_TIMEOUT);
        let mut connection = match idle {
            Some((connection, _)) => connection,
            // Connections that failed or were idle for too long have been dropped, so a new one is opened.
            None => Connection::open(self.address, Arc::clone(&self.config)).await?,
        };
        let reply = connection.post(call.path, &call.body).await;
        if reply.as_ref().is_ok_and(|reply| !reply.closes_connection()) {
            self.idle.lock().unwrap().push((connection, Instant::now()));
        } else {
            permit.forget();
            tokio::spawn(Arc::clone(self).replace());
        }
        reply.map(|reply| reply.status)
    }

    async fn replace(self: Arc<Self>) {
        let connection = Connection::open(self.address, Arc::clone(&self.config)).await.unwrap();
        self.idle.lock().unwrap().push((connection, Instant::now()));
        self.permits.add_permits(1);
    }
}

impl Client {
    /// Creates a client that imitates three API servers. Opens as many connections for each of them as an API server
    /// keeps open to a webhook.
    pub async fn new(server: &Process, config: &ClientConfig) -> Self {
        Self::with_connections(server, config, CONNECTIONS).await
    }

    /// Creates a client that imitates three API servers. Opens `connections` connections for each of them.
    pub async fn with_connections(server: &Process, config: &ClientConfig, connections: usize) -> Self {
        let config = Arc::new(config.clone());
        let mut pools = Vec::new();
        for _ in 0..API_SERVERS {
            pools.push(Arc::new(Pool::open(server.address, Arc::clone(&config), connections).await));
        }
        Self { pools, open: Arc::default(), schedules: AtomicU64::new(1) }
    }

    /// Returns the number of responses with status 200 per second. Each of `workers` tasks sends one request after
    /// another for the duration `time`.
    pub async fn capacity(&self, call: &Call, workers: usize, time: Duration) -> f64 {
        let began = Instant::now();
        let work = (0..workers).map(|at| async move {
            let mut answers = 0;
            while began.elapsed() < time {
                answers += usize::from(self.pools[at % API_SERVERS].post(call).await.unwrap() == 200);
            }
            answers
        });
        let answers: usize = futures::future::join_all(work).await.into_iter().sum();
        answers as f64 / began.elapsed().as_secs_f64()
    }

    /// Sends requests at random times for the duration `time`. Each request is randomly chosen from `calls`. `rate` is
    /// the mean number of requests per second, and `pace` says how exactly the times are met. Returns the outcomes of
    /// the requests.
    pub async fn offer(&self, calls: &[Arc<Call>], rate: f64, time: Duration, pace: Pace) -> Samples {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut random = Random::new(self.schedules.fetch_add(1, Ordering::Relaxed));
        let (began, mut at) = (Instant::now(), Duration::ZERO);
        for number in 0.. {
            at += Duration::from_secs_f64(random.gap() / rate);
            if at > time {
                break;
            }
            wait_until(began + at, pace).await;
            let (call, pool) = (random.choose(calls), Arc::clone(&self.pools[number % API_SERVERS]));
            let (open, sender, due) = (Arc::clone(&self.open), sender.clone(), began + at);
            assert!(open.fetch_add(1, Ordering::Relaxed) < MAX_IN_FLIGHT, "the client is overwhelmed");
            tokio::spawn(async move {
                let status = timeout(WEBHOOK_TIMEOUT, pool.post(&call)).await.ok().and_then(Result::ok).unwrap_or(0);
                open.fetch_sub(1, Ordering::Relaxed);
                // This cannot fail, because the receiver exists until all senders are dropped.
                let _ = sender.send(Sample { at, took: due.elapsed(), status });
            });
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(sample) = receiver.recv().await {
            all.push(sample);
        }
        Samples { all, time }
    }
}

async fn wait_until(due: Instant, pace: Pace) {
    match pace {
        Pace::Exact => {
            while Instant::now() < due {
                yield_now().await;
            }
        }
        Pace::Relaxed => sleep(due.saturating_duration_since(Instant::now())).await,
    }
}

/// A pseudo-random number generator (xorshift) with a fixed seed, so that all runs have the same schedules.
struct Random(u64);

impl Random {
    fn new(schedule: u64) -> Self {
        Self(schedule.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns the time between two random arrivals, in seconds. The mean rate is one arrival per second.
    fn gap(&mut self) -> f64 {
        -(((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64).ln()
    }

    fn choose(&mut self, calls: &[Arc<Call>]) -> Arc<Call> {
        let mut at = self.next() % calls.iter().map(|call| call.share).sum::<u64>();
        let chosen = calls.iter().find(|call| match at.checked_sub(call.share) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        Arc::clone(chosen.unwrap())
    }
}
