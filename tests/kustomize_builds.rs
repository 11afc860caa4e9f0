//! Compares the output and errors of whole builds with those of kustomize 5.8.1.
//!
//! The cases in `builds.json` are our own. Cases of other authors are read from the folder of shared vectors, if it
//! exists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, reason = "the counts of the cases are printed")]

mod cases;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cases::repository;
use portcullis::kustomize::Files;
use portcullis::kustomize::engine::{Cause, Reorder, Settings, Stop, build};
use portcullis::kustomize::options::{Options, Restrictor};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use serde_json::Value;

/// Maximum number of differences that are printed. If there are more, only their number is printed.
const MAX_PRINTED: usize = 8;

fn tree(case: &Value) -> Tree {
    let mut files = Memory::new();
    let list = |key: &str| case[key].as_object().into_iter().flatten();
    for (path, content) in list("files") {
        files = files.file(path, content.as_str().unwrap());
    }
    for (path, content) in list("files_base64") {
        files = files.file(path, STANDARD.decode(content.as_str().unwrap()).unwrap());
    }
    for (path, target) in list("symlinks") {
        files = files.link(path, target.as_str().unwrap());
    }
    Tree::new(files, "/")
}

/// Builds the kustomization of a test case, and returns the rendered objects as YAML. Panics if the warnings differ
/// from the expected ones.
fn build_case(case: &Value) -> Result<String, Stop> {
    let tree = tree(case);
    let options = &case["options"];
    let restrictor = if options["load_restrictor"] == "none" { Restrictor::None } else { Restrictor::RootOnly };
    let reorder = if options["reorder"] == "none" { Reorder::None } else { Reorder::Legacy };
    let settings = Settings { reorder, managed_by_label: options["managed_by_label"] == true };
    let options = Options { restrictor, ..Options::default() };
    let root = TreePath::from(case["build"].as_str().unwrap());
    let files = Files::default();
    let built = build(&tree, &root, &options, &settings, &files)?;
    let warnings = case["expect"]["warnings"]
        .as_str()
        .filter(|reported| reported.lines().all(|line| line.starts_with("# Warning")));
    if let Some(warnings) = warnings {
        assert_eq!(built.warnings(), warnings, "{}", case["name"]);
    }
    built.text()
}

/// Returns what a build needs and the test does not provide, such as the network. The test skips such a build. `cause`
/// is the reason why the result of the build is unknown. Returns `None` for any other reason; the test then fails.
fn not_executed(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Network => Some("network"),
        Cause::Helm => Some("Helm"),
        Cause::Program => Some("program"),
        Cause::Limit | Cause::Other => None,
    }
}

/// Describes how the result of a case differs from that of kustomize. Returns `None` if the results agree. If a case
/// needs a network or another program, adds it to `skipped` and returns `None`.
fn difference(case: &Value, skipped: &mut Vec<String>) -> Option<String> {
    let expect = &case["expect"];
    let error = expect["error"].as_str().or(expect["panic"].as_str());
    match (build_case(case), expect["output"].as_str()) {
        (Ok(text), Some(output)) if text == output => None,
        (Ok(text), Some(output)) => Some(first_difference(output, &text)),
        (Err(Stop::Refused(_)), None) => None,
        (Err(Stop::Unknown(reason)), _) => match not_executed(reason.cause) {
            Some(needs) => {
                skipped.push(format!("{}: {needs}: {}", case["name"], reason.message));
                None
            }
            None => Some(format!("  the result is unknown: {} {}", reason.site, reason.message)),
        },
        (Err(stop), Some(_)) => Some(format!("  kustomize builds it: {}: {stop:?}", describe(&stop))),
        (Ok(_), None) => Some(format!("  kustomize rejects it: {error:?}")),
    }
}

fn describe(stop: &Stop) -> String {
    format!("{} {}", stop.site(), stop.message())
}

/// Returns a description of the first line that differs.
fn first_difference(expected: &str, found: &str) -> String {
    let mut out = String::new();
    let (mut a, mut b) = (expected.lines(), found.lines());
    for number in 1.. {
        let (left, right) = (a.next(), b.next());
        if left != right {
            let _ = writeln!(out, "  line {number}\n  - {left:?}\n  + {right:?}");
            break;
        }
        if left.is_none() {
            let _ = writeln!(out, "  the ends of the texts differ");
            break;
        }
    }
    out
}

/// Returns the folder with additional test cases that are not part of this repository, if it exists. The environment
/// variable `PORTCULLIS_VECTORS` can set its path.
fn shared_vectors_folder() -> Option<PathBuf> {
    let given = std::env::var_os("PORTCULLIS_VECTORS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| repository().join("../shared/vectors"));
    folder.is_dir().then_some(folder)
}

/// Runs all cases of a file, and returns the differences.
fn run(file: &Path) -> Vec<String> {
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let only = std::env::var("PORTCULLIS_CASE").ok();
    let is_wanted = |case: &&Value| only.as_ref().is_none_or(|only| case["name"].as_str().unwrap().contains(only));
    let mut skipped = Vec::new();
    let differences: Vec<String> = cases
        .iter()
        .filter(is_wanted)
        .filter_map(|case| difference(case, &mut skipped).map(|reported| format!("{}\n{reported}", case["name"])))
        .collect();
    let agree = cases.len() - differences.len() - skipped.len();
    println!(
        "{}: {agree} of {} cases agree, {} need a network or a program",
        file.display(),
        cases.len(),
        skipped.len()
    );
    skipped.iter().for_each(|reported| println!("  {reported}"));
    if let Some(report) = std::env::var_os("PORTCULLIS_REPORT") {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        std::fs::write(Path::new(&report).join(name), differences.join("\n")).unwrap();
    }
    differences
}

fn assert_no_differences(differences: &[String]) {
    let shown: Vec<&str> = differences.iter().take(MAX_PRINTED).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
}

#[test]
fn builds_equal_kustomizes() {
    assert_no_differences(&run(&repository().join("tests/vectors/kustomize/builds.json")));
}

#[test]
fn shared_builds_equal_kustomizes() {
    let Some(folder) = shared_vectors_folder() else {
        println!("there are no cases of other authors: set PORTCULLIS_VECTORS");
        return;
    };
    let mut differences = Vec::new();
    for name in ["builds-upstream.json", "builds-real.json"] {
        let file = folder.join("kustomize").join(name);
        match file.is_file() {
            true => differences.extend(run(&file)),
            false => println!("{} does not exist", file.display()),
        }
    }
    assert_no_differences(&differences);
}
