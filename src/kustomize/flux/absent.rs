//! Generates the kustomization file of the folder `spec.path` if there is none, as Flux does.
//!
//! Each subfolder with a kustomization file becomes a resource, even if it contains a Component, which kustomize then
//! rejects. Each other YAML file becomes a resource too.
//!
//! Source: `Generator.generateKustomization` in fluxcd/pkg's `kustomize/kustomize_generator.go`.

use crate::admission::FieldPath;
use crate::kustomize::bad_objects::BadObjects;
use crate::kustomize::file::{Kustomization, KustomizationFile, NAMES};
use crate::kustomize::files::Files;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rules::{kz012, kz013};
use crate::kustomize::tree::{Entry, Tree, TreePath};
use crate::yaml::Place;

/// The kustomization file that Flux generates for a folder without one.
pub(in crate::kustomize) struct Generated {
    pub(in crate::kustomize) file: KustomizationFile,
    /// The errors that kustomize will report about the files and folders that Flux lists in the generated file.
    pub(in crate::kustomize) findings: Vec<TreeFinding>,
    /// Files and folders that Portcullis cannot evaluate, and the reason for each. An example is a file that it cannot
    /// read. If the list is not empty, the result of the build is unknown.
    pub(in crate::kustomize) uncertainties: Vec<(Site, String)>,
}

/// The value of the field `namespace` in a generated kustomization file without resources. Flux sets this field,
/// because kustomize rejects a kustomization file without any fields.
const PLACEHOLDER: &str = "_placeholder";
/// Maximum depth of folders that are searched for manifests in a folder without a kustomization file. The search is
/// recursive, so the limit prevents a stack overflow.
const MAX_DEPTH: usize = 64;
/// Maximum number of files and folders that are searched for manifests in a folder without a kustomization file. This
/// is far more than usual: a repository with 1 000 kustomizations has about 20 000 files.
const MAX_FILES: usize = 100_000;

/// A function that returns an error if the content of a file does not consist of valid Kubernetes objects. It parses
/// the content as kustomize does.
type Check<'a> = &'a dyn Fn(&[u8]) -> Result<(), BadObjects>;

/// Returns the kustomization file that Flux generates for the folder `root`, which has no kustomization file. `check`
/// checks each file that would become a resource.
pub(in crate::kustomize) fn generate(tree: &Tree, root: &TreePath, files: &Files, check: Check<'_>) -> Generated {
    let (resources, findings, uncertainties) = (Vec::new(), Vec::new(), Vec::new());
    let mut walk = Walk { tree, root, files, check, resources, findings, uncertainties, seen: 0 };
    walk.folder(root, 0);
    // without resources, Flux sets a namespace, so that the file is not empty
    let namespace = if walk.resources.is_empty() { PLACEHOLDER.to_owned() } else { String::new() };
    let kustomization = Kustomization { resources: walk.resources, namespace, ..Kustomization::default() };
    let path = root.join(NAMES[0]);
    Generated {
        file: KustomizationFile::generated(path, kustomization),
        findings: walk.findings,
        uncertainties: walk.uncertainties,
    }
}

struct Walk<'a> {
    tree: &'a Tree,
    root: &'a TreePath,
    files: &'a Files,
    check: Check<'a>,
    resources: Vec<String>,
    findings: Vec<TreeFinding>,
    uncertainties: Vec<(Site, String)>,
    seen: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &TreePath, depth: usize) {
        for name in self.tree.names(folder) {
            let path = folder.join(&name);
            self.seen += 1;
            if depth > MAX_DEPTH || self.seen > MAX_FILES {
                self.uncertainties.push((
                    Site::of_file(path),
                    "there are too many files or nested folders to check all of them".to_owned(),
                ));
                return;
            }
            match self.tree.entry(&path) {
                Some(Entry::Folder) => match self.kustomization(&path) {
                    Some(file) => self.base(&path, &file),
                    None => self.folder(&path, depth + 1),
                },
                Some(Entry::File) if is_yaml(&name) && !NAMES.contains(&name.as_str()) => self.manifest(&path),
                _ => {}
            }
        }
    }

    /// Returns the path of the kustomization file in a folder; `None` if there is none.
    fn kustomization(&self, folder: &TreePath) -> Option<TreePath> {
        let paths = NAMES.into_iter().map(|name| folder.join(name));
        paths.into_iter().find(|path| self.tree.entry(path) == Some(Entry::File))
    }

    fn base(&mut self, folder: &TreePath, file: &TreePath) {
        match self.files.kustomization(self.tree, file) {
            Ok(read) if read.kustomization.is_component() => {
                let kind = FieldPath::of(["kind"]);
                let site = Site::new(file.clone(), read.place(&kind), kind);
                self.findings.push(kz012::found(site, folder, self.root));
            }
            _ => self.resources.push(format!("./{}", folder.relative_to(self.root))),
        }
    }

    fn manifest(&mut self, path: &TreePath) {
        let entry = format!("./{}", path.relative_to(self.root));
        let site = Site::of_file(path.clone());
        let Ok(bytes) = self.tree.read(path) else {
            self.uncertainties.push((site, "the file cannot be read".to_owned()));
            return;
        };
        match (self.check)(&bytes) {
            Err(bad) if !bad.is_open() => {
                let place = Place { line: bad.line().max(1), ..site.place };
                let at = Site { place, ..site.clone() };
                self.findings.push(kz013::found(at.clone(), &entry, &at, &bad));
            }
            _ => self.resources.push(entry),
        }
    }
}

fn is_yaml(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}
