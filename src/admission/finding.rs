//! Findings of rules, and their text for users.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::FieldPath;

/// The level of a finding. It says what happens to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The rule does not run.
    Off,
    /// The finding is recorded in the API server's audit log and in the log of Portcullis. It is not shown to the user.
    Audit,
    /// The finding is shown to the user. The request is admitted.
    Warn,
    /// The request is denied.
    Deny,
}

impl Level {
    /// Returns the name of the level in configuration files and reports, such as `deny`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A finding of a rule. By default, the finding is about an object. If another type is used as `Location`, the finding
/// is about something else, such as a file of a kustomize tree.
///
/// The message is a complete sentence. `help` describes the fix. Neither may contain words that Landscaper treats as an
/// outage of the webhook. These are `connection refused`, `context deadline exceeded`, `failed to call webhook` and
/// `proxy error`. If a message contained them, Landscaper would retry forever instead of showing the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding<Location = InFiles> {
    /// The rule's id, such as `OW001`.
    pub rule: &'static str,
    /// The level of the finding, which decides whether the request is denied. The rule sets it first. Then the
    /// configuration can change it, and exemptions can lower it.
    pub level: Level,
    /// Path of the field that has the error, such as `overwrites[0].source`. It is the root path if the finding is
    /// about the whole object.
    pub field: FieldPath,
    /// The error in one sentence, without the position.
    pub message: String,
    /// The location of the finding, such as a file and a line. The path within the object is in `field`.
    pub location: Location,
    /// The value that was found in the field, as short JSON or text.
    pub found: Option<String>,
    /// The allowed values of the field, as text for users.
    pub allowed: Option<String>,
    /// How to fix the problem, in one line.
    pub help: Option<String>,
    /// Whether an exemption limits the level of the finding to `audit`. Exemptions are set in the configuration or with
    /// a label.
    pub is_exempt: bool,
}

/// The position of a finding in a file: path, line, column and revision, such as `apps/kustomization.yaml:6:5 of
/// main@sha1:3f2c`. For example, the checked object is a Flux Kustomization, and the file is in the folder that this
/// Kustomization builds. `None` if the finding is about the checked object itself.
pub type InFiles = Option<String>;

impl Finding {
    /// Creates a finding about a field of an object.
    pub fn new(rule: &'static str, level: Level, field: FieldPath, message: impl Into<String>) -> Self {
        Self::located(rule, level, field, message, None)
    }
}

impl<Location> Finding<Location> {
    /// Creates a finding with a location.
    pub fn located(
        rule: &'static str,
        level: Level,
        field: FieldPath,
        message: impl Into<String>,
        location: Location,
    ) -> Self {
        let (message, found, allowed, help) = (message.into(), None, None, None);
        Self { rule, level, field, message, location, found, allowed, help, is_exempt: false }
    }

    /// Returns the finding with another location. The type of the location may differ.
    pub fn with_location<Other>(self, location: Other) -> Finding<Other> {
        let Self { rule, level, field, message, found, allowed, help, is_exempt, .. } = self;
        Finding { rule, level, field, message, location, found, allowed, help, is_exempt }
    }

    /// Sets the value that was found in the field.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Sets the text that describes the allowed values.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Sets the help text, which describes the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the finding as one line: rule id, field and message.
    pub fn headline(&self) -> String {
        if self.field.is_root() {
            return format!("{} {}", self.rule, self.message);
        }
        format!("{} {}: {}", self.rule, self.field, self.message)
    }

    /// Returns the finding as a paragraph. The first line is the headline. The indented lines below it state the
    /// position in files, the allowed values and the fix.
    pub fn paragraph(&self) -> String
    where
        Location: Position,
    {
        let mut text = self.headline();
        if let Some(position) = self.location.position() {
            text.push_str(&format!("\n  at {position}"));
        }
        for (label, line) in [("allowed", &self.allowed), ("help", &self.help)] {
            if let Some(line) = line {
                text.push_str(&format!("\n  {label}: {line}"));
            }
        }
        text
    }
}

/// A trait for the locations of findings. If a finding is about a file, the trait provides the position in the file.
pub trait Position {
    /// Returns the position as text, such as `apps/kustomization.yaml:6:5`.
    fn position(&self) -> Option<String>;
}

impl Position for InFiles {
    fn position(&self) -> Option<String> {
        self.clone()
    }
}
