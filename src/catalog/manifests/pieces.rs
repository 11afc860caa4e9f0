//! Reads a file in pieces, so that a large file is never in memory as a whole.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::catalog::frames::PROBE_BYTES;

/// The separator of two YAML documents.
pub(super) const SEPARATOR: &[u8] = b"\n---";
/// Number of bytes that are read from a file at once. Larger reads need more memory, and the allocator would keep this
/// memory.
pub(super) const PIECE_BYTES: usize = 32 * 1024;
/// Maximum size of a JSON text or YAML document in a file, in bytes. A JSON file that is a Kubernetes List may be
/// larger, because its items are read one by one.
pub(super) const MAX_DOCUMENT_BYTES: usize = super::MAX_FILE_BYTES as usize;

/// A reader that splits a file at document separators into pieces of one or more YAML documents.
pub(super) struct Pieces {
    file: File,
    /// The bytes that were read and not returned yet.
    pub(super) buffer: Vec<u8>,
    is_at_end: bool,
    /// Number of lines of the file that were already returned to the caller.
    lines: u32,
}

impl Pieces {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: Vec::new(), is_at_end: false, lines: 0 })
    }

    /// Returns whether the end of the file is reached.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Fills the buffer up to `wanted` bytes. Returns whether the end of the file is reached.
    pub(super) fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let missing = wanted.saturating_sub(self.buffer.len());
        // Otherwise reading doubles the buffer from a few bytes, and the allocator keeps each size.
        self.buffer.reserve(missing + PROBE_BYTES);
        let missing = u64::try_from(missing).unwrap_or(u64::MAX);
        let read = (&self.file).take(missing).read_to_end(&mut self.buffer)?;
        self.is_at_end |= u64::try_from(read).is_ok_and(|read| read < missing);
        Ok(self.is_at_end)
    }

    /// Returns the next part of the file: one or more complete YAML documents. Also returns the number of lines before
    /// this part. `None` at the end of the file. Fails if a document is too large, or if the text is not UTF-8.
    pub(super) fn next(&mut self) -> io::Result<Option<(String, u32)>> {
        let mut wanted = PIECE_BYTES;
        let end = loop {
            if self.fill(wanted)? {
                break self.buffer.len();
            }
            if let Some(at) = memchr::memmem::rfind(&self.buffer, SEPARATOR) {
                break at + 1;
            }
            if self.buffer.len() > MAX_DOCUMENT_BYTES {
                return Err(io::Error::other(format!("a document has more than {MAX_DOCUMENT_BYTES} bytes")));
            }
            wanted = self.buffer.len() * 2;
        };
        let rest = self.buffer.split_off(end);
        let piece = std::mem::replace(&mut self.buffer, rest);
        if piece.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8(piece).map_err(|_| io::Error::other("it is not UTF-8 text"))?;
        let before = self.lines;
        self.lines += u32::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count()).unwrap_or(u32::MAX);
        Ok(Some((text, before)))
    }
}
