//! Tracks the state of a connection, to distinguish slow clients from idle clients.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

use super::limits::Limits;

/// Minimum interval between two checks of a connection's state, so that a very short timeout does not cause a high CPU
/// load.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// Interval for checking whether a response has been sent completely. Sending a response usually takes less time than
/// this interval.
const ANSWER_TICK: Duration = Duration::from_millis(10);
/// Time for which a shutdown waits for the first request on a new connection. It is longer than most round trips take.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// The state of a connection. It determines the timeout of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The connection waits for a request.
    Idle,
    /// The connection receives the head of a request.
    Head,
    /// The server receives the request body and then makes the decision. The body and the decision have timeouts of
    /// their own.
    Work,
    /// The server sends the response.
    Answer,
}

impl State {
    fn timeout(self, limits: &Limits) -> Duration {
        match self {
            Self::Idle => limits.idle,
            Self::Head => limits.head,
            Self::Work => Duration::MAX,
            Self::Answer => limits.answer,
        }
    }
}

/// The current state of a connection, and when it began.
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    /// The state of the connection, and the time of the last change of the state. One integer contains both, so that
    /// they change atomically. The lowest two bits contain the state. The other bits contain the milliseconds from
    /// `began` to the change.
    state: AtomicU64,
    served: AtomicBool,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), state: AtomicU64::new(0), served: AtomicBool::new(false) }
    }

    pub(super) fn enter(&self, state: State) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX >> 2);
        self.state.store(millis << 2 | state as u64, Ordering::Relaxed);
        if state == State::Work {
            self.served.store(true, Ordering::Relaxed);
        }
    }

    fn now(&self) -> (State, Duration) {
        let word = self.state.load(Ordering::Relaxed);
        let state = [State::Idle, State::Head, State::Work, State::Answer][(word & 3) as usize];
        (state, self.began.elapsed().saturating_sub(Duration::from_millis(word >> 2)))
    }

    pub(super) fn state(&self) -> State {
        self.now().0
    }

    /// Waits until the connection has been in one state for longer than the timeout of that state. Returns the state.
    ///
    /// Checks the state at intervals, with one timer per connection instead of one per request. So a timeout may be
    /// late by one interval, which is a quarter of [`Limits::head`].
    pub(super) async fn overdue(&self, limits: &Limits) -> State {
        let tick = (limits.head / 4).max(SHORTEST_TICK);
        loop {
            sleep(tick).await;
            let (state, lasted) = self.now();
            if lasted > state.timeout(limits) {
                return state;
            }
        }
    }

    /// Waits during shutdown until the connection can be closed without losing a request. On a new connection, waits a
    /// second for the first request. If a response is being sent, waits until it is complete.
    pub(super) async fn lull(&self) {
        if self.served.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        } else {
            sleep(FIRST_REQUEST).await;
        }
        while self.state() == State::Answer {
            sleep(ANSWER_TICK).await;
        }
    }
}

/// A stream wrapper that keeps the state of the connection in `activity` up to date. It sets [`State::Head`] when the
/// first byte of a request arrives, and [`State::Idle`] when the last byte of a response is sent.
#[derive(Debug)]
pub(super) struct Observed<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before && self.activity.state() == State::Idle {
            self.activity.enter(State::Head);
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
        if self.activity.state() == State::Answer {
            self.activity.enter(State::Idle);
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
