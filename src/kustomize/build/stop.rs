//! Why a build stops.

use super::budget::Exceeded;
use crate::kustomize::finding::Site;

/// The result of a build step.
pub type Step<T> = Result<T, Stop>;

/// Why a build has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// kustomize cannot build it.
    Refused(Box<Reason>),
    /// The result depends on something that is not executed here: a network, another program.
    Unknown(Box<Reason>),
}

/// Where and why a build stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The entry or object that is the cause.
    pub site: Site,
    /// The message, without the position.
    pub message: String,
}

impl Stop {
    /// Returns a stop for an error of kustomize.
    pub fn refused(site: Site, message: impl Into<String>) -> Self {
        Self::Refused(Box::new(Reason { site, message: message.into() }))
    }

    /// Returns a stop for a part that is not executed.
    pub fn unknown(site: Site, message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Reason { site, message: message.into() }))
    }

    /// Returns the position and the message.
    pub fn reason(&self) -> &Reason {
        match self {
            Self::Refused(reason) | Self::Unknown(reason) => reason,
        }
    }
}

/// Why a step fails that does not know its own place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// kustomize refuses it.
    Refused(String),
    /// The result depends on something that is not executed or implemented here.
    Unknown(String),
}

impl Failed {
    /// Adds the place.
    pub(super) fn at(self, site: Site) -> Stop {
        match self {
            Self::Refused(message) => Stop::refused(site, message),
            Self::Unknown(message) => Stop::unknown(site, message),
        }
    }

    /// Puts a text before the message.
    pub(super) fn within(self, text: &str) -> Self {
        match self {
            Self::Refused(message) => Self::Refused(format!("{text}: {message}")),
            Self::Unknown(message) => Self::Unknown(format!("{text}: {message}")),
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
        Self::Unknown(exceeded.to_string())
    }
}
