//! The recorder, which queues decisions and changes for the writer thread. It does not block request handlers and
//! watches.

use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use time::OffsetDateTime;

use super::Metrics;
use super::entry::{Entry, Options, RecordedDecision, Shared};
use super::reads::{DecisionInputs, INPUTS, lock};
use super::review::RequestCopy;
use super::writer::{self, Writer};
use crate::admission::{Phase, Request, Verdict};
use crate::catalog::{Catalog, Change, Coverage, Kind, Observe};

/// Maximum number of entries in the queue. It is large because all objects of a large cluster are queued within a
/// second when they are first listed. A queued change costs little memory, because it is a pointer to an object in the
/// catalog.
const MAX_ENTRIES: usize = 100_000;
/// Maximum total size of the decisions in the queue, in bytes. The queue can hold about 300 decisions of 100 KiB, or
/// about ten thousand decisions of a typical size.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A recorder of decisions and their inputs.
pub struct Recorder {
    sender: SyncSender<Entry>,
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    path: PathBuf,
}

impl Recorder {
    /// Starts recording decisions in a new file.
    ///
    /// # Errors
    ///
    /// Fails if the file or the writer thread cannot be created.
    pub fn start(options: &Options, metrics: Metrics) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(metrics));
        let (path, file) = writer::create(&options.folder)?;
        let (sender, receiver) = sync_channel(MAX_ENTRIES);
        let writer = Writer::new(file, path.clone(), options, shared.clone());
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let thread = thread.spawn(move || writer.run(&receiver))?;
        Ok(Self { sender, shared, writer: Mutex::new(Some(thread)), path })
    }

    /// Returns the path of the file with the recorded decisions.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Records `text`, the content of the configuration file that Portcullis uses from now on.
    pub fn configured(&self, text: String) {
        self.change(|change| Entry::Configuration { change, text });
    }

    /// Runs `decide`, and records the decision with the objects read from the API server and the results of checking
    /// kustomize trees. A cancelled or panicking decision is recorded too.
    pub async fn decision(
        &self,
        phase: Phase,
        request: &Request<'_>,
        decide: impl Future<Output = Verdict>,
    ) -> Verdict {
        if self.has_ended() {
            return decide.await;
        }
        let mut pending = Pending {
            recorder: self,
            phase,
            request,
            changes: self.shared.changes.load(Ordering::Acquire),
            at: OffsetDateTime::now_utc(),
            inputs: Arc::default(),
            verdict: None,
        };
        let verdict = INPUTS.scope(pending.inputs.clone(), decide).await;
        pending.verdict = Some(verdict.clone());
        verdict
    }

    /// Writes the queued entries and stops recording decisions. Blocks until this is done.
    pub fn finish(&self) {
        let Some(writer) = lock(&self.writer).take() else { return };
        // Sending fails if the writer has ended.
        if self.sender.send(Entry::End).is_ok() {
            let _ = writer.join();
        }
    }

    fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    fn change(&self, entry: impl FnOnce(u64) -> Entry) {
        if self.has_ended() {
            return;
        }
        let change = self.shared.changes.fetch_add(1, Ordering::AcqRel) + 1;
        if self.is_refused(entry(change)) {
            self.shared.lost_changes.fetch_add(1, Ordering::Relaxed);
            self.shared.metrics.dropped[0].inc();
        }
    }

    fn decided(&self, decision: RecordedDecision) {
        let bytes = decision.bytes;
        let queued = self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued + bytes > MAX_BYTES || self.is_refused(Entry::Decision(Box::new(decision))) {
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.shared.lost_decisions.fetch_add(1, Ordering::Relaxed);
            self.shared.metrics.dropped[1].inc();
        }
    }

    fn is_refused(&self, entry: Entry) -> bool {
        matches!(self.sender.try_send(entry), Err(TrySendError::Full(_)))
    }
}

impl Observe for Recorder {
    fn changed(&self, change: &Change, _: &Catalog) {
        self.change(|number| Entry::Changed { change: number, of: change.clone() });
    }

    fn covered(&self, kind: &'static Kind, coverage: Coverage) {
        self.change(|change| Entry::Coverage { change, kind, coverage });
    }
}

/// A decision in progress. The decision is recorded when this value is dropped, also after a timeout or panic.
struct Pending<'a> {
    recorder: &'a Recorder,
    phase: Phase,
    request: &'a Request<'a>,
    changes: u64,
    at: OffsetDateTime,
    inputs: Arc<Mutex<DecisionInputs>>,
    verdict: Option<Verdict>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let request = RequestCopy::of(self.request);
        let bytes = request.bytes();
        let inputs = std::mem::take(&mut *lock(&self.inputs));
        let (changes, at, phase, verdict) = (self.changes, self.at, self.phase, self.verdict.take());
        let changes_at_end = self.recorder.shared.changes.load(Ordering::Acquire);
        self.recorder.decided(RecordedDecision { changes, changes_at_end, at, phase, request, inputs, verdict, bytes });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use super::*;
    use crate::admission::{Object, Operation, Resource, User};
    use crate::process;

    /// Returns a recorder with a queue of `entries` entries that no thread reads, and the receiving end of the queue.
    fn stuck(entries: usize) -> (Recorder, Receiver<Entry>) {
        let shared = Shared::new(Metrics::register(&mut process::registry()));
        let (sender, receiver) = sync_channel(entries);
        (Recorder { sender, shared: Arc::new(shared), writer: Mutex::default(), path: PathBuf::new() }, receiver)
    }

    fn request(object: &str) -> Request<'_> {
        Request {
            uid: "u".into(),
            resource: Resource::default(),
            name: "a".into(),
            namespace: "b".into(),
            operation: Operation::Create,
            user: User::default(),
            dry_run: false,
            object: Object::raw(Some(object)),
            old_object: Object::default(),
            deadline: None,
        }
    }

    fn lost(recorder: &Recorder) -> [u64; 2] {
        [&recorder.shared.lost_changes, &recorder.shared.lost_decisions].map(|lost| lost.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts_and_holds_nobody_up() {
        let (recorder, _receiver) = stuck(2);
        recorder.configured("a".to_owned());
        for _ in 0..3 {
            recorder.decision(Phase::Validate, &request("{}"), async { Verdict::default() }).await;
        }
        recorder.configured("b".to_owned());
        assert_eq!(lost(&recorder), [1, 2]);
        assert_eq!(recorder.shared.metrics.dropped.each_ref().map(|dropped| dropped.get()), [1, 2]);
    }

    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes() {
        let (recorder, _receiver) = stuck(1000);
        let object = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_BYTES / 10));
        for _ in 0..20 {
            recorder.decision(Phase::Validate, &request(&object), async { Verdict::default() }).await;
        }
        assert_eq!(lost(&recorder), [0, 11]);
        assert!(recorder.shared.queued_bytes.load(Ordering::Relaxed) <= MAX_BYTES);
    }

    #[tokio::test]
    async fn a_decision_that_is_given_up_is_recorded_without_an_answer() {
        let (recorder, receiver) = stuck(2);
        let request = request("{}");
        drop(recorder.decision(Phase::Mutate, &request, async { Verdict::default() }));
        let mut never = Box::pin(recorder.decision(Phase::Mutate, &request, std::future::pending()));
        assert!(futures::poll!(&mut never).is_pending());
        drop(never);
        let Entry::Decision(decision) = receiver.try_recv().unwrap() else { panic!("it is a decision") };
        assert!(decision.verdict.is_none() && receiver.try_recv().is_err());
    }
}
