//! The source of time for the CA. It uses the system's clocks, or a function with which tests control the time.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// The times of the wall clock and the monotonic clock, read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The time of the wall clock, which decides whether a certificate is valid. The wall clock may jump.
    pub wall: OffsetDateTime,
    /// The time of the monotonic clock. It counts from an arbitrary start, and never jumps.
    pub steady: Duration,
}

/// A source of the current time. Each call of [`Clock::read`] returns the times of the wall clock and the monotonic
/// clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Reading + Send + Sync>);

impl Clock {
    /// Creates a clock that reads the wall clock and the monotonic clock of the system.
    pub fn system() -> Self {
        let began = Instant::now();
        Self::driven_by(move || Reading { wall: OffsetDateTime::now_utc(), steady: began.elapsed() })
    }

    /// Creates a clock that gets its times from `read`. Tests use it to control the time.
    pub fn driven_by(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns the current times of the wall clock and the monotonic clock.
    pub fn read(&self) -> Reading {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.read())
    }
}
