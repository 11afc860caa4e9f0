//! Judges kustomize roots in checked files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::super::Unusable;
use super::super::parallel::in_order;
use super::super::report::{Located, Report, Root};
use super::super::trees::{TreePaths, reason_with_display_path, shown, tree_path, with_display_paths};
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

/// Maximum number of fixes. Entries are moved one at a time, and the tree is judged after each.
const MOST_FIXES: usize = 1000;

/// The kustomizations in the checked files.
///
/// The tree is the whole file system, because roots may refer to files anywhere; files are read on demand.
pub(super) struct Trees {
    tree: Tree,
    options: Options,
    roots: Vec<TreePath>,
    /// The files parsed so far.
    read: Files,
}

impl Trees {
    /// Finds the kustomizations in `files`, and removes the files that only kustomize reads: kustomization files,
    /// patches, data.
    pub(super) fn of(args: &Args, files: &mut Vec<PathBuf>) -> Result<Self, Unusable> {
        let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::new(error.to_string()))?;
        let mut options = Options::of(args.profile);
        options.version = args.kustomize_version;
        options.restrictor = args.load_restrictor.unwrap_or(options.restrictor);
        options.lone_components = true;
        let (mut paths, mut folders) = (TreePaths::default(), BTreeSet::new());
        for file in files.iter().filter(|file| is_kustomization(file)) {
            folders.extend(paths.of(file)?.parent());
        }
        let folders: Vec<_> = folders.into_iter().collect();
        let (read, mut references) = (Files::default(), HashMap::new());
        in_order(
            &folders,
            |folder| roots::references(&tree, folder, &options, &read),
            |number, found| drop(references.insert(folders[number].clone(), found)),
        );
        let roots = match args.roots.as_slice() {
            [] => roots::roots(&folders, |folder| match references.get(folder) {
                Some(found) => found.folders.clone(),
                None => roots::references(&tree, folder, &options, &read).folders,
            }),
            given => given.iter().map(|root| tree_path(root)).collect::<Result<_, _>>()?,
        };
        let parts: HashSet<_> = references.into_values().flat_map(|found| found.parts).collect();
        files.retain(|file| !is_kustomization(file) && paths.of(file).map_or(true, |path| !parts.contains(&path)));
        Ok(Self { tree, options, roots, read })
    }

    /// Judges every root. Findings that several roots share are reported once.
    pub(super) fn judge(&self, registry: &Registry, policy: &Policy, report: &mut Report) {
        let mut reported = HashMap::new();
        let mut sources = Sources { tree: &self.tree, read: BTreeMap::new() };
        let mut progress = Progress::new("judged kustomize roots:");
        let judge = |root: &TreePath| {
            let judged = analyse_with(&self.tree, root, &self.options, &self.read);
            // The order of evaluation is not needed here.
            kustomize::Report { evaluation: None, ..judged }
        };
        in_order(&self.roots, judge, |number, judged| {
            progress.step(number, self.roots.len());
            let mut findings = Vec::new();
            for finding in &judged.findings {
                let place =
                    (finding.rule, finding.site.file.clone(), finding.site.place.start, finding.message.clone());
                let located = reported.entry(place).or_insert_with(|| {
                    let info = registry.info(finding.rule);
                    let level = info.map_or(finding.level, |info| policy.level_in_files(info, finding.level));
                    let located = Rc::new(sources.locate(finding, level));
                    if level != Level::Off {
                        report.findings.push(Rc::clone(&located));
                    }
                    located
                });
                findings.push(Rc::clone(located));
            }
            report.roots.push(Root {
                root: shown(&judged.root),
                profile: judged.profile.as_str(),
                verdict: judged.verdict.as_str(),
                reasons: judged.reasons.iter().map(|reason| reason_with_display_path(reason)).collect(),
                findings,
            });
        });
    }

    /// Moves misplaced entries until none is left; returns a description of the changes.
    pub(super) fn fix(&mut self) -> String {
        self.read = Files::default();
        let mut reported = String::new();
        for root in &self.roots {
            for _ in 0..MOST_FIXES {
                match self.fix_one(root) {
                    Some(line) => reported.push_str(&line),
                    None => break,
                }
            }
        }
        reported
    }

    fn fix_one(&self, root: &TreePath) -> Option<String> {
        let report = kustomize::analyse(&self.tree, root, &self.options);
        report.findings.iter().find_map(|finding| {
            let entry_fix = finding.fix.as_ref()?;
            let path = Path::new("/").join(finding.site.file.as_str());
            let text = std::fs::read_to_string(&path).ok()?;
            std::fs::write(&path, fix(&text, std::slice::from_ref(entry_fix))?).ok()?;
            let Fix::MoveEntry { from, index, to } = entry_fix;
            Some(format!("fixed {}: {from}[{index}] is now in {to}\n", shown(&finding.site.file)))
        })
    }
}

/// The texts of files with findings.
struct Sources<'t> {
    tree: &'t Tree,
    read: BTreeMap<TreePath, Arc<Source>>,
}

impl Sources<'_> {
    fn locate(&mut self, finding: &TreeFinding, level: Level) -> Located {
        let TreeFinding { rule, site, message, found, allowed, help, .. } = finding.clone();
        let source = self.read.entry(site.file.clone()).or_insert_with(|| {
            let bytes = self.tree.read(&site.file).unwrap_or_else(|_| [].into());
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Arc::new(Source { name: shown(&site.file), text })
        });
        let (source, path) = (source.clone(), site.field.to_string());
        let (message, help) = (with_display_paths(message), help.map(with_display_paths));
        Located { rule, level, source, place: site.place, path, message, found, allowed, help, object: Value::Null }
    }
}

fn is_kustomization(file: &Path) -> bool {
    file.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}
