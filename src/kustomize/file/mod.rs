//! Decodes kustomization files as kustomize does.
//!
//! The file is YAML 1.1. Only the first document is read, and the case of keys does not matter. Unknown fields are
//! errors at every level.
//!
//! Source: `Kustomization.Unmarshal`, `FixKustomization`, `CheckEmpty` and `EnforceFields` in kustomize's
//! `api/types/kustomization.go`.

mod decode;
mod definitions;
mod kustomization;
mod lax;
mod schema;

use std::sync::Arc;

use serde_json::Value;

pub use decode::{Fault, FaultKind};
pub(in crate::kustomize) use definitions::schemas;
pub use definitions::{Definitions, definitions};
pub use kustomization::{
    COMPONENT, Generator, GeneratorOptions, Image, KUSTOMIZATION_VERSION, Kustomization, Label, Patch, PatchOptions,
    Replacement, Replica, Selector, SortOptions, Source, Target, Var,
};

pub use super::tree::NAMES;
use super::tree::TreePath;
use crate::admission::FieldPath;
use crate::admission::field::Segment;
use crate::yaml::{self, Document, Duplicate, Limits, Place, YamlError};

/// The deprecated fields. Each tuple contains a deprecated field and the field that kustomize's warning recommends.
const DEPRECATED: [(&str, &str); 6] = [
    ("bases", "resources"),
    ("commonLabels", "labels"),
    ("imageTags", "images"),
    ("patchesJson6902", "patches"),
    ("patchesStrategicMerge", "patches"),
    ("vars", "replacements"),
];
/// Fields whose entries kustomize moves to other fields. An empty list in such a field counts as absent.
const MOVED: [&str; 3] = ["bases", "imageTags", "helmChartInflationGenerator"];

/// A parsed kustomization file, with its errors and the positions of its fields.
#[derive(Debug, Clone)]
pub struct KustomizationFile {
    /// The path of the file.
    pub path: TreePath,
    /// The decoded fields.
    pub kustomization: Kustomization,
    /// The errors that kustomize's decoder would report.
    pub faults: Vec<Fault>,
    /// The unknown fields in the kustomization file of the folder that Flux builds. Flux ignores them. Always empty if
    /// the file was parsed by the stricter rules of kustomize: unknown fields are then errors in `faults`.
    pub ignored: Vec<Fault>,
    /// Whether kustomize treats the file as empty, because no field other than `kind` and `apiVersion` has a value.
    pub empty: bool,
    /// The duplicate keys in the file.
    pub duplicates: Vec<Duplicate>,
    /// The start of the second YAML document in the file. Only the first document is decoded. `None` if there is no
    /// second document.
    pub second_document: Option<Place>,
    /// Top-level keys that differ from a field name only in case. Each tuple contains the path of the key and the
    /// correct name.
    pub misspelled: Vec<(FieldPath, &'static str)>,
    /// The deprecated fields in the file. Each tuple contains a deprecated field and the field that replaces it.
    pub deprecated: Vec<(&'static str, &'static str)>,
    document: Option<Document>,
}

/// The reason why a text is not a kustomization file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadFile {
    /// The text is not YAML.
    Yaml(YamlError),
    /// The text exceeds a limit of Portcullis, or go-yaml may parse it differently than Portcullis. kustomize may
    /// accept the text.
    Limit(YamlError),
    /// The file is not UTF-8, or has a character that YAML does not allow. Contains the byte offset of the error.
    Encoding(usize),
    /// The file is UTF-16, which go-yaml supports and Portcullis does not.
    Utf16,
}

/// Returns the text of a file, if go-yaml accepts its bytes.
///
/// # Errors
///
/// If the file is not UTF-8, or contains a control character that YAML does not allow.
pub fn text(bytes: &[u8]) -> Result<&str, BadFile> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(BadFile::Utf16);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| BadFile::Encoding(error.valid_up_to()))?;
    match text.char_indices().find(|(_, c)| !is_allowed(*c)) {
        Some((at, _)) => Err(BadFile::Encoding(at)),
        None => Ok(text),
    }
}

/// Returns whether go-yaml's reader accepts a character.
fn is_allowed(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

impl BadFile {
    fn of(error: YamlError) -> Self {
        if error.problem.is_open() { Self::Limit(error) } else { Self::Yaml(error) }
    }
}

impl KustomizationFile {
    /// Returns how many values the parser copied to resolve YAML aliases.
    pub fn aliased(&self) -> usize {
        self.document.as_ref().map_or(0, |document| document.aliased)
    }

    /// Parses a kustomization file as kustomize does. Invalid fields are not errors of this function: they are in
    /// `faults`.
    ///
    /// # Errors
    ///
    /// If the file is not UTF-8 or not YAML, or if Portcullis cannot parse it, for example because it exceeds a limit.
    pub fn read(path: TreePath, bytes: &[u8]) -> Result<Self, BadFile> {
        Self::decoded(path, bytes, |value| decode::decode(value, &schema::KUSTOMIZATION))
    }

    /// Parses the kustomization file of the folder that Flux builds, as Flux does. Converts numbers and booleans to
    /// strings where a field requires a string. Drops unknown fields, and records them in `ignored`. If `kind` or
    /// `apiVersion` is missing, sets it to that of a Kustomization.
    ///
    /// # Errors
    ///
    /// If the file is not UTF-8 or not YAML, or if Portcullis cannot parse it, for example because it exceeds a limit.
    pub fn read_lax(path: TreePath, bytes: &[u8]) -> Result<Self, BadFile> {
        let mut file = Self::decoded(path, bytes, |value| {
            let (mut decoded, faults) =
                decode::decode(&lax::relaxed(value, &schema::KUSTOMIZATION), &schema::KUSTOMIZATION);
            if let Some(members) = decoded.as_object_mut() {
                members.entry("kind").or_insert_with(|| kustomization::KUSTOMIZATION.into());
                members.entry("apiVersion").or_insert_with(|| KUSTOMIZATION_VERSION.into());
            }
            (decoded, faults)
        })?;
        let is_unknown = |fault: &Fault| matches!(fault.kind, FaultKind::Unknown { .. });
        (file.ignored, file.faults) = file.faults.into_iter().partition(is_unknown);
        Ok(file)
    }

    fn decoded(
        path: TreePath,
        bytes: &[u8],
        decode: impl FnOnce(&Value) -> (Value, Vec<Fault>),
    ) -> Result<Self, BadFile> {
        let text = text(bytes)?;
        let limits = Limits::default();
        let document = yaml::first(text, &limits).map_err(BadFile::of)?;
        let empty = Value::Object(serde_json::Map::new());
        let value = document.as_ref().map_or(&empty, |document| &document.value);
        let (misspelled, deprecated) = (misspelled(value), deprecated(value));
        let (decoded, faults) = decode(value);
        Ok(Self {
            path,
            empty: is_empty(&decoded),
            kustomization: serde_json::from_value(decoded).unwrap_or_default(),
            faults,
            ignored: Vec::new(),
            duplicates: document.as_ref().map(Document::duplicates).unwrap_or_default(),
            second_document: document.as_ref().and_then(|first| second_document(text, first)),
            misspelled,
            deprecated,
            document,
        })
    }

    /// Creates a `KustomizationFile` for a folder that has no kustomization file. Flux generates such a file from the
    /// other files in the folder. `path` is the path of the generated file, and `kustomization` is its content.
    pub fn generated(path: TreePath, kustomization: Kustomization) -> Self {
        Self {
            path,
            kustomization,
            faults: Vec::new(),
            ignored: Vec::new(),
            empty: false,
            duplicates: Vec::new(),
            second_document: None,
            misspelled: Vec::new(),
            deprecated: Vec::new(),
            document: None,
        }
    }

    /// Returns the position of a field in the file. The keys in `path` are the field names in kustomize's schema. If
    /// the field is not in the file, returns the position of the closest field that contains it. If Flux generates the
    /// file, returns the position of the first line.
    pub fn place(&self, path: &FieldPath) -> Place {
        match &self.document {
            Some(document) => document.place(path).unwrap_or_else(|| document.nearest(&written(&document.value, path))),
            None => Place { line: 1, column: 1, start: 0, end: 0 },
        }
    }

    /// Returns the position of the key of a field. If the field has no key in the file, returns the same position as
    /// [`place`](Self::place).
    pub fn key_place(&self, path: &FieldPath) -> Place {
        let document = self.document.as_ref();
        document.and_then(|d| d.key_place(&written(&d.value, path))).unwrap_or_else(|| self.place(path))
    }
}

/// Decodes a file that is listed in the field `configurations` of a kustomization file. Returns the decoded value, the
/// errors in it, and the parsed document. The document is `None` if the file is empty. An unknown field is an error.
///
/// # Errors
///
/// If the file is not UTF-8 or not YAML, or if Portcullis cannot parse it, for example because it exceeds a limit.
pub fn configuration(bytes: &[u8]) -> Result<(Value, Vec<Fault>, Option<Document>), BadFile> {
    let limits = Limits::default();
    let document = yaml::first(text(bytes)?, &limits).map_err(BadFile::of)?;
    let value = document.as_ref().map_or_else(|| Value::Object(serde_json::Map::new()), |d| d.value.clone());
    let (decoded, faults) = decode::decode(&value, &schema::CONFIGURATION);
    Ok((decoded, faults, document))
}

/// Decodes a replacement that is in a separate file. Numbers and booleans become strings if their field is a string.
/// Unknown fields are dropped.
///
/// # Errors
///
/// If a value has the wrong type for its field. Returns the path of the first such value, and a description of the
/// error.
pub fn replacement(value: &Value) -> Result<Replacement, (FieldPath, String)> {
    let fields = &schema::REPLACEMENT_IN_FILE;
    let (decoded, faults) = decode::decode(&lax::relaxed(value, fields), fields);
    let wrong = faults.into_iter().find_map(|Fault { path, kind }| match kind {
        FaultKind::Type { expected, found } => Some((path, format!("{found} is not {expected}"))),
        FaultKind::Unknown { .. } => None,
    });
    wrong.map_or_else(|| Ok(serde_json::from_value(decoded).unwrap_or_default()), Err)
}

/// Returns `path` with each key spelled as in the file. `value` is the content of the file. In the file, the case of a
/// key can differ from the case in `path`.
fn written(value: &Value, path: &FieldPath) -> FieldPath {
    let (mut at, mut spelled) = (Some(value), FieldPath::root());
    for segment in path.segments() {
        match segment {
            Segment::Index(index) => {
                spelled = spelled.index(*index);
                at = at.and_then(|value| value.get(index));
            }
            Segment::Key(key) => {
                let own = at.and_then(|value| spelling(value, key)).unwrap_or(key);
                spelled = spelled.key(own);
                at = at.and_then(|value| value.get(own));
            }
        }
    }
    spelled
}

/// Returns the key of the mapping `value` that equals `key`. If there is none, returns a key of `value` that differs
/// from `key` only in case.
fn spelling<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    let members = value.as_object()?;
    if let Some((own, _)) = members.get_key_value(key) {
        return Some(own);
    }
    members.keys().find(|own| own.eq_ignore_ascii_case(key)).map(String::as_str)
}

/// Returns the deprecated fields in a kustomization file, each with the field that replaces it.
fn deprecated(value: &Value) -> Vec<(&'static str, &'static str)> {
    DEPRECATED.into_iter().filter(|(field, _)| has_field(value, field)).collect()
}

fn has_field(value: &Value, field: &str) -> bool {
    spelling(value, field).and_then(|own| value.get(own)).is_some_and(|value| !value.is_null())
}

fn is_empty(decoded: &Value) -> bool {
    let members = decoded.as_object().into_iter().flatten();
    members.filter(|(key, _)| *key != "kind" && *key != "apiVersion").all(|(key, value)| {
        let moved = MOVED.contains(&key.as_str()) && value.as_array().is_some_and(Vec::is_empty);
        moved || schema::KUSTOMIZATION.find(key).is_some_and(|(_, ty)| decode::is_zero(value, ty))
    })
}

/// Returns the position of the second YAML document of a file; `None` if there is none, or if it is empty. `first` is
/// the parsed first document.
fn second_document(text: &str, first: &Document) -> Option<Place> {
    let from = first.start().end;
    let at = from + text.get(from..)?.find("\n---")? + 1;
    let after = text.get(at + 3..)?;
    let says_something = after.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let line = text.get(..at)?.bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
    says_something.then_some(Place { line, column: 1, start: at, end: at + 3 })
}

fn misspelled(value: &Value) -> Vec<(FieldPath, &'static str)> {
    let keys = value.as_object().into_iter().flat_map(|members| members.keys());
    keys.filter_map(|key| {
        let (name, _) = schema::KUSTOMIZATION.find(key)?;
        (name != key).then(|| (FieldPath::of([key]), *name))
    })
    .collect()
}

/// A parsed kustomization file that several builds can share.
pub type SharedFile = Arc<KustomizationFile>;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> KustomizationFile {
        KustomizationFile::read(TreePath::from("app/kustomization.yaml"), text.as_bytes()).unwrap()
    }

    #[test]
    fn keys_come_in_any_case_and_the_lower_case_wins() {
        let file = read("Resources: [a]\nresources: [b]\nCOMPONENTS: [c]\n");
        assert_eq!(file.kustomization.resources, ["b"]);
        assert_eq!(file.kustomization.components, ["c"]);
        assert_eq!(file.place(&FieldPath::of(["components"]).index(0)).line, 3);
    }

    #[test]
    fn fields_that_are_unknown_at_any_level_are_faults() {
        let file = read("resource: [a]\nmetadata: {name: x, foo: y}\npatches: [{target: {kid: A}}]\n");
        let paths: Vec<_> = file.faults.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(paths, ["metadata.foo", "patches[0].target.kid", "resource"]);
    }

    #[test]
    fn what_says_nothing_is_empty() {
        for text in
            ["", "kind: Component\n", "bases: []\n", "namePrefix: ''\n", "resources:\n", "---\n---\nresources: [a]\n"]
        {
            assert!(read(text).empty, "{text:?}");
        }
        for text in ["resources: []\n", "metadata: {}\n", "commonLabels: {}\n", "sortOptions: {}\n"] {
            assert!(!read(text).empty, "{text:?}");
        }
    }

    #[test]
    fn a_second_document_is_seen_and_not_read() {
        let file = read("resources: [a]\n---\nkind: Component\n");
        assert_eq!(file.kustomization.kind(), "Kustomization");
        assert_eq!(file.second_document.map(|place| place.line), Some(2));
        assert_eq!(read("resources: [a]\n---\n# no more\n").second_document, None);
    }
}
