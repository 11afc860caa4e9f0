//! The clock of this module, which tests control.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// The time of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock, by which certificates are valid. It may jump.
    pub wall: OffsetDateTime,
    /// The monotonic clock.
    pub steady: Duration,
}

/// A source of time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Reading + Send + Sync>);

impl Clock {
    /// Returns the system's clocks.
    pub fn system() -> Self {
        let began = Instant::now();
        Self::driven_by(move || Reading { wall: OffsetDateTime::now_utc(), steady: began.elapsed() })
    }

    /// Returns a clock that calls `read`.
    pub fn driven_by(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns the current time.
    pub fn read(&self) -> Reading {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.read())
    }
}
