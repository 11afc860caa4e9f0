//! Checks Kustomizations and Components of kustomize that are stored as objects in a cluster.
//!
//! The annotation `portcullis.dev/path` of such an object contains a folder. The object is treated as the kustomization
//! file of this folder. All objects of a namespace form one kustomize tree. The tree contains no other files, so only
//! the references between the objects are checked.
//!
//! For example, the list `components` may refer only to folders with a Component. The other lists, such as `resources`,
//! may refer only to folders with a Kustomization.
//!
//! The lists of the object in the request are checked, and also the lists of other objects that refer to it. So a
//! request is denied if it would make the list of another object invalid.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::flux::of_object;
use super::{Delivery, FAMILY, Look, path_annotation};
use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Path, Request};
use crate::catalog::{Index, Kind, NAMESPACES, Reference, Scope, Storage, Stored, View};
use crate::kustomize::annotations::PATH_ANNOTATION;
use crate::kustomize::finding::Site;
use crate::kustomize::remote::{is_git, is_http};
use crate::kustomize::rules::{kz001, kz002, kz004, kz006, kz009};
use crate::kustomize::tree::TreePath;
use crate::rule::{Match, RuleInfo};

/// API group of kustomization files.
pub(in crate::kustomize) const GROUP: &str = "kustomize.config.k8s.io";

const fn kind(version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: GROUP,
        version,
        kind,
        plural,
        scope: Scope::Namespaced,
        indexes: &INDEXES,
        storage: Storage::Parts(&PARTS),
    }
}

/// The fields that the cache of cluster objects stores for each Kustomization and Component of kustomize. These are the
/// annotation `portcullis.dev/path`, whose value is the path of a folder, and the fields in [`LISTS`].
static PARTS: [Path; 7] = [
    &["metadata", "annotations", PATH_ANNOTATION],
    &["resources"],
    &["bases"],
    &["generators"],
    &["transformers"],
    &["validators"],
    &["components"],
];

static INDEXES: [&Index; 2] = [&BY_PATH, &BY_REFERENCE];

static KUSTOMIZATIONS: Kind = kind("v1beta1", "Kustomization", "kustomizations");
static COMPONENTS: Kind = kind("v1alpha1", "Component", "components");
static KINDS: [&Kind; 2] = [&KUSTOMIZATIONS, &COMPONENTS];
static LOOKS_UP: [&Kind; 3] = [&KUSTOMIZATIONS, &COMPONENTS, &NAMESPACES];

/// Index of kustomize's Kustomizations and Components in the cluster, by the folder in their annotation
/// `portcullis.dev/path`.
static BY_PATH: Index = Index {
    name: "path",
    parts: &PARTS,
    keys: |object| folder(object).map(|folder| folder.to_string()).into_iter().collect(),
};
/// Index of kustomize's Kustomizations and Components in the cluster, by the folders to which they refer in lists such
/// as `resources`.
static BY_REFERENCE: Index = Index {
    name: "reference",
    parts: &PARTS,
    keys: |object| {
        let folders: BTreeSet<_> = entries(object).into_iter().map(|entry| entry.folder.to_string()).collect();
        folders.into_iter().collect()
    },
};

const fn written(versions: &'static [&'static str], plural: &'static str, kind: &'static str) -> Match {
    let operations = &[Operation::Create, Operation::Update, Operation::Delete];
    Match { operations, ..Match::create_or_update(GROUP, versions, plural, kind) }
}

static MATCHERS: [Match; 2] =
    [written(&["v1beta1"], "kustomizations", "Kustomization"), written(&["v1alpha1"], "components", "Component")];

/// The check of kustomize Kustomizations and Components that are stored as objects in a cluster. For example, it
/// reports references between these objects that a request would make invalid. Users set its level with the key
/// `deliveries.stored` of the configuration file.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "stored",
    family: FAMILY,
    summary: "Kustomizations and Components that are stored as objects, with their folder in an annotation",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &LOOKS_UP,
    live_reads: Some(live_reads),
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, view| Look { findings: Stage::of(request, view).judged(), roots: Vec::new() },
};

/// Maximum number of Kustomizations or Components of kustomize that one search in the cache of cluster objects returns.
/// Also the maximum number of these objects that Portcullis reads from the API server for one request. The request
/// waits for these searches and reads.
const MAX_USERS: usize = 200;

/// An entry of a list such as `resources`. The entry may refer to a folder.
struct Entry<'o> {
    list: &'static str,
    index: usize,
    text: &'o str,
    folder: TreePath,
}

/// The lists in a kustomization file whose entries may be folders. The folders in `components` must be Components.
const LISTS: [&str; 6] = ["resources", "bases", "generators", "transformers", "validators", "components"];

/// Returns the folder of a stored object, from the annotation `portcullis.dev/path`.
fn folder(object: &Value) -> Option<TreePath> {
    path_annotation(object).map(TreePath::from)
}

/// Returns the entries of lists such as `resources` that are relative paths. `object` is a Kustomization or Component
/// of kustomize that is stored in the cluster. Its annotation `portcullis.dev/path` names the folder to which the paths
/// are relative. Without this annotation, the result is empty.
fn entries(object: &Value) -> Vec<Entry<'_>> {
    let Some(own) = folder(object) else { return Vec::new() };
    let of_list = |list: &'static str| {
        let texts = object.get(list).and_then(Value::as_array).into_iter().flatten();
        texts.enumerate().map(move |(index, text)| (list, index, text))
    };
    let found = LISTS.into_iter().flat_map(of_list).filter_map(|(list, index, text)| {
        let text = text.as_str()?;
        Some(Entry { list, index, text, folder: leads_to(&own, text)? })
    });
    found.collect()
}

/// Resolves a relative path in a list, such as `../base` in `resources`, against the folder `from`. Returns `None` for
/// absolute paths, URLs, and paths that lead out of the tree.
fn leads_to(from: &TreePath, entry: &str) -> Option<TreePath> {
    if entry.is_empty() || entry.starts_with('/') || entry.contains('\n') || is_http(entry) || is_git(entry) {
        return None;
    }
    let mut here = from.clone();
    for name in entry.split('/').filter(|name| !["", "."].contains(name)) {
        here = if name == ".." { here.parent()? } else { here.join(name) };
    }
    Some(here)
}

/// An admission request for a `Kustomization` or `Component` of the API group `kustomize.config.k8s.io`. `view`
/// provides the other objects in the cluster.
struct Stage<'a> {
    request: &'a Request<'a>,
    view: &'a View<'a>,
}

/// A Kustomization or Component of kustomize that is stored in the cluster, with its kind.
type Object = (&'static Kind, Arc<Stored>);

impl<'a> Stage<'a> {
    fn of(request: &'a Request<'a>, view: &'a View<'a>) -> Self {
        Self { request, view }
    }

    fn judged(&self) -> Vec<Finding> {
        let (new, old) = (folder(self.request.object()), folder(self.request.old_object()));
        let mut findings = Vec::new();
        if let Some(new) = &new {
            findings.extend(self.entries(new));
            findings.extend(self.beside(new));
            findings.extend(self.users(new).iter().flat_map(|user| self.broken(user, new)));
        }
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old) && !self.is_clearing()) {
            findings.extend(self.left(&old));
        }
        findings
    }

    /// Returns whether objects may be deleted in any order. This is the case if the namespace of the request is being
    /// deleted, or if the request comes from a cleanup controller of Kubernetes, such as the garbage collector.
    fn is_clearing(&self) -> bool {
        let namespace = self.view.find(&NAMESPACES, "", &self.request.namespace);
        let is_deleting = |stored: Arc<Stored>| Metadata::of(stored.value()).is_deleting();
        self.request.user.is_collector() || namespace.is_some_and(is_deleting)
    }

    /// Reports invalid references to folders in the Kustomization or Component of kustomize that the request creates or
    /// updates. A reference is invalid if it leads to `own`, the folder of this object, or to a parent folder of `own`.
    /// A reference in the wrong list is also invalid, such as a Component in `resources`.
    fn entries(&self, own: &TreePath) -> Vec<Finding> {
        let judge = |entry: &Entry<'_>| {
            let field = FieldPath::of([entry.list]).index(entry.index);
            if own.is_within(&entry.folder) {
                let site = Site::of_file(own.clone());
                let finding = kz009::found(site, entry.text, &entry.folder, own, std::slice::from_ref(own));
                return Some(of_object(finding, field));
            }
            match self.at(&entry.folder).as_slice() {
                [(kind, stored)] => placed(entry, kind, stored, field),
                _ => None,
            }
        };
        entries(self.request.object()).iter().filter_map(judge).collect()
    }

    /// Reports each Kustomization or Component of kustomize in the cluster that has the same folder as the object in
    /// the request. Each object names its folder in the annotation `portcullis.dev/path`, and no other object may name
    /// the same folder. `own` is the folder of the object in the request.
    fn beside(&self, own: &TreePath) -> Vec<Finding> {
        let others = self.at(own).into_iter();
        let findings = others.map(|(kind, stored)| {
            let message = format!(
                "{} has the folder {own} too; a folder can have only one kustomization",
                named(kind, stored.name())
            );
            let finding = of_rule(&kz006::RULE, annotation(), message);
            finding.help("set another folder, or delete the other object first")
        });
        findings.collect()
    }

    /// Reports references in `referrer` that the request makes invalid. `referrer` is another Kustomization or
    /// Component in the cluster. For example, `referrer` lists the folder `own` in `resources`, but the request creates
    /// a Component for this folder. A Component may only be in the list `components`.
    fn broken(&self, (kind, referrer): &Object, own: &TreePath) -> Vec<Finding> {
        let component = self.request.resource.plural == COMPONENTS.plural;
        let wrong = |entry: &Entry<'_>| entry.folder == *own && (entry.list == "components") != component;
        let tell = |entry: Entry<'_>| {
            let (list, index) = (entry.list, entry.index);
            let (rule, what) = match component {
                true => (&kz001::RULE, "where Components are not allowed"),
                false => (&kz002::RULE, "where only Components are allowed"),
            };
            let who = named(kind, referrer.name());
            let message = format!("{who} lists this folder, {own}, in {list}[{index}], {what}");
            of_rule(rule, annotation(), message).help(format!("change {who} first"))
        };
        entries(referrer.value()).into_iter().filter(wrong).map(tell).collect()
    }

    /// Reports each object in the cluster that refers to the folder `old`, if the request leaves this folder empty. A
    /// folder is empty if no object in the cluster has it in the annotation `portcullis.dev/path`.
    fn left(&self, old: &TreePath) -> Vec<Finding> {
        if !self.at(old).is_empty() {
            return Vec::new();
        }
        let tell = |(kind, user): Object| {
            let entry = entries(user.value()).into_iter().find(|entry| entry.folder == *old)?;
            let (who, list, index) = (named(kind, user.name()), entry.list, entry.index);
            let message = format!("{who} lists {old} in {list}[{index}], and no other object has this folder");
            Some(of_rule(&kz004::RULE, annotation(), message).help(format!("remove the entry from {who} first")))
        };
        self.users(old).into_iter().filter_map(tell).collect()
    }

    /// Returns kustomize's Kustomizations and Components in the cluster whose annotation `portcullis.dev/path` contains
    /// the path `own`. Omits the object in the request.
    fn at(&self, own: &TreePath) -> Vec<Object> {
        let stands = |object: &Value| folder(object).as_ref() == Some(own);
        self.others(&BY_PATH, own).into_iter().filter(|(_, stored)| stands(stored.value())).collect()
    }

    /// Returns the objects in the cluster that refer to `folder` in a list such as `resources` or `components`. These
    /// are Kustomizations and Components of the API group `kustomize.config.k8s.io`. Omits the object in the request.
    fn users(&self, folder: &TreePath) -> Vec<Object> {
        let leads = |object: &Value| entries(object).iter().any(|entry| entry.folder == *folder);
        self.others(&BY_REFERENCE, folder).into_iter().filter(|(_, stored)| leads(stored.value())).collect()
    }

    /// Searches `index` for the Kustomizations and Components of kustomize in the cluster that have the key `folder`.
    /// Returns at most [`MAX_USERS`] objects of each kind, without the object in the request. If an object was read
    /// live, returns the live version instead of the cached version.
    fn others(&self, index: &'static Index, folder: &TreePath) -> Vec<Object> {
        let Request { namespace, resource, .. } = self.request;
        let name = self.request.display_name();
        let of_kind = |kind: &'static Kind| {
            let filed = self.view.indexed(kind, index, namespace, &folder.to_string(), MAX_USERS);
            let is_self = |stored: &Stored| kind.plural == resource.plural && stored.name() == name;
            let others = filed.into_iter().filter(move |stored| !is_self(stored));
            others.filter_map(move |stored| Some((kind, self.view.find(kind, namespace, stored.name())?)))
        };
        KINDS.into_iter().flat_map(of_kind).collect::<Vec<_>>()
    }
}

/// Returns a finding if the list of `entry` may not refer to an object of the kind `kind`. The list `components` may
/// refer only to Components, and all other lists may not refer to Components. `stored` is the object to which `entry`
/// refers, and `field` is the field of the entry.
fn placed(entry: &Entry<'_>, kind: &'static Kind, stored: &Stored, field: FieldPath) -> Option<Finding> {
    let Entry { list, text, .. } = entry;
    let who = named(kind, stored.name());
    let (rule, what, help) = match (*list == "components", is_component(kind)) {
        (false, true) => (&kz001::RULE, "a kustomize Component", "list it under \"components:\""),
        (true, false) => (&kz002::RULE, "a Kustomization", "list it under \"resources:\", or make it a Component"),
        _ => return None,
    };
    Some(of_rule(rule, field, format!("\"{text}\" is {what} ({who})")).help(help))
}

/// Creates a finding about a field of a stored object. The finding has the id and the default level of `rule`, such as
/// KZ001.
fn of_rule(rule: &RuleInfo, field: FieldPath, message: String) -> Finding {
    Finding::new(rule.id, rule.level, field, message)
}

fn is_component(kind: &Kind) -> bool {
    std::ptr::eq(kind, &COMPONENTS)
}

/// Returns the field path of the annotation [`PATH_ANNOTATION`].
fn annotation() -> FieldPath {
    FieldPath::of(["metadata", "annotations", PATH_ANNOTATION])
}

/// Returns the kind and name of an object, such as `Kustomization app`.
fn named(kind: &Kind, name: &str) -> String {
    format!("{} {name}", kind.kind)
}

/// Returns references to the Kustomizations and Components of kustomize that must be read from the API server before a
/// request is checked, because the cached versions may be out of date. These are the objects that refer to the object
/// in the request, the objects to which it refers, and other objects with the same folder.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let stage = Stage::of(request, view);
    let own = [folder(request.object()), folder(request.old_object())];
    let targets = entries(request.object()).into_iter().map(|entry| entry.folder).collect::<BTreeSet<_>>();
    let at = own.iter().flatten().chain(&targets).flat_map(|folder| stage.others(&BY_PATH, folder));
    let users = own.iter().flatten().flat_map(|folder| stage.others(&BY_REFERENCE, folder));
    let references = at.chain(users).map(|(kind, stored)| Reference::new(kind, &request.namespace, stored.name()));
    references.take(MAX_USERS).collect()
}
