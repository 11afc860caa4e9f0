//! Checks a kustomize tree. The input is a text: a line of options, then the files of the tree. Before each file is a
//! line `=== path`. A symbolic link is a line `=== path -> target`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::kustomize::options::{Options, Profile, Restrictor};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Verdict, analyse};

fuzz_target!(|text: &str| {
    let (options, files) = text.split_once('\n').unwrap_or((text, ""));
    let (folder, options) = options_of(options);
    let mut memory = Memory::new();
    for file in files.split("=== ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap_or((file, ""));
        memory = match path.split_once(" -> ") {
            Some((path, target)) => memory.link(path, target),
            None => memory.file(path, content),
        };
    }
    let report = analyse(&Tree::new(memory, "/base"), &TreePath::from(folder), &options);
    let refused = report.findings.iter().filter(|finding| finding.location.refused);
    assert_eq!(
        refused.clone().count() > 0,
        report.verdict == Verdict::Reject,
        "the tree is rejected if and only if a finding denies it"
    );
    assert!(refused.filter(|finding| finding.location.first).count() <= 1, "at most one finding is the first");
    for finding in &report.findings {
        assert!(!finding.paragraph().is_empty() && finding.location.place.line >= 1);
    }
});

/// Parses a line of options: the words `folder profile restrictor version`, separated by spaces. Each word is optional.
/// If there is a fifth word, sets [`Options::lone_components`]. Returns the folder and the other options.
fn options_of(line: &str) -> (&str, Options) {
    let mut words = line.split(' ');
    let folder = words.next().unwrap_or_default();
    let profile = words.next().and_then(|word| word.parse().ok()).unwrap_or(Profile::Kubectl);
    let mut options = Options::of(profile);
    options.restrictor = words.next().and_then(|word| word.parse().ok()).unwrap_or(Restrictor::RootOnly);
    options.version = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
    options.lone_components = words.next().is_some();
    (folder, options)
}
