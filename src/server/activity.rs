//! What a connection is doing, for telling a slow client from an idle one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::limits::Limits;

/// However short the patience, looking must not become all that is done.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// An answer on its way takes less than this.
const ANSWER_TICK: Duration = Duration::from_millis(10);
/// A connection that was made at the last moment has its first request on the way: a round trip, generously.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
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
pub(super) struct Activity {
    began: Instant,
    /// Milliseconds since `began`, and in the last two bits the doing. One word, so that both change at once.
    state: AtomicU64,
    served: AtomicBool,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), state: AtomicU64::new(0), served: AtomicBool::new(false) }
    }

    pub(super) fn enter(&self, doing: Doing) {
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

    pub(super) fn doing(&self) -> Doing {
        self.now().0
    }

    /// Waits until a doing has lasted longer than there is patience for it.
    ///
    /// One timer for each connection, not one for each request: that is why patience is kept to a quarter only.
    pub(super) async fn overdue(&self, limits: &Limits) -> Doing {
        let tick = (limits.head / 4).max(SHORTEST_TICK);
        loop {
            sleep(tick).await;
            let (doing, lasted) = self.now();
            if lasted > doing.patience(limits) {
                return doing;
            }
        }
    }

    /// Waits for a moment at which an idle connection may be closed: a request that has arrived is seen by then, and an
    /// answer that was begun without a goodbye is out.
    pub(super) async fn lull(&self) {
        if self.served.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        } else {
            sleep(FIRST_REQUEST).await;
        }
        while self.doing() == Doing::Answer {
            sleep(ANSWER_TICK).await;
        }
    }
}

/// A stream that tells `activity` of the first byte of a request and of the last one of an answer.
#[derive(Debug)]
pub(super) struct Observed<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<Activity>,
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
