//! Why a build stops.

use crate::kustomize::finding::Site;

/// What a step of a build returns.
pub type Step<T> = Result<T, Stop>;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// kustomize refuses to build.
    Refused(Box<Reason>),
    /// The result depends on something that is not executed here: a network, another program.
    Unknown(Box<Reason>),
}

/// Where and why a build stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The entry or object that is the cause.
    pub site: Site,
    /// What is wrong, in one sentence without the place.
    pub message: String,
}

impl Stop {
    /// Stops because kustomize refuses what stands at a place.
    pub fn refused(site: Site, message: impl Into<String>) -> Self {
        Self::Refused(Box::new(Reason { site, message: message.into() }))
    }

    /// Stops because what stands at a place is not executed.
    pub fn unknown(site: Site, message: impl Into<String>) -> Self {
        Self::Unknown(Box::new(Reason { site, message: message.into() }))
    }

    /// Where and why.
    pub fn reason(&self) -> &Reason {
        match self {
            Self::Refused(reason) | Self::Unknown(reason) => reason,
        }
    }
}
