//! Generates a kustomize tree, checks it in every profile, and builds it. The text of the built objects must parse to
//! the same objects. The bytes of the fuzzer determine the choices of the generator. The differential test uses the
//! same generator.
#![no_main]

#[allow(dead_code)]
#[path = "../../tests/differential/case.rs"]
mod case;
#[path = "../../tests/differential/damage.rs"]
mod damage;
#[allow(dead_code)]
#[path = "../../tests/differential/dice.rs"]
mod dice;
#[path = "../../tests/differential/generate/mod.rs"]
mod generate;

use libfuzzer_sys::fuzz_target;
use portcullis::kustomize::emit::{self, Value};
use portcullis::kustomize::engine::{Settings, build};
use portcullis::kustomize::options::{Options, Profile};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Files, analyse_with};
use portcullis::yaml::{self, Limits};

fuzz_target!(|bytes: &[u8]| {
    let case = generate::tree(&mut dice::Dice::of_bytes(bytes));
    let files = case.files_at("/base").fold(Memory::new(), |files, (path, text)| files.file(path, text));
    let files = case.links.iter().fold(files, |files, (path, target)| files.link(path, target));
    let (tree, root, read) = (Tree::new(files, "/base"), TreePath::from(&*case.build), Files::default());
    for profile in Profile::ALL {
        let _ = analyse_with(&tree, &root, &Options::of(profile), &read);
    }
    let (options, settings) = (Options::default(), Settings::default());
    let Ok(built) = build(&tree, &root, &options, &settings, &read) else { return };
    let (Ok(text), Ok(texts)) = (built.text(), built.texts()) else { return };
    // go-yaml v2 treats these characters as line breaks, but our parser does not.
    if text.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        return;
    }
    let Ok(documents) = yaml::read(&text, &Limits::default()) else { panic!("built objects cannot be read:\n{text}") };
    assert_eq!(documents.len(), built.resources().len(), "number of objects in\n{text}");
    for (document, expected) in documents.iter().zip(&texts) {
        // Different values have different texts, so it is enough to compare the texts.
        let mut again = String::new();
        emit::document(&Value::from(&document.value), &mut again)
            .expect("a value that was printed and parsed can be printed");
        assert_eq!(&again, expected, "a printed object parses to a different value");
    }
});
