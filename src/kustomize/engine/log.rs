//! The log of a build: findings, reasons why the result is unknown, and the recorded steps.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::kustomize::explain;
use crate::kustomize::finding::{InTree, TreeFinding};

/// Maximum number of errors in the log of a folder, including the errors of its bases. The same limit applies
/// separately to other findings, and to the reasons why the result is unknown. Only a malicious kustomization exceeds
/// this limit.
const MAX_FINDINGS: usize = 1_000;

/// The findings, the reasons for unknown results, and the recorded steps of a build so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// A stack of the folders that are being built. The first is the folder that the user builds. The last is the
    /// innermost base or component.
    folders: Vec<Folder>,
}

/// The log of building one folder. It contains the findings, and the reasons why the output of kustomize cannot be
/// determined. If the build records its steps, the log also describes the files and folders that were built. It
/// includes the logs of all folders to which this folder refers, such as its bases.
#[derive(Debug, Clone, Default)]
pub(super) struct Folder {
    /// The findings, in the order in which kustomize finds the problems.
    pub(super) findings: Vec<TreeFinding>,
    /// The reasons why the output of kustomize for the folder cannot be determined, such as a remote resource. Empty if
    /// it can be determined.
    pub(super) reasons: Vec<String>,
    /// The step that builds the folder; `None` if steps are not recorded.
    pub(super) step: Option<explain::Step>,
    /// Hashes of all recorded findings, and of all recorded reasons why the result is unknown. They are used to detect
    /// duplicates.
    seen: HashSet<u64>,
    refused: usize,
}

impl Folder {
    fn report(&mut self, finding: TreeFinding) {
        let InTree { file, place, refused, .. } = &finding.location;
        let (place, refused) = ((file, place.start, place.line), *refused);
        let is_new = self.seen.insert(hash(&(finding.rule, place, finding.field.to_string(), &finding.message)));
        let alike = if refused { self.refused } else { self.findings.len() - self.refused };
        if is_new && alike < MAX_FINDINGS {
            self.refused += usize::from(refused);
            self.findings.push(finding);
        }
    }

    fn reason(&mut self, reason: String) {
        if self.reasons.len() < MAX_FINDINGS && self.seen.insert(hash(&reason)) {
            self.reasons.push(reason);
        }
    }

    /// Returns whether kustomize builds the folder without errors, and the whole result of the build is known.
    pub(super) fn is_accepted(&self) -> bool {
        self.refused == 0 && self.reasons.is_empty()
    }
}

impl Log {
    /// Starts a new log for the folder that is built next, such as a base. Later findings are added to this log until
    /// `end` is called. `step` describes the folder in the list of build steps. It is `None` if the build does not
    /// record its steps.
    pub(super) fn begin(&mut self, step: Option<explain::Step>) {
        // create the log of the root folder, if there is none yet
        self.own();
        self.folders.push(Folder { step, ..Folder::default() });
    }

    /// Ends the log of the folder that is being built, and returns this log. If another folder refers to this folder,
    /// also copies the log into the log of that other folder.
    pub(super) fn end(&mut self) -> Folder {
        let folder = self.folders.pop().unwrap_or_default();
        if !self.folders.is_empty() {
            self.add(&folder);
        }
        folder
    }

    /// Adds `folder`, the log of a base or component, to the current log. The current log is about the folder that
    /// refers to this base or component.
    pub(super) fn add(&mut self, folder: &Folder) {
        let own = self.own();
        folder.findings.iter().for_each(|finding| own.report(finding.clone()));
        folder.reasons.iter().for_each(|reason| own.reason(reason.clone()));
        if let (Some(own), Some(step)) = (&mut own.step, &folder.step) {
            own.parts.push(step.clone());
        }
    }

    /// Adds a finding to the current folder. Ignores the finding if it is a duplicate or if there are too many
    /// findings.
    pub(super) fn report(&mut self, finding: TreeFinding) {
        self.own().report(finding);
    }

    /// Records a reason why the result of the folder that is being built is unknown. Ignores the reason if it is a
    /// duplicate, or if there are too many reasons.
    pub(super) fn reason(&mut self, reason: String) {
        self.own().reason(reason);
    }

    /// Starts recording the steps of the build. `step` is the step that builds the current folder.
    pub(super) fn explain(&mut self, step: explain::Step) {
        self.own().step = Some(step);
    }

    /// Returns the recorded step that describes the build of the current folder, so that the caller can add details to
    /// it. `None` if the build does not record its steps.
    pub(super) fn step(&mut self) -> Option<&mut explain::Step> {
        self.own().step.as_mut()
    }

    fn own(&mut self) -> &mut Folder {
        if self.folders.is_empty() {
            self.folders.push(Folder::default());
        }
        let last = self.folders.len() - 1;
        &mut self.folders[last]
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
