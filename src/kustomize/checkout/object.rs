//! Reads Flux Kustomizations, Argo CD Applications, Sveltos profiles and similar objects from the files of a checkout.
//! These objects determine which folders Flux, Argo CD and Sveltos build.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admission::{FieldPath, Metadata};
use crate::kustomize::finding::Site;
use crate::kustomize::tree::{Tree, TreePath};
use crate::yaml::{self, Document, Limits};

/// API group of Flux's Kustomizations.
pub(super) const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
/// API group of Flux's sources.
pub(super) const SOURCE: &str = "source.toolkit.fluxcd.io";
/// API group of the Flux Operator.
const OPERATOR: &str = "fluxcd.controlplane.io";
/// API group of Argo CD.
pub(super) const ARGO: &str = "argoproj.io";
/// API group of HelmReleases. A HelmRelease may install a FluxInstance.
const HELM: &str = "helm.toolkit.fluxcd.io";

/// API group of the profiles of Project Sveltos.
const SVELTOS: &str = "config.projectsveltos.io";

/// An object, with the position at which a file defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The file that defines the object.
    pub file: TreePath,
    /// The line at which the object begins.
    pub line: u32,
    /// The content of the object, as JSON.
    pub value: Value,
}

impl Object {
    /// Returns the API group; empty for the core group.
    pub(super) fn group(&self) -> &str {
        group(&self.value)
    }

    /// Returns the kind, such as `Kustomization`.
    pub fn kind(&self) -> &str {
        text(self.value.get("kind"))
    }

    /// Returns the name (`metadata.name`).
    pub fn name(&self) -> &str {
        Metadata::of(&self.value).name()
    }

    /// Returns the namespace; empty if it is absent.
    pub fn namespace(&self) -> &str {
        Metadata::of(&self.value).namespace()
    }

    /// Returns `namespace/name`, or only the name if there is no namespace.
    pub fn qualified_name(&self) -> String {
        match self.namespace() {
            "" => self.name().to_owned(),
            namespace => format!("{namespace}/{}", self.name()),
        }
    }

    /// Returns kind, namespace and name, such as `Kustomization flux-system/apps`.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind(), self.qualified_name())
    }

    /// Returns the position of a field in the file of the object. If the field is not in the file, returns the position
    /// of the key `spec`, or the start of the object if it has no `spec`.
    pub fn site(&self, tree: &Tree, field: &FieldPath) -> Site {
        let site = Site { field: field.clone(), ..Site::of_file(self.file.clone()) };
        match self.document(tree) {
            Some(document) => Site { place: place(&document, field), ..site },
            None => site,
        }
    }

    /// Returns whether the file that defines the object contains the field `field` of the object.
    pub(super) fn has_written(&self, tree: &Tree, field: &FieldPath) -> bool {
        self.document(tree).is_some_and(|document| document.place(field).is_some())
    }

    fn document(&self, tree: &Tree) -> Option<Document> {
        let bytes = tree.read(&self.file).ok()?;
        let (text, limits) = (String::from_utf8_lossy(&bytes), Limits::default());
        let documents = yaml::documents(&text, &limits).flatten();
        documents.filter(|document| document.start().line <= self.line).last()
    }
}

fn place(document: &Document, field: &FieldPath) -> yaml::Place {
    let is_block = |value: &Value| value.is_object() || value.is_array();
    let value = document.value.pointer(&pointer(field));
    let key = document.key_place(field).filter(|_| value.is_none_or(is_block));
    key.or_else(|| document.place(field))
        .or_else(|| document.key_place(&FieldPath::of(["spec"])))
        .unwrap_or_else(|| document.start())
}

fn pointer(field: &FieldPath) -> String {
    use crate::admission::field::Segment;
    let segment = |segment: &Segment| match segment {
        Segment::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Index(index) => format!("/{index}"),
    };
    field.segments().iter().map(segment).collect()
}

/// Returns a value as a string; empty if it is not a string.
pub(super) fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the API group of an object.
pub(super) fn group(value: &Value) -> &str {
    text(value.get("apiVersion")).split_once('/').map_or("", |(group, _)| group)
}

/// The objects in the files of a checkout that tell Flux, Argo CD and Sveltos which folders to build.
#[derive(Debug, Default)]
pub(super) struct ToolObjects {
    /// Flux Kustomizations.
    pub(super) kustomizations: Vec<Object>,
    /// Flux sources, such as GitRepositories.
    pub(super) sources: Vec<Object>,
    /// FluxInstances, and HelmReleases that install a FluxInstance.
    pub(super) instances: Vec<Object>,
    /// Applications and ApplicationSets of Argo CD.
    pub(super) applications: Vec<Object>,
    /// ClusterProfiles and Profiles of Project Sveltos.
    pub(super) profiles: Vec<Object>,
    /// Names of the ConfigMaps and Secrets that are listed in a field `substituteFrom`. Flux reads variables from these
    /// objects.
    pub(super) variables: Vec<String>,
    /// Whether a file installs a kustomize-controller that replaces unset variables with the empty string.
    pub(super) is_lenient: bool,
}

/// The start of the image reference of kustomize-controller. The version follows this text.
const CONTROLLER: &str = "fluxcd/kustomize-controller:v";
/// The first version of kustomize-controller in which a missing variable in post-build substitution is an error: 1.9.
/// Older versions replace the variable with the empty string.
const FIRST_STRICT: (u32, u32) = (1, 9);

/// Returns whether a text names an image of kustomize-controller that is older than version 1.9. Before this version,
/// unset variables become the empty string.
fn installs_lenient(text: &str) -> bool {
    let versions = text.match_indices(CONTROLLER).filter_map(|(at, name)| text.get(at + name.len()..));
    let parsed = versions.filter_map(|version| {
        let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    parsed.min().is_some_and(|version: (u32, u32)| version < FIRST_STRICT)
}

/// The API groups by which relevant files are selected. A file is parsed only if it contains one of these groups, or
/// the chart name in `INSTANCE_CHART`. Other files do not define which folders Flux, Argo CD or Sveltos build.
const WORDS: [&str; 5] = [KUSTOMIZE, SOURCE, OPERATOR, ARGO, SVELTOS];
/// The name of the Helm chart that installs a FluxInstance. Files are searched for this name, to find the HelmReleases
/// that use the chart.
const INSTANCE_CHART: &str = "flux-instance";

impl ToolObjects {
    /// Collects the objects in `files` that tell Flux, Argo CD and Sveltos which folders to build. Skips files that are
    /// not UTF-8 and documents that are not valid YAML, because other checks report them.
    pub(super) fn read(tree: &Tree, files: &[TreePath]) -> Self {
        let mut tool_objects = Self::default();
        for file in files {
            let Ok(bytes) = tree.read(file) else { continue };
            let Ok(text) = std::str::from_utf8(&bytes) else { continue };
            tool_objects.variables.extend(variables(text));
            tool_objects.is_lenient |= installs_lenient(text);
            if WORDS.iter().chain([&INSTANCE_CHART]).any(|word| text.contains(word)) {
                tool_objects.parse(file, text);
            }
        }
        tool_objects.variables.sort();
        tool_objects.variables.dedup();
        tool_objects
    }

    fn parse(&mut self, file: &TreePath, text: &str) {
        let limits = Limits::default();
        for document in yaml::documents(text, &limits).flatten() {
            let line = document.start().line;
            let items = document.value.get("items").and_then(Value::as_array);
            let objects = items.map_or_else(|| vec![document.value.clone()], Clone::clone);
            for value in objects {
                self.add(Object { file: file.clone(), line, value });
            }
        }
    }

    fn add(&mut self, object: Object) {
        match (object.group(), object.kind()) {
            (KUSTOMIZE, "Kustomization") => self.kustomizations.push(object),
            (SOURCE, _) => self.sources.push(object),
            (ARGO, "Application" | "ApplicationSet") => self.applications.push(object),
            (SVELTOS, "ClusterProfile" | "Profile") => self.profiles.push(object),
            (OPERATOR, "FluxInstance") => self.instances.push(object),
            (HELM, "HelmRelease") if object.value.pointer("/spec/values/instance/sync").is_some() => {
                self.instances.push(object);
            }
            _ => {}
        }
    }
}

/// Maximum number of lines that are searched for names, beginning at a line with `substituteFrom`. One reference has
/// three lines, so this is enough for seven references.
const MAX_LIST_LINES: usize = 24;

/// Returns the names of ConfigMaps and Secrets in all `substituteFrom` lists of a YAML text. Searches the lines of the
/// text instead of parsing the YAML. So the function also finds lists in patches, which can be strings within the YAML.
fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices("substituteFrom") {
        let rest = text.get(at..).unwrap_or_default();
        for line in rest.lines().take(MAX_LIST_LINES) {
            let name = line.split_once("name:").map(|(_, name)| name.trim().trim_matches(['"', '\'', '}', ' ', ',']));
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    names
}

/// The Flux variables in ConfigMaps and Secrets of one cluster. Contains only ConfigMaps and Secrets that files of the
/// checkout define. The key contains kind, namespace and name of the ConfigMap or Secret.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Variables(BTreeMap<(String, String, String), Data>);

/// The variables in a ConfigMap or Secret, by name. The value is `None` if it is unknown.
pub(super) type Data = BTreeMap<String, Option<String>>;

impl Variables {
    /// Adds the values in a ConfigMap or Secret as variables. Ignores objects of other kinds. A value is stored as
    /// unknown if it is encrypted, or if it contains a reference to a variable, such as `${NAME}`.
    pub(super) fn add(&mut self, object: &Value) {
        let kind = text(object.get("kind"));
        if !["ConfigMap", "Secret"].contains(&kind) || !group(object).is_empty() {
            return;
        }
        let metadata = Metadata::of(object);
        let key = (kind.to_owned(), metadata.namespace().to_owned(), metadata.name().to_owned());
        self.0.insert(key, data(object, kind == "Secret"));
    }

    /// Returns the variables in a ConfigMap or Secret; `None` if no file is known to define this ConfigMap or Secret.
    pub(super) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Data> {
        self.0.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }
}

/// Returns the values in a ConfigMap or Secret by key. A value is `None` if it is unknown, for example because it is
/// encrypted, or because it contains a reference such as `${NAME}`. `is_secret` says whether `object` is a Secret,
/// whose `data` is encoded in Base64.
fn data(object: &Value, is_secret: bool) -> Data {
    let is_encrypted = object.get("sops").is_some();
    let members = |field: &str| object.get(field).and_then(Value::as_object).into_iter().flatten();
    let known = |value: String| (!is_encrypted && !value.contains("${")).then_some(value);
    let plain = |value: &Value| value.as_str().map(str::to_owned).and_then(known);
    let encoded = |value: &Value| value.as_str().and_then(decoded).and_then(known);
    let own = members("data").map(|(key, value)| (key.clone(), if is_secret { encoded(value) } else { plain(value) }));
    let mut data: Data = own.collect();
    if is_secret {
        data.extend(members("stringData").map(|(key, value)| (key.clone(), plain(value))));
    }
    data
}

fn decoded(value: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.trim()).ok()?;
    String::from_utf8(bytes).ok()
}
