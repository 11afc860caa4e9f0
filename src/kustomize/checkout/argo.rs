//! Finds the folders that Argo CD builds in a checkout, which is a local copy of a git repository. Applications and
//! ApplicationSets refer to these folders. This module searches for such objects in the files of the checkout, and in
//! the output of kustomize for its folders.
//!
//! Source: `GetAppSourceType` and `mergeSourceParameters` in argo-cd's `reposerver/repository/repository.go`, and
//! `filterApps` in its `applicationset/generators/git.go`.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::object::{ARGO, Object, ToolObjects, text};
use super::reach::Reaches;
use super::render::render;
use super::url::Repository;
use super::{Build, Checkout, Survey};
use crate::admission::FieldPath;
use crate::kustomize::engine::Resource;
use crate::kustomize::file::NAMES;
use crate::kustomize::glob::{folders_below, pattern};
use crate::kustomize::options::{ArgoSpec, Options, Profile};
use crate::kustomize::roots;
use crate::kustomize::tree::{Entry, Tree, TreePath};
use crate::yaml::{self, Limits};

/// Maximum depth of folders that a git directory generator searches. The limit bounds the search in repositories with
/// extremely deep folders.
const MAX_DEPTH: usize = 16;
/// Maximum number of Applications and ApplicationSets of a checkout whose folders are searched. The largest public
/// repositories have a few hundred Applications.
const MAX_APPLICATIONS: usize = 20_000;
/// The name of a file with overrides for all Applications whose source is the folder that contains the file.
const OVERRIDES: &str = ".argocd-source.yaml";

/// The parameters of an ApplicationSet's template, by name.
type Parameters = BTreeMap<String, String>;

/// Searches a checkout for the folders that Argo CD builds, and adds them to `survey`. `tool_objects` contains the
/// Applications and ApplicationSets in the files of the checkout.
pub(super) fn add(checkout: &Checkout<'_>, tool_objects: &ToolObjects, survey: &mut Survey) {
    if tool_objects.applications.is_empty() {
        return;
    }
    let files = tool_objects.applications.iter().map(|object| object.file.clone()).collect();
    let reaches = Reaches::new(checkout.tree, checkout.files);
    let mut surveyor = Surveyor {
        checkout,
        reaches,
        files,
        rendered: HashSet::new(),
        seen: HashSet::new(),
        survey,
        open: VecDeque::new(),
    };
    surveyor.follow(tool_objects);
}

/// A folder that Argo CD builds, and the kustomize options of its source.
struct Source {
    root: TreePath,
    spec: ArgoSpec,
}

struct Surveyor<'a, 's> {
    checkout: &'a Checkout<'a>,
    reaches: Reaches<'a>,
    /// The files of the checkout that contain Applications or ApplicationSets.
    files: HashSet<TreePath>,
    /// The files that contain Applications and that a kustomization includes. For these Applications, the output of
    /// kustomize is used instead of the files, because a patch may have changed the Applications.
    rendered: HashSet<TreePath>,
    /// The Applications that were processed. Each string contains kind, namespace, name and the JSON of an Application.
    seen: HashSet<String>,
    survey: &'s mut Survey,
    open: VecDeque<Object>,
}

impl Surveyor<'_, '_> {
    /// Records the folders that Argo CD builds for the Applications and ApplicationSets of a checkout. If the output of
    /// such a build contains further Applications, also records the folders that Argo CD builds for these Applications.
    /// If an Application is in a file and in a build output, the build output is used, because a patch may have changed
    /// the Application.
    fn follow(&mut self, tool_objects: &ToolObjects) {
        for at in 0..self.survey.builds.len() {
            let Build { tree, root, options, .. } = self.survey.builds[at].clone();
            self.render(&tree, &root, &options);
        }
        let roots = self.roots();
        let contained: HashSet<TreePath> = roots.iter().flat_map(|root| self.reaches.of(root, &[]).files).collect();
        let alone = tool_objects.applications.iter().filter(|object| !contained.contains(&object.file));
        self.open.extend(alone.filter(|object| !self.rendered.contains(&object.file)).cloned());
        self.drain();
        for root in roots {
            if !self.survey.reached.contains(&root) {
                self.render(self.checkout.tree, &root, &Options::default());
                self.drain();
            }
        }
        let rest = tool_objects.applications.iter().filter(|object| !self.rendered.contains(&object.file));
        self.open.extend(rest.cloned());
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(application) = self.open.pop_front() {
            let is_new = self.seen.insert(format!("{} {}", application.title(), application.value));
            if is_new && self.seen.len() <= MAX_APPLICATIONS {
                sources(self.checkout, &application).into_iter().for_each(|source| self.build(source, &application));
            }
        }
    }

    /// Records that Argo CD builds the folder `root` with the options `spec` for `application`. Queues all Applications
    /// in the output of this build.
    fn build(&mut self, Source { root, spec }: Source, application: &Object) {
        let options = Options { argo: spec, ..Options::of(Profile::ArgoCd) };
        let is_same = |build: &&mut Build| build.root == root && build.options == options;
        if let Some(known) = self.survey.builds.iter_mut().find(is_same) {
            known.owners.push(application.clone());
            return;
        }
        let tree = Arc::clone(self.checkout.tree);
        let reach = self.reaches.of(&root, &roots::added_components(&tree, &root, &options));
        self.survey.reached.extend(reach.folders);
        self.survey.reached_files.extend(reach.files);
        self.render(&tree, &root, &options);
        let owners = vec![application.clone()];
        self.survey.builds.push(Build { tree, root, options, owners, is_used: true });
    }

    /// Builds the folder `root`, and adds the Applications in the output to the queue `open`. Does nothing if the build
    /// reads no file with an Application.
    fn render(&mut self, tree: &Tree, root: &TreePath, options: &Options) {
        let reach = self.reaches.of(root, &roots::added_components(tree, root, options));
        if reach.files.is_disjoint(&self.files) {
            return;
        }
        if let Ok(objects) = render(tree, root, options, self.checkout.files, is_application) {
            self.rendered.extend(reach.files.intersection(&self.files).cloned());
            self.open.extend(objects);
        }
    }

    /// Returns the folders of the checkout to which no other folder refers.
    fn roots(&self) -> Vec<TreePath> {
        let Checkout { tree, files, folders, .. } = self.checkout;
        let options = Options::default();
        roots::roots(folders, |folder| roots::references(tree, folder, &options, files).folders)
    }
}

fn is_application(resource: &Resource) -> bool {
    let version = resource.node.get("apiVersion").and_then(|version| version.text().map(str::to_owned));
    version.is_some_and(|version| version.starts_with(ARGO))
        && ["Application", "ApplicationSet"].contains(&resource.kind())
}

/// Returns the folders with kustomization files that an Application builds from the checkout.
fn sources(checkout: &Checkout<'_>, application: &Object) -> Vec<Source> {
    let is_set = application.kind() == "ApplicationSet";
    let (pointer, field) = match is_set {
        true => ("/spec/template/spec", FieldPath::of(["spec", "template", "spec"])),
        false => ("/spec", FieldPath::of(["spec"])),
    };
    let spec = application.value.pointer(pointer).unwrap_or(&Value::Null);
    let many = spec.get("sources").and_then(Value::as_array).into_iter().flatten().enumerate();
    let mut listed: Vec<_> = many.map(|(at, source)| (field.key("sources").index(at), source)).collect();
    if listed.is_empty() {
        listed.extend(spec.get("source").map(|source| (field.key("source"), source)));
    }
    let all = if is_set { parameters(checkout, application) } else { vec![Parameters::new()] };
    let mut found = Vec::new();
    for (field, source) in listed {
        for parameters in &all {
            let template = application.value.pointer("/spec/template/metadata/name").filter(|_| is_set);
            let name =
                template.map_or_else(|| application.name().to_owned(), |name| filled(text(Some(name)), parameters));
            let mut source = source.clone();
            fill(&mut source, parameters);
            found.extend(of_source(checkout, spec, &name, source, &field));
        }
    }
    found
}

/// Returns the folder of the checkout that Argo CD builds with kustomize for `source`, one of the sources of an
/// Application. `field` is the path of this source in the object, such as `spec.source`. `spec` and `name` are the spec
/// and the name of the Application. `None` if there is no such folder, or if its path is unknown.
fn of_source(
    checkout: &Checkout<'_>,
    spec: &Value,
    name: &str,
    mut source: Value,
    field: &FieldPath,
) -> Option<Source> {
    let path = text(source.get("path")).to_owned();
    if !is_own(checkout, &source) || path.is_empty() || path.contains("{{") {
        return None;
    }
    let root = TreePath::from(&*format!("{}/{path}", checkout.git.top));
    override_source(checkout.tree, &root, name, &mut source);
    let is_other = ["helm", "directory", "plugin"].iter().any(|kind| source.get(kind).is_some_and(is_set_to_something));
    if is_other || !is_kustomize_root(checkout.tree, &root) {
        return None;
    }
    let variables = variables(spec, name, &source);
    let spec = ArgoSpec::of(source.get("kustomize").unwrap_or(&Value::Null), field.key("kustomize"), &variables);
    Some(Source { root, spec })
}

fn is_set_to_something(value: &Value) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

/// Applies the overrides in the files `.argocd-source.yaml` and `.argocd-source-NAME.yaml` of a source's folder. `NAME`
/// is the name of the Application. Argo CD Image Updater, for example, writes such files.
fn override_source(tree: &Tree, root: &TreePath, name: &str, source: &mut Value) {
    for file in [OVERRIDES.to_owned(), format!(".argocd-source-{name}.yaml")] {
        let Ok(bytes) = tree.read(&root.join(&file)) else { continue };
        let (text, limits) = (String::from_utf8_lossy(&bytes), Limits::default());
        if let Some(Ok(document)) = yaml::documents(&text, &limits).next() {
            merge_patch(source, &document.value);
        }
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge_patch(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in members {
        let Some(target) = target.as_object_mut() else { return };
        match value {
            Value::Null => drop(target.remove(key)),
            value => merge_patch(target.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}

/// Returns the variables that Argo CD sets for a build, by name. The revision is unknown, so the variables with the
/// revision contain only zeros.
fn variables(spec: &Value, name: &str, source: &Value) -> BTreeMap<&'static str, String> {
    let revision = "0".repeat(40);
    let owned = |value: Option<&Value>| text(value).to_owned();
    BTreeMap::from([
        ("ARGOCD_APP_NAME", name.to_owned()),
        ("ARGOCD_APP_NAMESPACE", owned(spec.pointer("/destination/namespace"))),
        ("ARGOCD_APP_PROJECT_NAME", owned(spec.get("project"))),
        ("ARGOCD_APP_REVISION_SHORT", revision[..7].to_owned()),
        ("ARGOCD_APP_REVISION_SHORT_8", revision[..8].to_owned()),
        ("ARGOCD_APP_REVISION", revision),
        ("ARGOCD_APP_SOURCE_PATH", owned(source.get("path"))),
        ("ARGOCD_APP_SOURCE_REPO_URL", owned(source.get("repoURL"))),
        ("ARGOCD_APP_SOURCE_TARGET_REVISION", owned(source.get("targetRevision"))),
    ])
}

/// Returns whether the repository of a source is a remote of the checkout.
fn is_own(checkout: &Checkout<'_>, source: &Value) -> bool {
    let url = text(source.get("repoURL").or_else(|| source.get("repoUrl")));
    Repository::parse(url).is_some_and(|url| checkout.git.remotes.contains(&url))
}

/// Returns whether a folder has a kustomization file. Argo CD builds such a folder with kustomize.
fn is_kustomize_root(tree: &Tree, folder: &TreePath) -> bool {
    NAMES.into_iter().any(|name| tree.entry(&folder.join(name)) == Some(Entry::File))
}

/// Returns the sets of parameters with which an ApplicationSet creates Applications. A git directory generator adds one
/// set for each folder that it finds, but no set if it searches another repository. A list generator adds one set for
/// each element. A generator of any other type adds one set without parameters.
fn parameters(checkout: &Checkout<'_>, set: &Object) -> Vec<Parameters> {
    let generators = set.value.pointer("/spec/generators").and_then(Value::as_array).into_iter().flatten();
    let mut all = Vec::new();
    for generator in generators {
        let directories = generator.pointer("/git/directories").and_then(Value::as_array);
        let elements = generator.pointer("/list/elements").and_then(Value::as_array);
        match (directories, elements) {
            (Some(directories), _) if is_own(checkout, &generator["git"]) => {
                all.extend(of_folders(checkout, directories))
            }
            (Some(_), _) => {}
            (None, Some(elements)) => all.extend(elements.iter().map(of_element)),
            (None, None) => all.push(Parameters::new()),
        }
    }
    all
}

fn of_folders(checkout: &Checkout<'_>, directories: &[Value]) -> Vec<Parameters> {
    let patterns = |excludes: bool| {
        let wanted = move |entry: &&Value| (entry.get("exclude") == Some(&Value::Bool(true))) == excludes;
        directories.iter().filter(wanted).filter_map(|entry| pattern(text(entry.get("path")))).collect::<Vec<_>>()
    };
    let (included, excluded) = (patterns(false), patterns(true));
    let matches = |patterns: &[regex::Regex], folder: &str| patterns.iter().any(|pattern| pattern.is_match(folder));
    let mut folders = Vec::new();
    folders_below(checkout.tree, &checkout.git.top, "", MAX_DEPTH, &mut folders);
    folders.retain(|folder| matches(&included, folder) && !matches(&excluded, folder));
    folders.iter().map(|folder| of_folder(folder)).collect()
}

/// Returns the template parameters with which an Argo CD ApplicationSet creates an Application for `folder`. Each
/// parameter has two names, because there are two template syntaxes: `{{path}}` and `{{.path.path}}`.
fn of_folder(folder: &str) -> Parameters {
    let name = folder.rsplit('/').next().unwrap_or_default();
    let pairs = [("path", folder), (".path.path", folder), ("path.basename", name), (".path.basename", name)];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn of_element(element: &Value) -> Parameters {
    let members = element.as_object().into_iter().flatten();
    let texts = members.filter_map(|(key, value)| Some((key, value.as_str()?)));
    texts.flat_map(|(key, value)| [key.clone(), format!(".{key}")].map(|key| (key, value.to_owned()))).collect()
}

/// Replaces the parameters of a template with their values, in all strings of a JSON value.
fn fill(value: &mut Value, parameters: &Parameters) {
    match value {
        Value::String(text) if text.contains("{{") => *text = filled(text, parameters),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, parameters)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, parameters)),
        _ => {}
    }
}

/// Returns a template in which parameters such as `{{path}}` are replaced with their values. Parameters without a value
/// stay unchanged.
fn filled(template: &str, parameters: &Parameters) -> String {
    let mut filled = template.to_owned();
    for (parameter, value) in parameters {
        filled =
            filled.replace(&format!("{{{{{parameter}}}}}"), value).replace(&format!("{{{{ {parameter} }}}}"), value);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_both_notations_of_parameters() {
        let web = of_folder("apps/web");
        assert_eq!(filled("{{path}}/x/{{ .path.basename }}", &web), "apps/web/x/web");
        assert_eq!(filled("{{.path.path}}-{{cluster}}", &web), "apps/web-{{cluster}}");
        let element = of_element(&serde_json::json!({"env": "prod", "count": 1}));
        assert_eq!(filled("{{env}}-{{.env}}-{{count}}", &element), "prod-prod-{{count}}");
    }

    #[test]
    fn merges_overrides() {
        let mut source = serde_json::json!({"path": "a", "kustomize": {"images": ["a:1"], "namePrefix": "x"}});
        merge_patch(&mut source, &serde_json::json!({"kustomize": {"images": ["a:2"], "namePrefix": null}}));
        assert_eq!(source, serde_json::json!({"path": "a", "kustomize": {"images": ["a:2"]}}));
    }
}
