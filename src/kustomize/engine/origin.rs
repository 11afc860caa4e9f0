//! Writes the annotations of `buildMetadata`: the origin of objects, and the transformers that changed them.
//!
//! Source: kustomize's `api/resource/origin.go`.

use std::fmt::Write as _;

use crate::kustomize::emit::Value;
use crate::kustomize::remote::Repository;

/// The annotation with the origin of an object.
pub(super) const ORIGIN: &str = "config.kubernetes.io/origin";
/// The annotation that lists the transformers that changed an object.
pub(super) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// The origin of an object, or of a change by a transformer, as in the annotations of `buildMetadata`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OriginNote {
    /// The path of the file or folder that contains the object, relative to the folder that the user builds.
    pub path: String,
    /// The repository that contains the file or folder; empty if it was not fetched from a repository.
    pub repo: String,
    /// The branch, tag or commit of the repository.
    pub reference: String,
    /// The path of the file that configures the generator or transformer: the field `configuredIn` of the annotation.
    /// Empty if the annotation describes an object that was read from a file.
    pub configured_in: String,
    /// The value of the field `configuredBy` in the origin annotation. It describes the object that configures a
    /// generator or transformer, or names a built-in one. Empty if the annotation describes an object that was read
    /// from a file.
    pub configured_by: ConfiguredBy,
}

/// The generator or transformer in the field `configuredBy` of an origin annotation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the annotation")]
pub(super) struct ConfiguredBy {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

impl OriginNote {
    /// Returns the origin of the file, folder or repository to which `entry` refers. `entry` is a path or URL in a list
    /// of a kustomization file. The kustomization file is in the folder whose origin is `self`.
    #[must_use]
    pub(super) fn append(&self, entry: &str) -> Self {
        match Repository::of(entry) {
            Some(Repository { host, path, folder, reference }) => {
                // without a folder, kustomize uses the name of its placeholder for a clone, `/notCloned`
                let folder = if folder.is_empty() { "notCloned".to_owned() } else { folder };
                Self { path: joined("", &folder), repo: format!("{host}{path}"), reference, ..self.clone() }
            }
            None => Self { path: joined(&self.path, entry), ..self.clone() },
        }
    }

    /// Returns the origin that is recorded in annotations for a built-in generator or transformer. `self` is the origin
    /// of a folder. `file` is the name of the kustomization file in this folder that configures the generator or
    /// transformer. `kind` is its kind, such as `ConfigMapGenerator`.
    pub(super) fn built_in(&self, file: &str, kind: &str) -> Self {
        Self {
            path: String::new(),
            repo: self.repo.clone(),
            reference: self.reference.clone(),
            configured_in: joined(&self.path, file),
            configured_by: ConfiguredBy {
                api_version: "builtin".to_owned(),
                kind: kind.to_owned(),
                ..ConfiguredBy::default()
            },
        }
    }

    /// Formats this origin as YAML, as the value of the annotation [`ORIGIN`].
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, "");
        if out.is_empty() { "{}\n".to_owned() } else { out }
    }

    fn write(&self, out: &mut String, indent: &str) {
        let by = &self.configured_by;
        let by =
            [("apiVersion", &by.api_version), ("kind", &by.kind), ("name", &by.name), ("namespace", &by.namespace)];
        field(out, indent, "path", &self.path);
        field(out, indent, "repo", &self.repo);
        field(out, indent, "ref", &self.reference);
        field(out, indent, "configuredIn", &self.configured_in);
        if by.iter().any(|(_, text)| !text.is_empty()) {
            let _ = writeln!(out, "{indent}configuredBy:");
            by.iter().for_each(|(key, text)| field(out, &format!("{indent}  "), key, text));
        }
    }
}

/// Formats a list of origins as YAML, as the value of the annotation [`TRANSFORMATIONS`].
pub(super) fn transformations(notes: &[OriginNote]) -> String {
    let mut out = String::new();
    for note in notes {
        let mut text = String::new();
        note.write(&mut text, "  ");
        out.push_str("- ");
        out.push_str(text.strip_prefix("  ").unwrap_or(&text));
    }
    out
}

fn field(out: &mut String, indent: &str, key: &str, text: &str) {
    if !text.is_empty() {
        let mut line = String::new();
        let value = Value::Map(vec![(key.into(), Value::Text(text.into()))]);
        if crate::kustomize::emit::document(&value, &mut line).is_ok() {
            let _ = write!(out, "{indent}{line}");
        }
    }
}

/// Joins and cleans two paths, as Go's `filepath.Join` does.
fn joined(folder: &str, entry: &str) -> String {
    let whole = [folder, entry].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => drop(names.pop()),
            name => names.push(name),
        }
    }
    let path = names.join("/");
    if whole.starts_with('/') { ["/", &path].concat() } else { path }
}
