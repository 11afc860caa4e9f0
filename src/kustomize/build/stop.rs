//! The errors of build steps.

use super::budget::Exceeded;
use super::recover::Lost;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rules::kz031;

/// The result of a build step.
pub type Step<T> = Result<T, Stop>;

/// The reason why a step has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// kustomize fails with an error.
    Refused(Box<Refusal>),
    /// The result depends on something that is not executed here: a network, another program.
    Unknown(Box<Reason>),
}

/// An error of kustomize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The finding of the rule for this error.
    pub finding: TreeFinding,
    /// The greatest loss of earlier parts after which the error is certain. After a greater loss, the error may be a
    /// consequence of it.
    pub(super) holds: Lost,
}

/// The reason why a result is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The position of the entry or object that is the cause.
    pub site: Site,
    /// The message, without the position.
    pub message: String,
    /// The category of the reason.
    pub cause: Cause,
}

/// A category of reasons why a result is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A repository or file that is not fetched, or cannot be.
    Network,
    /// Helm charts, which are not rendered here.
    Helm,
    /// An external program, such as a plugin or a function in a container.
    Program,
    /// A limit is exceeded, so that the build ends.
    Limit,
    /// Any other reason, such as a text that YAML parsers interpret differently.
    Other,
}

impl Stop {
    /// Creates an error that cannot be a consequence of another error.
    pub fn refused(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Changes }))
    }

    /// Creates an error in the content of objects. It may be a consequence of missing changes.
    pub(super) fn of_content(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Objects }))
    }

    /// Creates an error about a missing object. It may be a consequence of any lost part.
    pub(super) fn of_absence(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Nothing }))
    }

    /// Creates an unknown result.
    pub fn unknown(site: Site, message: impl Into<String>) -> Self {
        Self::unknown_by(Cause::Other, site, message)
    }

    /// Creates an unknown result for a part that is not executed.
    pub(super) fn unknown_by(cause: Cause, site: Site, message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Reason { site, message: message.into(), cause }))
    }

    /// Creates an error about an exceeded limit.
    pub(super) fn limit(site: Site, message: impl ToString) -> Self {
        Self::unknown_by(Cause::Limit, site, message.to_string())
    }

    /// Returns the position of the error, or of the cause of an unknown result.
    pub fn site(&self) -> Site {
        match self {
            Self::Refused(refusal) => refusal.finding.site(),
            Self::Unknown(reason) => reason.site.clone(),
        }
    }

    /// Returns the message, without the position.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.finding.message,
            Self::Unknown(reason) => &reason.message,
        }
    }
}

/// The reason why a step fails, without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// kustomize fails with this message.
    Refused(String),
    /// The result depends on something that is not executed or implemented here.
    Unknown(String),
    /// The build is too large.
    Exceeded(Exceeded),
}

impl Failed {
    /// Adds the position. An error of kustomize becomes a finding of rule KZ031.
    pub(super) fn at(self, site: Site) -> Stop {
        self.by(site, kz031::found)
    }

    /// Adds the position. For an error of kustomize, `rule` creates the finding.
    pub(super) fn by(self, site: Site, rule: impl FnOnce(Site, &str) -> TreeFinding) -> Stop {
        match self {
            Self::Refused(message) => Stop::of_content(rule(site, &message)),
            Self::Unknown(message) => Stop::unknown(site, message),
            Self::Exceeded(exceeded) => Stop::limit(site, exceeded),
        }
    }

    /// Prepends a text to the message.
    pub(super) fn within(self, text: &str) -> Self {
        match self {
            Self::Refused(message) => Self::Refused(format!("{text}: {message}")),
            Self::Unknown(message) => Self::Unknown(format!("{text}: {message}")),
            Self::Exceeded(exceeded) => Self::Exceeded(exceeded),
        }
    }
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

impl From<&str> for Failed {
    fn from(message: &str) -> Self {
        Self::Refused(message.to_owned())
    }
}

impl From<Exceeded> for Failed {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}
