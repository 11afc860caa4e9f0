//! The state of the CA that all replicas share, and its representation in a Secret. The Secret has these keys:
//!
//! | key | content |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA that signs leaf certificates |
//! | `next.crt`, `next.key` | the CA that will sign next, during a rotation |
//! | `next.published` | time at which every caBundle was found to contain the next CA |
//! | `old.crt` | provided CAs, and former CAs whose leaf certificates a replica may still serve |
//! | `switched` | time of the last change: a new CA began to sign, or a provided CA was added to `old.crt` |
//! | `old.confirmed` | time at which every caBundle was found to contain the provided CAs |
//! | `used` | time of the last report about each CA; a replica reports which CA it uses |
//!
//! A provided CA is the CA of a certificate that is mounted into a replica and was issued outside Portcullis. A key is
//! absent if there is nothing to record. For example, `used` is absent if there is no provided CA.
//!
//! An entry that cannot be parsed counts as absent. The replicas then write a valid entry, and so repair a damaged
//! Secret. [`State::read`] reports such entries.

use std::collections::BTreeMap;
use std::fmt;

use rcgen::KeyPair;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::certificate::Certificate;

/// A map from the fingerprint of a CA to the time when a replica last reported that it uses the CA. A replica uses the
/// CA that signed its leaf certificate.
pub type Uses = BTreeMap<String, OffsetDateTime>;

/// A CA: its certificate and its key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate of the CA.
    pub certificate: Certificate,
    /// The private key of the CA, PKCS #8 in PEM.
    pub key: String,
}

impl fmt::Debug for Authority {
    /// Formats the certificate without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.certificate.fmt(f)
    }
}

/// The next CA of a rotation. It does not sign leaf certificates yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The certificate and the key of the CA.
    pub authority: Authority,
    /// The time at which every caBundle was found to contain the CA. `None` if a caBundle does not contain the CA yet.
    pub published: Option<OffsetDateTime>,
}

/// The state of the CA that all replicas share through the Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The CA that signs leaf certificates; `None` before the first CA signs, or if the Secret was lost.
    pub current: Option<Authority>,
    /// The next CA, during a rotation; `None` otherwise.
    pub next: Option<Next>,
    /// The CAs that caBundles must contain in addition to `current` and `next`, the most recent first. Former CAs are
    /// included while replicas may still serve their leaf certificates. The CAs of certificates that are mounted into
    /// replicas are included too.
    pub old: Vec<Certificate>,
    /// The time of the last change of the CAs that replicas use. For example, a new CA began to sign leaf certificates,
    /// or the CA of a certificate that was issued outside Portcullis was added. Replicas wait for a fixed time after
    /// the change before they remove CAs that are no longer used.
    pub switched: Option<OffsetDateTime>,
    /// The time at which every caBundle was found to contain the CAs of mounted certificates. A mounted certificate is
    /// issued outside Portcullis, for example by cert-manager. `None` if there are no mounted certificates, or if a
    /// caBundle may not contain their CAs yet.
    pub announced: Option<OffsetDateTime>,
    /// The time at which each CA was last reported as used. Replicas regularly report the CA that they use, so that
    /// other replicas do not remove it.
    ///
    /// The reports are needed only while some replicas use a certificate from Portcullis, and other replicas use a
    /// certificate from elsewhere, for example from cert-manager. Otherwise, this map may be empty.
    pub used: Uses,
}

/// The field `data` of a Secret, with decoded values.
pub type Data = BTreeMap<String, Vec<u8>>;

const CURRENT: [&str; 2] = ["ca.crt", "ca.key"];
const NEXT: [&str; 2] = ["next.crt", "next.key"];
const PUBLISHED: &str = "next.published";
const OLD: &str = "old.crt";
const SWITCHED: &str = "switched";
const ANNOUNCED: &str = "old.confirmed";
const USED: &str = "used";

impl State {
    /// Parses the data of the Secret of the CA. Returns the state of the CA, and an error message for each invalid
    /// entry. An invalid entry counts as missing.
    pub fn read(data: &Data) -> (Self, Vec<String>) {
        let mut reader = Reader { data, problems: Vec::new() };
        let next = reader.authority(NEXT);
        let state = Self {
            current: reader.authority(CURRENT),
            next: next.map(|authority| Next { authority, published: reader.moment(PUBLISHED) }),
            old: reader.certificates(OLD),
            switched: reader.moment(SWITCHED),
            announced: reader.moment(ANNOUNCED),
            used: reader.uses(),
        };
        (state, reader.problems)
    }

    /// Writes the state into a Secret's data. Other keys of the data are kept.
    pub fn write(&self, data: &mut Data) {
        let mut set = |key: &str, value: Option<String>| match value {
            Some(value) => drop(data.insert(key.to_owned(), value.into_bytes())),
            None => drop(data.remove(key)),
        };
        let next = self.next.as_ref();
        for ([certificate, key], authority) in
            [(CURRENT, self.current.as_ref()), (NEXT, next.map(|next| &next.authority))]
        {
            set(certificate, authority.map(|authority| authority.certificate.pem()));
            set(key, authority.map(|authority| authority.key.clone()));
        }
        set(PUBLISHED, next.and_then(|next| next.published).and_then(format_time));
        set(OLD, (!self.old.is_empty()).then(|| self.old.iter().map(Certificate::pem).collect()));
        set(SWITCHED, self.switched.and_then(format_time));
        set(ANNOUNCED, self.announced.and_then(format_time));
        let use_of = |(name, at): (&String, &OffsetDateTime)| Some(format!("{name} {}\n", format_time(*at)?));
        set(USED, (!self.used.is_empty()).then(|| self.used.iter().filter_map(use_of).collect()));
    }

    /// Returns whether two states are equal, except for [`State::used`]. This field contains the time at which each CA
    /// was last reported to be in use. It does not affect which CAs API servers trust.
    pub fn trusts_the_same(&self, other: &Self) -> bool {
        let without = |state: &Self| Self { used: Uses::new(), ..state.clone() };
        without(self) == without(other)
    }

    /// Returns the time of the last report that a replica serves a leaf certificate of the CA `certificate`. `None` if
    /// there is no report.
    pub fn last_use(&self, certificate: &Certificate) -> Option<OffsetDateTime> {
        self.used.get(&certificate.fingerprint()).copied()
    }

    /// Records that replicas serve leaf certificates of the CAs in `certificates`. `now` is the time of the report.
    pub fn record_use<'c>(&mut self, certificates: impl IntoIterator<Item = &'c Certificate>, now: OffsetDateTime) {
        self.used.extend(certificates.into_iter().map(|certificate| (certificate.fingerprint(), now)));
    }

    /// Returns the CA that should sign the leaf certificate of a replica. This is the current CA, if there is one.
    /// `has_good_leaf` says whether the replica has a valid leaf certificate.
    ///
    /// If there is no current CA, returns the next CA, but only for a replica without a valid leaf certificate. No
    /// client connects to such a replica yet. A replica with a valid leaf certificate keeps this certificate.
    pub fn signer(&self, has_good_leaf: bool) -> Option<&Authority> {
        let next = self.next.as_ref().filter(|_| !has_good_leaf).map(|next| &next.authority);
        self.current.as_ref().or(next)
    }

    /// Returns the CA certificates that every caBundle should contain. These are the current CA, the next CA, former
    /// CAs, and CAs of mounted certificates.
    pub fn bundle(&self) -> Vec<Certificate> {
        let next = self.next.as_ref().map(|next| &next.authority);
        let mut bundle: Vec<Certificate> = Vec::new();
        let ours = self.current.iter().chain(next).map(|authority| &authority.certificate);
        for certificate in ours.chain(&self.old) {
            if !bundle.contains(certificate) {
                bundle.push(certificate.clone());
            }
        }
        bundle
    }
}

fn format_time(moment: OffsetDateTime) -> Option<String> {
    moment.format(&Rfc3339).ok()
}

struct Reader<'d> {
    data: &'d Data,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn text(&mut self, key: &str) -> Option<String> {
        let bytes = self.data.get(key).filter(|bytes| !bytes.is_empty())?;
        let text = String::from_utf8(bytes.clone()).ok();
        if text.is_none() {
            self.problems.push(format!("{key}: not UTF-8"));
        }
        text
    }

    fn certificates(&mut self, key: &str) -> Vec<Certificate> {
        let Some(text) = self.text(key) else { return Vec::new() };
        let read = Certificate::read_all(text.as_bytes());
        read.inspect_err(|error| self.problems.push(format!("{key}: {error}"))).unwrap_or_default()
    }

    /// Parses the entry `used` of the Secret. Each line contains the fingerprint of a CA, and the time when a
    /// replica last reported that it uses this CA. Skips invalid lines.
    fn uses(&mut self) -> Uses {
        let text = self.text(USED).unwrap_or_default();
        let report = |line: &str| {
            let (name, at) = line.split_once(' ')?;
            Some((name.to_owned(), OffsetDateTime::parse(at, &Rfc3339).ok()?))
        };
        text.lines().filter_map(report).collect()
    }

    fn moment(&mut self, key: &str) -> Option<OffsetDateTime> {
        let text = self.text(key)?;
        let moment = OffsetDateTime::parse(&text, &Rfc3339);
        moment.inspect_err(|error| self.problems.push(format!("{key}: not an RFC 3339 time: {error}"))).ok()
    }

    fn authority(&mut self, [certificate, key]: [&str; 2]) -> Option<Authority> {
        let found = self.certificates(certificate).into_iter().next();
        let key_text = self.text(key);
        match (found, key_text) {
            (Some(found), Some(text)) if is_key_of(&text, &found) => Some(Authority { certificate: found, key: text }),
            (None, None) => None,
            _ => {
                self.problems.push(format!("{certificate} and {key}: not a certificate and its key"));
                None
            }
        }
    }
}

/// Returns whether a private key belongs to a certificate.
fn is_key_of(key: &str, certificate: &Certificate) -> bool {
    let Ok(key) = KeyPair::from_pem(key) else { return false };
    let parsed = x509_parser::parse_x509_certificate(certificate.der());
    parsed.is_ok_and(|(_, parsed)| *parsed.public_key().subject_public_key.data == *key.public_key_raw())
}
