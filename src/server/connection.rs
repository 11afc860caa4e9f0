//! Serves one connection with TLS and HTTP/1.1, and closes the connections of slow clients after timeouts.
//!
//! hyper's own timeout for request heads also applies to idle connections. It would close connections that the API
//! server wants to reuse. The API server does not retry a request on a closed connection (C2 and C3 in
//! `docs/admission-contract.md`). So this module records the state of each connection, and each state has its own
//! timeout. The timeout is short for a request that has started and stalls, and long for an idle connection.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use rustls::Error;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::activity::{Activity, Observed, State};
use super::concurrency::stepwise;
use super::lifecycle::{Shutdown, Stage};
use super::limits::{HEAD_BYTES, Limits};
use super::metrics::{BadRequest, Metrics, RefusedClient};
use super::rejection::CLOSE;
use super::webhook::Webhook;

/// The state that all connections share.
pub(super) struct Connections {
    pub(super) acceptor: TlsAcceptor,
    /// Semaphore that limits concurrent handshakes, so that a burst of new connections does not delay existing ones.
    pub(super) handshakes: Semaphore,
    pub(super) webhook: Arc<Webhook>,
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    pub(super) metrics: Arc<Metrics>,
}

impl Connections {
    /// Serves one connection until it is closed.
    pub(super) async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        let _counted = self.metrics.connection();
        // With Nagle's algorithm, a response may wait until the client has acknowledged the previous one. If the option
        // cannot be set, only this delay remains.
        let _ = stream.set_nodelay(true);
        let handshake = stepwise(&self.handshakes, self.limits.yield_after, self.acceptor.accept(stream));
        match timeout(self.limits.handshake, handshake).await {
            Ok(Ok(stream)) => self.serve_http(stream, peer).await,
            Ok(Err(error)) => self.handshake_failed(&error, peer),
            Err(_) => {
                self.metrics.failed_handshake();
                tracing::warn!(%peer, limit = ?self.limits.handshake, "TLS handshake timed out");
            }
        }
    }

    fn handshake_failed(&self, error: &io::Error, peer: SocketAddr) {
        self.metrics.failed_handshake();
        if error.get_ref().and_then(|error| error.downcast_ref()) == Some(&Error::NoCertificatesPresented) {
            self.metrics.refused_client(RefusedClient::NoCertificate);
        }
        // TCP health checks close the connection without a handshake, which is no problem. Any other error may be due
        // to a wrong caBundle.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            tracing::debug!(%peer, %error, "TLS handshake failed");
        } else {
            tracing::warn!(%peer, %error, "TLS handshake failed");
        }
    }

    async fn serve_http(&self, stream: TlsStream<TcpStream>, peer: SocketAddr) {
        let activity = Arc::new(Activity::new());
        let io = TokioIo::new(Observed { stream, activity: Arc::clone(&activity) });
        let mut http = http1::Builder::new();
        http.max_header_size(HEAD_BYTES);
        let connection = http.serve_connection(io, self.service(Arc::clone(&activity)));
        tokio::pin!(connection);
        // The connection is pinned and polled again below, so nothing is lost when another arm wins.
        tokio::select! {
            result = connection.as_mut() => return self.ended(result, activity.state(), peer),
            state = activity.overdue(&self.limits) => return self.timed_out(state, peer),
            () = self.shutdown.reached(Stage::Draining) => {}
        }
        tokio::select! {
            result = connection.as_mut() => return self.ended(result, activity.state(), peer),
            () = activity.lull() => {}
        }
        if activity.state() == State::Idle {
            connection.as_mut().graceful_shutdown();
        }
        tokio::select! {
            result = connection => self.ended(result, activity.state(), peer),
            state = activity.overdue(&self.limits) => self.timed_out(state, peer),
        }
    }

    /// Returns an HTTP service that passes requests to the webhook. It stores in `activity` whether the connection is
    /// handling a request or sending a response. During shutdown, it adds the header `Connection: close` to responses.
    fn service(
        &self,
        activity: Arc<Activity>,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
        let webhook = Arc::clone(&self.webhook);
        let shutdown = self.shutdown.clone();
        service_fn(move |request: Request<Incoming>| {
            activity.enter(State::Work);
            let (webhook, activity, shutdown) = (Arc::clone(&webhook), Arc::clone(&activity), shutdown.clone());
            async move {
                let mut response = webhook.respond(request.map(Body::new)).await;
                activity.enter(State::Answer);
                if shutdown.stage() > Stage::Serving {
                    response.headers_mut().insert(header::CONNECTION, CLOSE);
                }
                Ok(response)
            }
        })
    }

    fn ended(&self, result: hyper::Result<()>, state: State, peer: SocketAddr) {
        let Err(error) = result else { return };
        if error.is_parse() {
            self.metrics.bad_request(BadRequest::MalformedHead);
        }
        match state {
            // A client that disconnects between requests loses no response.
            State::Idle => tracing::debug!(%peer, %error, "connection failed"),
            _ => tracing::info!(%peer, ?state, %error, "connection failed"),
        }
    }

    fn timed_out(&self, state: State, peer: SocketAddr) {
        if state == State::Head {
            self.metrics.bad_request(BadRequest::SlowHead);
        }
        match state {
            State::Idle => tracing::debug!(%peer, "closed an idle connection"),
            _ => tracing::info!(%peer, ?state, "closed a connection after a timeout"),
        }
    }
}
