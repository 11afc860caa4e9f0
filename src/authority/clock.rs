//! The one source of time in this room, which tests drive.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// What clocks say at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The time of day: what certificates are valid by. May jump.
    pub wall: OffsetDateTime,
    /// How long a clock has run that never jumps.
    pub steady: Duration,
}

/// Where readings come from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Reading + Send + Sync>);

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        let began = Instant::now();
        Self::driven_by(move || Reading { wall: OffsetDateTime::now_utc(), steady: began.elapsed() })
    }

    /// Clocks that say what `read` says.
    pub fn driven_by(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// What they say now.
    pub fn read(&self) -> Reading {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.read())
    }
}
