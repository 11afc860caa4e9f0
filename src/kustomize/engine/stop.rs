//! The error of a step in a kustomize build. A step ends with an error if kustomize itself fails. It also ends with an
//! error if Portcullis cannot determine the output of kustomize, for example because the output depends on a Helm
//! chart.

use super::budget::Exceeded;
use super::lost::Lost;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rules::kz031;

/// The result of a build step, or the error that stops it.
pub type Step<T> = Result<T, Stop>;

/// An error that ends a build step. Either kustomize fails, or Portcullis cannot determine the result of kustomize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// kustomize fails with an error.
    Refused(Box<Refusal>),
    /// Portcullis cannot determine the result of kustomize. For example, the result depends on a network request or on
    /// another program, or the build exceeds a limit.
    Unknown(Box<Reason>),
}

/// An error that makes kustomize fail, with the finding that reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The finding that reports this error.
    pub finding: TreeFinding,
    /// The greatest loss of data with which this error is still reported; see [`Lost`]. Data is missing if an earlier
    /// part of the build failed. If more data is missing, this may be the real cause of the error, so the error is not
    /// reported. With `Lost::Nothing`, the error is reported only if no data is missing.
    pub(super) holds: Lost,
}

/// The reason why the result of a build step is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The position of the entry or object that makes the result of the build step unknown, such as an entry of
    /// `resources` with a URL that was not fetched.
    pub site: Site,
    /// The message that says why the result is unknown. It does not contain the position, which is in `site`.
    pub message: String,
    /// The category of the reason why the result of a build step cannot be determined. For example, [`Cause::Helm`]
    /// stands for a Helm chart that is not rendered.
    pub cause: Cause,
}

/// A category of reasons why a result is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The build needs a remote file or repository that was not fetched.
    Network,
    /// The build needs the output of a Helm chart. Portcullis does not render Helm charts in a kustomize build.
    Helm,
    /// The build needs an external program, such as a plugin or a function in a container.
    Program,
    /// The build ends because a limit is exceeded.
    Limit,
    /// The result is unknown for another reason, such as a YAML file that parsers interpret differently.
    Other,
}

impl Stop {
    /// Creates the error of a build step in which kustomize fails. The error is reported even if earlier build steps
    /// failed. So use this function only for errors that an earlier failure cannot have caused, such as an invalid
    /// field.
    pub fn refused(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Changes }))
    }

    /// Creates an error of kustomize about the content of objects. The error is not reported if an earlier build step
    /// that changes objects failed, because this failure may have caused it.
    pub(super) fn of_content(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Objects }))
    }

    /// Creates an error of kustomize about an object that does not exist, such as the target of a patch. The error is
    /// not reported if an earlier build step that creates or changes objects failed, because the object may be missing
    /// only for this reason.
    pub(super) fn of_absence(finding: TreeFinding) -> Self {
        Self::Refused(Box::new(Refusal { finding, holds: Lost::Nothing }))
    }

    /// Creates the error for a build step in which Portcullis cannot determine what kustomize does. `message` gives the
    /// reason. The category of the reason is [`Cause::Other`].
    pub fn unknown(site: Site, message: impl Into<String>) -> Self {
        Self::unknown_by(Cause::Other, site, message)
    }

    /// Creates the error for a build step in which Portcullis cannot determine what kustomize does. `message` gives the
    /// reason. `cause` is the category of the reason, such as `Cause::Helm` for a Helm chart that is not rendered.
    pub(super) fn unknown_by(cause: Cause, site: Site, message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Reason { site, message: message.into(), cause }))
    }

    /// Creates the error for a build that is stopped because it exceeds a limit of Portcullis. kustomize's result is
    /// then unknown.
    pub(super) fn limit(site: Site, message: impl ToString) -> Self {
        Self::unknown_by(Cause::Limit, site, message.to_string())
    }

    /// Returns the position of the entry or object that causes this error.
    pub fn site(&self) -> Site {
        match self {
            Self::Refused(refusal) => refusal.finding.site(),
            Self::Unknown(reason) => reason.site.clone(),
        }
    }

    /// Returns the message of this error, without the position. If kustomize's result is unknown, the message says why.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.finding.message,
            Self::Unknown(reason) => &reason.message,
        }
    }
}

/// The reason why a build step fails, without the position of the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// kustomize fails with this message.
    Refused(String),
    /// It is unknown what kustomize does in this build step, because Portcullis does not reproduce this case exactly.
    /// Contains a message that describes the case.
    Unknown(String),
    /// The build exceeds its memory limit.
    Exceeded(Exceeded),
}

impl Failed {
    /// Converts the failure to the error of a build step at the position `site`. An error of kustomize becomes a
    /// finding of rule KZ031.
    pub(super) fn at(self, site: Site) -> Stop {
        self.by(site, kz031::found)
    }

    /// Converts this failure to the error of a build step. `site` is the position of the entry or object that causes
    /// the failure. If kustomize itself fails, `rule` creates the finding that reports the failure. If the result is
    /// unknown or a limit is exceeded, `rule` is not called.
    pub(super) fn by(self, site: Site, rule: impl FnOnce(Site, &str) -> TreeFinding) -> Stop {
        match self {
            Self::Refused(message) => Stop::of_content(rule(site, &message)),
            Self::Unknown(message) => Stop::unknown(site, message),
            Self::Exceeded(exceeded) => Stop::limit(site, exceeded),
        }
    }

    /// Prepends `text` and a colon to the message of the failure. [`Failed::Exceeded`] stays unchanged.
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
