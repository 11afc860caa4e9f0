//! Parses a text as YAML, once as a stream of documents, and once only its first document. All positions must be within
//! the text.
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
    assert_eq!(
        yaml::read(text, &limits).is_err(),
        failed,
        "`documents` and `read` disagree on whether the text is valid"
    );
    if let Ok(Some(document)) = yaml::first(text, &limits) {
        check(&document, text);
    }
});

fn check(document: &Document, text: &str) {
    assert_place_in_text(document.start(), text);
    for duplicate in document.duplicates() {
        assert_place_in_text(duplicate.lost, text);
        assert_place_in_text(duplicate.kept, text);
    }
}

fn assert_place_in_text(place: Place, text: &str) {
    assert!(place.line >= 1 && place.column >= 1, "{place:?}");
    assert!(place.start <= place.end && place.end <= text.len(), "{place:?} of {}", text.len());
}
