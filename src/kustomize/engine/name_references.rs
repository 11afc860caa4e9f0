//! Updates references to objects by name, after objects have been renamed.
//!
//! Source: kustomize's `api/internal/accumulator/namereferencetransformer.go` and `api/filters/nameref`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::config::NameReference;
use super::field_spec::{Create, FieldError, FieldSpec, Steps, kind_of};
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::setters::{overwrite, set_scalar};
use super::stop::{Failed, Step};
use crate::kustomize::identity::{Gvk, Scope};
use crate::kustomize::node::{Kind, Node};

/// The field of role bindings that names a role.
const ROLE: &str = "roleRef/name";

/// Updates the fields of all objects that refer to renamed objects.
///
/// # Errors
///
/// - If a reference is ambiguous, or a value on the path of a reference has the wrong type.
/// - If the `apiVersion` of an object is invalid.
/// - If a RoleBinding names a service account whose namespace is not a string.
///
/// Only a build that stops at its first error returns these errors. Any other build records them and continues.
pub(super) fn fix(run: &Run<'_>, map: &mut ResMap, references: &[NameReference]) -> Step<()> {
    let (scope, mut lost) = (map.scope.clone(), map.lost);
    let targets: Vec<Target> = map.resources().iter().map(|resource| Target::new(resource, &scope)).collect();
    for resource in map.resources_mut() {
        let checked = match has_blank_namespace(resource) {
            true => Err(Failed::from("the namespace of a service account in `subjects` is not a string")),
            false => Ok(()),
        };
        run.recover_object(resource, &mut lost, checked.map_err(|failed| failed.at(run.site_of(resource.origin))))?;
    }
    // references are checked even if nothing was renamed, because kustomize fails if a path leads through a scalar
    let names = Names::new(&targets);
    let mut rules: HashMap<(String, String, String), Arc<[Rule<'_>]>> = HashMap::new();
    for (at, resource) in map.resources_mut().iter_mut().enumerate() {
        let gvk = resource.original_id(&scope).gvk;
        let key = (gvk.group.to_owned(), gvk.version.to_owned(), gvk.kind.to_owned());
        let rules = rules.entry(key).or_insert_with(|| rules_of(&gvk, references));
        let has_role = rules.iter().any(|rule| rule.spec.path.ends_with(ROLE));
        let role = has_role.then(|| role_ref(resource)).flatten();
        let checked = if rules.is_empty() { Ok(()) } else { check_api_version(resource) };
        let fixed = checked.and_then(|()| {
            rules.iter().try_for_each(|rule| {
                let referrer = Referrer { names: &names, own: &targets[at], rule, role: role.as_ref() };
                referrer.fix(resource)
            })
        });
        let fixed = fixed.map_err(|message| Failed::from(message).at(run.site_of(resource.origin)));
        run.recover_object(resource, &mut lost, fixed)?;
    }
    map.lost = lost;
    Ok(())
}

/// Checks the `apiVersion` of an object before references in the object are updated. kustomize splits `apiVersion` into
/// group and version, joins them again, and compares the result with the original text. Source:
/// `confirmNodeMatchesReferrer` in kustomize's `api/filters/nameref/nameref.go`.
///
/// # Errors
///
/// If the two texts differ. One reason is a slash at the start, as in `/v1`. Another reason is an unquoted `null` or
/// `~`, because YAML does not parse it as a string.
fn check_api_version(resource: &Resource) -> Result<(), String> {
    let Some(written) = resource.node.get("apiVersion").filter(|version| version.is_scalar()) else { return Ok(()) };
    let (text, gvk) = (written.text().unwrap_or_default(), resource.gvk());
    let is_composed = !written.is_null() && (!gvk.group.is_empty() || text == gvk.version);
    if text.is_empty() || is_composed {
        return Ok(());
    }
    Err(format!("the apiVersion `{text}` of {} {} is not a group and a version", gvk.kind, resource.name()))
}

/// A field that may contain the name of an object. `target` is the group, version and kind of that object.
#[derive(Debug, Clone)]
struct Rule<'r> {
    target: Gvk<'r>,
    spec: FieldSpec,
}

fn rules_of<'r>(gvk: &Gvk<'_>, references: &'r [NameReference]) -> Arc<[Rule<'r>]> {
    let rules = references.iter().flat_map(|reference| {
        let selected = reference.referrers.iter().filter(|spec| gvk.is_selected(&spec.gvk()));
        // the original kind of the object decides, so the new field spec applies to all kinds
        selected.map(|spec| Rule { target: reference.gvk(), spec: FieldSpec::of_all(spec.path.clone(), spec.create) })
    });
    rules.collect()
}

/// An object to which other objects may refer. Contains the properties that are used to resolve such references.
#[derive(Debug)]
struct Target {
    name: Arc<str>,
    namespace: Arc<str>,
    effective_namespace: Arc<str>,
    original_namespace: Arc<str>,
    is_cluster: bool,
    is_service_account: bool,
    group: Arc<str>,
    version: Arc<str>,
    previous: Vec<(Arc<str>, Arc<str>)>,
    prefixes: Vec<Arc<str>>,
    suffixes: Vec<Arc<str>>,
    /// The namespaces of the service accounts that a role binding names.
    bound_namespaces: HashSet<String>,
}

impl Target {
    fn new(resource: &Resource, scope: &Scope) -> Self {
        let id = resource.id(scope);
        let original = resource.original_id(scope);
        Self {
            name: id.name.into(),
            namespace: id.namespace.into(),
            effective_namespace: id.effective_namespace().into(),
            original_namespace: original.effective_namespace().into(),
            is_cluster: id.is_cluster,
            is_service_account: id.gvk.kind == "ServiceAccount",
            group: id.gvk.group.into(),
            version: id.gvk.version.into(),
            previous: resource.identities.iter().map(|id| (id.name.into(), id.kind.into())).collect(),
            prefixes: resource.prefixes.clone(),
            suffixes: resource.suffixes.clone(),
            bound_namespaces: bound_namespaces(resource),
        }
    }

    fn was_selected(&self, selector: &Gvk<'_>) -> bool {
        let (group, version) = (&*self.group, &*self.version);
        self.previous.iter().any(|(_, kind)| Gvk { group, version, kind }.is_selected(selector))
    }

    /// Returns whether transformers added the same name prefixes and the same name suffixes to two objects. Compares
    /// the two lists of prefixes, and then in the same way the two lists of suffixes:
    ///
    /// - If both lists are empty, they are the same.
    /// - If one list is empty, they count as the same if `allow_empty` is true.
    /// - Otherwise, compares the lists from the end, up to the length of the shorter list.
    fn has_affixes_of(&self, other: &Self, allow_empty: bool) -> bool {
        let agree = |a: &[Arc<str>], b: &[Arc<str>]| match a.is_empty() || b.is_empty() {
            true => allow_empty || a.len() == b.len(),
            false => a.iter().rev().zip(b.iter().rev()).all(|(a, b)| a == b),
        };
        agree(&self.prefixes, &other.prefixes) && agree(&self.suffixes, &other.suffixes)
    }
}

fn bound_namespaces(resource: &Resource) -> HashSet<String> {
    if resource.kind() != "RoleBinding" {
        return HashSet::new();
    }
    let subjects = resource.node.get("subjects").map(Node::items).unwrap_or_default();
    let accounts = subjects.iter().filter(|subject| subject.get("kind").and_then(Node::text) == Some("ServiceAccount"));
    accounts.filter_map(|subject| subject.get("namespace")?.text()).map(str::to_owned).collect()
}

/// Returns whether an object is a RoleBinding that names a service account, and the namespace of this service account
/// is not a string.
fn has_blank_namespace(resource: &Resource) -> bool {
    let is_blank = |subject: &Node| {
        let is_account = subject.get("kind").and_then(Node::text) == Some("ServiceAccount");
        is_account
            && subject.get("namespace").is_some_and(|namespace| !(namespace.is_string() || namespace.style.is_quoted()))
    };
    let subjects = resource.node.get("subjects").map(Node::items).unwrap_or_default();
    resource.kind() == "RoleBinding" && subjects.iter().any(is_blank)
}

/// Returns the group and kind that the `roleRef` of an object names; `None` if one of them is missing.
fn role_ref(resource: &Resource) -> Option<(String, String)> {
    let text = |key: &str| resource.node.at_path(&["roleRef", key]).and_then(Node::text).map(str::to_owned);
    Some((text("apiGroup")?, text("kind")?))
}

/// An index of all objects by their previous names.
struct Names<'t> {
    targets: &'t [Target],
    by_name: HashMap<&'t str, Vec<usize>>,
    /// The namespaces that objects had before the build. Objects that were always cluster-scoped are not included.
    original: HashSet<&'t str>,
}

impl<'t> Names<'t> {
    fn new(targets: &'t [Target]) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, target) in targets.iter().enumerate() {
            for (name, _) in &target.previous {
                let list = by_name.entry(name).or_default();
                if list.last() != Some(&at) {
                    list.push(at);
                }
            }
        }
        let original = targets.iter().filter(|target| !target.is_cluster_at_first()).map(|t| &*t.original_namespace);
        Self { targets, by_name, original: original.collect() }
    }
}

impl Target {
    fn is_cluster_at_first(&self) -> bool {
        self.is_cluster && self.previous.is_empty()
    }
}

/// An object with a field that may contain the names of renamed objects. `rule` contains the path of this field.
struct Referrer<'t> {
    names: &'t Names<'t>,
    own: &'t Target,
    rule: &'t Rule<'t>,
    /// Group and kind in the `roleRef` of the object; `None` if one of them is missing.
    role: Option<&'t (String, String)>,
}

impl Referrer<'_> {
    fn fix(&self, resource: &mut Resource) -> Result<(), String> {
        if !self.is_concerned(&resource.node, self.rule.spec.steps()) {
            return Ok(());
        }
        let set = &mut |node: &mut Node| self.set(node);
        self.rule.spec.apply(resource, Create::No, set).map_err(|error| {
            format!("the name reference {} of {} cannot be resolved: {error}", self.rule.spec.path, resource.name())
        })
    }

    /// Returns whether the caller must try to update a reference. `steps` is the path of the reference below `node`.
    /// The update is necessary if the reference contains a previous name of any object. It is also necessary if a value
    /// on the path has the wrong type, because kustomize then fails during the update.
    fn is_concerned(&self, node: &Node, steps: Steps<'_>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return self.is_name(node) };
        match &node.kind {
            _ if node.is_null() => false,
            Kind::Seq(items) => items.iter().any(|item| self.is_concerned(item, steps)),
            Kind::Map(_) => {
                node.get(step.strip_suffix("[]").unwrap_or(&step)).is_some_and(|node| self.is_concerned(node, rest))
            }
            Kind::Scalar(_) => true,
        }
    }

    fn is_name(&self, node: &Node) -> bool {
        match &node.kind {
            _ if node.is_null() => false,
            Kind::Scalar(text) => self.names.by_name.contains_key(&**text),
            Kind::Map(_) => node.get("name").is_none_or(|name| self.is_name(name) || !name.is_scalar()),
            Kind::Seq(items) => items.iter().any(|item| item.is_seq() || self.is_name(item)),
        }
    }

    fn set(&self, node: &mut Node) -> Result<(), FieldError> {
        match &node.kind {
            _ if node.is_null() => Ok(()),
            Kind::Scalar(_) => self.set_scalar(node),
            Kind::Map(_) => self.set_mapping(node),
            Kind::Seq(_) => {
                for item in node.items_mut().into_iter().flatten().filter(|item| !item.is_null()) {
                    match item.kind {
                        Kind::Scalar(_) => self.set_scalar(item)?,
                        Kind::Map(_) => self.set_mapping(item)?,
                        Kind::Seq(_) => {
                            let path = self.rule.spec.path.clone();
                            let expected = "a string or a mapping";
                            return Err(FieldError::Kind { path, found: kind_of(item), expected });
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn set_scalar(&self, node: &mut Node) -> Result<(), FieldError> {
        let Some(text) = node.text() else { return Ok(()) };
        let same = |a: &Target, b: &Target| a.name == b.name;
        if let Some(target) = self.meant(text, |_| true, same)?
            && *target.name != *text
        {
            overwrite(node, Node::scalar(Arc::clone(&target.name)));
        }
        Ok(())
    }

    fn set_mapping(&self, node: &mut Node) -> Result<(), FieldError> {
        let Some(name) = node.get("name") else {
            return Err(FieldError::Other("path config error; no 'name' field in node".to_owned()));
        };
        let name = name.text().unwrap_or_default().to_owned();
        let namespace = node.get("namespace").map(|namespace| namespace.text().unwrap_or_default().to_owned());
        let is_in = |target: &Target| self.is_in(target, namespace.as_deref());
        let same = |a: &Target, b: &Target| a.name == b.name && a.namespace == b.namespace;
        let Some(target) = self.meant(&name, is_in, same)? else { return Ok(()) };
        if *target.name == *name && target.namespace.is_empty() {
            return Ok(());
        }
        set_scalar(node, "name", Node::scalar(Arc::clone(&target.name)));
        if !target.namespace.is_empty() {
            set_scalar(node, "namespace", Node::scalar(Arc::clone(&target.namespace)));
        }
        Ok(())
    }

    /// Returns whether a reference with the namespace `namespace` can refer to `target`. A reference without a
    /// namespace can refer to every target.
    ///
    /// The build may change the namespaces of objects. So `namespace` must be equal to one of two namespaces of
    /// `target`:
    ///
    /// - its original namespace, if an object that the reference may mean was in `namespace` before the build
    /// - its current namespace, if there is no such object
    fn is_in(&self, target: &Target, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else { return true };
        let was_any = self.names.original.contains(namespace)
            && self.names.targets.iter().any(|other| &*other.original_namespace == namespace && self.could_mean(other));
        if was_any { &*target.original_namespace == namespace } else { &*target.effective_namespace == namespace }
    }

    /// Returns whether the object that contains the reference may refer to `target`. Compares only the namespaces of
    /// the two objects.
    fn could_mean(&self, target: &Target) -> bool {
        self.own.is_cluster
            || target.is_cluster
            || target.effective_namespace == self.own.effective_namespace
            || self.own.bound_namespaces.contains(&*target.namespace)
    }

    /// Returns the object to which a reference with the name `name` refers; `None` if no object matches. An object
    /// matches only if `is_in` returns `true`, which means that its namespace fits the reference.
    ///
    /// If several objects match, compares their new names (and namespaces) with `same`. If they are all the same,
    /// returns the first object, because the updated reference is the same for each object.
    ///
    /// # Errors
    ///
    /// If several objects match, and `same` returns `false` for some of them.
    fn meant(
        &self,
        name: &str,
        is_in: impl Fn(&Target) -> bool,
        same: impl Fn(&Target, &Target) -> bool,
    ) -> Result<Option<&Target>, FieldError> {
        let Some(list) = self.names.by_name.get(name) else { return Ok(None) };
        let candidates = list.iter().filter_map(|at| self.names.targets.get(*at));
        let candidates: Vec<&Target> = candidates.filter(|target| self.is_candidate(target) && is_in(target)).collect();
        if let [one] = candidates.as_slice() {
            return Ok(Some(one));
        }
        let agreeing = |list: &[&'_ Target], allow_empty| -> Vec<usize> {
            (0..list.len()).filter(|at| list[*at].has_affixes_of(self.own, allow_empty)).collect()
        };
        let mut left: Vec<&Target> = agreeing(&candidates, true).into_iter().map(|at| candidates[at]).collect();
        if left.len() > 1 {
            left = agreeing(&left, false).into_iter().map(|at| left[at]).collect();
        }
        match left.as_slice() {
            [] => Ok(None),
            [first, others @ ..] if others.iter().all(|other| same(first, other)) => Ok(Some(first)),
            _ => Err(FieldError::Other(format!("found multiple possible referrals for `{name}`"))),
        }
    }

    fn is_candidate(&self, target: &Target) -> bool {
        self.could_mean(target)
            && target.was_selected(&self.rule.target)
            && self.has_role(target)
            && (self.own.is_cluster
                || target.is_cluster
                || target.is_service_account
                || target.effective_namespace == self.own.effective_namespace)
    }

    fn has_role(&self, target: &Target) -> bool {
        match self.role {
            Some((group, kind)) if self.rule.spec.path.ends_with(ROLE) => {
                target.was_selected(&Gvk { group, version: "", kind })
            }
            _ => true,
        }
    }
}
