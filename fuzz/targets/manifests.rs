//! Reads a file of manifests into a catalog, as `serve --manifests` and `audit` do. The catalog must have the same
//! objects if the file is read in other pieces, and if it is read as `check` reads it.
#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis::catalog::Catalog;
use portcullis::catalog::manifests::{self, DEFAULT_NAMESPACE, Manifests, set_stored_namespace};
use portcullis::gate::Registry;
use portcullis::yaml::{self, Limits};
use serde_json::Value;

/// Number of bytes that are read from a file at once.
const PIECE_BYTES: usize = 32 * 1024;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("portcullis-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
});

/// The objects in a catalog: their values, by kind, namespace and name.
type Objects = BTreeMap<(&'static str, String, String), Value>;

fuzz_target!(|input: (u16, &str)| {
    let (split, text) = input;
    let file = FOLDER.join("a.json");
    fs::write(&file, text).unwrap();
    let read = filled(&file, REGISTRY.catalog());
    let begins_like_json = text.starts_with('{');
    if begins_like_json && !is_json(text) {
        return;
    }
    if let (Ok(objects), Some(expected)) = (&read, checked(&file)) {
        assert_eq!(*objects, expected);
    }
    if begins_like_json {
        let blanks = PIECE_BYTES - 1 - usize::from(split) % PIECE_BYTES.min(text.len());
        fs::write(&file, " ".repeat(blanks) + text).unwrap();
        // A catalog that is already filled is changed only if the whole file can be read.
        assert_same(read, filled(&file, REGISTRY.catalog_of(Vec::new())));
    }
});

/// Returns whether a text consists of JSON values. For other texts that begin like JSON, the results may differ:
/// objects before the error may already be stored when the text is read again as YAML, and objects of kinds that the
/// catalog does not store are not parsed.
fn is_json(text: &str) -> bool {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().all(|value| value.is_ok())
}

/// Compares the results of reading the same text in one piece, and in several pieces.
fn assert_same(whole: Result<Objects, String>, pieces: Result<Objects, String>) {
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        // A large file must not contain several lists.
        (Ok(_), Err(error)) => assert!(error.contains("write each to its own file"), "{error}"),
        (Err(error), Ok(_)) => panic!("only the whole text is an error: {error}"),
        (Err(_), Err(_)) => {}
    }
}

/// Reads a file into `catalog`. Returns the objects in the catalog, or the errors.
fn filled(file: &PathBuf, catalog: Catalog) -> Result<Objects, String> {
    match manifests::fill(&catalog, &[file], DEFAULT_NAMESPACE) {
        Ok(_) => Ok(objects(&catalog)),
        Err(errors) => Err(errors.iter().map(|error| format!("{error}\n")).collect()),
    }
}

/// Returns the objects that `check` finds in a file. `None` if it reports an error, or if the file contains duplicate
/// keys.
fn checked(file: &PathBuf) -> Option<Objects> {
    let found = Manifests::load(&[file], DEFAULT_NAMESPACE);
    let text = fs::read_to_string(file).unwrap();
    // Of duplicate fields `kind`, the server uses the first one to choose the kind, and `check` the last one.
    let has_duplicates =
        yaml::documents(&text, &Limits::default()).flatten().any(|document| !document.duplicates().is_empty());
    if has_duplicates || !found.errors.is_empty() {
        return None;
    }
    let catalog = REGISTRY.catalog_of(Vec::new());
    let mut stored = found.objects();
    stored.iter_mut().for_each(|object| set_stored_namespace(object, &catalog, DEFAULT_NAMESPACE));
    Some(objects(&REGISTRY.catalog_of(stored)))
}

/// Returns the objects that have a name. A cluster contains no others.
fn objects(catalog: &Catalog) -> Objects {
    let kinds = catalog.kinds().chain(catalog.declared());
    let all = kinds.flat_map(|kind| catalog.all(kind).into_iter().map(move |object| (kind.kind, object)));
    let named = all.filter(|(_, object)| !object.name().is_empty());
    named
        .map(|(kind, object)| ((kind, object.namespace().to_owned(), object.name().to_owned()), object.value().clone()))
        .collect()
}
