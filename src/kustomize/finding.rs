//! Findings about files in a kustomize tree, each with its position in a file.

use std::fmt;

use super::tree::TreePath;
use crate::admission::{FieldPath, Finding, Position};
use crate::rule::RuleInfo;
use crate::yaml::Place;

/// A position in a file of a tree, with the field at this position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The path of the file in the tree.
    pub file: TreePath,
    /// The line, column and byte range in the file.
    pub place: Place,
    /// The field or list entry, such as `resources[1]`; empty for the whole file.
    pub field: FieldPath,
}

impl Site {
    /// Creates the location of a finding: a file, a position in the file, and the field at this position.
    pub fn new(file: TreePath, place: Place, field: FieldPath) -> Self {
        Self { file, place, field }
    }

    /// Creates a location that represents a whole file. Its position is the first line.
    pub fn of_file(file: TreePath) -> Self {
        Self::new(file, Place { line: 1, column: 1, start: 0, end: 0 }, FieldPath::root())
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.place.line)
    }
}

/// A finding of a rule, with its location in a kustomize tree.
pub type TreeFinding = Finding<InTree>;

/// The location of a finding in a tree, and its effect on the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTree {
    /// The path of the file in the tree.
    pub file: TreePath,
    /// The position of the finding in the file.
    pub place: Place,
    /// Whether kustomize fails to build because of the finding.
    pub refused: bool,
    /// Whether this is the first error, which is the only one that kustomize reports.
    pub first: bool,
    /// The automatic fix for the finding, if there is one.
    pub fix: Option<Fix>,
}

/// An automatic fix for a finding. It edits the file that the finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Moves an entry to another list of the same file.
    MoveEntry {
        /// The list that contains the entry, such as `resources`.
        from: String,
        /// The zero-based index of the entry in the list that contains it.
        index: usize,
        /// The list to which the fix moves the entry, such as `components`.
        to: String,
    },
    /// Adds an entry to a list of the file.
    AddEntry {
        /// The list, such as `resources`.
        list: String,
        /// The entry to add, such as `service.yaml`.
        entry: String,
    },
}

impl RuleInfo {
    /// Returns a finding of this rule at a place in a tree. By default, the finding means that kustomize fails to
    /// build. [`TreeFinding::harmless`] changes this.
    pub(super) fn at(&self, site: Site, message: impl Into<String>) -> TreeFinding {
        let Site { file, place, field } = site;
        let location = InTree { file, place, refused: true, first: false, fix: None };
        Finding::located(self.id, self.level, field, message, location)
    }
}

impl TreeFinding {
    /// Returns the file, position and field of the finding.
    pub fn site(&self) -> Site {
        Site::new(self.location.file.clone(), self.location.place, self.field.clone())
    }

    /// Marks the finding as harmless, which means that kustomize builds the tree despite the finding.
    #[must_use]
    pub fn harmless(mut self) -> Self {
        self.location.refused = false;
        self
    }

    /// Marks this finding as the first error of the build. kustomize stops at the first error, and so does not report
    /// any other errors.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.location.first = true;
        self
    }

    /// Adds an automatic fix to the finding.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.location.fix = Some(fix);
        self
    }
}

impl Position for InTree {
    fn position(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl fmt::Display for InTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.place.line, self.place.column)
    }
}
