//! Reads and checks all folders of an archive. The first byte of the input selects the system that builds the tree,
//! such as Flux. It also selects the form of the other bytes: a compressed archive or a plain tar archive. The fuzz
//! target compresses plain archives before it reads them. Fuzzers rarely guess the checksum of a compressed archive, so
//! most inputs are plain.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use portcullis::kustomize::analyse;
use portcullis::kustomize::options::{Options, Profile};
use portcullis::kustomize::tree::{Entry, Tree, TreePath};

/// Maximum depth of the folders that are checked.
const MAX_DEPTH: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    let tree = if selector % 8 == 0 { Tree::archive(bytes, "/base") } else { Tree::archive(&*gzip(bytes), "/base") };
    if let Ok(tree) = tree {
        let options = Options::of(Profile::ALL[usize::from(selector / 8) % Profile::ALL.len()]);
        visit(&tree, &TreePath::root(), &options, MAX_DEPTH);
    }
});

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
}

fn visit(tree: &Tree, folder: &TreePath, options: &Options, max_depth: usize) {
    let _ = analyse(tree, folder, options);
    for name in tree.names(folder).iter().take(20) {
        let path = folder.join(name);
        let _ = tree.locate(folder, name);
        match tree.entry(&path) {
            Some(Entry::File) => drop(tree.read(&path)),
            Some(Entry::Folder) if max_depth > 0 => visit(tree, &path, options, max_depth - 1),
            _ => {}
        }
    }
}
