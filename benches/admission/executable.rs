//! Copies the measured executable, so that the resident memory of several builds can be compared.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The size of the writes with which containerd unpacks the files of an image, in bytes.
const UNPACK_BYTES: usize = 32 * 1024;

/// A copy of an executable, written as on a node.
///
/// The kernel keeps a file that was just written in folios of up to the size of the writes. Since Linux 6.18, it maps
/// whole folios into a process. So the resident memory of a process depends on how its executable was written.
pub struct Executable {
    path: PathBuf,
    /// The folder with the copy. It is removed with this value.
    _folder: TempDir,
}

impl Executable {
    /// Copies the executable at `original`. The copy is in the target folder of Cargo, because the folder for temporary
    /// files may be in memory.
    pub fn copy_of(original: &Path) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("portcullis");
        copy(original, &path).unwrap_or_else(|error| panic!("{} cannot be copied: {error}", original.display()));
        Self { path, _folder: folder }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Copies an executable in writes of [`UNPACK_BYTES`].
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut out = fs::File::create(to)?;
    fs::read(from)?.chunks(UNPACK_BYTES).try_for_each(|chunk| out.write_all(chunk))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))
}
