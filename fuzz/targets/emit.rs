//! Prints parsed YAML as kustomize prints manifests. The printed text must be valid YAML, and must not change if it is
//! parsed and printed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::kustomize::emit::{Value, document};
use portcullis::kustomize::node::printed;
use portcullis::yaml::{self, Limits};

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let Ok(Some(node)) = yaml::node(text, 0, &limits) else { return };
    let Ok(value) = printed(&node) else { return };
    let mut first = String::new();
    if document(&value, &mut first).is_err() || breaks_lines_in_yaml_1_1(&first) {
        return;
    }
    let Ok(documents) = yaml::read(&first, &limits) else { panic!("printed text cannot be read:\n{first}") };
    let again = documents.first().map(|document| &document.value).unwrap_or(&serde_json::Value::Null);
    let mut second = String::new();
    document(&Value::from(again), &mut second).expect("a value that was printed and parsed can be printed");
    assert_eq!(first, second, "printed text changes when it is read and printed again");
});

/// Reports whether a text has a character that is a line break for go-yaml v2 but not for our parser.
fn breaks_lines_in_yaml_1_1(text: &str) -> bool {
    text.contains(['\u{85}', '\u{2028}', '\u{2029}'])
}
