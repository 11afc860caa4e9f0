//! What the replicas agree on, and how it is written in the Secret.
//!
//! | key | what it holds |
//! |---|---|
//! | `ca.crt`, `ca.key` | the CA that signs |
//! | `next.crt`, `next.key` | the CA that will sign, while a change is under way |
//! | `next.published` | since when every bundle has the next CA; absent before |
//! | `old.crt` | CAs that signed before, of which a replica may still serve a leaf |
//! | `switched` | when the CA that signs took over from the last of them |
//!
//! What cannot be read is as if it were not there: a Secret that somebody has broken is mended by the next steps, and
//! [`State::read`] says what it was.

use std::collections::BTreeMap;
use std::fmt;

use rcgen::KeyPair;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::certificate::Certificate;

/// A CA: its certificate and its key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its certificate.
    pub certificate: Certificate,
    /// Its private key, PKCS #8 in PEM.
    pub key: String,
}

impl fmt::Debug for Authority {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.certificate.fmt(f)
    }
}

/// The CA that will sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The CA.
    pub authority: Authority,
    /// Since when every bundle has it.
    pub published: Option<OffsetDateTime>,
}

/// What the replicas agree on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The CA that signs.
    pub current: Option<Authority>,
    /// The CA that will.
    pub next: Option<Next>,
    /// Those that did, the last one first.
    pub old: Vec<Certificate>,
    /// When the current one took over from the last of them.
    pub switched: Option<OffsetDateTime>,
}

/// The data of a Secret.
pub type Data = BTreeMap<String, Vec<u8>>;

const CURRENT: [&str; 2] = ["ca.crt", "ca.key"];
const NEXT: [&str; 2] = ["next.crt", "next.key"];
const PUBLISHED: &str = "next.published";
const OLD: &str = "old.crt";
const SWITCHED: &str = "switched";

impl State {
    /// Reads a Secret's data. Beside the state: what of it cannot be read, one sentence each.
    pub fn read(data: &Data) -> (Self, Vec<String>) {
        let mut reader = Reader { data, problems: Vec::new() };
        let next = reader.authority(NEXT);
        let state = Self {
            current: reader.authority(CURRENT),
            next: next.map(|authority| Next { authority, published: reader.moment(PUBLISHED) }),
            old: reader.certificates(OLD),
            switched: reader.moment(SWITCHED),
        };
        (state, reader.problems)
    }

    /// Writes it over what a Secret's data has; keys of others stay.
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
        set(PUBLISHED, next.and_then(|next| next.published).and_then(in_words));
        set(OLD, (!self.old.is_empty()).then(|| self.old.iter().map(Certificate::pem).collect()));
        set(SWITCHED, self.switched.and_then(in_words));
    }

    /// The CA that a leaf is signed by. While there is none, a replica without a leaf takes the next one, as nobody is sent
    /// to it yet; one that has a good leaf keeps that.
    pub fn signer(&self, has_good_leaf: bool) -> Option<&Authority> {
        let next = self.next.as_ref().filter(|_| !has_good_leaf).map(|next| &next.authority);
        self.current.as_ref().or(next)
    }

    /// What every bundle should hold.
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

fn in_words(moment: OffsetDateTime) -> Option<String> {
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
            self.problems.push(format!("{key}: it is no text"));
        }
        text
    }

    fn certificates(&mut self, key: &str) -> Vec<Certificate> {
        let Some(text) = self.text(key) else { return Vec::new() };
        let read = Certificate::read_all(text.as_bytes());
        read.inspect_err(|error| self.problems.push(format!("{key}: {error}"))).unwrap_or_default()
    }

    fn moment(&mut self, key: &str) -> Option<OffsetDateTime> {
        let text = self.text(key)?;
        let moment = OffsetDateTime::parse(&text, &Rfc3339);
        moment.inspect_err(|error| self.problems.push(format!("{key}: it is no RFC 3339 time: {error}"))).ok()
    }

    fn authority(&mut self, [certificate, key]: [&str; 2]) -> Option<Authority> {
        let found = self.certificates(certificate).into_iter().next();
        let key_text = self.text(key);
        match (found, key_text) {
            (Some(found), Some(text)) if is_of(&text, &found) => Some(Authority { certificate: found, key: text }),
            (None, None) => None,
            _ => {
                self.problems.push(format!("{certificate} and {key}: they are no certificate and its key"));
                None
            }
        }
    }
}

/// Whether a private key is that of a certificate.
fn is_of(key: &str, certificate: &Certificate) -> bool {
    let Ok(key) = KeyPair::from_pem(key) else { return false };
    let parsed = x509_parser::parse_x509_certificate(certificate.der());
    parsed.is_ok_and(|(_, parsed)| *parsed.public_key().subject_public_key.data == *key.public_key_raw())
}
