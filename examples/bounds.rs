//! Writes `docs/bounds.md`: every limit in the code, with its value and the reason from its doc comment.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "# Bounds

This page lists the limits of everything that comes from outside: request bodies, trees, texts, counts and times.

Each limit is a named constant in the code. `make generate` writes this page from the constants and their doc comments.

";

/// The modules that have limits, and a description of each module for its heading.
const MODULES: [(&str, &str); 16] = [
    ("server", "connections and requests"),
    ("admission", "reviews and answers"),
    ("gate", "decisions"),
    ("yaml", "documents"),
    ("catalog", "objects that rules look up"),
    ("kustomize", "trees of files"),
    ("artifacts", "fetched trees"),
    ("remotes", "repositories and files that `build --fetch` fetches"),
    ("oci", "registries"),
    ("cache", "caches"),
    ("go", "values and patterns with Go's semantics"),
    ("landscaper", "Landscaper's objects and components"),
    ("crossplane", "Compositions, environments, composites"),
    ("reconciler", "the controller manager"),
    ("process", "logs and the plain port"),
    ("recording", "recordings"),
];

/// A constant is treated as a limit only if it has one of these types.
const TYPES: [&str; 7] = ["usize", "u64", "u32", "i64", "u8", "Duration", "ArchiveLimits"];
/// Files with constants that are not limits: sizes of drawings, and constants of arithmetic and formats.
const EXCLUDED_FILES: [&str; 7] =
    ["svg.rs", "graph.rs", "hash.rs", "quantity.rs", "arithmetic.rs", "scan.rs", "uuids.rs"];

fn main() {
    print!("{}", page(Path::new(env!("CARGO_MANIFEST_DIR"))));
}

/// Returns the text of `docs/bounds.md`. It describes the limits in the source files of the repository at the path
/// `repository`.
pub(crate) fn page(repository: &Path) -> String {
    let mut page = HEAD.to_owned();
    for (module, subject) in MODULES {
        let _ = writeln!(page, "## `{module}`: {subject}\n\n| limit | value | reason |\n|---|---|---|");
        for file in files(&repository.join("src").join(module)) {
            let text = fs::read_to_string(&file).unwrap();
            let path = module_path(repository, &file);
            for (name, value, reason) in bounds(&text) {
                let _ = writeln!(page, "| `{path}::{name}` | `{value}` | {reason} |");
            }
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Returns the source files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let is_excluded = |path: &Path| EXCLUDED_FILES.iter().any(|excluded| path.ends_with(excluded));
    let source_files = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") && !is_excluded(&path) => vec![path],
        false => Vec::new(),
    };
    entries.into_iter().flat_map(source_files).collect()
}

fn module_path(repository: &Path, file: &Path) -> String {
    let path = file.strip_prefix(repository.join("src")).unwrap().with_extension("");
    let path = path.display().to_string().replace('/', "::");
    path.trim_end_matches("::mod").to_owned()
}

/// Returns the name, the value and the reason of each limit in the source file with the content `text`.
fn bounds(text: &str) -> Vec<(&str, &str, String)> {
    let mut found = Vec::new();
    let mut reason = Vec::new();
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        if let Some(words) = line.strip_prefix("/// ") {
            reason.push(words);
            continue;
        }
        if let Some((name, value)) = bound(line).filter(|_| !reason.is_empty()) {
            found.push((name, value, reason.join(" ").replace('|', "\\|")));
        }
        reason.clear();
    }
    found
}

fn bound(line: &str) -> Option<(&str, &str)> {
    let (_, constant) =
        line.split_once("const ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?;
    let (name, rest) = constant.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    TYPES.contains(&kind).then_some((name, value.trim_end_matches(';')))
}
