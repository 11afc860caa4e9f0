//! A tree of files with the folder to build, as in the test vectors in `tests/vectors/kustomize`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

/// Placeholder for the absolute path of the tree, in files, in targets of links, and in the folder to build.
pub const ROOT: &str = "$ROOT";

/// A kustomize tree, and the folder to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    /// The content of each file, by path.
    pub files: BTreeMap<String, String>,
    /// The target of each symbolic link, by path.
    pub links: BTreeMap<String, String>,
    /// The path of the folder to build.
    pub build: String,
    /// Whether kustomize may load files from anywhere, as with `--load-restrictor LoadRestrictionsNone`.
    pub unrestricted: bool,
}

impl Case {
    /// Parses the case in a test vector.
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

    /// Returns a test vector with this case, the expected result, and the version of kubectl.
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

    /// Returns the path and the content of each file. `root`, the absolute path of the tree, replaces `$ROOT` in the
    /// content.
    pub fn files_at<'a>(&'a self, root: &'a str) -> impl Iterator<Item = (&'a str, String)> {
        self.files.iter().map(move |(path, text)| (path.as_str(), text.replace(ROOT, root)))
    }

    /// Returns the path of the folder to build. `root`, the absolute path of the tree, replaces `$ROOT`.
    pub fn build_at(&self, root: &str) -> String {
        self.build.replace(ROOT, root)
    }

    /// Writes the files and links of this case into an empty folder. If a file or link cannot be written, removes
    /// it from the case. For example, a link `a` cannot be written if there is a file `a/b`, because `a` is then a
    /// folder.
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

    /// Returns the total size of the files in bytes.
    pub fn size(&self) -> usize {
        self.files.values().map(String::len).sum()
    }

    /// Returns whether kustomize can build the tree without network and git. For this, searches the files for texts
    /// that may be remote references.
    pub fn is_local(&self) -> bool {
        let remote = ["://", "http:", "https:", "git::", "github.com", "git@", "user@"];
        !self.files.values().chain(self.links.values()).any(|text| {
            let text = text.to_ascii_lowercase();
            remote.iter().any(|pattern| text.contains(pattern))
        })
    }
}
