//! Unpacks the kustomization files that are contained in Kubernetes objects. For example, a Bundle of Fleet contains
//! single files, and a ConfigMap may contain an archive.

use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::Content;
use crate::kustomize::tree::{ArchiveLimits, Memory, Tree};

/// The key of a ConfigMap or Secret under which Sveltos expects the archive of a tree.
pub(super) const ARCHIVE_KEY: &str = "kustomize.tar.gz";
/// Limits for unpacking the kustomization files that one Kubernetes object contains. 20 MiB is the limit of Sveltos.
/// Usual archives are smaller: etcd stores objects of at most 1.5 MiB, and an archive of this size contains about 7.5
/// MiB of files.
const UNPACKED: ArchiveLimits = ArchiveLimits { bytes: 20 << 20, entries: 20_000, strict: false };

/// Returns a [`Content`] that unpacks a base64-encoded `tar.gz` archive.
pub(super) fn archive(encoded: &str) -> Content {
    let encoded: Arc<str> = encoded.into();
    Content::Carried(Arc::new(move || {
        let packed = STANDARD.decode(&*encoded).map_err(|error| format!("it is not base64: {error}"))?;
        Tree::archive_within(&*packed, "/", UNPACKED).map_err(|error| error.to_string())
    }))
}

/// A file of a kustomize tree that is stored in a Kubernetes object, such as a Bundle of Fleet.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) content: String,
    pub(super) encoding: Encoding,
}

/// The encoding of a kustomization file that is stored in a Kubernetes object, such as a Bundle of Fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Base64,
    /// The content is compressed with gzip, then encoded with base64.
    Base64Gz,
}

/// Returns the content of a tree whose files are all stored in one object, such as a Bundle of Fleet. The files are
/// decoded when the tree is checked.
pub(super) fn files(files: Vec<File>) -> Content {
    Content::Carried(Arc::new(move || {
        let mut memory = Memory::new();
        let mut left = UNPACKED.bytes;
        for file in &files {
            let bytes = decoded(file, left).map_err(|problem| format!("{}: {problem}", file.path))?;
            left -= bytes.len() as u64;
            memory = memory.file(&file.path, bytes);
        }
        Ok(Tree::new(memory, "/"))
    }))
}

fn decoded(file: &File, left: u64) -> Result<Vec<u8>, String> {
    let base64 = || STANDARD.decode(&file.content).map_err(|error| format!("it is not base64: {error}"));
    let bytes = match file.encoding {
        Encoding::Plain => file.content.clone().into_bytes(),
        Encoding::Base64 => base64()?,
        Encoding::Base64Gz => {
            let (packed, mut bytes) = (base64()?, Vec::new());
            let unpacked = GzDecoder::new(&*packed).take(left + 1).read_to_end(&mut bytes);
            unpacked.map_err(|error| format!("it is not packed with gzip: {error}"))?;
            bytes
        }
    };
    if bytes.len() as u64 > left {
        return Err(format!("all files together are larger than {} bytes", UNPACKED.bytes));
    }
    Ok(bytes)
}

/// Returns the keys and values of the mapping in the field `field` of an object, such as `data`. Skips values that are
/// not strings.
pub(super) fn members<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let members = object.get(field).and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
