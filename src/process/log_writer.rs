//! Writes log records without blocking the caller. Records are appended to a buffer. A thread writes the content of the
//! buffer to the output ten times a second. After an idle period, the thread writes the first record immediately.
//!
//! For each record, the caller only copies the text. If the reader of the log is too slow, or if the disk is full,
//! records are dropped and counted, so that the caller need not wait.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum time for which log records are collected in the buffer before they are written.
const FLUSH: Duration = Duration::from_millis(100);
/// Size of the buffered log records, in bytes, at which they are written without waiting for the flush interval.
const FULL: usize = 64 * 1024;
/// Capacity of the buffer, in bytes. It has space for about ten thousand records. The buffer fills up only if the
/// reader of the log is stuck. New records are then dropped.
const CAPACITY: usize = 4 * 1024 * 1024;

/// A buffer of log records, which a separate thread writes to the output.
#[derive(Debug, Default)]
pub(super) struct LogWriter {
    state: Mutex<State>,
    wake: Condvar,
    /// Number of all dropped log records, as a metric.
    dropped: Counter,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// Number of dropped log records that have not yet been reported in the log itself.
    unreported: usize,
    /// Whether the writer thread waits for the next record.
    is_idle: bool,
    closed: bool,
    ended: bool,
}

impl LogWriter {
    fn state(&self) -> MutexGuard<'_, State> {
        // Records are appended completely, so a poisoned lock leaves none half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the log. [`write_out`](Self::write_out) writes the remaining records and returns.
    ///
    /// Waits for `write_out` to return, but at most for `timeout`: if the reader of the log is stuck, `write_out`
    /// blocks.
    pub(super) fn close(&self, timeout: Duration) {
        self.state().closed = true;
        self.wake.notify_all();
        // After the timeout, the remaining records are lost.
        let _ = self.wake.wait_timeout_while(self.state(), timeout, |state| !state.ended);
    }

    /// Returns the counter of dropped log records.
    pub(super) fn dropped(&self) -> Counter {
        self.dropped.clone()
    }

    fn drop_records(&self, state: &mut State, count: usize) {
        state.unreported += count;
        self.dropped.inc_by(count as u64);
    }

    fn append(&self, record: &[u8]) {
        let mut state = self.state();
        if state.bytes.len() + record.len() > CAPACITY {
            self.drop_records(&mut state, 1);
            return;
        }
        let was_full = state.bytes.len() >= FULL;
        state.bytes.extend_from_slice(record);
        if mem::take(&mut state.is_idle) || !was_full && state.bytes.len() >= FULL {
            self.wake.notify_all();
        }
    }

    /// Writes buffered records to `out` until the log writer is closed and the buffer is empty.
    pub(super) fn write_out(&self, mut out: impl Write) {
        let (mut batch, mut is_idle) = (Vec::new(), true);
        loop {
            let mut state = if is_idle { self.wait_for_record() } else { self.wait_for_batch() };
            mem::swap(&mut batch, &mut state.bytes);
            let (unreported, closed) = (mem::take(&mut state.unreported), state.closed);
            drop(state);
            let written =
                report_dropped(&mut out, unreported).and_then(|()| out.write_all(&batch)).and_then(|()| out.flush());
            let mut state = self.state();
            if written.is_err() {
                // A part may have been written. The log reports the loss as soon as it is writable again. The metric
                // shows the loss at once.
                state.unreported += unreported;
                self.drop_records(&mut state, memchr::memchr_iter(b'\n', &batch).count());
            }
            is_idle = batch.is_empty() && state.unreported == 0;
            batch.clear();
            if closed {
                state.ended = true;
                self.wake.notify_all();
                return;
            }
        }
    }

    /// Waits for the first log record after an idle period. Returns the locked state of the writer.
    fn wait_for_record(&self) -> MutexGuard<'_, State> {
        let wait = |state: &mut State| {
            state.is_idle = !state.closed && state.bytes.is_empty();
            state.is_idle
        };
        self.wake.wait_while(self.state(), wait).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the buffer is full or the flush interval has passed. Returns the locked state of the writer.
    fn wait_for_batch(&self) -> MutexGuard<'_, State> {
        let wait = |state: &mut State| !state.closed && state.bytes.len() < FULL;
        self.wake.wait_timeout_while(self.state(), FLUSH, wait).unwrap_or_else(PoisonError::into_inner).0
    }
}

fn report_dropped(out: &mut impl Write, dropped: usize) -> io::Result<()> {
    if dropped == 0 { Ok(()) } else { writeln!(out, "{{\"dropped_log_lines\":{dropped}}}") }
}

/// A writer for tracing-subscriber that appends each record to the buffer.
#[derive(Debug, Clone)]
pub(super) struct Records(pub(super) Arc<LogWriter>);

impl Write for &Records {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        self.0.append(record);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Records {
    type Writer = &'a Records;

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

    const LONG: Duration = Duration::from_secs(60);

    /// A log output that sends each batch to a test through a channel.
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

    fn running() -> (Arc<LogWriter>, Receiver<Vec<u8>>, thread::JoinHandle<()>) {
        let log = Arc::new(LogWriter::default());
        let (sender, receiver) = channel();
        let writer = Arc::clone(&log);
        (log, receiver, thread::spawn(move || writer.write_out(Pipe(sender))))
    }

    #[test]
    fn writes_records_periodically_and_the_last_ones_on_close() {
        let (log, receiver, thread) = running();
        log.append(b"first\n");
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), b"first\n");
        log.append(b"last\n");
        log.close(LONG);
        assert_eq!(receiver.try_recv().unwrap(), b"last\n");
        thread.join().unwrap();
    }

    #[test]
    fn writes_a_record_after_an_idle_period_at_once() {
        let (log, receiver, thread) = running();
        for line in [b"one\n", b"two\n"] {
            let begun = Instant::now();
            while !log.state().is_idle {
                assert!(begun.elapsed() < LONG, "the thread never became idle");
                thread::yield_now();
            }
            log.append(line);
            assert_eq!(receiver.recv_timeout(LONG).unwrap(), line);
        }
        log.close(LONG);
        thread.join().unwrap();
    }

    #[test]
    fn counts_records_that_do_not_fit() {
        let log = LogWriter::default();
        log.append(&vec![b'x'; CAPACITY]);
        log.append(b"one too many\n");
        log.append(b"and another\n");
        assert_eq!(log.dropped().get(), 2);
        log.close(Duration::ZERO);
        let mut out = Vec::new();
        log.write_out(&mut out);
        let report = b"{\"dropped_log_lines\":2}\n";
        assert_eq!((&out[..report.len()], out.len()), (&report[..], report.len() + CAPACITY));
    }

    /// A disk that is full until `has_room` is set.
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
    fn counts_records_lost_to_a_full_disk_and_reports_them_later() {
        let (log, disk) = (Arc::new(LogWriter::default()), Disk::default());
        let (writer, out) = (Arc::clone(&log), disk.clone());
        let thread = thread::spawn(move || writer.write_out(out));
        log.append(b"one\n");
        log.append(b"two\n");
        let begun = Instant::now();
        while log.dropped().get() < 2 {
            assert!(begun.elapsed() < LONG);
            thread::yield_now();
        }
        disk.has_room.store(true, Ordering::SeqCst);
        log.append(b"three\n");
        log.close(LONG);
        thread.join().unwrap();
        let written = String::from_utf8(disk.written.lock().unwrap().clone()).unwrap();
        assert_eq!(written, "{\"dropped_log_lines\":2}\nthree\n");
    }

    #[test]
    fn close_does_not_wait_for_a_stuck_reader() {
        /// An output whose writes block forever.
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
        let log = Arc::new(LogWriter::default());
        let writer = Arc::clone(&log);
        thread::spawn(move || writer.write_out(Stuck));
        log.append(b"a line\n");
        log.close(Duration::from_millis(300));
        let lines = CAPACITY / 10 + 5;
        (0..lines).for_each(|_| log.append(b"123456789\n"));
        assert!(log.dropped().get() > 0, "appending does not block either");
    }
}
