//! The values of labels: why something is counted.

/// Classes of requests that get no decision because of what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRequest {
    /// Another path than the webhooks'.
    Path,
    /// Another method than POST.
    Method,
    /// Another content type than JSON.
    ContentType,
    /// A body over the limit.
    TooLarge,
    /// A body that did not arrive in time.
    SlowBody,
    /// A body that broke off.
    BrokenBody,
    /// A body without a uid, answered with 400.
    NoUid,
    /// A body that could not be read but for its uid, answered with a denial.
    Unreadable,
    /// A request whose head did not arrive in time; its connection is closed.
    SlowHead,
    /// A head that is no HTTP/1.1 or too large; hyper answers it and closes.
    MalformedHead,
}

impl BadRequest {
    pub(super) const WORDS: [&'static str; 10] = [
        "path",
        "method",
        "content_type",
        "too_large",
        "slow_body",
        "broken_body",
        "no_uid",
        "unreadable",
        "slow_head",
        "malformed_head",
    ];
}

/// What there was too much of when a request was sent away with 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// Requests in flight.
    InFlight,
    /// Bytes of bodies.
    BufferedBytes,
    /// Requests that wait for a turn at a processor.
    Waiting,
    /// Large bodies that wait to be decided about.
    Large,
}

impl Shed {
    pub(super) const WORDS: [&'static str; 4] = ["in_flight", "buffered_bytes", "waiting", "large"];

    pub(in crate::server) fn as_str(self) -> &'static str {
        match self {
            Self::InFlight | Self::Waiting => "requests",
            Self::BufferedBytes => "bytes of bodies",
            Self::Large => "large bodies",
        }
    }
}

/// How a look at a changed certificate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The new one is served.
    Loaded,
    /// The old one stays.
    Failed,
}

impl Reload {
    pub(super) const WORDS: [&'static str; 2] = ["loaded", "failed"];
}

/// Why a client's handshake was refused, where client certificates are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedClient {
    /// It showed no certificate.
    NoCertificate,
    /// Its certificate is not of the CA, or not good now.
    Authority,
    /// None of its names is allowed.
    Name,
}

impl RefusedClient {
    pub(super) const WORDS: [&'static str; 3] = ["no_certificate", "authority", "name"];
}
