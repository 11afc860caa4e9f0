//! The server in three steps: [`Options`], [`Bound`], [`Running`].

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
use crate::process::{Admin, signalled};

/// Kubernetes takes a few seconds to tell every node that an endpoint is gone.
const LAME_DUCK: Duration = Duration::from_secs(5);
/// With the lame duck's five seconds, below the 30 s after which a pod is killed.
const DRAIN: Duration = Duration::from_secs(20);
/// How often a folder of certificates is looked at, besides when it tells of a change.
const CERTIFICATE_POLL: Duration = Duration::from_secs(5);
/// How long to wait when the system has no file descriptor for a new connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// How the server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the webhook listens, over TLS.
    pub address: SocketAddr,
    /// Where probes and metrics are served, in plain HTTP.
    pub admin: SocketAddr,
    /// The oldest TLS version.
    pub floor: Floor,
    /// Whose calls are taken; `None` for everybody's. The file behind it is followed.
    pub clients: Option<Arc<Clients>>,
    /// Every bound.
    pub limits: Limits,
    /// How long to go on accepting after the shutdown began, so that no new connection is refused (C5).
    pub lame_duck: Duration,
    /// How long to wait after that for the last answers.
    pub drain: Duration,
    /// Whether it only looks on: it decides and records, and lets every request go on unchanged.
    pub shadow: bool,
    /// Where spans of the calls are sent that the API server traces; `None` for nowhere.
    pub traces: Option<Traces>,
    /// How often to look whether the certificates' folder changed.
    pub certificate_poll: Duration,
}

impl Options {
    /// Options with every default, for these addresses.
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

    /// Binds both ports. From then on connections wait to be accepted.
    ///
    /// # Errors
    /// When one of the addresses cannot be had.
    pub async fn bind(self) -> Result<Bound, BindError> {
        let webhook = bind("webhook", self.address).await?;
        let admin = bind("admin", self.admin).await?;
        let (address, admin_address) = (address_of(&webhook, self.address)?, address_of(&admin, self.admin)?);
        Ok(Bound { options: self, webhook, admin, address, admin_address })
    }
}

/// A port that could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("the {port} port cannot listen on {address}: {source}")]
pub struct BindError {
    /// Which port: `webhook` or `admin`.
    pub port: &'static str,
    /// The address wanted.
    pub address: SocketAddr,
    /// Why not.
    pub source: io::Error,
}

async fn bind(port: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).await.map_err(|source| BindError { port, address, source })
}

fn address_of(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, BindError> {
    listener.local_addr().map_err(|source| BindError { port: "bound", address, source })
}

/// What the server works with.
pub struct Parts {
    /// Who decides.
    pub decide: Arc<dyn Decide>,
    /// What is shown to clients; a folder behind it is followed.
    pub certificates: Arc<Certificates>,
    /// Where the server counts.
    pub metrics: Arc<Metrics>,
    /// Everything that `/metrics` shows, the server's own metrics included.
    pub registry: Registry,
    /// What `/readyz` waits for, besides the server itself.
    pub readiness: Readiness,
}

/// A server that has its ports.
#[derive(Debug)]
pub struct Bound {
    options: Options,
    webhook: TcpListener,
    admin: TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
}

impl Bound {
    /// The webhook's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of probes and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Starts to serve, on the present tokio runtime.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn start(self, parts: Parts) -> Result<Running, rustls::Error> {
        let Self { options, webhook, admin, address, admin_address } = self;
        let Parts { decide, certificates, metrics, registry, readiness } = parts;
        let verifier = |clients: &Arc<Clients>| {
            Verifier::new(Arc::clone(clients), Arc::clone(&certificates), Arc::clone(&metrics))
        };
        let verifier = options.clients.as_ref().map(verifier);
        let config = tls::server_config_for(Arc::clone(&certificates), options.floor, verifier)?;
        metrics.decisions.shadowing(options.shadow);
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
        let mut helpers = JoinSet::new();
        if let Some(folder) = certificates.folder().map(ToOwned::to_owned) {
            let (certificates, metrics) = (Arc::clone(&certificates), Arc::clone(&metrics));
            helpers.spawn(rotation::follow(folder, certificates, metrics, options.certificate_poll));
        }
        if let Some(clients) = options.clients.clone() {
            helpers.spawn(rotation::follow_clients(clients, Arc::clone(&metrics), options.certificate_poll));
        }
        let probe = Probe::new(address, Arc::clone(&certificates));
        let report =
            ServerReport { readiness, shutdown: shutdown.clone(), probe, webhook: answering, metrics, certificates };
        helpers.spawn(Admin { report: Arc::new(report), registry }.serve(admin));
        let front = Front { listener: webhook, connections: Arc::new(connections), options, helpers };
        let task = tokio::spawn(front.run());
        Ok(Running { address, admin_address, shutdown, task })
    }
}

/// A server that serves. Dropping it lets it go on; [`Shutdown::begin`] ends it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    admin_address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<Drained>,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut off, as they were busy beyond the limit.
    pub cut_off: usize,
}

impl Running {
    /// The webhook's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of probes and metrics.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// What begins the shutdown.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Serves until the shutdown has begun and ended.
    ///
    /// # Errors
    /// When the server's task panicked.
    pub async fn finished(self) -> io::Result<Drained> {
        self.task.await.map_err(io::Error::other)
    }

    /// Serves until SIGTERM or SIGINT and through the shutdown that follows; a second signal cuts that short.
    ///
    /// # Errors
    /// When signals cannot be received, the server's task panicked, or a second signal came.
    pub async fn until_signalled(self) -> io::Result<Drained> {
        let shutdown = self.shutdown();
        let finished = self.finished();
        tokio::pin!(finished);
        // `finished` is polled in place and goes on below.
        tokio::select! {
            drained = finished.as_mut() => return drained,
            signal = signalled() => signal?,
        }
        shutdown.begin();
        tokio::select! {
            drained = finished => drained,
            signal = signalled() => {
                Err(signal.err().unwrap_or_else(|| io::Error::other("a second signal cut the shutdown short")))
            }
        }
    }
}

/// Accepts connections, and sees them off.
struct Front {
    listener: TcpListener,
    connections: Arc<Connections>,
    options: Options,
    /// Run as long as the front does; dropped, they stop.
    helpers: JoinSet<()>,
}

impl Front {
    async fn run(self) -> Drained {
        let Self { listener, connections, options, helpers } = self;
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
        // What is in the backlog has been promised a connection: closing the listener would reset it.
        for stream in backlog(listener) {
            let connections = Arc::clone(&connections);
            open.spawn(async move { connections.serve(stream).await });
        }
        shutdown.advance(Stage::Draining);
        let all_closed = async { while open.join_next().await.is_some() {} };
        // Elapsed or not, what is left is counted next.
        let _ = timeout(options.drain, all_closed).await;
        while open.try_join_next().is_some() {}
        let drained = Drained { cut_off: open.len() };
        tracing::info!(cut_off = drained.cut_off, "shut down");
        drop(helpers);
        drained
    }
}

/// The connections that the kernel has made and nobody has accepted yet; after the last one the listener is closed.
///
/// The kernel itself is asked. tokio knows only of what its driver was told of, which on a busy machine is a while ago,
/// and gives a task that has done much no further connection before others had their turn: either would look like an
/// empty backlog.
fn backlog(listener: TcpListener) -> impl Iterator<Item = TcpStream> {
    let listener = listener.into_std().inspect_err(|error| tracing::warn!(%error, "the backlog is not emptied")).ok();
    std::iter::from_fn(move || {
        loop {
            match listener.as_ref()?.accept() {
                Ok((stream, _)) => return stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)).ok(),
                // Whoever gave up before it was accepted is not the last one.
                Err(error) if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
                Err(_) => return None,
            }
        }
    })
}

/// Accepts for ever, as many connections at once as there are slots. The rest waits in the kernel.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Connections>,
    slots: &Arc<Semaphore>,
    open: &mut JoinSet<()>,
) {
    while let Ok(slot) = Arc::clone(slots).acquire_owned().await {
        let stream: TcpStream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                sleep(EXHAUSTED).await;
                continue;
            }
        };
        while open.try_join_next().is_some() {}
        let connections = Arc::clone(connections);
        open.spawn(async move {
            connections.serve(stream).await;
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
    async fn the_backlog_is_emptied_of_what_the_driver_was_not_told_of() {
        let listener = bind("webhook", "127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert!(listener.accept().now_or_never().is_none());
        let address = listener.local_addr().unwrap();
        // All without giving tokio's driver a turn, as on a machine that is busy.
        let clients: Vec<_> = (0..100).map(|_| Client::connect(address).unwrap()).collect();
        assert!(listener.accept().now_or_never().is_none(), "tokio sees none of them");
        assert_eq!(backlog(listener).count(), clients.len());
        assert!(Client::connect(address).is_err(), "and then the listener is closed");
    }
}
