//! A stored object in one allocation: its name and its compressed parts.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::compression::{self, Dictionary, Form};
use super::parts::Projection;

/// The form, the length of the name, and the length of the text.
const HEADER: usize = 1 + size_of::<u16>() + size_of::<u32>();
/// Additional memory for the allocation and the reference counts.
const OVERHEAD: usize = 2 * size_of::<usize>();

/// An object in a namespace. Two are equal, and are ordered, by their names.
#[derive(Clone)]
pub(super) struct Record(Arc<[u8]>);

impl Record {
    /// Compresses a projection. `None` for more than 4 GiB, which decoders reject.
    pub(super) fn of(projection: &Projection, dictionary: Option<&Dictionary>) -> Option<Self> {
        let Projection { name, text, .. } = projection;
        let (name_length, text_length) = (u16::try_from(name.len()).ok()?, u32::try_from(text.len()).ok()?);
        let (form, stored) = compression::compress(text, dictionary);
        let mut bytes = Vec::with_capacity(HEADER + name.len() + stored.len());
        bytes.push(form as u8);
        bytes.extend(name_length.to_le_bytes());
        bytes.extend(text_length.to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(stored.iter());
        Some(Self(bytes.into()))
    }

    fn name_length(&self) -> usize {
        let length = self.0.get(1..).and_then(|rest| rest.first_chunk()).copied();
        usize::from(u16::from_le_bytes(length.unwrap_or_default()))
    }

    /// Returns the length of the text before it was compressed.
    pub(super) fn text_length(&self) -> usize {
        let length = self.0.get(1 + size_of::<u16>()..).and_then(|rest| rest.first_chunk()).copied();
        usize::try_from(u32::from_le_bytes(length.unwrap_or_default())).unwrap_or(usize::MAX)
    }

    /// Returns `metadata.name`.
    pub(super) fn name(&self) -> &str {
        let name = self.0.get(HEADER..HEADER + self.name_length()).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// Returns the JSON text of the declared parts.
    pub(super) fn text(&self, dictionary: Option<&Dictionary>) -> String {
        let form = Form::from_byte(self.0.first().copied().unwrap_or_default());
        let stored = self.0.get(HEADER + self.name_length()..).unwrap_or_default();
        compression::decompress(form, stored, self.text_length(), dictionary)
    }

    /// Returns whether both hold the same bytes. Two that do not may still have the same text, compressed in two ways.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Returns an address that identifies this allocation while it is held.
    pub(super) fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Returns the bytes that it takes.
    pub(super) fn size(&self) -> usize {
        (self.0.len() + OVERHEAD).next_multiple_of(OVERHEAD)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Record").field(&self.name()).finish()
    }
}

impl Borrow<str> for Record {
    fn borrow(&self) -> &str {
        self.name()
    }
}

impl Hash for Record {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Record {}

impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Record {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}
