//! The output of `portcullis manifests`, in the order of application.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where Roles and the ServiceAccount belong, whether or not the manifests create it.
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: portcullis-system\n";

/// Manifests in three parts, each a stream of yaml documents.
pub struct Manifests {
    /// Namespaces and CRDs, which the others need.
    pub foundations: String,
    /// All but the other two.
    pub others: String,
    /// The webhook configurations, which are applied last: they deny requests until portcullis serves.
    pub webhooks: String,
}

impl Manifests {
    /// Reads the yaml files of a folder, in the order of their paths.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut manifests = Self { foundations: NAMESPACE.to_owned(), others: String::new(), webhooks: String::new() };
        for file in yaml_files(folder)? {
            let text = fs::read_to_string(file)?;
            text.split("\n---").for_each(|document| manifests.add(document));
        }
        Ok(manifests)
    }

    fn add(&mut self, document: &str) {
        let part = match kind(document) {
            None => return,
            Some("Namespace" | "CustomResourceDefinition") => &mut self.foundations,
            Some(kind) if kind.ends_with("WebhookConfiguration") => &mut self.webhooks,
            Some(_) => &mut self.others,
        };
        part.push_str("\n---\n");
        part.push_str(document);
    }
}

/// Returns the kind of an object; `None` for an empty document.
fn kind(document: &str) -> Option<&str> {
    document.lines().find_map(|line| line.strip_prefix("kind:")).map(str::trim)
}

/// Returns the yaml files of a folder and those in it, in the order of their paths.
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
