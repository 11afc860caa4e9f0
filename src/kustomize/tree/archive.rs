//! A tar archive, packed with gzip, as Flux's artifacts are.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::{LARGEST_FILE, Memory, Tree, TreePath};

/// Flux packs at most 50 MB by default, and text shrinks to about a fifth.
const LARGEST_TREE: u64 = 256 << 20;
/// A repository of 1 000 roots and 3 000 components has some 20 000 files.
const MOST_FILES: usize = 200_000;

/// Why an archive cannot be a tree.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not a tar archive packed with gzip, or it is cut off.
    #[error("the archive cannot be read: {0}")]
    Broken(#[from] io::Error),
    /// It is larger than 256 MiB when unpacked.
    #[error("the archive is larger than {LARGEST_TREE} bytes when unpacked")]
    TooLarge,
    /// It has more than 200 000 entries.
    #[error("the archive has more than {MOST_FILES} entries")]
    TooMany,
}

impl Tree {
    /// The files of a `tar.gz`, which stand at `base` for those who refer to them by absolute paths.
    ///
    /// # Errors
    ///
    /// When it is no such archive, or is larger than is good for us.
    pub fn archive(packed: impl Read, base: &str) -> Result<Self, ArchiveError> {
        let mut archive = Archive::new(GzDecoder::new(packed).take(LARGEST_TREE));
        let mut memory = Memory::new();
        let mut total = 0;
        for (number, entry) in archive.entries()?.enumerate() {
            let mut entry = entry?;
            total += entry.size();
            if total > LARGEST_TREE {
                return Err(ArchiveError::TooLarge);
            }
            if number >= MOST_FILES {
                return Err(ArchiveError::TooMany);
            }
            add(&mut memory, &mut entry)?;
        }
        Ok(Self::new(memory, base))
    }
}

fn add<R: Read>(memory: &mut Memory, entry: &mut tar::Entry<'_, R>) -> io::Result<()> {
    let path = TreePath::from(&*String::from_utf8_lossy(&entry.path_bytes()));
    let target = entry.link_name_bytes().map(|name| String::from_utf8_lossy(&name).into_owned());
    match (entry.header().entry_type(), target) {
        (EntryType::Regular | EntryType::Continuous, _) => {
            let mut content = Vec::new();
            entry.take(LARGEST_FILE).read_to_end(&mut content)?;
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
    fn what_is_no_archive_is_refused() {
        assert!(Tree::archive(&b"not packed"[..], "/").is_err());
        let mut cut = packed("a.yaml", &"x".repeat(100_000));
        cut.truncate(60);
        cut.write_all(b"").unwrap();
        assert!(Tree::archive(&*cut, "/").is_err());
    }
}
