//! One connection: TLS, then HTTP/1.1, with an eye on clients that are slow.
//!
//! hyper's own timeout for heads runs on idle connections too, and would close them under the API server's feet (C2,
//! C3). Here a connection says what it is doing, and each doing has its own patience: little for a request that has
//! begun and does not go on, much for a connection that is just idle.

use std::convert::Infallible;
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

use super::activity::{Activity, Doing, Observed};
use super::lifecycle::{Shutdown, Stage};
use super::limits::{HEAD_BYTES, Limits};
use super::metrics::{BadRequest, Metrics, RefusedClient};
use super::rejection::CLOSE;
use super::turns::stepwise;
use super::webhook::Webhook;

/// What all connections have in common.
pub(super) struct Connections {
    pub(super) acceptor: TlsAcceptor,
    /// How many handshakes are computed at once: a burst of new connections does not hold up those that are there.
    pub(super) handshakes: Semaphore,
    pub(super) webhook: Arc<Webhook>,
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    pub(super) metrics: Arc<Metrics>,
}

impl Connections {
    /// Serves one connection to its end.
    pub(super) async fn serve(&self, stream: TcpStream) {
        let _counted = self.metrics.connection();
        // Without it an answer may wait for the acknowledgement of the one before. Failing to set it costs only that.
        let _ = stream.set_nodelay(true);
        let handshake = stepwise(&self.handshakes, self.limits.unread, self.acceptor.accept(stream));
        match timeout(self.limits.handshake, handshake).await {
            Ok(Ok(stream)) => self.converse(stream).await,
            Ok(Err(error)) => {
                self.metrics.failed_handshake();
                if error.get_ref().and_then(|error| error.downcast_ref()) == Some(&Error::NoCertificatesPresented) {
                    self.metrics.refused_client(RefusedClient::NoCertificate);
                }
                tracing::debug!(%error, "a TLS handshake failed");
            }
            Err(_) => self.metrics.failed_handshake(),
        }
    }

    async fn converse(&self, stream: TlsStream<TcpStream>) {
        let activity = Arc::new(Activity::new());
        let io = TokioIo::new(Observed { stream, activity: Arc::clone(&activity) });
        let mut http = http1::Builder::new();
        http.max_header_size(HEAD_BYTES);
        let conversation = http.serve_connection(io, self.service(Arc::clone(&activity)));
        tokio::pin!(conversation);
        // The conversation is polled in place: what the other arms interrupt goes on below.
        tokio::select! {
            ended = conversation.as_mut() => return self.ended(ended),
            doing = activity.overdue(&self.limits) => return self.give_up(doing),
            () = self.shutdown.reached(Stage::Draining) => {}
        }
        tokio::select! {
            ended = conversation.as_mut() => return self.ended(ended),
            () = activity.lull() => {}
        }
        if activity.doing() == Doing::Idle {
            conversation.as_mut().graceful_shutdown();
        }
        tokio::select! {
            ended = conversation => self.ended(ended),
            doing = activity.overdue(&self.limits) => self.give_up(doing),
        }
    }

    /// The webhook, which tells `activity` when it begins and ends, and says goodbye once the shutdown has begun.
    fn service(
        &self,
        activity: Arc<Activity>,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
        let webhook = Arc::clone(&self.webhook);
        let shutdown = self.shutdown.clone();
        service_fn(move |request: Request<Incoming>| {
            activity.enter(Doing::Work);
            let (webhook, activity, shutdown) = (Arc::clone(&webhook), Arc::clone(&activity), shutdown.clone());
            async move {
                let mut response = webhook.respond(request.map(Body::new)).await;
                activity.enter(Doing::Answer);
                if shutdown.stage() > Stage::Serving {
                    response.headers_mut().insert(header::CONNECTION, CLOSE);
                }
                Ok(response)
            }
        })
    }

    fn ended(&self, result: hyper::Result<()>) {
        let Err(error) = result else { return };
        if error.is_parse() {
            self.metrics.bad_request(BadRequest::MalformedHead);
        }
        tracing::debug!(%error, "a connection ended before its time");
    }

    fn give_up(&self, doing: Doing) {
        if doing == Doing::Head {
            self.metrics.bad_request(BadRequest::SlowHead);
        }
        tracing::debug!(?doing, "a connection is closed, as it does not go on");
    }
}
