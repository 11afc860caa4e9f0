//! What a rule has to say about a place in a tree.

use std::fmt;

use super::tree::TreePath;
use crate::admission::{FieldPath, Level};
use crate::rule::RuleInfo;
use crate::yaml::Place;

/// A place in a file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: TreePath,
    /// Where in the file.
    pub place: Place,
    /// The entry, such as `resources[1]`.
    pub field: FieldPath,
}

impl Site {
    /// Creates a place in a file.
    pub fn new(file: TreePath, place: Place, field: FieldPath) -> Self {
        Self { file, place, field }
    }

    /// Creates a file as a whole.
    pub fn of_file(file: TreePath) -> Self {
        Self::new(file, Place { line: 1, column: 1, start: 0, end: 0 }, FieldPath::root())
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.place.line)
    }
}

/// One thing that a rule has to say about a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFinding {
    /// The rule's id, such as `KZ001`.
    pub rule: &'static str,
    /// What follows from it. Rules say their default.
    pub level: Level,
    /// Where it is.
    pub site: Site,
    /// The error in one sentence, without the position.
    pub message: String,
    /// The found value.
    pub found: Option<String>,
    /// What may stand there.
    pub allowed: Option<String>,
    /// The fix, in one line.
    pub help: Option<String>,
    /// Whether kustomize refuses to build because of it.
    pub refused: bool,
    /// Whether it is what kustomize would meet first.
    pub first: bool,
    /// The automatic fix.
    pub fix: Option<Fix>,
}

/// An automatic fix of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// The entry belongs in another list of the same file.
    MoveEntry {
        /// The list it is in.
        from: String,
        /// Which entry it is.
        index: usize,
        /// The list it belongs in.
        to: String,
    },
}

impl RuleInfo {
    /// Returns a finding of this rule about a place in a tree, for which kustomize refuses to build.
    pub(super) fn at(&self, site: Site, message: impl Into<String>) -> TreeFinding {
        TreeFinding {
            rule: self.id,
            level: self.level,
            site,
            message: message.into(),
            found: None,
            allowed: None,
            help: None,
            refused: true,
            first: false,
            fix: None,
        }
    }
}

impl TreeFinding {
    /// Sets the found value.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Sets the allowed values.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Marks the finding as one that does not fail the build.
    #[must_use]
    pub fn harmless(mut self) -> Self {
        self.refused = false;
        self
    }

    /// Sets the automatic fix.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// Returns the first line: rule, field and message.
    pub fn headline(&self) -> String {
        if self.site.field.is_root() {
            return format!("{} {}", self.rule, self.message);
        }
        format!("{} {}: {}", self.rule, self.site.field, self.message)
    }

    /// The headline, and below it where it is, what is allowed, and the help.
    pub fn paragraph(&self) -> String {
        let Place { line, column, .. } = self.site.place;
        let mut text = format!("{}\n  at {}:{line}:{column}", self.headline(), self.site.file);
        for (label, line) in [("allowed", &self.allowed), ("help", &self.help)] {
            if let Some(line) = line {
                text.push_str(&format!("\n  {label}: {line}"));
            }
        }
        text
    }
}
