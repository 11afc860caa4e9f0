//! Parses bytes in three ways: as a kustomization file, as a file that the field `configurations` lists, and as a file
//! of manifests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::admission::field::FieldPath;
use portcullis::kustomize::file::{self, KustomizationFile};
use portcullis::yaml::{self, Limits};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(file) = KustomizationFile::read("kustomization.yaml".into(), bytes) {
        for index in 0..file.kustomization.resources.len() {
            let place = file.place(&FieldPath::of(["resources"]).index(index));
            assert!(place.line >= 1 && place.end <= bytes.len(), "{place:?}");
        }
        assert!(file.deprecated.len() <= 6);
    }
    // Other targets check the results of these parsers.
    let _ = file::configuration(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        yaml::nodes(text, 0, &Limits::default()).for_each(drop);
    }
});
