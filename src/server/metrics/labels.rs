//! The label values of the server's metrics.

/// The reason why an HTTP request is not a valid admission request. It is a label value of the metric that counts such
/// requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRequest {
    /// A path other than `/validate` and `/mutate`.
    Path,
    /// A method other than POST.
    Method,
    /// A request whose content type is missing or is not JSON.
    ContentType,
    /// A body that is larger than the limit.
    TooLarge,
    /// A body that did not arrive in time.
    SlowBody,
    /// A body that the client did not send completely.
    BrokenBody,
    /// A body without a uid. It is answered with HTTP status 400.
    NoUid,
    /// A body that is not a valid AdmissionReview, but has a uid that could be read. It is answered with a denial.
    Unreadable,
    /// A request whose head did not arrive in time. The server closes its connection.
    SlowHead,
    /// A request head that is too large, or that is not HTTP/1.1. hyper sends an error response and closes the
    /// connection.
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

/// The limit that was exceeded, as the reason for a rejection with HTTP status 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// Too many requests are in flight.
    InFlight,
    /// The request bodies in memory, including the body of this request, would exceed the limit for their total size.
    BufferedBytes,
    /// The queue for decisions is full, or the request waited in it until its deadline.
    Waiting,
    /// The request has a large body, and too many other requests with large bodies already wait for their decisions.
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

/// The result of reloading a certificate file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The changed certificate file was loaded successfully and is now in use.
    Loaded,
    /// The changed certificate file cannot be loaded. The previous certificates stay in use.
    Failed,
}

impl Reload {
    pub(super) const WORDS: [&'static str; 2] = ["loaded", "failed"];
}

/// The reason why a client certificate was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedClient {
    /// The client presented no certificate.
    NoCertificate,
    /// The certificate was not issued by a CA in the file `--client-ca`, or it is not valid, for example because it has
    /// expired.
    Authority,
    /// None of the names of the certificate is on the list of accepted names.
    Name,
}

impl RefusedClient {
    pub(super) const WORDS: [&'static str; 3] = ["no_certificate", "authority", "name"];
}
