//! One connection: TLS, then HTTP/1.1, with an eye on clients that are slow.
//!
//! hyper's own timeout for heads runs on idle connections too, and would close them under the API server's feet (C2,
//! C3). Here a connection says what it is doing, and each doing has its own patience: little for a request that has
//! begun and does not go on, much for a connection that is just idle.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::lifecycle::{Shutdown, Stage};
use super::limits::{HEAD_BYTES, Limits};
use super::metrics::{BadRequest, Metrics};
use super::rejection::CLOSE;

/// A connection that was made at the last moment has its first request on the way: a round trip, generously.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// What all connections have in common.
pub(super) struct Connections {
    pub(super) acceptor: TlsAcceptor,
    pub(super) router: Router,
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
        match timeout(self.limits.handshake, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.converse(stream).await,
            Ok(Err(error)) => {
                self.metrics.failed_handshake();
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
            _ = conversation.as_mut() => return,
            doing = activity.overdue(&self.limits) => return self.give_up(doing),
            () = self.shutdown.reached(Stage::Draining) => {}
        }
        tokio::select! {
            _ = conversation.as_mut() => return,
            () = activity.lull() => {}
        }
        if activity.doing() == Doing::Idle {
            conversation.as_mut().graceful_shutdown();
        }
        tokio::select! {
            _ = conversation => {}
            doing = activity.overdue(&self.limits) => self.give_up(doing),
        }
    }

    /// The router, which tells `activity` when it begins and ends, and says goodbye once the shutdown has begun.
    fn service(
        &self,
        activity: Arc<Activity>,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
        let router = TowerToHyperService::new(self.router.clone());
        let shutdown = self.shutdown.clone();
        service_fn(move |request| {
            activity.enter(Doing::Work);
            let (answered, activity, shutdown) = (router.call(request), Arc::clone(&activity), shutdown.clone());
            async move {
                let mut response = answered.await?;
                activity.enter(Doing::Answer);
                if shutdown.stage() > Stage::Serving {
                    response.headers_mut().insert(header::CONNECTION, CLOSE);
                }
                Ok(response)
            }
        })
    }

    fn give_up(&self, doing: Doing) {
        if doing == Doing::Head {
            self.metrics.bad_request(BadRequest::SlowHead);
        }
        tracing::debug!(?doing, "a connection is closed, as it does not go on");
    }
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Nothing; the client may send a request.
    Idle,
    /// Receiving the head of a request.
    Head,
    /// Receiving its body and deciding. Both have limits of their own.
    Work,
    /// Sending the answer.
    Answer,
}

impl Doing {
    fn patience(self, limits: &Limits) -> Duration {
        match self {
            Self::Idle => limits.idle,
            Self::Head => limits.head,
            Self::Work => Duration::MAX,
            Self::Answer => limits.answer,
        }
    }
}

/// What a connection is doing, and since when.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// Milliseconds since `began`, and in the last two bits the doing. One word, so that both change at once.
    state: AtomicU64,
    served: AtomicBool,
}

impl Activity {
    fn new() -> Self {
        Self { began: Instant::now(), state: AtomicU64::new(0), served: AtomicBool::new(false) }
    }

    fn enter(&self, doing: Doing) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX >> 2);
        self.state.store(millis << 2 | doing as u64, Ordering::Relaxed);
        if doing == Doing::Work {
            self.served.store(true, Ordering::Relaxed);
        }
    }

    fn now(&self) -> (Doing, Duration) {
        let state = self.state.load(Ordering::Relaxed);
        let doing = [Doing::Idle, Doing::Head, Doing::Work, Doing::Answer][(state & 3) as usize];
        (doing, self.began.elapsed().saturating_sub(Duration::from_millis(state >> 2)))
    }

    fn doing(&self) -> Doing {
        self.now().0
    }

    /// Waits until a doing has lasted longer than there is patience for it.
    ///
    /// One timer for each connection, not one for each request: that is why patience is kept to a quarter only.
    async fn overdue(&self, limits: &Limits) -> Doing {
        loop {
            sleep(limits.head / 4).await;
            let (doing, lasted) = self.now();
            if lasted > doing.patience(limits) {
                return doing;
            }
        }
    }

    /// Waits for a moment at which an idle connection may be closed: a request that has arrived is seen by then.
    async fn lull(&self) {
        if self.served.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        } else {
            sleep(FIRST_REQUEST).await;
        }
    }
}

/// A stream that tells `activity` of the first byte of a request and of the last one of an answer.
#[derive(Debug)]
struct Observed<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before && self.activity.doing() == Doing::Idle {
            self.activity.enter(Doing::Head);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if self.activity.doing() == Doing::Answer {
            self.activity.enter(Doing::Idle);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
