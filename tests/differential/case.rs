//! A tree of files with the root to build, as in `tests/vectors/kustomize`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

/// Stands in the files for the absolute path of the tree.
pub const ROOT: &str = "$ROOT";

/// A tree, and the folder to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// A description.
    pub name: String,
    /// The content of every file.
    pub files: BTreeMap<String, String>,
    /// Links, and where they lead.
    pub links: BTreeMap<String, String>,
    /// The folder that is built.
    pub build: String,
    /// Whether files may be loaded from anywhere.
    pub unrestricted: bool,
}

impl Case {
    /// Returns the case that a vector describes.
    pub fn of_vector(vector: &Value) -> Self {
        let texts = |key: &str| {
            let map = vector[key].as_object().into_iter().flatten();
            map.map(|(path, text)| (path.clone(), text.as_str().unwrap_or_default().to_owned())).collect()
        };
        Self {
            name: vector["name"].as_str().unwrap_or_default().to_owned(),
            files: texts("files"),
            links: texts("symlinks"),
            build: vector["build"].as_str().unwrap_or(".").to_owned(),
            unrestricted: vector["load_restrictor"] == "none",
        }
    }

    /// As a vector, with what is expected.
    pub fn to_vector(&self, expect: &Value, kubectl: &str) -> Value {
        let mut vector = json!({
            "name": self.name, "build": self.build, "files": self.files, "expect": expect, "kubectl": kubectl,
            "load_restrictor": if self.unrestricted { "none" } else { "root-only" },
        });
        if !self.links.is_empty() {
            vector["symlinks"] = json!(self.links);
        }
        vector
    }

    /// Returns the files with the absolute path of the tree in place of `$ROOT`.
    pub fn files_at<'a>(&'a self, root: &'a str) -> impl Iterator<Item = (&'a str, String)> {
        self.files.iter().map(move |(path, text)| (path.as_str(), text.replace(ROOT, root)))
    }

    /// Returns the folder that is built, in a tree that stands at `root`.
    pub fn build_at(&self, root: &str) -> String {
        self.build.replace(ROOT, root)
    }

    /// Writes all of it into an empty folder. What cannot be written, as a file stands where a folder is needed, is
    /// taken out of the case.
    pub fn write(&mut self, folder: &Path) {
        let root = folder.to_string_lossy().into_owned();
        let written = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, text)).is_ok()
        };
        self.files.retain(|path, text| written(path, &text.replace(ROOT, &root)));
        let linked = |path: &str, target: &str| {
            let path = folder.join(path);
            let made = fs::create_dir_all(path.parent().unwrap_or(folder));
            made.and_then(|()| symlink(target.replace(ROOT, &root), path)).is_ok()
        };
        self.links.retain(|path, target| linked(path, target));
    }

    /// How many bytes are in its files.
    pub fn size(&self) -> usize {
        self.files.values().map(String::len).sum()
    }

    /// Returns whether building it could reach for something that is not in it: the network, or git.
    pub fn is_local(&self) -> bool {
        let remote = ["://", "http:", "https:", "git::", "github.com", "git@", "user@"];
        !self.files.values().chain(self.links.values()).any(|text| {
            let text = text.to_ascii_lowercase();
            remote.iter().any(|sign| text.contains(sign))
        })
    }
}
