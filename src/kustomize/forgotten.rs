//! Finds manifests that someone probably forgot to list in a kustomization file. Such a manifest is in the same folder
//! as a kustomization file, but no kustomization file refers to it.
//!
//! A manifest is reported only if kustomize can still build the folder after the manifest is added. These manifests are
//! not reported:
//!
//! - Manifests whose name occurs in another file of the folder, even in a comment such as `# - debug.yaml`.
//! - Manifests for tools such as kpt, and not for the API server. Their API group or an annotation shows this.
//! - Manifests in a folder that an Argo CD Application applies without kustomize.
//! - Roles that kubebuilder generates for users of a CustomResourceDefinition.
//! - Secrets, Pods, Jobs and Flux Kustomizations, because people often apply them by hand.
//! - Manifests with a word such as `example` in the name of the file or of a folder above it.
//! - Manifests whose file name is frequent in the repository, if no kustomization file refers to a file of this name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::Files;
use super::analysis::{Verdict, analyse};
use super::file::{KustomizationFile, NAMES};
use super::finding::{Fix, Site, TreeFinding};
use super::fix::fix;
use super::options::Options;
use super::roots::{References, references};
use super::rules::kz026;
use super::tree::{Entry, Tree, TreePath};
use crate::admission::FieldPath;
use crate::yaml::node::Node;
use crate::yaml::{self, Limits};

/// The field `resources` of a kustomization file. A forgotten manifest is missing from this list, and the suggested fix
/// adds it.
const LIST: &str = "resources";
/// Maximum size of a file that is searched for the names of other files, in bytes. Larger files usually contain data
/// instead of references to files.
const MAX_MENTIONING_BYTES: usize = 1 << 20;

/// API groups whose objects are not reported if no kustomization file lists them. Most of these objects are never sent
/// to an API server, because tools such as kpt read them directly from files.
const GROUPS_OF_TOOLS: [&str; 17] = [
    "backstage.io",
    "chainsaw.kyverno.io",
    "cli.kyverno.io",
    "config.kubernetes.io",
    "eksctl.io",
    "fn.kpt.dev",
    "k0sctl.k0sproject.io",
    "k3d.io",
    "kind.x-k8s.io",
    "kpt.dev",
    "kustomize.config.k8s.io",
    // Flux Kustomizations are often applied by hand, so that no kustomization lists them.
    "kustomize.toolkit.fluxcd.io",
    "kuttl.dev",
    "meta.pkg.crossplane.io",
    "tanka.dev",
    "test.gatekeeper.sh",
    "zarf.dev",
];

/// Maximum number of unlisted manifests with the same file name that are reported. If there are more, Portcullis
/// reports none of them, because the repository probably omits them on purpose. The limit does not apply if any
/// kustomization file lists a manifest of this name.
const MAX_SAME_NAME: usize = 8;

/// The apiVersion of objects that configure kustomize's built-in plugins. These objects are not sent to an API server,
/// so they are not reported if no kustomization file lists them.
const BUILTIN: &str = "builtin";

/// API group and kind of objects that people often apply by hand. Secrets contain credentials that do not belong in the
/// tree. Pods and Jobs run only once.
const APPLIED_BY_HAND: [(&str, &str); 3] = [("", "Secret"), ("", "Pod"), ("batch", "Job")];

/// Annotations that mark an object as input of a tool such as kpt. Objects with these annotations are not applied to a
/// cluster, and are not reported as forgotten.
const LOCAL: [&str; 2] = ["config.kubernetes.io/local-config", "config.kubernetes.io/function"];

/// File name suffixes of manifests with roles for users of a CustomResourceDefinition. kubebuilder generates these
/// manifests but does not list them in a kustomization.
const ROLES_OF_KUBEBUILDER: [&str; 3] = ["_admin_role.yaml", "_editor_role.yaml", "_viewer_role.yaml"];

/// Words that show that a file is not meant to be applied. Portcullis searches for them in the name of the file and in
/// the names of its nearest parent folders.
const WORDS: [&str; 13] = [
    "archive",
    "archived",
    "backup",
    "deprecated",
    "disabled",
    "example",
    "examples",
    "manual",
    "old",
    "patch",
    "patches",
    "sample",
    "samples",
];

/// Number of parent folders whose names are searched for words such as `archive`, beginning with the folder of the
/// file. Such a word shows that the file is not meant to be applied.
const NEAREST_FOLDERS: usize = 3;

/// A search for forgotten manifests in a kustomize tree. A forgotten manifest is a file with objects that no
/// kustomization lists.
pub struct Search<'a> {
    /// The kustomize tree that contains the manifests and the kustomization files.
    pub tree: &'a Arc<Tree>,
    /// The references of each kustomization file to files and folders. The key is the folder of the kustomization file.
    pub references: &'a HashMap<TreePath, References>,
    /// The build options for resolving references and building folders.
    pub options: &'a Options,
    /// The cache of parsed kustomization files.
    pub read: &'a Files,
}

impl Search<'_> {
    /// Returns a finding for each forgotten manifest among `files`. A forgotten manifest contains objects, but no
    /// kustomization lists it.
    pub fn findings(&self, files: &[TreePath]) -> Vec<TreeFinding> {
        let listed: HashSet<_> = self.references.values().flat_map(|found| found.files.union(&found.parts)).collect();
        let is_beside = |file: &TreePath| file.parent().is_some_and(|folder| self.references.contains_key(&folder));
        let candidates = files.iter().filter(|file| is_beside(file) && !listed.contains(file) && may_be_applied(file));
        let candidates: Vec<_> = candidates.filter(|file| self.holds_objects(file)).collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let plain = self.folders_of_argo(files);
        let is_plain = |file: &TreePath| plain.iter().any(|folder| is_below(file, folder));
        let candidates: Vec<_> = candidates.into_iter().filter(|file| !is_plain(file)).collect();
        let listed_names: HashSet<_> = listed.iter().map(|file| file.name()).collect();
        let mut same_name: HashMap<&str, usize> = HashMap::new();
        candidates.iter().for_each(|file| *same_name.entry(file.name()).or_default() += 1);
        let is_convention =
            |file: &TreePath| same_name[file.name()] > MAX_SAME_NAME && !listed_names.contains(file.name());
        candidates.iter().filter(|file| !is_convention(file)).filter_map(|file| self.finding(file)).collect()
    }

    /// Returns a finding that says that `file` is a forgotten manifest. `file` must contain objects. Returns `None` in
    /// these cases:
    ///
    /// - The folder has no kustomization file, or this kustomization file is empty, or kustomize cannot read it.
    /// - Another file in the same folder mentions the name of the file.
    /// - A kustomization in a parent folder refers to the file.
    /// - It is not certain that kustomize can build the folder after the file is added to `resources`.
    pub fn finding(&self, file: &TreePath) -> Option<TreeFinding> {
        let (folder, name) = (file.parent()?, file.name());
        let kustomization = self.kustomization(&folder)?;
        if self.is_mentioned(&folder, name) || self.is_listed_above(&folder, file) {
            return None;
        }
        let fix = Fix::AddEntry { list: LIST.to_owned(), entry: name.to_owned() };
        self.builds_with(&folder, &kustomization, &fix).then(|| kz026::found(site(&kustomization), name, fix))
    }

    /// Returns the kustomization file of a folder, if kustomize can read it and it is not empty.
    fn kustomization(&self, folder: &TreePath) -> Option<Arc<KustomizationFile>> {
        let path = NAMES.iter().map(|name| folder.join(name)).find(|path| self.tree.entry(path).is_some())?;
        let file = self.read.kustomization(self.tree, &path).ok()?;
        (!file.empty && file.faults.is_empty()).then_some(file)
    }

    /// Returns whether a file contains at least one object, and only objects that a kustomization should list.
    fn holds_objects(&self, file: &TreePath) -> bool {
        let Some(text) = self.text(file) else { return false };
        let mut count = 0;
        for object in yaml::nodes(&text, 0, &Limits::default()) {
            match object {
                Ok(object) if is_applied(&object) => count += 1,
                _ => return false,
            }
        }
        count > 0
    }

    fn text(&self, file: &TreePath) -> Option<String> {
        String::from_utf8(self.tree.read(file).ok()?.to_vec()).ok()
    }

    /// Returns whether another file in `folder` contains the text `name`, which is the name of a file. The other file
    /// can be a script, or a kustomization file with a comment.
    fn is_mentioned(&self, folder: &TreePath, name: &str) -> bool {
        let others = self.tree.names(folder).into_iter().filter(|other| other != name);
        others.map(|other| folder.join(&other)).filter(|path| self.tree.entry(path) == Some(Entry::File)).any(|path| {
            self.text(&path).is_some_and(|text| text.len() <= MAX_MENTIONING_BYTES && has_word(&text, name))
        })
    }

    /// Returns whether a kustomization file in a parent folder refers to `file`. The parent folder may be outside of
    /// the folders that are checked.
    fn is_listed_above(&self, folder: &TreePath, file: &TreePath) -> bool {
        let mut above = folder.parent();
        while let Some(parent) = above {
            let found = references(self.tree, &parent, self.options, self.read);
            if found.files.contains(file) || found.parts.contains(file) {
                return true;
            }
            above = parent.parent();
        }
        false
    }

    /// Returns whether kustomize can build `folder` after the fix `entry` is applied to `file`, the kustomization file
    /// of the folder. The fix adds a manifest to the list `resources`.
    ///
    /// Returns `false` if the build fails, for example because another manifest contains the same object. Also returns
    /// `false` if the result of the build is unknown, for example because of a remote resource.
    fn builds_with(&self, folder: &TreePath, file: &KustomizationFile, entry: &Fix) -> bool {
        let text = self.text(&file.path).and_then(|text| fix(&text, std::slice::from_ref(entry)));
        text.is_some_and(|text| {
            let tree = self.tree.with_file(file.path.clone(), text.into_bytes());
            analyse(&tree, folder, self.options).verdict == Verdict::Accept
        })
    }

    /// Returns the folders that Argo CD applies as plain manifests, without kustomize. Reads the Applications in
    /// `files` to find these folders.
    fn folders_of_argo(&self, files: &[TreePath]) -> Vec<String> {
        let is_application = |text: &String| text.contains("argoproj.io/") && text.contains("directory:");
        let texts = files.iter().filter_map(|file| self.text(file)).filter(is_application);
        texts.flat_map(|text| yaml::read_all(&text, &Limits::default()).0).flat_map(|one| plain(&one.value)).collect()
    }
}

fn site(file: &KustomizationFile) -> Site {
    let list = FieldPath::of([LIST]);
    let field = if file.kustomization.resources.is_empty() { FieldPath::root() } else { list };
    Site::new(file.path.clone(), file.key_place(&field), field)
}

/// Returns whether a file may be a manifest to apply. Checks only the name of the file and the names of its closest
/// parent folders. For example, files in a folder `examples` are usually not applied.
fn may_be_applied(file: &TreePath) -> bool {
    let name = file.name();
    let mut folders = file.as_str().rsplit('/').skip(1).take(NEAREST_FOLDERS);
    let words = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
    !NAMES.contains(&name)
        && !ROLES_OF_KUBEBUILDER.iter().any(|end| name.ends_with(end))
        && !words(name)
        && !folders.any(words)
}

/// Returns whether a document is an object that a kustomization should list. The object must have a name. It must not
/// belong to another tool, and must not be of a kind that people apply by hand.
fn is_applied(object: &Node) -> bool {
    let text = |path: &[&str]| object.at_path(path).and_then(Node::text).filter(|text| !text.is_empty());
    let (Some(version), Some(kind)) = (text(&["apiVersion"]), text(&["kind"])) else { return false };
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let annotations = object.at_path(&["metadata", "annotations"]);
    let is_local = annotations.is_some_and(|found| LOCAL.iter().any(|key| found.get(key).is_some()));
    let is_of_tool = version == BUILTIN || GROUPS_OF_TOOLS.contains(&group);
    text(&["metadata", "name"]).is_some() && !is_local && !is_of_tool && !APPLIED_BY_HAND.contains(&(group, kind))
}

/// Returns whether `text` contains the file name `name` as a separate word. A longer name that contains `name` does not
/// count.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        // `./` may come before the name, and a full stop after it.
        let begins = before.strip_suffix("./").unwrap_or(before).chars().next_back().is_none_or(|c| !is_part(c));
        let ends = after.strip_prefix('.').unwrap_or(after).chars().next().is_none_or(|c| !is_part(c));
        begins && ends
    })
}

/// Returns the folders that an Argo CD Application or ApplicationSet applies without kustomize. These are the values of
/// `path` in all its sources that have the field `directory`. The result is empty if `object` is of another kind.
fn plain(object: &Value) -> Vec<String> {
    let spec = object.pointer("/spec/template/spec").or_else(|| object.get("spec"));
    let Some(spec) =
        spec.filter(|_| object["apiVersion"].as_str().is_some_and(|text| text.starts_with("argoproj.io/")))
    else {
        return Vec::new();
    };
    let sources = spec.get("sources").and_then(Value::as_array).into_iter().flatten();
    let sources = sources.chain(spec.get("source")).filter(|source| source.get("directory").is_some());
    sources.filter_map(|source| Some(source.get("path")?.as_str()?.trim_matches('/').to_owned())).collect()
}

/// Returns whether `file` is in or below `folder`, the `path` in an Argo CD Application. Such a path is relative to the
/// root of a repository. This root may be any folder of the tree, so `folder` may match at any level.
fn is_below(file: &TreePath, folder: &str) -> bool {
    !folder.is_empty() && format!("/{file}").contains(&format!("/{folder}/"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Memory;
    use super::*;

    const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\n";

    /// Checks `files` for manifests that no kustomization lists. Each element of `files` is a path and a text. Returns
    /// each finding as one line with position, rule id and message.
    fn forgotten(files: &[(&str, &str)]) -> Vec<String> {
        let memory = files.iter().fold(Memory::new(), |memory, (path, text)| memory.file(path, *text));
        let tree = Arc::new(Tree::new(memory, "/"));
        let (options, read) = (Options { lone_components: true, ..Options::default() }, Files::default());
        let paths: Vec<_> = files.iter().map(|(path, _)| TreePath::from(*path)).collect();
        let folders = paths.iter().filter(|path| NAMES.contains(&path.name())).filter_map(TreePath::parent);
        let found = folders.map(|folder| (folder.clone(), references(&tree, &folder, &options, &read)));
        let references = found.collect();
        let search = Search { tree: &tree, references: &references, options: &options, read: &read };
        search.findings(&paths).iter().map(|finding| format!("{} {}", finding.site(), finding.headline())).collect()
    }

    #[test]
    fn reports_objects_that_no_kustomization_lists() {
        let found = forgotten(&[
            ("app/kustomization.yaml", "resources:\n  - a.yaml\n"),
            ("app/a.yaml", CONFIG_MAP),
            (
                "app/b.yaml",
                "apiVersion: v1\nkind: Service\nmetadata: {name: b}\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: c}\n",
            ),
        ]);
        let message = "\"b.yaml\" holds Kubernetes objects, and no kustomization lists it";
        assert_eq!(found, [format!("app/kustomization.yaml:1 KZ026 resources: {message}")]);
        let found = forgotten(&[("app/kustomization.yaml", "namePrefix: x-\n"), ("app/b.yaml", CONFIG_MAP)]);
        assert_eq!(found, [format!("app/kustomization.yaml:1 KZ026 {message}")]);
    }

    #[test]
    fn accepts_files_that_any_kustomization_or_neighbour_names() {
        let of = |kustomization, more: &[(&str, &str)]| {
            forgotten(&[&[("app/kustomization.yaml", kustomization), ("app/extra.yaml", CONFIG_MAP)], more].concat())
        };
        assert_eq!(of("namePrefix: x-\n", &[]).len(), 1);
        for kustomization in [
            "resources: [./extra.yaml]\n",
            "patches: [{path: extra.yaml}]\n",
            "patchesStrategicMerge: [extra.yaml]\n",
            "configurations: [extra.yaml]\n",
            "crds: [extra.yaml]\n",
            "generators: [extra.yaml]\n",
            "transformers: [extra.yaml]\n",
            "replacements: [{path: extra.yaml}]\n",
            "helmCharts: [{name: x, valuesFile: extra.yaml}]\n",
            "helmCharts: [{name: x, additionalValuesFiles: [extra.yaml]}]\n",
            "configMapGenerator: [{name: x, files: [key=extra.yaml]}]\n",
            "namePrefix: x-\n# - extra.yaml\n",
            "namePrefix: x- # extra.yaml is applied by hand.\n",
        ] {
            assert_eq!(of(kustomization, &[]), [""; 0], "{kustomization}");
        }
        let none = [""; 0];
        assert_eq!(of("namePrefix: x-\n", &[("kustomization.yaml", "resources: [app/extra.yaml]\n")]), none);
        assert_eq!(of("namePrefix: x-\n", &[("app/README.md", "Run `kubectl apply -f app/extra.yaml`.")]), none);
        assert_eq!(of("namePrefix: x-\n", &[("app/README.md", "Another file is app-extra.yaml.")]).len(), 1);
    }

    #[test]
    fn accepts_files_of_a_name_that_many_folders_do_not_list() {
        let of = |folders: usize, more: &[(&str, &str)]| {
            let names = |number| [format!("f{number}/kustomization.yaml"), format!("f{number}/sync.yaml")];
            let names: Vec<_> = (0..folders).map(names).collect();
            let files = names.iter().flat_map(|[root, sync]| [(&**root, "namePrefix: x-\n"), (&**sync, CONFIG_MAP)]);
            forgotten(&files.chain(more.iter().copied()).collect::<Vec<_>>()).len()
        };
        assert_eq!([of(MAX_SAME_NAME, &[]), of(MAX_SAME_NAME + 1, &[])], [MAX_SAME_NAME, 0]);
        let listed = [("g/kustomization.yaml", "resources: [sync.yaml]\n"), ("g/sync.yaml", CONFIG_MAP)];
        assert_eq!(of(MAX_SAME_NAME + 1, &listed), MAX_SAME_NAME + 1);
    }

    #[test]
    fn accepts_files_of_other_tools_and_objects_applied_by_hand() {
        for text in [
            "color: blue\n",
            "- a\n",
            "apiVersion: v1\nkind: ConfigMap\n",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n",
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x}\n",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\n",
            "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\n",
            "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata: {name: x}\n",
            "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\nmetadata: {name: x}\n",
            "apiVersion: v1\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/local-config: 'true'}}\n",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
        ] {
            let found = forgotten(&[("app/kustomization.yaml", "namePrefix: x-\n"), ("app/x.yaml", text)]);
            assert_eq!(found, [""; 0], "{text}");
        }
        for path in ["app/editor_role.yaml", "app/x_editor_role.yaml", "app/x.example.yaml", "samples/x.yaml"] {
            let kustomization = format!("{}/kustomization.yaml", path.split('/').next().unwrap_or_default());
            let found = forgotten(&[(&kustomization, "namePrefix: x-\n"), (path, CONFIG_MAP)]);
            assert_eq!(found.is_empty(), path != "app/editor_role.yaml", "{path}: {found:?}");
        }
    }

    /// Expects no finding about a file that is not listed in `resources`, if a listed file contains the same object.
    /// If both files were listed, the build would fail, because kustomize rejects duplicate objects. Also expects no
    /// finding if a listed remote file may contain the same object.
    #[test]
    fn accepts_objects_that_conflict_with_listed_ones() {
        let found = forgotten(&[
            ("app/kustomization.yaml", "resources: [a.yaml]\n"),
            ("app/a.yaml", CONFIG_MAP),
            ("app/patch.yaml", CONFIG_MAP),
        ]);
        assert_eq!(found, [""; 0]);
        let remote = "resources: [https://example.org/install.yaml]\n";
        let found = forgotten(&[("app/kustomization.yaml", remote), ("app/a.yaml", CONFIG_MAP)]);
        assert_eq!(found, [""; 0], "it may be in the remote resource");
    }

    #[test]
    fn accepts_plain_directories_of_argo() {
        let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  source:\n    path: app\n";
        let of = |application: &str| {
            forgotten(&[
                ("app/kustomization.yaml", "namePrefix: x-\n"),
                ("app/extra.yaml", CONFIG_MAP),
                ("argo/app.yaml", application),
            ])
        };
        assert_eq!(of(application).len(), 1);
        assert_eq!(of(&format!("{application}    directory: {{recurse: true}}\n")), [""; 0]);
    }
}
