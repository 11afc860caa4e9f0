//! Finds the roots that Argo CD builds from a checkout: Applications, and ApplicationSets with git directory
//! generators.
//!
//! Source: `GetAppSourceType` in argo-cd's `reposerver/repository/repository.go`, and `filterApps` in its
//! `applicationset/generators/git.go`.

use std::collections::HashSet;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::object::{Object, Standing, text};
use super::reach::Reaches;
use super::url::Repository;
use super::{Build, Checkout, Survey};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// Maximum depth of folders that a git directory generator searches.
const MAX_DEPTH: usize = 16;

/// Adds the roots that Argo CD builds.
pub(super) fn add(checkout: &Checkout<'_>, standing: &Standing, survey: &mut Survey) {
    let mut reaches = Reaches::new(checkout.tree, checkout.files);
    let mut seen = HashSet::new();
    for application in &standing.applications {
        for root in roots(checkout, application) {
            let reach = reaches.of(&root, &[]);
            survey.reached.extend(reach.folders);
            survey.reached_files.extend(reach.files);
            let build = || Build {
                tree: Arc::clone(checkout.tree),
                root: root.clone(),
                options: Options::of(Profile::ArgoCd),
                owners: Vec::new(),
                is_used: true,
            };
            if seen.insert(root.clone()) {
                survey.builds.push(build());
            }
            let owned =
                survey.builds.iter_mut().find(|build| build.options.profile == Profile::ArgoCd && build.root == root);
            if let Some(build) = owned {
                build.owners.push(application.clone());
            }
        }
    }
}

/// Returns the folders with kustomization files that an Application builds from the checkout.
fn roots(checkout: &Checkout<'_>, application: &Object) -> Vec<TreePath> {
    let is_set = application.kind() == "ApplicationSet";
    let spec = if is_set { "/spec/template/spec" } else { "/spec" };
    let spec = application.value.pointer(spec).unwrap_or(&Value::Null);
    let many = spec.get("sources").and_then(Value::as_array).into_iter().flatten();
    let mut roots = Vec::new();
    for source in spec.get("source").into_iter().chain(many).filter(|source| is_own(checkout, source)) {
        let path = text(source.get("path"));
        let paths = if is_set { expanded(checkout, application, path) } else { vec![path.to_owned()] };
        let folders = paths.iter().filter(|path| !path.is_empty() && !path.contains("{{"));
        roots.extend(folders.map(|path| TreePath::from(&*format!("{}/{path}", checkout.git.top))));
    }
    roots.retain(|root| is_kustomize_root(checkout.tree, root));
    roots
}

/// Returns whether a source is the repository of the checkout.
fn is_own(checkout: &Checkout<'_>, source: &Value) -> bool {
    let url = text(source.get("repoURL").or_else(|| source.get("repoUrl")));
    Repository::parse(url).is_some_and(|url| checkout.git.remotes.contains(&url))
}

/// Returns whether Argo CD builds a folder with kustomize: without a kustomization file, it applies the files as they are.
fn is_kustomize_root(tree: &Tree, folder: &TreePath) -> bool {
    NAMES.into_iter().any(|name| tree.entry(&folder.join(name)) == Some(Entry::File))
}

/// Returns the paths of a template for each folder that the git directory generators of an ApplicationSet find.
fn expanded(checkout: &Checkout<'_>, set: &Object, template: &str) -> Vec<String> {
    let generators = set.value.pointer("/spec/generators").and_then(Value::as_array).into_iter().flatten();
    let own = generators.filter_map(|generator| generator.get("git")).filter(|git| is_own(checkout, git));
    let mut paths = Vec::new();
    for directories in own.filter_map(|git| git.get("directories")?.as_array()) {
        let patterns = |excludes: bool| {
            let wanted = move |entry: &&Value| (entry.get("exclude") == Some(&Value::Bool(true))) == excludes;
            directories.iter().filter(wanted).filter_map(|entry| pattern(text(entry.get("path")))).collect::<Vec<_>>()
        };
        let (included, excluded) = (patterns(false), patterns(true));
        let matches = |patterns: &[Regex], folder: &str| patterns.iter().any(|pattern| pattern.is_match(folder));
        let mut folders = Vec::new();
        below(checkout.tree, &checkout.git.top, "", 0, &mut folders);
        folders.retain(|folder| matches(&included, folder) && !matches(&excluded, folder));
        paths.extend(folders.iter().map(|folder| filled(template, folder)));
    }
    paths
}

/// Collects the folders below a folder, relative to the top. Skips hidden folders, as Argo CD does.
fn below(tree: &Tree, top: &TreePath, folder: &str, depth: usize, folders: &mut Vec<String>) {
    let path = TreePath::from(&*format!("{top}/{folder}"));
    for name in tree.names(&path).iter().filter(|name| !name.starts_with('.')) {
        if depth < MAX_DEPTH && tree.entry(&path.join(name)) == Some(Entry::Folder) {
            let inner = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            below(tree, top, &inner, depth + 1, folders);
            folders.push(inner);
        }
    }
}

/// Returns a template with the parameters of a folder, in both notations of Argo CD.
fn filled(template: &str, folder: &str) -> String {
    let name = folder.rsplit('/').next().unwrap_or_default();
    let parameters = [("path", folder), (".path.path", folder), ("path.basename", name), (".path.basename", name)];
    let mut filled = template.to_owned();
    for (parameter, value) in parameters {
        filled =
            filled.replace(&format!("{{{{{parameter}}}}}"), value).replace(&format!("{{{{ {parameter} }}}}"), value);
    }
    filled
}

/// Compiles a pattern of Go's `path.Match`; `None` if it is invalid.
fn pattern(glob: &str) -> Option<Regex> {
    let mut expression = String::from("^");
    let mut is_class = false;
    for letter in glob.trim_end_matches('/').chars() {
        match letter {
            '*' if !is_class => expression.push_str("[^/]*"),
            '?' if !is_class => expression.push_str("[^/]"),
            '[' | ']' => {
                is_class = letter == '[';
                expression.push(letter);
            }
            letter if is_class => expression.push(letter),
            letter => expression.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    Regex::new(&(expression + "$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_go_does() {
        let matches = |glob: &str, folder: &str| pattern(glob).is_some_and(|pattern| pattern.is_match(folder));
        assert!(matches("apps/*", "apps/web") && !matches("apps/*", "apps/web/base") && !matches("apps/*", "apps"));
        assert!(matches("*/[a-c]?", "apps/b1") && !matches("*/[a-c]?", "apps/d1"));
        assert!(matches("a.b/", "a.b") && !matches("a.b", "axb"));
        assert!(pattern("[").is_none());
    }

    #[test]
    fn fills_both_notations_of_parameters() {
        assert_eq!(filled("{{path}}/x/{{ .path.basename }}", "apps/web"), "apps/web/x/web");
        assert_eq!(filled("{{.path.path}}-{{cluster}}", "apps/web"), "apps/web-{{cluster}}");
    }
}
