//! Parses a text as YAML: as a stream of documents, and only the first document. All positions must be within the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::yaml::{self, Document, Limits, Place};

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let mut failed = false;
    for document in yaml::documents(text, &limits) {
        failed |= document.is_err();
        document.iter().for_each(|document| check(document, text));
    }
    assert_eq!(yaml::read(text, &limits).is_err(), failed, "both readers agree on what is YAML");
    if let Ok(Some(document)) = yaml::first(text, &limits) {
        check(&document, text);
    }
});

fn check(document: &Document, text: &str) {
    within(document.start(), text);
    for duplicate in document.duplicates() {
        within(duplicate.lost, text);
        within(duplicate.kept, text);
    }
}

fn within(place: Place, text: &str) {
    assert!(place.line >= 1 && place.column >= 1, "{place:?}");
    assert!(place.start <= place.end && place.end <= text.len(), "{place:?} of {}", text.len());
}
