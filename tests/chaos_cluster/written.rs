//! Reads the output of `portcullis manifests`, and splits it into parts in the order in which they must be applied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The Namespace that contains the Roles and the ServiceAccount. The tests always add it to the manifests, because
/// `portcullis manifests` writes it only with the option `--image`.
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: portcullis-system\n";

/// The manifests that `portcullis manifests` writes, split into three parts. Each part is a stream of YAML documents.
pub struct Manifests {
    /// Namespaces and CRDs, which must exist before the other objects.
    pub prerequisites: String,
    /// All other objects, such as Roles. They are applied after `prerequisites` and before `webhooks`.
    pub others: String,
    /// The webhook configurations. They are applied last: as soon as they exist, the API server denies requests until
    /// Portcullis answers.
    pub webhooks: String,
}

impl Manifests {
    /// Reads the YAML files of a folder and its subfolders, in the order of their paths.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut manifests =
            Self { prerequisites: NAMESPACE.to_owned(), others: String::new(), webhooks: String::new() };
        for file in yaml_files(folder)? {
            let text = fs::read_to_string(file)?;
            text.split("\n---").for_each(|document| manifests.add(document));
        }
        Ok(manifests)
    }

    fn add(&mut self, document: &str) {
        let part = match kind(document) {
            None => return,
            Some("Namespace" | "CustomResourceDefinition") => &mut self.prerequisites,
            Some(kind) if kind.ends_with("WebhookConfiguration") => &mut self.webhooks,
            Some(_) => &mut self.others,
        };
        part.push_str("\n---\n");
        part.push_str(document);
    }
}

/// Returns the kind of the object in a YAML document. Returns `None` for an empty document.
fn kind(document: &str) -> Option<&str> {
    document.lines().find_map(|line| line.strip_prefix("kind:")).map(str::trim)
}

/// Returns the sorted paths of the YAML files in a folder and its subfolders.
fn yaml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut yaml_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
