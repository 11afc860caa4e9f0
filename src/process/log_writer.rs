//! Where log lines go: into a buffer, which a thread writes out ten times a second, or at once after a time of silence.
//!
//! A line costs its caller a copy. Where the reader of the log does not keep up, or the disk behind it is full, lines
//! are dropped and counted rather than calls held up.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
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
    /// All lines that were ever dropped.
    lost: Counter,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// Lines dropped that the log has not been told of.
    dropped: usize,
    /// Whether the thread sleeps until there is a line.
    is_idle: bool,
    closed: bool,
    ended: bool,
}

impl Outlet {
    fn state(&self) -> MutexGuard<'_, State> {
        // Lines are appended whole: a panic elsewhere leaves none half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has [`write_out`](Self::write_out) write what is left and return, and waits for that; not longer than
    /// `patience`, as whoever reads the log may do so never more.
    pub(super) fn close(&self, patience: Duration) {
        self.state().closed = true;
        self.wake.notify_all();
        // Late or not, there is no more to do.
        let _ = self.wake.wait_timeout_while(self.state(), patience, |state| !state.ended);
    }

    /// Counts the lines that are dropped.
    pub(super) fn lost(&self) -> Counter {
        self.lost.clone()
    }

    fn lose(&self, state: &mut State, lines: usize) {
        state.dropped += lines;
        self.lost.inc_by(lines as u64);
    }

    fn append(&self, line: &[u8]) {
        let mut state = self.state();
        if state.bytes.len() + line.len() > MOST {
            self.lose(&mut state, 1);
            return;
        }
        let was_full = state.bytes.len() >= FULL;
        state.bytes.extend_from_slice(line);
        if mem::take(&mut state.is_idle) || !was_full && state.bytes.len() >= FULL {
            self.wake.notify_all();
        }
    }

    /// Writes lines out until it is closed and empty.
    pub(super) fn write_out(&self, mut out: impl Write) {
        let (mut batch, mut is_idle) = (Vec::new(), true);
        loop {
            let mut state = if is_idle { self.first() } else { self.more() };
            mem::swap(&mut batch, &mut state.bytes);
            let (dropped, closed) = (mem::take(&mut state.dropped), state.closed);
            drop(state);
            let written =
                tell_dropped(&mut out, dropped).and_then(|()| out.write_all(&batch)).and_then(|()| out.flush());
            let mut state = self.state();
            if written.is_err() {
                // A part may be out. The log is told when it can be written again, and the metric shows it at once.
                state.dropped += dropped;
                self.lose(&mut state, memchr::memchr_iter(b'\n', &batch).count());
            }
            is_idle = batch.is_empty() && state.dropped == 0;
            batch.clear();
            if closed {
                state.ended = true;
                self.wake.notify_all();
                return;
            }
        }
    }

    /// Waits for a line after a silence.
    fn first(&self) -> MutexGuard<'_, State> {
        let wait = |state: &mut State| {
            state.is_idle = !state.closed && state.bytes.is_empty();
            state.is_idle
        };
        self.wake.wait_while(self.state(), wait).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lines that follow one another.
    fn more(&self) -> MutexGuard<'_, State> {
        let wait = |state: &mut State| !state.closed && state.bytes.len() < FULL;
        self.wake.wait_timeout_while(self.state(), FLUSH, wait).unwrap_or_else(PoisonError::into_inner).0
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
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

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
        outlet.close(LONG);
        assert_eq!(receiver.try_recv().unwrap(), b"last\n");
        thread.join().unwrap();
    }

    #[test]
    fn a_line_after_a_silence_does_not_wait_for_others() {
        let (outlet, receiver, thread) = running();
        for line in [b"one\n", b"two\n"] {
            let begun = Instant::now();
            while !outlet.state().is_idle {
                assert!(begun.elapsed() < LONG, "it sleeps when there is nothing to write");
                thread::yield_now();
            }
            outlet.append(line);
            assert_eq!(receiver.recv_timeout(LONG).unwrap(), line);
        }
        outlet.close(LONG);
        thread.join().unwrap();
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let outlet = Outlet::default();
        outlet.append(&vec![b'x'; MOST]);
        outlet.append(b"one too many\n");
        outlet.append(b"and another\n");
        assert_eq!(outlet.lost().get(), 2);
        outlet.close(Duration::ZERO);
        let mut out = Vec::new();
        outlet.write_out(&mut out);
        let told = b"{\"dropped_log_lines\":2}\n";
        assert_eq!((&out[..told.len()], out.len()), (&told[..], told.len() + MOST));
    }

    /// A disk that is full until somebody makes room.
    #[derive(Clone, Default)]
    struct Disk {
        has_room: Arc<AtomicBool>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !self.has_room.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_counted_and_told_of_when_there_is_room() {
        let (outlet, disk) = (Arc::new(Outlet::default()), Disk::default());
        let (writer, out) = (Arc::clone(&outlet), disk.clone());
        let thread = thread::spawn(move || writer.write_out(out));
        outlet.append(b"one\n");
        outlet.append(b"two\n");
        let begun = Instant::now();
        while outlet.lost().get() < 2 {
            assert!(begun.elapsed() < LONG);
            thread::yield_now();
        }
        disk.has_room.store(true, Ordering::SeqCst);
        outlet.append(b"three\n");
        outlet.close(LONG);
        thread.join().unwrap();
        let written = String::from_utf8(disk.written.lock().unwrap().clone()).unwrap();
        assert_eq!(written, "{\"dropped_log_lines\":2}\nthree\n");
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_reads_no_more() {
        /// Never takes anything.
        struct Stuck;
        impl Write for Stuck {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                loop {
                    thread::park();
                }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let outlet = Arc::new(Outlet::default());
        let writer = Arc::clone(&outlet);
        thread::spawn(move || writer.write_out(Stuck));
        outlet.append(b"a line\n");
        outlet.close(Duration::from_millis(300));
        let lines = MOST / 10 + 5;
        (0..lines).for_each(|_| outlet.append(b"123456789\n"));
        assert!(outlet.lost().get() > 0, "no line waits either");
    }
}
