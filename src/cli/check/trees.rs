//! Kustomize roots in the files that are checked.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::super::Unusable;
use super::super::report::{Located, Report};
use super::super::trees::{seen_from_here, shown, tree_path};
use super::super::walk::Progress;
use super::Args;
use crate::admission::Level;
use crate::catalog::manifests::Source;
use crate::gate::{Policy, Registry};
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Fix, TreeFinding};
use crate::kustomize::options::Options;
use crate::kustomize::roots;
use crate::kustomize::tree::{Tree, TreePath};
use crate::kustomize::{self, Files, analyse_with, fix};

/// One entry is moved at a time, and each move is judged anew; a file has no more entries than this.
const MOST_FIXES: usize = 1000;

/// The kustomizations among the files that are checked.
///
/// The tree is the whole file system: what a root refers to may be anywhere, and is read only when it is asked for.
pub(super) struct Trees {
    tree: Tree,
    options: Options,
    roots: Vec<TreePath>,
    /// The files that only kustomize reads: kustomization files, patches, data.
    parts: HashSet<TreePath>,
}

impl Trees {
    pub(super) fn of(args: &Args, files: &[PathBuf]) -> Result<Self, Unusable> {
        let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::new(error.to_string()))?;
        let mut options = Options::of(args.profile);
        options.version = args.kustomize_version;
        options.restrictor = args.load_restrictor.unwrap_or(options.restrictor);
        options.lone_components = true;
        let mut folders = BTreeSet::new();
        let mut parts = HashSet::new();
        for file in files.iter().filter(|file| is_kustomization(file)) {
            let path = tree_path(file)?;
            folders.extend(path.parent());
            parts.insert(path);
        }
        let folders: Vec<_> = folders.into_iter().collect();
        let read = Files::default();
        for folder in &folders {
            parts.extend(roots::references(&tree, folder, &options, &read).parts);
        }
        let roots = match args.roots.as_slice() {
            [] => roots::roots(&tree, &folders, &options, &read),
            given => given.iter().map(|root| tree_path(root)).collect::<Result<_, _>>()?,
        };
        Ok(Self { tree, options, roots, parts })
    }

    /// Whether a file is one that only kustomize reads.
    pub(super) fn reads(&self, file: &Path) -> bool {
        is_kustomization(file) || tree_path(file).is_ok_and(|path| self.parts.contains(&path))
    }

    /// Judges every root. What several roots have in common is told once.
    pub(super) fn judge(&self, policy: &Policy, report: &mut Report) {
        let rows: HashMap<_, _> = Registry::standard().rows().into_iter().map(|row| (row.id(), row)).collect();
        let files = Files::default();
        let mut told = HashSet::new();
        let mut sources = Sources { tree: &self.tree, read: BTreeMap::new() };
        let mut progress = Progress::new("judged kustomize roots:");
        for (done, root) in self.roots.iter().enumerate() {
            progress.step(done, self.roots.len());
            let judged = analyse_with(&self.tree, root, &self.options, &files);
            let mut findings = Vec::new();
            for finding in &judged.findings {
                let level =
                    rows.get(finding.rule).map_or(finding.level, |row| policy.level_in_files(*row, finding.level));
                let located = sources.locate(finding, level);
                findings.push(located.json());
                let place =
                    (finding.rule, finding.site.file.clone(), finding.site.place.start, finding.message.clone());
                if level != Level::Off && told.insert(place) {
                    report.findings.push(located);
                }
            }
            report.roots.push(root_json(&judged, findings));
        }
    }

    /// Moves misplaced entries until there is none that can be moved; says what it did.
    pub(super) fn fix(&self) -> String {
        let mut told = String::new();
        for root in &self.roots {
            for _ in 0..MOST_FIXES {
                match self.fix_one(root) {
                    Some(line) => told.push_str(&line),
                    None => break,
                }
            }
        }
        told
    }

    fn fix_one(&self, root: &TreePath) -> Option<String> {
        let report = kustomize::analyse(&self.tree, root, &self.options);
        report.findings.iter().find_map(|finding| {
            let mend = finding.fix.as_ref()?;
            let path = Path::new("/").join(finding.site.file.as_str());
            let text = std::fs::read_to_string(&path).ok()?;
            std::fs::write(&path, fix(&text, std::slice::from_ref(mend))?).ok()?;
            let Fix::MoveEntry { from, index, to } = mend;
            Some(format!("fixed {}: {from}[{index}] is now in {to}\n", shown(&finding.site.file)))
        })
    }
}

fn root_json(judged: &kustomize::Report, findings: Vec<Value>) -> Value {
    json!({
        "root": shown(&judged.root),
        "profile": judged.profile.as_str(),
        "verdict": judged.verdict.as_str(),
        "reasons": judged.reasons,
        "findings": findings,
    })
}

/// The texts of the files that findings are in.
struct Sources<'t> {
    tree: &'t Tree,
    read: BTreeMap<TreePath, Rc<Source>>,
}

impl Sources<'_> {
    fn locate(&mut self, finding: &TreeFinding, level: Level) -> Located {
        let TreeFinding { rule, site, message, found, allowed, help, .. } = finding.clone();
        let source = self.read.entry(site.file.clone()).or_insert_with(|| {
            let bytes = self.tree.read(&site.file).unwrap_or_else(|_| [].into());
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Rc::new(Source { name: shown(&site.file), text })
        });
        let (source, path) = (source.clone(), site.field.to_string());
        let (message, help) = (seen_from_here(message), help.map(seen_from_here));
        Located { rule, level, source, place: site.place, path, message, found, allowed, help, object: Value::Null }
    }
}

fn is_kustomization(file: &Path) -> bool {
    file.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}
