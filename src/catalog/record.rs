//! Encodes a stored object as bytes. The bytes contain the namespace, the name, and the compressed fields that the
//! catalog stores.

use std::borrow::Cow;

use super::compression::{self, Dictionary, Form};

/// The number that a store assigns to a namespace.
pub(super) type NamespaceId = u32;

/// The compressed JSON text of an object's stored fields. In most cases, a thread compresses the text before it locks
/// the store, so that other threads wait less.
#[derive(Debug)]
pub(super) struct Compressed<'b> {
    pub(super) form: Form,
    pub(super) text_length: u32,
    pub(super) stored: Cow<'b, [u8]>,
}

impl Compressed<'_> {
    /// Compresses the JSON text of an object's stored fields; `None` if it is larger than 4 GiB.
    pub(super) fn text(text: &str, dictionary: Option<&Dictionary>) -> Option<Self> {
        let (text_length, mut stored) = (u32::try_from(text.len()).ok()?, Vec::new());
        let form = compression::compress(text, dictionary, &mut stored);
        Some(Self { form, text_length, stored: stored.into() })
    }

    /// Returns the JSON text that was compressed.
    pub(super) fn original(&self, dictionary: Option<&Dictionary>) -> String {
        compression::decompress(self.form, &self.stored, size(self.text_length), dictionary)
    }

    /// Encodes the record of an object. The record consists of a header, `name`, and the compressed fields.
    pub(super) fn record(&self, namespace: NamespaceId, name: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + name.len() + self.stored.len());
        bytes.push(self.form as u8);
        push_number(namespace, &mut bytes);
        push_number(self.text_length, &mut bytes);
        // The lengths fit: names of more than 4 KiB and parts of more than 4 GiB were rejected before.
        push_number(u32::try_from(name.len()).unwrap_or(u32::MAX), &mut bytes);
        push_number(u32::try_from(self.stored.len()).unwrap_or(u32::MAX), &mut bytes);
        bytes.extend(name.as_bytes());
        bytes.extend(&*self.stored);
        bytes
    }
}

/// Maximum length of the header of a stored record, in bytes. One byte says how the fields are compressed. These four
/// numbers take up to five bytes each: the number of the namespace, the length of the name, and the lengths of the
/// fields before and after compression.
const HEADER_BYTES: usize = 1 + 4 * 5;

/// A stored object, read from the bytes of its record. The namespace and the name are decoded. All other data of the
/// object stays compressed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'b> {
    form: Form,
    /// The number that the store has assigned to the object's namespace.
    pub(super) namespace: NamespaceId,
    /// The length of the JSON text of the object's stored fields before compression, in bytes.
    pub(super) text_length: usize,
    pub(super) name: &'b str,
    stored: &'b [u8],
    /// The length of the encoded object, in bytes.
    pub(super) length: usize,
}

impl<'b> Record<'b> {
    /// Decodes the stored object at the beginning of `bytes`. `None` if the bytes are damaged.
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        let (form, mut rest) = bytes.split_first()?;
        let namespace = take_number(&mut rest)?;
        let text_length = size(take_number(&mut rest)?);
        let (name_length, stored_length) = (size(take_number(&mut rest)?), size(take_number(&mut rest)?));
        let (name, rest) = rest.split_at_checked(name_length)?;
        let (stored, rest) = rest.split_at_checked(stored_length)?;
        let (form, name) = (Form::from_byte(*form), std::str::from_utf8(name).ok()?);
        Some(Self { form, namespace, text_length, name, stored, length: bytes.len() - rest.len() })
    }

    /// Decodes only the namespace and the name of a stored object. This is sufficient to find an object in an index,
    /// because indexes are sorted by name. `None` if the bytes are damaged.
    pub(super) fn read_name(bytes: &'b [u8]) -> Option<(NamespaceId, &'b [u8])> {
        let mut rest = bytes.get(1..)?;
        let namespace = take_number(&mut rest)?;
        take_number(&mut rest)?;
        let name_length = take_number(&mut rest)?;
        take_number(&mut rest)?;
        Some((namespace, rest.get(..size(name_length))?))
    }

    /// Returns the JSON text of the object's stored fields, decompressed with `dictionary`.
    pub(super) fn text(&self, dictionary: Option<&Dictionary>) -> String {
        compression::decompress(self.form, self.stored, self.text_length, dictionary)
    }

    /// Returns whether the fields of this object were compressed without a dictionary. This is the case for the first
    /// objects of a kind, because the compression dictionary of the kind is built from these objects.
    pub(super) fn lacks_dictionary(&self) -> bool {
        self.form == Form::Alone
    }

    /// Returns whether this record and `parts` contain the same stored fields, even if their fields are compressed in
    /// different ways.
    pub(super) fn holds(&self, parts: &Compressed<'_>, dictionary: Option<&Dictionary>) -> bool {
        let is_same_form = self.form == parts.form;
        is_same_form && self.stored == &*parts.stored
            || !is_same_form
                && self.text_length == size(parts.text_length)
                && self.text(dictionary) == parts.original(dictionary)
    }
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Appends `number` to `bytes` in the LEB128 encoding. Each byte contains seven bits of the number, the lowest bits
/// first. The high bit of a byte is set if more bytes follow.
fn push_number(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_again(namespace: u32, name in "[a-zä.-]{0,300}", text in "[a-f{}: ]{0,500}", behind: Vec<u8>) {
            let parts = Compressed::text(&text, None).unwrap();
            let bytes = parts.record(namespace, &name);
            let all = [&*bytes, &behind].concat();
            let record = Record::read(&all).unwrap();
            prop_assert_eq!((record.namespace, record.name, record.length), (namespace, &*name, bytes.len()));
            prop_assert_eq!(record.text(None), text);
            prop_assert_eq!(Record::read_name(&all), Some((namespace, name.as_bytes())));
            prop_assert!(record.holds(&parts, None));
            prop_assert_eq!(parts.original(None), record.text(None));
        }

        #[test]
        fn damaged_records_are_rejected_or_read(bytes: Vec<u8>) {
            let read = Record::read(&bytes).map(|record| record.length);
            prop_assert!(read.is_none_or(|length| length <= bytes.len()));
        }
    }
}
