//! Where log lines go: into a buffer, which a thread writes out ten times a second.
//!
//! A line costs its caller a copy. Where the reader of the log does not keep up, lines are dropped and counted rather
//! than calls held up.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How late a line may be.
const FLUSH: Duration = Duration::from_millis(100);
/// A buffer this full is written out at once.
const FULL: usize = 64 * 1024;
/// Ten thousand lines or so: beyond it the log's reader is stuck, and lines are dropped.
const MOST: usize = 4 * 1024 * 1024;

/// Lines on their way out.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    dropped: usize,
    closed: bool,
}

impl Outlet {
    fn state(&self) -> MutexGuard<'_, State> {
        // Lines are appended whole: a panic elsewhere leaves none half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has [`write_out`](Self::write_out) write what is left and return.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    fn append(&self, line: &[u8]) {
        let mut state = self.state();
        if state.bytes.len() + line.len() > MOST {
            state.dropped += 1;
            return;
        }
        let was_full = state.bytes.len() >= FULL;
        state.bytes.extend_from_slice(line);
        if !was_full && state.bytes.len() >= FULL {
            self.wake.notify_one();
        }
    }

    /// Writes lines out until it is closed and empty.
    pub(super) fn write_out(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        loop {
            let wait = |state: &mut State| !state.closed && state.bytes.len() < FULL;
            let waited = self.wake.wait_timeout_while(self.state(), FLUSH, wait);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            mem::swap(&mut batch, &mut state.bytes);
            let (dropped, closed) = (mem::take(&mut state.dropped), state.closed);
            drop(state);
            // There is nowhere to tell of a log that cannot be written.
            let _ = out.write_all(&batch).and_then(|()| tell_dropped(&mut out, dropped)).and_then(|()| out.flush());
            batch.clear();
            if closed {
                return;
            }
        }
    }
}

fn tell_dropped(out: &mut impl Write, dropped: usize) -> io::Result<()> {
    if dropped == 0 { Ok(()) } else { writeln!(out, "{{\"dropped_log_lines\":{dropped}}}") }
}

/// Hands each line to the buffer.
#[derive(Debug, Clone)]
pub(super) struct Lines(pub(super) Arc<Outlet>);

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    /// A log whose reader takes a batch when it likes.
    struct Pipe(Sender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_owned()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn running() -> (Arc<Outlet>, Receiver<Vec<u8>>, thread::JoinHandle<()>) {
        let outlet = Arc::new(Outlet::default());
        let (sender, receiver) = channel();
        let writer = Arc::clone(&outlet);
        (outlet, receiver, thread::spawn(move || writer.write_out(Pipe(sender))))
    }

    #[test]
    fn lines_come_out_by_themselves_and_the_last_ones_at_the_end() {
        let (outlet, receiver, thread) = running();
        outlet.append(b"first\n");
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap(), b"first\n");
        outlet.append(b"last\n");
        outlet.close();
        thread.join().unwrap();
        assert_eq!(receiver.recv().unwrap(), b"last\n");
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let outlet = Outlet::default();
        outlet.append(&vec![b'x'; MOST]);
        outlet.append(b"one too many\n");
        outlet.append(b"and another\n");
        outlet.close();
        let mut out = Vec::new();
        outlet.write_out(&mut out);
        assert_eq!(&out[MOST..], b"{\"dropped_log_lines\":2}\n");
    }
}
