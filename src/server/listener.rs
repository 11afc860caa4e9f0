//! Starts the server in three steps. Each step is a type: [`Options`], [`Bound`], [`Running`].

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::clients::Verifier;
use super::connection::Connections;
use super::lifecycle::{Shutdown, Stage};
use super::probe::Probe;
use super::report::ServerReport;
use super::webhook::Webhook;
use super::{Certificates, Clients, Decide, Floor, Limits, Metrics, Readiness, Traces, limits, rotation, tls};
use crate::process::{Admin, listen, signalled};

/// Default duration of the lame-duck period, in which a terminating server still accepts connections. Kubernetes takes
/// a few seconds to remove an endpoint on every node.
const LAME_DUCK: Duration = Duration::from_secs(5);
/// Default maximum time to wait at shutdown for open connections to end. Together with the lame-duck period, this is
/// less than the 30 s after which a pod is killed.
const DRAIN: Duration = Duration::from_secs(20);
/// Interval at which the certificates' folder is polled, in addition to file notifications.
const CERTIFICATE_POLL: Duration = Duration::from_secs(5);
/// Pause after an error of `accept`, such as running out of file descriptors.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the webhook port (HTTPS).
    pub address: SocketAddr,
    /// The address of health probes and metrics (plain HTTP).
    pub admin: SocketAddr,
    /// The minimum TLS version.
    pub floor: Floor,
    /// The verifier of client certificates; `None` if none are required. The server reloads the CA file when it
    /// changes.
    pub clients: Option<Arc<Clients>>,
    /// The limits of sizes, times and concurrency.
    pub limits: Limits,
    /// Duration of the lame-duck period, the first stage of the shutdown. During this period, the server is not ready,
    /// but still accepts connections. This is needed because the API server still calls a terminating pod.
    pub lame_duck: Duration,
    /// Maximum time to wait for open connections to end, after the lame-duck period.
    pub drain: Duration,
    /// Shadow mode: decisions are recorded, and every request is admitted unchanged.
    pub shadow: bool,
    /// Exporter of spans for calls whose trace the API server samples; `None` disables spans.
    pub traces: Option<Traces>,
    /// Interval at which the certificates' folder is polled.
    pub certificate_poll: Duration,
}

impl Options {
    /// Returns the default options, with `address` for the webhook port and `admin` for health probes and metrics.
    pub fn new(address: SocketAddr, admin: SocketAddr) -> Self {
        Self {
            address,
            admin,
            floor: Floor::default(),
            clients: None,
            limits: Limits::default(),
            lame_duck: LAME_DUCK,
            drain: DRAIN,
            shadow: false,
            traces: None,
            certificate_poll: CERTIFICATE_POLL,
        }
    }

    /// Binds both ports. Until the server starts, new connections wait in the backlog.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub async fn bind(self) -> Result<Bound, BindError> {
        let webhook = bind("webhook", self.address).await?;
        let admin = bind("admin", self.admin).await?;
        let (address, admin_address) = (address_of(&webhook, self.address)?, address_of(&admin, self.admin)?);
        Ok(Bound { options: self, webhook, admin, address, admin_address })
    }
}

/// An error from binding a port.
#[derive(Debug, thiserror::Error)]
#[error("the {port} port cannot listen on {address}: {source}")]
pub struct BindError {
    /// The name of the port: `webhook` or `admin`.
    pub port: &'static str,
    /// The address to bind.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub source: io::Error,
}

async fn bind(port: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    listen(address).await.map_err(|source| BindError { port, address, source })
}

fn address_of(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, BindError> {
    listener.local_addr().map_err(|source| BindError { port: "bound", address, source })
}

/// The dependencies of the server, which the caller creates.
pub struct Parts {
    /// The decision logic: it decides about each admission request. The server itself contains no rules.
    pub decide: Arc<dyn Decide>,
    /// The serving certificate. If the certificate comes from files in a folder, the server reloads it when the files
    /// change.
    pub certificates: Arc<Certificates>,
    /// The server's metrics.
    pub metrics: Arc<Metrics>,
    /// All metrics that `/metrics` exposes, including the server's own.
    pub registry: Registry,
    /// The readiness conditions of the process, such as `catalog`. `/readyz` checks them in addition to the conditions
    /// of the server itself.
    pub readiness: Readiness,
}

/// A server whose ports are bound, but which does not serve yet.
#[derive(Debug)]
pub struct Bound {
    options: Options,
    webhook: TcpListener,
    admin: TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
}

impl Bound {
    /// Returns the address of the webhook port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of health probes and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Starts to serve on the current tokio runtime.
    ///
    /// # Errors
    /// If TLS cannot be configured.
    pub fn start(self, parts: Parts) -> Result<Running, rustls::Error> {
        let Self { options, webhook, admin, address, admin_address } = self;
        let Parts { decide, certificates, metrics, registry, readiness } = parts;
        let verifier = |clients: &Arc<Clients>| {
            Verifier::new(Arc::clone(clients), Arc::clone(&certificates), Arc::clone(&metrics))
        };
        let verifier = options.clients.as_ref().map(verifier);
        let config = tls::server_config_for(Arc::clone(&certificates), options.floor, verifier)?;
        metrics.decisions.set_shadow(options.shadow);
        let shutdown = Shutdown::new();
        let answering = Webhook::new(decide, options.limits.clone(), options.shadow, Arc::clone(&metrics));
        let answering = Arc::new(answering.traced(options.traces.clone()));
        let connections = Connections {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handshakes: limits::semaphore(options.limits.deciding.max(1)),
            webhook: Arc::clone(&answering),
            limits: options.limits.clone(),
            shutdown: shutdown.clone(),
            metrics: Arc::clone(&metrics),
        };
        let mut background = JoinSet::new();
        if let Some(folder) = certificates.folder().map(ToOwned::to_owned) {
            let (certificates, metrics) = (Arc::clone(&certificates), Arc::clone(&metrics));
            background.spawn(rotation::watch_certificate(folder, certificates, metrics, options.certificate_poll));
        }
        if let Some(clients) = options.clients.clone() {
            background.spawn(rotation::watch_clients(clients, Arc::clone(&metrics), options.certificate_poll));
        }
        let probe = Probe::new(address, Arc::clone(&certificates));
        let report =
            ServerReport { readiness, shutdown: shutdown.clone(), probe, webhook: answering, metrics, certificates };
        background.spawn(Admin { report: Arc::new(report), registry }.serve(admin));
        let acceptor = Acceptor { listener: webhook, connections: Arc::new(connections), options, background };
        let task = tokio::spawn(acceptor.run());
        Ok(Running { address, admin_address, shutdown, task })
    }
}

/// A running server. Dropping this handle does not stop the server. [`Shutdown::begin`] stops it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    admin_address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<Drained>,
}

/// The outcome of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Number of connections that were closed while busy, because the drain period ended.
    pub cut_off: usize,
}

impl Running {
    /// Returns the address of the webhook port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of health probes and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Returns a handle that begins the shutdown.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Waits until the server has shut down.
    ///
    /// # Errors
    /// If the server's task panicked.
    pub async fn finished(self) -> io::Result<Drained> {
        self.task.await.map_err(io::Error::other)
    }

    /// Serves until SIGTERM or SIGINT, then shuts down. If a second signal arrives, returns an error at once instead of
    /// waiting for open connections.
    ///
    /// # Errors
    /// If signals cannot be received, the server's task panicked, or a second signal arrived.
    pub async fn until_signalled(self) -> io::Result<Drained> {
        let shutdown = self.shutdown();
        let finished = self.finished();
        tokio::pin!(finished);
        // `finished` is pinned and polled again below, so nothing is lost when the other arm wins.
        tokio::select! {
            drained = finished.as_mut() => return drained,
            signal = signalled() => signal?,
        }
        shutdown.begin();
        tokio::select! {
            drained = finished => drained,
            signal = signalled() => {
                Err(signal.err().unwrap_or_else(|| io::Error::other("a second signal interrupted the shutdown")))
            }
        }
    }
}

/// The task that accepts connections, and drains them at shutdown.
struct Acceptor {
    listener: TcpListener,
    connections: Arc<Connections>,
    options: Options,
    /// Background tasks, which stop when the set is dropped.
    background: JoinSet<()>,
}

impl Acceptor {
    async fn run(self) -> Drained {
        let Self { listener, connections, options, background } = self;
        let slots = Arc::new(limits::semaphore(options.limits.connections));
        let shutdown = connections.shutdown.clone();
        let mut open = JoinSet::new();
        let ending = async {
            shutdown.reached(Stage::LameDuck).await;
            tracing::info!(lame_duck = ?options.lame_duck, "shutting down: not ready, still serving");
            sleep(options.lame_duck).await;
        };
        // Accepting is cancellation safe: a connection is either spawned or still in the backlog.
        tokio::select! {
            () = accept(&listener, &connections, &slots, &mut open) => {}
            () = ending => {}
        }
        // Clients in the backlog are already connected: closing the listener would reset their connections.
        for (stream, peer) in backlog(listener) {
            let connections = Arc::clone(&connections);
            open.spawn(async move { connections.serve(stream, peer).await });
        }
        shutdown.advance(Stage::Draining);
        let all_closed = async { while open.join_next().await.is_some() {} };
        // A timeout needs no handling: the connections that remain after it are counted below.
        let _ = timeout(options.drain, all_closed).await;
        while open.try_join_next().is_some() {}
        let drained = Drained { cut_off: open.len() };
        tracing::info!(cut_off = drained.cut_off, "shut down");
        drop(background);
        drained
    }
}

/// Accepts the remaining connections in the kernel's backlog, and closes the listener after the last one.
///
/// Calls `accept` of the operating system directly, because tokio can wrongly report an empty backlog. tokio may not
/// have polled its driver recently, or its cooperative budget may withhold connections.
fn backlog(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std().inspect_err(|error| tracing::warn!(%error, "cannot drain the backlog")).ok();
    std::iter::from_fn(move || {
        loop {
            match listener.as_ref()?.accept() {
                Ok((stream, peer)) => {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)).ok()?;
                    return Some((stream, peer));
                }
                // A client that disconnected before it was accepted; other clients may follow.
                Err(error) if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
                Err(_) => return None,
            }
        }
    })
}

/// Accepts connections forever. Each open connection holds a permit of `slots`. Without a free permit, further
/// connections wait in the kernel's backlog.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
    slots: &Arc<Semaphore>,
    open: &mut JoinSet<()>,
) {
    while let Ok(slot) = Arc::clone(slots).acquire_owned().await {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(EXHAUSTED).await;
                continue;
            }
        };
        while open.try_join_next().is_some() {}
        let connections = Arc::clone(connections);
        open.spawn(async move {
            connections.serve(stream, peer).await;
            drop(slot);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream as Client;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn drains_connections_that_tokio_has_not_seen() {
        let listener = bind("webhook", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert!(listener.accept().now_or_never().is_none());
        let address = listener.local_addr().unwrap();
        // Connects without polling tokio's driver, as on a busy machine.
        let clients: Vec<_> = (0..100).map(|_| Client::connect(address).unwrap()).collect();
        assert!(listener.accept().now_or_never().is_none(), "tokio sees none of them");
        assert_eq!(backlog(listener).count(), clients.len());
        assert!(Client::connect(address).is_err(), "and then the listener is closed");
    }
}
