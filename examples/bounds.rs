//! Writes `docs/bounds.md`: every bound in the code, with its value and the reason that stands beside it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "# Bounds

Whatever comes from outside ends somewhere: bodies, trees, texts, numbers of things, times. Each bound is a named constant beside
the code that keeps it, with its reason; this page is written from there by `make generate`. Texts and sizes of
drawings are left out.

";

/// The rooms, and what comes into them.
const ROOMS: [(&str, &str); 13] = [
    ("server", "connections and requests"),
    ("admission", "reviews and answers"),
    ("gate", "decisions"),
    ("yaml", "documents"),
    ("catalog", "what is looked up"),
    ("kustomize", "trees of files"),
    ("artifacts", "trees that are fetched"),
    ("oci", "registries"),
    ("landscaper", "Landscaper's objects and components"),
    ("crossplane", "Compositions, environments, composites"),
    ("reconciler", "the companion"),
    ("process", "logs and the plain port"),
    ("recording", "recordings"),
];

/// Types of constants that bound something.
const TYPES: [&str; 7] = ["usize", "u64", "u32", "i64", "u8", "Duration", "ArchiveLimits"];
/// Files whose constants measure drawings or numbers and bound nothing.
const OTHERS: [&str; 6] = ["svg.rs", "graph.rs", "hash.rs", "quantity.rs", "arithmetic.rs", "scan.rs"];

fn main() {
    print!("{}", page(Path::new(env!("CARGO_MANIFEST_DIR"))));
}

/// The page, from the sources of the repository.
pub(crate) fn page(repository: &Path) -> String {
    let mut page = HEAD.to_owned();
    for (room, what) in ROOMS {
        let _ = writeln!(page, "## `{room}`: {what}\n\n| bound | value | reason |\n|---|---|---|");
        for file in files(&repository.join("src").join(room)) {
            let text = fs::read_to_string(&file).unwrap();
            let module = module(repository, &file);
            for (name, value, reason) in bounds(&text) {
                let _ = writeln!(page, "| `{module}::{name}` | `{value}` | {reason} |");
            }
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The source files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let is_other = |path: &Path| OTHERS.iter().any(|other| path.ends_with(other));
    let of = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") && !is_other(&path) => vec![path],
        false => Vec::new(),
    };
    entries.into_iter().flat_map(of).collect()
}

fn module(repository: &Path, file: &Path) -> String {
    let path = file.strip_prefix(repository.join("src")).unwrap().with_extension("");
    let path = path.display().to_string().replace('/', "::");
    path.trim_end_matches("::mod").to_owned()
}

/// The constants of a file that bound something and say why: name, value, reason.
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
