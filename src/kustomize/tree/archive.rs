//! Reads a file tree from a tar archive. The archive may be compressed with gzip, as Flux's artifacts are, or
//! uncompressed, as the output of `git archive` is.

use std::cell::Cell;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::NAMES;
use super::{MAX_FILE_BYTES, Memory, Tree, TreePath};

/// Maximum length of a path in an archive, in bytes. Linux does not open longer paths.
const MAX_PATH_LENGTH: usize = 4096;

/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The limits for reading an archive, and whether to read it as strictly as Flux does.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    /// Maximum size of the unpacked archive in bytes, which includes the metadata of the archive.
    pub bytes: u64,
    /// Maximum number of files, links and folders.
    pub entries: usize,
    /// Whether to read the archive as Flux does (`Untar` in fluxcd/pkg's `tar/tar.go`). Flux skips links, and rejects
    /// an archive if a path leads out of it.
    pub strict: bool,
}

impl Default for ArchiveLimits {
    /// Returns limits that usual archives do not reach. Sources of Flux are smaller than 50 MB when compressed, and
    /// text compresses to about a fifth of its size. A repository with 1000 Kustomizations and 3000 Components has
    /// about 20000 files.
    fn default() -> Self {
        Self { bytes: 256 << 20, entries: 200_000, strict: false }
    }
}

/// The reason why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive is not a valid `tar` or `tar.gz`, is truncated, or contains a path that is too long.
    #[error("the archive cannot be read: {0}")]
    Broken(#[from] io::Error),
    /// The unpacked size of the archive exceeds [`ArchiveLimits::bytes`].
    #[error("the archive is larger than {0} bytes when unpacked")]
    TooLarge(u64),
    /// The archive has more entries than [`ArchiveLimits::entries`].
    #[error("the archive has more than {0} entries")]
    TooMany(usize),
    /// A path in the archive, such as `../a` or `/a`, may lead out of the root folder of the archive. Contains at most
    /// the first 100 characters of the path.
    #[error("the archive has the path {0:?}, which may point outside of it")]
    LeadsOut(String),
}

impl Tree {
    /// Reads the files of a `tar` or `tar.gz` archive. `base` is the absolute path of the tree's root.
    ///
    /// # Errors
    ///
    /// If the archive is not a valid `tar` or `tar.gz`, contains a path that is too long, or exceeds the default
    /// [`ArchiveLimits`].
    pub fn archive(mut archive: impl Read, base: &str) -> Result<Self, ArchiveError> {
        let mut start = Vec::new();
        archive.by_ref().take(GZIP.len() as u64).read_to_end(&mut start)?;
        let (is_packed, whole) = (start == GZIP, io::Cursor::new(start).chain(archive));
        let limits = ArchiveLimits::default();
        if is_packed { Self::archive_within(whole, base, limits) } else { Self::unpacked_within(whole, base, limits) }
    }

    /// Reads the files of a `tar.gz` archive within the given limits.
    ///
    /// # Errors
    ///
    /// - If the archive is not a valid `tar.gz`, contains a path that is too long, or exceeds `limits`.
    /// - If `limits.strict` is set, and a path may lead out of the archive.
    pub fn archive_within(packed: impl Read, base: &str, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        Self::unpacked_within(GzDecoder::new(packed), base, limits)
    }

    fn unpacked_within(unpacked: impl Read, base: &str, limits: ArchiveLimits) -> Result<Self, ArchiveError> {
        let left = Cell::new(limits.bytes);
        let mut archive = Archive::new(Bounded { unpacked, left: &left });
        let mut memory = Memory::new();
        for entry in archive.entries()? {
            let mut entry = entry.map_err(|error| cause(error, &left, limits))?;
            if limits.strict && !is_unpacked_by_flux(&entry)? {
                continue;
            }
            add(&mut memory, &mut entry).map_err(|error| cause(error, &left, limits))?;
            if memory.len() > limits.entries {
                return Err(ArchiveError::TooMany(limits.entries));
            }
            if memory.weight() > limits.bytes {
                return Err(ArchiveError::TooLarge(limits.bytes));
            }
        }
        let (weight, kustomizations) = (memory.weight(), memory.cost_of(&NAMES));
        Ok(Self { weight, kustomizations, ..Self::new(memory, base) })
    }
}

/// A reader that fails when an archive exceeds its size limit. `Read::take` cannot be used, because it would only end
/// the input at the limit, and the archive would look truncated.
struct Bounded<'l, R> {
    unpacked: R,
    left: &'l Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.unpacked.read(buffer)?;
        let left = self.left.get();
        self.left.set(left.saturating_sub(count as u64));
        if count as u64 > left { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(count) }
    }
}

fn cause(error: io::Error, left: &Cell<u64>, limits: ArchiveLimits) -> ArchiveError {
    if left.get() == 0 { ArchiveError::TooLarge(limits.bytes) } else { ArchiveError::Broken(error) }
}

/// Returns whether Flux unpacks an entry of a tar archive. Returns an error if Flux rejects the whole archive because
/// of the entry.
fn is_unpacked_by_flux<R: Read>(entry: &tar::Entry<'_, R>) -> Result<bool, ArchiveError> {
    let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if path.is_empty() || path.starts_with('/') || path.contains('\\') || path.contains("../") {
        return Err(ArchiveError::LeadsOut(path.chars().take(100).collect()));
    }
    let kind = entry.header().entry_type();
    Ok(matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::Directory))
}

fn add<R: Read>(memory: &mut Memory, entry: &mut tar::Entry<'_, R>) -> io::Result<()> {
    if entry.path_bytes().len() > MAX_PATH_LENGTH {
        return Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            format!("a path of more than {MAX_PATH_LENGTH} bytes"),
        ));
    }
    let path = TreePath::from(&*String::from_utf8_lossy(&entry.path_bytes()));
    let target = entry.link_name_bytes().map(|name| String::from_utf8_lossy(&name).into_owned());
    match (entry.header().entry_type(), target) {
        (EntryType::Regular | EntryType::Continuous, _) => {
            // a file above the limit is stored with one byte too many, so that only reading this file fails
            let mut content = Vec::new();
            entry.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
            memory.add_file(&path, &content);
        }
        (EntryType::Directory, _) => memory.add_folder(&path),
        (EntryType::Symlink, Some(target)) => memory.add_link(&path, &target),
        (EntryType::Link, Some(target)) => memory.add_copy(&path, &TreePath::from(&*target)),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::Located;
    use super::*;

    fn packed(path: &str, content: &str) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        builder.append(&header, content.as_bytes()).unwrap();
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn files_are_found_and_stay_inside() {
        let tree = Tree::archive(&*packed("./../../app/a.yaml", "a: b\n"), "/").unwrap();
        let file = TreePath::from("app/a.yaml");
        assert_eq!(tree.locate(&TreePath::root(), "app/a.yaml"), Ok(Located::File(file.clone())));
        assert_eq!(&*tree.read(&file).unwrap(), b"a: b\n");
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = packed("a.yaml", &"x".repeat(1 << 20));
        assert!(bomb.len() < 10_000);
        let limits = ArchiveLimits { bytes: 1 << 19, entries: 10, strict: false };
        assert!(matches!(Tree::archive_within(&*bomb, "/", limits), Err(ArchiveError::TooLarge(_))));
        let limits = ArchiveLimits { bytes: 1 << 21, entries: 1, strict: true };
        assert!(Tree::archive_within(&*bomb, "/", limits).is_ok());
        let deep = packed("a/b/c/d", "");
        assert!(matches!(Tree::archive_within(&*deep, "/", limits), Err(ArchiveError::TooMany(_))));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        assert!(Tree::archive(&b"not packed"[..], "/").is_err());
        let mut cut = packed("a.yaml", &"x".repeat(100_000));
        cut.truncate(60);
        cut.write_all(b"").unwrap();
        assert!(Tree::archive(&*cut, "/").is_err());
    }
}
