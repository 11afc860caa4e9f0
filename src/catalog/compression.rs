//! Compression of stored objects.
//!
//! Objects of one kind are alike: the same keys, the same prefixes, the same registries and namespaces. Each is compressed
//! on its own with LZ4 and a dictionary made of the first ones of its kind, so that any of them can be read, replaced or
//! dropped without the others.

use std::borrow::Cow;

use lz4_flex::block::{compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size};

/// The size of a dictionary. Filling the compressor's table with it is most of the work on a small object, so it is no
/// larger than what a few objects need.
const DICTIONARY_BYTES: usize = 4096;
/// The most that one object adds to a dictionary: several objects show what they have in common.
const SAMPLE_BYTES: usize = 1024;
/// A shorter text is stored as it is.
const MIN_BYTES: usize = 48;

/// How a text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// Compressed on its own.
    Alone,
    /// Compressed with the dictionary of its kind.
    WithDictionary,
}

impl Form {
    pub(super) fn from_byte(byte: u8) -> Self {
        [Self::Plain, Self::Alone].into_iter().find(|form| *form as u8 == byte).unwrap_or(Self::WithDictionary)
    }
}

/// What objects of a kind have in common.
#[derive(Debug)]
pub(super) struct Dictionary(Box<[u8]>);

/// The beginning of a dictionary.
#[derive(Debug, Default)]
pub(super) struct Samples(Vec<u8>);

impl Samples {
    /// Adds an object; returns the dictionary once there are enough.
    pub(super) fn add(&mut self, text: &str) -> Option<Dictionary> {
        let room = SAMPLE_BYTES.min(DICTIONARY_BYTES - self.0.len());
        self.0.extend(text.as_bytes().iter().take(room));
        let is_full = self.0.len() >= DICTIONARY_BYTES;
        is_full.then(|| Dictionary(std::mem::take(&mut self.0).into_boxed_slice()))
    }
}

/// Compresses a text if that makes it smaller.
pub(super) fn compress<'t>(text: &'t str, dictionary: Option<&Dictionary>) -> (Form, Cow<'t, [u8]>) {
    let plain = (Form::Plain, Cow::Borrowed(text.as_bytes()));
    if text.len() < MIN_BYTES {
        return plain;
    }
    let (form, common) = dictionary.map_or((Form::Alone, &[][..]), |known| (Form::WithDictionary, &known.0[..]));
    let mut out = vec![0; get_maximum_output_size(text.len())];
    match compress_into_with_dict(text.as_bytes(), &mut out, common) {
        Ok(length) if length < text.len() => {
            out.truncate(length);
            (form, Cow::Owned(out))
        }
        _ => plain,
    }
}

/// Returns the text of `length` bytes that was stored; empty where it is damaged, which nothing does.
pub(super) fn decompress(form: Form, stored: &[u8], length: usize, dictionary: Option<&Dictionary>) -> String {
    let common = dictionary.filter(|_| form == Form::WithDictionary).map_or(&[][..], |known| &known.0[..]);
    let mut out = vec![0; length];
    let bytes = match form {
        Form::Plain => stored.to_vec(),
        _ => match decompress_into_with_dict(stored, &mut out, common) {
            Ok(_) => out,
            Err(_) => Vec::new(),
        },
    };
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(text: &str, dictionary: Option<&Dictionary>) -> usize {
        let (form, stored) = compress(text, dictionary);
        let known = Form::from_byte(form as u8);
        assert_eq!(decompress(known, &stored, text.len(), dictionary), text);
        stored.len()
    }

    #[test]
    fn objects_that_are_alike_take_a_fraction() {
        let object = |number: usize| {
            let reference = format!(r#"{{"componentName":"example.org/server-{number}","version":"v1.2.{number}"}}"#);
            format!(
                r#"{{"spec":{{"componentDescriptor":{{"ref":{reference}}},"context":"default"}},"uid":"{number:032}"}}"#
            )
        };
        let mut samples = Samples::default();
        let dictionary = (0..100).find_map(|number| samples.add(&object(number))).unwrap();
        let (alone, together) = (round_trip(&object(777), None), round_trip(&object(777), Some(&dictionary)));
        assert!(together * 3 < object(777).len() && together < alone, "{alone} {together}");
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_read_again(text in ".{0,300}", times in 1_usize..400, sample in "[a-z{}:]{0,2000}") {
            let mut samples = Samples::default();
            let dictionary = (0..20).find_map(|_| samples.add(&sample));
            round_trip(&text.repeat(times), dictionary.as_ref());
            round_trip(&text, None);
        }
    }
}
