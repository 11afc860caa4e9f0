//! Records the objects that a decision reads from the API server, and the results of its checks of kustomize trees. In
//! a replay, returns the recorded objects and results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::FutureExt as _;
use serde_json::Value;

use super::line::{self, LiveRead, Tree, TreeFinding, TreeOutcome};
use super::redact;
use crate::admission::field::Segment;
use crate::admission::{FieldPath, Level, json};
use crate::catalog::{LiveReader, LiveReading, Reference};
use crate::kustomize::delivery::{Artifact, Content, Judge, Judged, Judging, Outcome, Root};
use crate::kustomize::finding::{self, InTree};
use crate::kustomize::identity::ObjectId;
use crate::kustomize::tree::TreePath;
use crate::yaml::Place;

/// The inputs of one decision: the objects that it read from the API server, and the results of its checks of kustomize
/// trees.
#[derive(Debug, Default)]
pub(super) struct DecisionInputs {
    pub(super) reads: Vec<(Reference, Result<Option<String>, String>)>,
    pub(super) trees: Vec<Tree>,
}

tokio::task_local! {
    /// The inputs of the decision in progress on the current task: the objects that it read from the API server, and
    /// the results of its checks of kustomize trees.
    pub(super) static INPUTS: Arc<Mutex<DecisionInputs>>;
}

/// Locks a mutex. Returns the data even if a thread panicked while it held the lock. The data is consistent even then.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(note: impl FnOnce(&mut DecisionInputs)) {
    // Outside of a recorded decision, there is nothing to add the input to.
    let _ = INPUTS.try_with(|inputs| note(&mut lock(inputs)));
}

/// A reader of objects from the API server that also records each result. The recording stores the results together
/// with the decision for which the objects were read.
pub struct RecordedReads<C>(
    /// The reader that reads the objects from the API server.
    pub C,
);

impl<C: LiveReader> LiveReader for RecordedReads<C> {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        Box::pin(async move {
            let mut pending = Read { reference, answer: Err("the API server did not answer in time".to_owned()) };
            let answer = self.0.read(reference).await;
            pending.answer = answer.clone();
            answer
        })
    }
}

/// A read from the API server that is in progress. When this value is dropped, the read is recorded, even if the caller
/// has stopped waiting for it.
struct Read<'a> {
    reference: &'a Reference,
    answer: Result<Option<String>, String>,
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        let answer = std::mem::replace(&mut self.answer, Ok(None));
        note(|inputs| inputs.reads.push((self.reference.clone(), answer)));
    }
}

impl LiveRead {
    /// Converts a read from the API server to its recorded form, without credentials.
    pub(super) fn of(reference: &Reference, answer: Result<Option<String>, String>) -> Self {
        let parse = |text: String| json::parse(&text).map_err(|error| error.to_string());
        let (mut object, error) = match answer.and_then(|text| text.map(parse).transpose()) {
            Ok(object) => (object, None),
            Err(error) => (None, Some(error)),
        };
        if let Some(object) = &mut object {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            redact::redact(object);
        }
        let (namespace, name) = (reference.namespace.clone(), reference.name.clone());
        Self { kind: line::kind_name(reference.kind), namespace, name, object, error }
    }
}

/// A wrapper around a checker of kustomize trees that also records each result. The recording stores the result with
/// the admission decision for which the tree was checked.
pub struct RecordedTrees(
    /// The wrapped service, which checks kustomize trees.
    pub Arc<dyn Judge>,
);

impl Judge for RecordedTrees {
    fn judge<'a>(&'a self, root: &'a Root, hosts: &'a [String], last: Instant) -> Judging<'a> {
        async move {
            let outcome = self.0.judge(root, hosts, last).await;
            note(|inputs| inputs.trees.push(Tree { root: named(root), outcome: recorded(&outcome) }));
            outcome
        }
        .boxed()
    }

    fn fetch_ahead(&self, artifact: &Artifact, hosts: &[String]) {
        self.0.fetch_ahead(artifact, hosts);
    }
}

/// Returns a string that identifies a kustomize tree among the trees that are checked for one admission request. A
/// replay finds the recorded result of the tree by this string, which is in the field [`Tree::root`].
fn named(root: &Root) -> String {
    let content = match &root.content {
        Content::Artifact(artifact) => artifact.digest.as_str(),
        Content::Carried(_) => "carried",
    };
    let of = root.of.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{} {content} {:?} {of}", root.field, root.at)
}

fn recorded(outcome: &Outcome) -> TreeOutcome {
    match outcome {
        Outcome::Judged(judged) => TreeOutcome::Judged {
            findings: judged.findings.iter().map(TreeFinding::of).collect(),
            left_out: judged.left_out,
            rendered: judged.rendered.as_ref().map(|ids| ids.iter().map(ObjectId::to_entry).collect()),
        },
        Outcome::Unknown(why) => TreeOutcome::Unknown(why.clone()),
        Outcome::Unasked => TreeOutcome::Unasked,
    }
}

impl TreeFinding {
    fn of(finding: &finding::TreeFinding) -> Self {
        let location = &finding.location;
        let field = finding.field.segments().iter().map(|segment| match segment {
            Segment::Key(key) => Value::from(key.as_str()),
            Segment::Index(index) => Value::from(*index),
        });
        Self {
            rule: finding.rule.to_owned(),
            level: finding.level,
            file: location.file.as_str().to_owned(),
            line: location.place.line,
            column: location.place.column,
            field: field.collect(),
            message: finding.message.clone(),
            found: finding.found.clone(),
            allowed: finding.allowed.clone(),
            help: finding.help.clone(),
        }
    }

    /// Converts a recorded finding back to a finding of the rule with the id `rule`.
    fn replayed(&self, rule: &'static str) -> finding::TreeFinding {
        let place = Place { line: self.line, column: self.column, start: 0, end: 0 };
        let field = self.field.iter().fold(FieldPath::root(), |path, step| match step.as_u64() {
            Some(index) => path.index(usize::try_from(index).unwrap_or(usize::MAX)),
            None => path.key(step.as_str().unwrap_or_default()),
        });
        let (file, refused) = (TreePath::from(self.file.as_str()), self.level == Level::Deny);
        let location = InTree { file, place, refused, first: false, fix: None };
        let finding = finding::TreeFinding::located(rule, self.level, field, self.message.clone(), location);
        let Self { found, allowed, help, .. } = self.clone();
        finding::TreeFinding { found, allowed, help, ..finding }
    }
}

/// A reader that returns objects from the recording instead of the API server. If the recording does not contain the
/// object that is read, the reader returns the object from the catalog.
#[derive(Default)]
pub(super) struct ReplayedReads {
    answers: Mutex<HashMap<(String, String, String), LiveRead>>,
    catalog: std::sync::OnceLock<std::sync::Weak<crate::catalog::Catalog>>,
}

impl ReplayedReads {
    pub(super) fn over(&self, catalog: &Arc<crate::catalog::Catalog>) {
        // The catalog is set only once, so this cannot fail.
        let _ = self.catalog.set(Arc::downgrade(catalog));
    }

    /// Sets the objects that this reader returns while the next admission decision is replayed. `reads` contains the
    /// objects that the API server returned when this decision was recorded.
    pub(super) fn answer(&self, reads: &[LiveRead]) {
        let key = |read: &LiveRead| (read.kind.clone(), read.namespace.clone(), read.name.clone());
        *lock(&self.answers) = reads.iter().map(|read| (key(read), read.clone())).collect();
    }
}

impl LiveReader for ReplayedReads {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        let Reference { kind, namespace, name } = reference;
        let read = lock(&self.answers).get(&(line::kind_name(kind), namespace.clone(), name.clone())).cloned();
        let answer = match read {
            Some(LiveRead { error: Some(error), .. }) => Err(error),
            Some(LiveRead { object, .. }) => Ok(object.map(|object| object.to_string())),
            None => {
                let catalog = self.catalog.get().and_then(std::sync::Weak::upgrade);
                let found = catalog.and_then(|catalog| catalog.find(kind, namespace, name));
                Ok(found.map(|stored| stored.value().to_string()))
            }
        };
        Box::pin(std::future::ready(answer))
    }
}

/// An implementation of the trait `Judge` for replays. It returns the recorded results for kustomize trees instead of
/// checking the trees.
pub(super) struct ReplayedTrees {
    trees: Mutex<Vec<Tree>>,
    rules: Vec<&'static str>,
}

impl ReplayedTrees {
    pub(super) fn new(rules: Vec<&'static str>) -> Self {
        Self { trees: Mutex::default(), rules }
    }

    /// Replaces the recorded results that [`Judge::judge`] returns. Must be called before an admission decision is
    /// replayed. `trees` contains the results that were recorded with this decision.
    pub(super) fn answer(&self, trees: &[Tree]) {
        *lock(&self.trees) = trees.to_vec();
    }

    fn outcome(&self, recorded: &TreeOutcome) -> Outcome {
        match recorded {
            TreeOutcome::Judged { findings, left_out, rendered } => {
                // Findings of rules that no longer exist are dropped.
                let rule = |finding: &TreeFinding| self.rules.iter().find(|id| **id == finding.rule).copied();
                let findings = findings.iter().filter_map(|finding| Some(finding.replayed(rule(finding)?)));
                let (findings, left_out) = (findings.collect(), *left_out);
                let rendered = rendered.as_ref().map(|ids| ids.iter().filter_map(|id| ObjectId::parse(id)).collect());
                Outcome::Judged(Arc::new(Judged { findings, left_out, rendered, ..Judged::default() }))
            }
            TreeOutcome::Unknown(why) => Outcome::Unknown(why.clone()),
            TreeOutcome::Unasked => Outcome::Unasked,
        }
    }
}

impl Judge for ReplayedTrees {
    fn judge<'a>(&'a self, root: &'a Root, _: &'a [String], _: Instant) -> Judging<'a> {
        let name = named(root);
        let recorded = lock(&self.trees).iter().find(|tree| tree.root == name).cloned();
        let outcome = match recorded {
            Some(tree) => self.outcome(&tree.outcome),
            None => Outcome::Unknown("the recording does not have it".to_owned()),
        };
        std::future::ready(outcome).boxed()
    }

    fn fetch_ahead(&self, _: &Artifact, _: &[String]) {}
}
