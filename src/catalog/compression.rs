//! Compression of stored objects.
//!
//! Objects of one kind have much in common, such as keys, prefixes, registries and namespaces. So Zstandard compresses
//! each object with a dictionary of the first objects of its kind. Each object is compressed separately. So any object
//! can be read, replaced or dropped without the others. A trained dictionary would save another 5 to 15 %. But training
//! allocates 6 MB, and the C allocator does not return this memory to the operating system.

use std::cell::RefCell;
use std::fmt;
use std::io::Cursor;

use zstd::zstd_safe::{self, CCtx, CDict, DCtx, DDict};

use super::uuids;

/// The size of a Zstandard dictionary, in bytes. A dictionary of twice this size would reduce the memory for stored
/// objects by another 1 to 5 %. But compression would be slower, because Zstandard searches the dictionary.
const DICTIONARY_BYTES: usize = 8192;
/// Maximum number of bytes that one object adds to the samples for a dictionary. Because of this limit, each dictionary
/// is created from samples of several objects.
const SAMPLE_BYTES: usize = 4096;
/// Minimum length of texts that are compressed, in bytes. Shorter texts are stored as plain text.
const MIN_BYTES: usize = 32;
/// The compression level. Higher levels save only 2 % of the memory, and take twice as long.
const LEVEL: zstd_safe::CompressionLevel = 1;
/// The compression level for kinds with small objects. For them, it is 30 % faster, and compresses as well as level 1.
const SMALL_LEVEL: zstd_safe::CompressionLevel = -1;
/// Maximum average length of the objects of a kind that counts as a kind with small objects, in bytes. The level for
/// small objects would make objects of 3 KB larger by a quarter.
const MAX_SMALL_BYTES: usize = 1024;
/// The beginning of a Zstandard dictionary in the format of RFC 8878: magic number, id, entropy tables and offsets. The
/// script `tools/entropy_tables/main.py` computes the tables from the objects in `tests/recordings`. With these tables,
/// Zstandard need not compute and write tables for each object, and compression takes half of the time. Small objects
/// also become 3 % smaller, and objects of 3 KB become 5 % larger.
const ENTROPY_TABLES: &[u8] = include_bytes!("entropy_tables.bin");
/// The magic number at the beginning of every Zstandard frame. It is not stored.
const MAGIC: &[u8] = &zstd_safe::MAGICNUMBER.to_le_bytes();

/// Maximum size of the buffer for packed texts that a thread keeps for the next text, in bytes. Few objects are larger.
const MAX_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor { context: CCtx::create(), packed: Vec::new() });
    static DECOMPRESSOR: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// The context in which a thread compresses texts, and a buffer for the packed text.
struct Compressor {
    context: CCtx<'static>,
    packed: Vec<u8>,
}

impl Compressor {
    /// Appends the Zstandard frame of `text` to `out`. Returns whether this succeeded.
    fn compress(&mut self, text: &str, dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> bool {
        uuids::pack(text, &mut self.packed);
        out.reserve(zstd_safe::compress_bound(self.packed.len()));
        let start = out.len() as u64;
        let mut frame = Cursor::new(std::mem::take(out));
        frame.set_position(start);
        let compressed = match dictionary {
            Some(known) => self.context.compress_using_cdict(&mut frame, &self.packed, &known.compressing),
            None => self.context.compress(&mut frame, &self.packed, LEVEL),
        };
        *out = frame.into_inner();
        self.packed.clear();
        self.packed.shrink_to(MAX_KEPT_BYTES);
        compressed.is_ok()
    }
}

/// The form in which a text is stored: plain or compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The text is stored as it is.
    Plain,
    /// The text is compressed without a dictionary.
    Alone,
    /// The text is compressed with the dictionary of the object's kind.
    WithDictionary,
}

impl Form {
    pub(super) fn from_byte(byte: u8) -> Self {
        [Self::Plain, Self::Alone].into_iter().find(|form| *form as u8 == byte).unwrap_or(Self::WithDictionary)
    }
}

/// A compression dictionary for the objects of a kind.
pub(super) struct Dictionary {
    compressing: CDict<'static>,
    decompressing: DDict<'static>,
}

impl Dictionary {
    /// Creates a dictionary that consists of [`ENTROPY_TABLES`] and `content`, for compression with this level.
    fn of(content: &[u8], level: zstd_safe::CompressionLevel) -> Option<Self> {
        let content = [ENTROPY_TABLES, content].concat();
        Some(Self { compressing: CDict::try_create(&content, level)?, decompressing: DDict::try_create(&content)? })
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").finish_non_exhaustive()
    }
}

/// Samples of the first objects of a kind. The compression dictionary is created from these samples.
#[derive(Debug, Default)]
pub(super) struct Samples {
    content: Vec<u8>,
    /// Number of objects in the samples.
    count: usize,
}

impl Samples {
    /// Adds an object to the samples. Returns the dictionary when there are enough samples, and `None` before.
    pub(super) fn add(&mut self, text: &str) -> Option<Dictionary> {
        let room = SAMPLE_BYTES.min(DICTIONARY_BYTES - self.content.len());
        let mut packed = Vec::new();
        uuids::pack(text, &mut packed);
        self.content.extend(packed.iter().take(room));
        self.count += 1;
        if self.content.len() < DICTIONARY_BYTES {
            return None;
        }
        let Self { content, count } = std::mem::take(self);
        let is_small = content.len() / count <= MAX_SMALL_BYTES;
        Dictionary::of(&content, if is_small { SMALL_LEVEL } else { LEVEL })
    }
}

/// Compresses `text`, with `dictionary` if there is one, and appends the result to `out`. If compression does not make
/// the text smaller, appends the plain text instead. Returns the form of the appended bytes, which [`decompress`]
/// needs.
pub(super) fn compress(text: &str, dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Form {
    if text.len() < MIN_BYTES {
        out.extend(text.as_bytes());
        return Form::Plain;
    }
    let start = out.len();
    let is_compressed = COMPRESSOR.with_borrow_mut(|compressor| compressor.compress(text, dictionary, out));
    let stored = out.get(start..).and_then(|frame| frame.strip_prefix(MAGIC)).filter(|_| is_compressed);
    if stored.is_none_or(|stored| stored.len() >= text.len()) {
        out.truncate(start);
        out.extend(text.as_bytes());
        return Form::Plain;
    }
    out.drain(start..start + MAGIC.len());
    if dictionary.is_some() { Form::WithDictionary } else { Form::Alone }
}

/// Restores a text of `length` bytes from `stored`, the bytes that [`compress`] appended. Returns an empty text if the
/// bytes are damaged, or if the dictionary is missing.
pub(super) fn decompress(form: Form, stored: &[u8], length: usize, dictionary: Option<&Dictionary>) -> String {
    let bytes = match (form, dictionary) {
        (Form::Plain, _) => stored.to_vec(),
        (Form::WithDictionary, None) => Vec::new(),
        _ => {
            let (frame, mut packed) = ([MAGIC, stored].concat(), Vec::with_capacity(length));
            let decompressed = DECOMPRESSOR.with_borrow_mut(|decompressor| match dictionary {
                Some(known) if form == Form::WithDictionary => {
                    decompressor.decompress_using_ddict(&mut packed, &frame, &known.decompressing)
                }
                _ => decompressor.decompress(&mut packed, &frame),
            });
            decompressed.map_or_else(|_| Vec::new(), |_| uuids::unpack(&packed, length))
        }
    };
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(text: &str, dictionary: Option<&Dictionary>) -> usize {
        let mut stored = Vec::new();
        let form = compress(text, dictionary, &mut stored);
        let known = Form::from_byte(form as u8);
        assert_eq!(decompress(known, &stored, text.len(), dictionary), text);
        stored.len()
    }

    fn object(number: usize) -> String {
        let reference = format!(r#"{{"componentName":"example.org/server-{number}","version":"v1.2.{number}"}}"#);
        format!(
            r#"{{"spec":{{"componentDescriptor":{{"ref":{reference}}},"context":"default"}},"uid":"{number:032}"}}"#
        )
    }

    #[test]
    fn similar_objects_take_a_fraction() {
        let mut samples = Samples::default();
        let dictionary = (0..100).find_map(|number| samples.add(&object(number))).unwrap();
        let (alone, together) = (round_trip(&object(777), None), round_trip(&object(777), Some(&dictionary)));
        assert!(together * 3 < object(777).len() && together < alone, "{alone} {together}");
    }

    #[test]
    fn entropy_tables_make_small_objects_smaller() {
        let content: String = (0..40).map(object).collect();
        let with_tables = Dictionary::of(content.as_bytes(), SMALL_LEVEL).unwrap();
        let without = Dictionary {
            compressing: CDict::create(content.as_bytes(), LEVEL),
            decompressing: DDict::create(content.as_bytes()),
        };
        let size = |dictionary: &Dictionary| -> usize {
            (1_000..1_100).map(|number| round_trip(&object(number), Some(dictionary))).sum()
        };
        assert!(size(&with_tables) < size(&without), "{} {}", size(&with_tables), size(&without));
    }

    #[test]
    fn any_samples_make_a_dictionary() {
        for sample in ["{}", "aaaaaaaa", &"x".repeat(10_000), r#"{"spec":{"a":1}}"#] {
            let mut samples = Samples::default();
            let dictionary = (0..DICTIONARY_BYTES).find_map(|_| samples.add(sample)).unwrap();
            assert!(samples.content.is_empty());
            round_trip(r#"{"spec":{"a":1,"b":"a text that is long enough to be compressed"}}"#, Some(&dictionary));
        }
    }

    proptest! {
        #[test]
        fn compressed_texts_are_read_again(text in ".{0,300}", times in 1_usize..400, sample in "[a-z{}:]{0,2000}") {
            let mut samples = Samples::default();
            let dictionary = (0..20).find_map(|_| samples.add(&sample));
            round_trip(&text.repeat(times), dictionary.as_ref());
            round_trip(&text, None);
        }
    }
}
