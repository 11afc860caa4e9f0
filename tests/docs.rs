//! Tests of the documentation: commands have the shown output, links have a target, and the book contains every page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis::config;
use portcullis::gate::Registry;

#[path = "../examples/bounds.rs"]
#[allow(dead_code, reason = "as an example it has a main function")]
mod bounds;

/// The folder in docs that contains one page for each rule. The book must contain all these pages.
const PAGES_OF_RULES: &str = "rules/";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of all pages for users.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "certs", "charts", "examples", "fuzz"] {
        collect(&repository().join(folder), folder.is_empty(), &mut pages);
    }
    pages.sort();
    pages
}

fn collect(folder: &Path, is_top: bool, pages: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !is_top && !path.ends_with("target") {
            collect(&path, false, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

fn display_path(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}

/// Returns the lines of a page outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// Returns the targets of the relative links in a line, except in code spans.
fn links(line: &str) -> Vec<String> {
    let words: String = line.split('`').step_by(2).collect();
    let targets = words.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

/// Returns the anchors of the headings of a page, as GitHub and the book generate them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_of_pages_have_targets() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in prose(&text).flat_map(links) {
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let exists = target.exists()
                && (fragment.is_empty()
                    || anchors(&fs::read_to_string(&target).unwrap_or_default()).contains(fragment));
            if !exists {
                missing.push(format!("{}: {link}", display_path(&page)));
            }
        }
    }
    assert!(missing.is_empty(), "broken links:\n{}", missing.join("\n"));
}

/// Returns the paths in the repository that code spans of a page contain, such as `tests/docs.rs`.
fn named_paths(text: &str) -> Vec<&str> {
    const FOLDERS: [&str; 6] = ["src/", "tests/", "benches/", "examples/", "charts/", "webhook-config/"];
    let is_path = |span: &&str| {
        FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains([' ', '<', '*', '…', '$', '{', '\n'])
    };
    text.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[test]
fn files_named_in_pages_exist() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let prose = prose(&text).collect::<Vec<_>>().join("\n");
        let paths = named_paths(&prose).into_iter().filter(|path| !repository().join(path).exists());
        missing.extend(paths.map(|path| format!("{}: {path}", display_path(&page))));
    }
    assert!(missing.is_empty(), "files that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn the_book_has_every_page() {
    let docs = repository().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: Vec<_> = summary.lines().flat_map(links).filter(|link| !link.starts_with("../")).collect();
    let mut pages = Vec::new();
    collect(&docs, false, &mut pages);
    let pages = pages.iter().map(|page| page.strip_prefix(&docs).unwrap().display().to_string());
    let pages: BTreeSet<_> = pages.filter(|page| page != "SUMMARY.md").collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), pages);
    assert_eq!(listed.len(), pages.len(), "a page is listed twice");
    let rules = listed.iter().filter(|page| page.starts_with(PAGES_OF_RULES)).count();
    assert_eq!(rules, fs::read_dir(docs.join(PAGES_OF_RULES)).unwrap().count());
}

/// A command in a page, with the output that the page shows.
struct ShownCommand {
    page: String,
    command: String,
    output: String,
}

fn commands(page: &Path) -> Vec<ShownCommand> {
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block);
    let mut commands = Vec::new();
    for block in blocks.filter(|block| block.starts_with("$ portcullis ")) {
        for command in block.split("$ ").skip(1) {
            let (command, output) = command.split_once('\n').unwrap();
            commands.push(ShownCommand {
                page: display_path(page),
                command: command.to_owned(),
                output: output.to_owned(),
            });
        }
    }
    commands
}

#[test]
fn commands_of_pages_have_the_shown_output() {
    let binary = Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let folders = ["docs", "examples"].map(|folder| repository().join(folder));
    let commands: Vec<_> = pages()
        .iter()
        .filter(|page| folders.iter().any(|folder| page.starts_with(folder)))
        .flat_map(|page| commands(page))
        .collect();
    assert!(!commands.is_empty());
    for ShownCommand { page, command, output } in commands {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command} 2>&1")]).env("PATH", &path).env("NO_COLOR", "1");
        let run = shell.current_dir(repository()).output().unwrap();
        let actual = String::from_utf8(run.stdout).unwrap();
        assert_eq!(actual.trim_end(), output.trim_end(), "{page}: $ {command}");
    }
}

#[test]
fn the_page_of_bounds_is_up_to_date() {
    let page = fs::read_to_string(repository().join("docs/bounds.md")).unwrap();
    assert!(page == bounds::page(repository()), "docs/bounds.md is not what `make generate` writes");
}

/// Regression test for issue 18: the Installation in `examples/dry-run` needs the annotation
/// `landscaper.gardener.cloud/operation: reconcile`. Without it, Landscaper does not process a new Installation.
#[test]
fn the_example_of_a_dry_run_starts() {
    let text = fs::read_to_string(repository().join("examples/dry-run/installation.yaml")).unwrap();
    assert!(text.contains("landscaper.gardener.cloud/operation: reconcile"), "{text}");
}

/// Regression test for issue 18: a webhook with failure policy `Fail` denies writes from its registration until a
/// server answers, so it must be registered last.
#[test]
fn without_helm_the_webhook_configurations_come_last() {
    let page = fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let section = page.split("## Without Helm").nth(1).expect("the page has the section");
    let script = section.split("```").nth(1).expect("the section has a script");
    let applied: Vec<_> = script.lines().filter(|line| line.starts_with("kubectl apply")).collect();
    let folders: Vec<_> = applied.iter().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!(folders, ["1-prerequisites", "2-permissions", "3-server", "4-webhooks"], "{script}");
}

/// The tests in `tests/cluster` name headings of the pages, and run the commands below these headings. If a heading is
/// renamed, this test fails at once. The tests in `tests/cluster` would fail only after minutes.
#[test]
fn headings_that_the_tests_on_a_node_name_exist() {
    let read = |folder: &str| {
        let files = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs" || extension == "md");
        files.filter(is_text).map(|path| fs::read_to_string(path).unwrap()).collect::<String>()
    };
    let (pages, tests) = (read("docs"), read("tests/cluster"));
    let headings: BTreeSet<_> = pages.lines().filter(|line| line.starts_with('#')).collect();
    let named = tests.split(".block(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let missing: Vec<_> = named.clone().filter(|name| !headings.contains(name)).collect();
    assert!(named.count() > 10 && missing.is_empty(), "{missing:?}");
}

/// Returns the YAML blocks of a page that are configuration files of Portcullis, not Kubernetes objects.
fn configurations(page: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block);
    blocks.filter(|block| !block.contains("apiVersion:")).map(str::to_owned).collect()
}

#[test]
fn configurations_in_pages_are_valid() {
    let registry = Registry::standard();
    for page in ["docs/configuration.md", "docs/rollout.md", "docs/delivery.md", "docs/dry-run-deployer.md"] {
        let files = configurations(page);
        assert!(!files.is_empty(), "{page}");
        for file in files {
            config::parse(&file, page, &registry).unwrap_or_else(|error| panic!("{error}:\n{file}"));
        }
    }
}

#[test]
fn configuration_page_lists_every_key() {
    let error = config::parse("unknown: {}\n", "file", &Registry::standard()).unwrap_err().to_string();
    let (_, keys) = error.lines().next().unwrap().split_once("use one of: ").unwrap_or_else(|| panic!("{error}"));
    let keys: BTreeSet<_> = keys.split(", ").map(str::to_owned).collect();
    assert!(keys.contains("rules"), "{error}");
    let page = fs::read_to_string(repository().join("docs/configuration.md")).unwrap();
    let table = page.split("| key | value |").nth(1).expect("the page has the table");
    let rows =
        table.lines().skip(1).take_while(|line| line.starts_with('|')).filter_map(|line| line.strip_prefix("| `"));
    assert_eq!(rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect::<BTreeSet<_>>(), keys);
    let example = configurations("docs/configuration.md").remove(0);
    let shown = example.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key.to_owned());
    let shown: BTreeSet<_> = shown.filter(|key| !key.starts_with([' ', '-'])).collect();
    assert_eq!(shown, keys, "the example lacks keys");
}

/// Regression test for issue 18 (Crossplane, item 10): `docs/configuration.md` did not list the mutator
/// `environments`.
#[test]
fn configuration_page_lists_every_mutator() {
    let page = fs::read_to_string(repository().join("docs/configuration.md")).unwrap();
    let table = page.split("| mutator | default |").nth(1).expect("the page has the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<_> = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let all = Registry::standard().mutators().iter().map(|mutator| mutator.name).collect::<BTreeSet<_>>();
    assert_eq!(listed, all);
}
