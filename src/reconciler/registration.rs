//! The companion's rights, derived from its controllers: one ClusterRole for those that always run, and one in a file of
//! its own for each that runs only where it is asked for.

use std::collections::BTreeMap;

use super::{Controller, Permission};
use crate::catalog::Kind;

/// The Lease that replicas compete for, where nothing else is said.
pub const LEASE: &str = "portcullis-companion";

const GENERATED: &str = "# Written by `portcullis manifests`; do not edit.\n";
const NAME: &str = "portcullis-companion";

/// Events are written for whatever is looked at.
const EVENTS: Permission =
    Permission { group: "events.k8s.io", resources: &["events"], names: &[], verbs: &["create", "patch"] };

/// How the manifests are written.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The namespace that the companion runs in.
    pub namespace: String,
    /// The name of its ServiceAccount.
    pub service_account: String,
    /// Whether it is for the chart, where a release decides what is wanted.
    pub is_chart: bool,
}

impl Registration {
    /// All files: their paths, and their texts.
    pub fn manifests(&self, controllers: &[Box<dyn Controller>]) -> Vec<(String, String)> {
        let always: Vec<_> = controllers.iter().filter(|controller| !controller.is_optional()).collect();
        let account = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {}\n  namespace: {}\n---\n",
            self.service_account, self.namespace
        );
        let rules = rules(always.iter().map(|controller| controller.as_ref()), [&EVENTS]);
        let text = format!("{account}{}---\n{}", self.lease_role(), self.cluster_role(NAME, &rules));
        let mut files = vec![("companion/rbac.yaml".to_owned(), self.file(".Values.companion.enabled", &text))];
        for controller in controllers.iter().filter(|controller| controller.is_optional()) {
            let name = controller.name();
            let condition = format!("and .Values.companion.enabled (has \"{name}\" .Values.companion.controllers)");
            let role = self.cluster_role(&format!("{NAME}-{name}"), &self::rules([controller.as_ref()], []));
            let text = format!("# For --{name}: {}\n{role}", controller.summary());
            files.push((format!("companion/{name}.yaml"), self.file(&condition, &text)));
        }
        files
    }

    fn file(&self, condition: &str, text: &str) -> String {
        if self.is_chart {
            return format!("{GENERATED}{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n");
        }
        format!("{GENERATED}{text}")
    }

    /// The Lease, in the companion's namespace. A creation cannot be bound to a name.
    fn lease_role(&self) -> String {
        let Self { namespace, .. } = self;
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {NAME}\n  namespace: \
             {namespace}\nrules:\n  - {{apiGroups: [\"coordination.k8s.io\"], resources: [leases], verbs: [create]}}\n  \
             - {{apiGroups: [\"coordination.k8s.io\"], resources: [leases], resourceNames: [{LEASE}], verbs: [get, \
             update, watch, list]}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: \
             {NAME}\n  namespace: {namespace}\n{}",
            self.binding("Role", NAME)
        )
    }

    fn cluster_role(&self, name: &str, rules: &str) -> String {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {name}\nrules:\n{rules}---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\n{}",
            self.binding("ClusterRole", name)
        )
    }

    fn binding(&self, kind: &str, role: &str) -> String {
        format!(
            "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {role}\nsubjects:\n  - kind: \
             ServiceAccount\n    name: {}\n    namespace: {}\n",
            self.service_account, self.namespace
        )
    }
}

/// Reading what is watched, and CustomResourceDefinitions to notice kinds that come later; then what is written.
fn rules<'c>(
    controllers: impl IntoIterator<Item = &'c dyn Controller>,
    further: impl IntoIterator<Item = &'static Permission>,
) -> String {
    let mut reads: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut writes: Vec<&'static Permission> = Vec::new();
    for controller in controllers {
        reads.insert("apiextensions.k8s.io", vec!["customresourcedefinitions"]);
        for kind in [controller.watches(), controller.looks_up()].concat() {
            let Kind { group, plural, .. } = kind;
            reads.entry(group).or_default().push(plural);
        }
        writes.extend(controller.permissions());
    }
    writes.extend(further);
    let read = |(group, mut plurals): (&str, Vec<&str>)| {
        plurals.sort_unstable();
        plurals.dedup();
        line(group, &plurals, &[], &["get", "list", "watch"])
    };
    let write =
        |permission: &Permission| line(permission.group, permission.resources, permission.names, permission.verbs);
    reads.into_iter().map(read).chain(writes.into_iter().map(write)).collect()
}

fn line(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> String {
    let (resources, verbs) = (resources.join(", "), verbs.join(", "));
    let names = if names.is_empty() { String::new() } else { format!(", resourceNames: [{}]", names.join(", ")) };
    format!("  - {{apiGroups: [\"{group}\"], resources: [{resources}]{names}, verbs: [{verbs}]}}\n")
}
