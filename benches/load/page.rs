//! Writes tables into `docs/reliability.md`, between markers.

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/reliability.md";

/// Prints a report. If `write` is true, also writes the report into `docs/reliability.md`, between the markers with the
/// name `name`.
pub fn print_and_write(name: &str, report: &str, write: bool) {
    println!("{report}");
    if !write {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(&begin).expect("the page has the first marker");
    let (_, after) = rest.split_once(&end).expect("the page has the second marker");
    fs::write(path, format!("{before}{begin}\n{report}\n{end}{after}")).unwrap();
}

/// Returns a line that names the command, the versions of Portcullis and Rust, and the CPU model. `is_pinned` says
/// whether the server and the client each have a CPU of their own.
pub fn made_by(command: &str, is_pinned: bool) -> String {
    let rustc = Command::new("rustc").arg("--version").output().unwrap().stdout;
    let rustc = String::from_utf8(rustc).unwrap().split(' ').take(2).collect::<Vec<_>>().join(" ");
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("an unknown processor");
    let placement = match is_pinned {
        true => "server and client have a processor each",
        false => "server and client share the processors",
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "Made by `{command}`: portcullis {version}, {rustc}, on {}; {placement}.",
        cpu.trim_start_matches([':', '\t', ' '])
    )
}

pub fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Formats KiB as MiB.
pub fn mib(kib: usize) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}
