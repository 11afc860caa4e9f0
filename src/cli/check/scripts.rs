//! Reads the scripts of a checkout to find out how they build kustomize roots. The scripts show which options of
//! kustomize they use, which files they write before a build, and which files they mention.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ignore::WalkBuilder;
use regex::Regex;

use crate::kustomize::options::{Options, Restrictor};

/// Names of files that may run kustomize, in addition to files with [`EXTENSIONS`].
const NAMES: [&str; 6] = ["GNUmakefile", "Justfile", "Makefile", "Tiltfile", "justfile", "makefile"];
/// Extensions of files that may run kustomize or set its options. YAML files can be CI workflows, or Argo CD objects
/// with `kustomize.buildOptions`.
const EXTENSIONS: [&str; 13] =
    ["bash", "go", "just", "md", "mk", "ps1", "py", "rb", "sh", "star", "toml", "yaml", "yml"];
/// Names of folders that are skipped, because they contain files of other projects or of git.
const FOREIGN: [&str; 4] = [".git", "node_modules", "third_party", "vendor"];
/// Maximum size of a script, in bytes. Larger files are skipped, because they are data and not scripts.
const MAX_BYTES: u64 = 1 << 19;

/// Patterns for options of kustomize in scripts. Each item has the pattern, the option, and the id of the rule whose
/// findings depend on the option.
const FLAGS: [(&str, Flag, &str); 3] = [
    (r#"load[-_]restrictor[="', ]+LoadRestrictionsNone"#, Flag::LoadAny, "KZ010"),
    (r"--enable[-_]helm\b", Flag::Helm, "KZ015"),
    (r"--enable[-_]alpha[-_]plugins\b", Flag::Plugins, "KZ015"),
];

/// The ids of rules whose findings depend on options of kustomize. KZ010 reports files outside of the root, and KZ015
/// reports plugins.
pub(super) const RULES: [&str; 2] = ["KZ010", "KZ015"];

static FLAG_PATTERNS: LazyLock<Vec<(Option<Regex>, Flag)>> =
    LazyLock::new(|| FLAGS.iter().map(|(pattern, flag, _)| (Regex::new(pattern).ok(), *flag)).collect());

/// Pattern of a command that writes a file: a redirection, `tee`, or an option that names the output.
static WRITE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:>{1,2}|\btee(?:\s+-a)?|\s-[oO]|--output)[=\s]*([^\s|;&<>()]+)").ok());

/// Pattern of a call in a Go program that writes a file.
static WRITE_CALL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:WriteFile|os\.Create)\(.*"([^"/]+)""#).ok());

/// Commands of tools that write files, such as operator-sdk and controller-gen. Each command has a list of file name
/// suffixes, which identify the files that the tool writes.
const TOOLS: [(&str, &[&str]); 2] = [
    ("generate kustomize manifests", &[".clusterserviceversion.yaml"]),
    ("controller-gen", &["manifests.yaml", "role.yaml"]),
];

/// A kustomize option that scripts can set, such as `--enable-helm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Flag {
    LoadAny,
    Helm,
    Plugins,
}

/// The scripts of a checkout, with the kustomize options that they set, the files that they write, and the tools that
/// they call to write files. For each option, file and tool, also contains the script and line of its first occurrence.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    files: Vec<PathBuf>,
    flags: HashMap<Flag, String>,
    written: HashMap<String, String>,
    tools: Vec<(&'static [&'static str], String)>,
}

impl Scripts {
    /// Reads the scripts below a folder. Skips files that cannot be read.
    pub(super) fn read(top: &Path) -> Self {
        let mut scripts = Self { files: files(top), ..Self::default() };
        for path in scripts.files.clone() {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let name = path.strip_prefix(top).unwrap_or(&path).display().to_string();
            text.lines().enumerate().for_each(|(at, line)| scripts.add(line, || format!("{name}:{}", at + 1)));
        }
        scripts
    }

    fn add(&mut self, line: &str, place: impl Fn() -> String) {
        if line.contains("load") || line.contains("--enable") {
            let found = |(pattern, _): &&(Option<Regex>, Flag)| pattern.as_ref().is_some_and(|one| one.is_match(line));
            for (_, flag) in FLAG_PATTERNS.iter().filter(found) {
                self.flags.entry(*flag).or_insert_with(&place);
            }
        }
        let ran = TOOLS.iter().find(|(command, _)| line.contains(command));
        if let Some((_, names)) = ran.filter(|(_, names)| self.tools.iter().all(|(known, _)| known != names)) {
            self.tools.push((*names, place()));
        }
        if line.contains(".y") {
            let writes = [&*WRITE, &*WRITE_CALL].into_iter().flatten();
            let targets = writes.flat_map(|write| write.captures_iter(line)).filter_map(|found| found.get(1));
            for target in targets {
                let name = target.as_str().rsplit('/').next().unwrap_or_default().trim_matches(['"', '\'', '`']);
                if name.ends_with(".yaml") || name.ends_with(".yml") {
                    self.written.entry(name.to_owned()).or_insert_with(&place);
                }
            }
        }
    }

    /// Returns the script and line of a command that writes a file named `name`. `None` if no script has such a
    /// command.
    pub(super) fn writes(&self, name: &str) -> Option<String> {
        let mut tools = self.tools.iter().filter(|(ends, _)| ends.iter().any(|end| name.ends_with(end)));
        self.written.get(name).cloned().or_else(|| tools.next().map(|(_, place)| place.clone()))
    }

    /// Returns the elements of `paths` that a script or a Markdown page of the checkout mentions. A path consists of
    /// the last folder and the file name, such as `app/service.yaml`.
    pub(super) fn mentioned(&self, paths: &[String]) -> HashSet<String> {
        let escaped: Vec<_> = paths.iter().map(|path| regex::escape(path)).collect();
        let Ok(pattern) = Regex::new(&format!(r"(?:{})\b", escaped.join("|"))) else { return HashSet::new() };
        let texts = self.files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        texts
            .flat_map(|text| pattern.find_iter(&text).map(|found| found.as_str().to_owned()).collect::<Vec<_>>())
            .collect()
    }

    /// Copies options from scripts in the repository to `options`, such as `--enable-helm` from a Makefile that calls
    /// kustomize. Copies only options that affect the findings of the rule with the id `rule`. Returns the file and
    /// line of the first option that changed `options`. `None` if nothing changed.
    pub(super) fn set(&self, rule: &str, options: &mut Options) -> Option<&str> {
        let mut first = None;
        for (_, flag, _) in FLAGS.iter().filter(|(_, _, affected)| *affected == rule) {
            let Some(place) = self.flags.get(flag) else { continue };
            let set = match flag {
                Flag::LoadAny => std::mem::replace(&mut options.restrictor, Restrictor::None) == Restrictor::None,
                Flag::Helm => std::mem::replace(&mut options.helm, true),
                Flag::Plugins => std::mem::replace(&mut options.plugins, true),
            };
            first = first.or((!set).then_some(place.as_str()));
        }
        first
    }
}

fn files(top: &Path) -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(top);
    walk.hidden(false).require_git(false).git_global(false).max_filesize(Some(MAX_BYTES));
    walk.filter_entry(|entry| !FOREIGN.iter().any(|name| entry.file_name() == *name));
    let is_script = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        let extension = path.extension().and_then(|extension| extension.to_str());
        NAMES.iter().any(|known| name == *known) || extension.is_some_and(|own| EXTENSIONS.contains(&own))
    };
    let entries = walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let mut files: Vec<_> = entries.map(ignore::DirEntry::into_path).filter(|path| is_script(path)).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_options_and_written_files() {
        let mut scripts = Scripts::default();
        let lines = [
            "$(KUSTOMIZE) build --load-restrictor=LoadRestrictionsNone a",
            "  kustomize.buildOptions: \"--enable-helm\"",
            "cat <&0 > \"${BASE}\"/base/all.yaml",
            "curl -sL -o 'release.yaml' https://example.org/r",
            "kubectl apply -f config.yaml",
            "os.WriteFile(path.Join(dir, \"patch.yaml\"), text, 0o600)",
            "operator-sdk generate kustomize manifests -q",
        ];
        lines.iter().enumerate().for_each(|(at, line)| scripts.add(line, || format!("Makefile:{at}")));
        assert_eq!(scripts.writes("all.yaml").as_deref(), Some("Makefile:2"));
        assert_eq!(scripts.writes("release.yaml").as_deref(), Some("Makefile:3"));
        assert_eq!(scripts.writes("patch.yaml").as_deref(), Some("Makefile:5"));
        assert_eq!(scripts.writes("a.clusterserviceversion.yaml").as_deref(), Some("Makefile:6"));
        assert_eq!(scripts.writes("config.yaml"), None);
        let mut options = Options::default();
        assert_eq!(scripts.set("KZ010", &mut options), Some("Makefile:0"));
        assert_eq!((options.restrictor, options.helm), (Restrictor::None, false));
        assert_eq!(scripts.set("KZ015", &mut options), Some("Makefile:1"));
        assert!(options.helm && !options.plugins);
        assert_eq!(scripts.set("KZ015", &mut options), None, "it is set already");
    }
}
