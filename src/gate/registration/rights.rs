//! The permissions of the server in the cluster: to watch the kinds that rules look up, and to read single objects from
//! the API server.

use std::collections::BTreeMap;

use super::when::When;
use super::{DECLARED_NAME, GENERATED, GENERATED_FOR_DECLARED, Registration};
use crate::catalog::{CHOOSING_LABEL, Kind};
use crate::gate::Registry;

/// The YAML of an RBAC rule that permits watching CustomResourceDefinitions. The server needs this permission to notice
/// kinds that are installed later.
const DEFINITIONS: &str =
    "  - {apiGroups: [\"apiextensions.k8s.io\"], resources: [customresourcedefinitions], verbs: [list, watch]}\n";

impl Registration {
    pub(super) fn rbac(&self, registry: &Registry) -> String {
        let rules = format!("{DEFINITIONS}{}", self.rights(registry));
        format!(
            "{GENERATED}{}apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \
             portcullis\nrules:\n{rules}---\n{}{}{}",
            self.account(),
            self.cluster_role_binding("portcullis"),
            self.aggregated(registry),
            self.reading_by_name(registry)
        )
    }

    /// Returns the manifest of the ServiceAccount. For the Helm chart, returns an empty text, because the chart has a
    /// separate template for the ServiceAccount.
    fn account(&self) -> String {
        let Self { namespace, service_account, .. } = self;
        if self.is_chart() {
            return String::new();
        }
        format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {service_account}\n  namespace: {namespace}\n---\n"
        )
    }

    fn cluster_role_binding(&self, name: &str) -> String {
        let Self { namespace, service_account, .. } = self;
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef:\n  \
             apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\nsubjects:\n  - kind: \
             ServiceAccount\n    name: {service_account}\n    namespace: {namespace}\n"
        )
    }

    /// Returns the YAML of an aggregated ClusterRole and its binding. Kubernetes adds to this ClusterRole the rules of
    /// every ClusterRole with the label [`CHOOSING_LABEL`]. So administrators can give the server further permissions,
    /// such as to read a type of composite.
    fn aggregated(&self, registry: &Registry) -> String {
        let when = When::any(registry.declaring().map(|(family, _)| family).collect());
        let role = format!(
            "---\n# Aggregates every ClusterRole with this label. To add a kind of composites, label a ClusterRole that can read it.\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {DECLARED_NAME}\n\
             aggregationRule:\n  clusterRoleSelectors:\n    - matchLabels: {{{CHOOSING_LABEL}: \"true\"}}\nrules: []\n---\n{}",
            self.cluster_role_binding(DECLARED_NAME)
        );
        self.families.lines(&when, None, role)
    }

    /// Returns the YAML of a ClusterRole and its binding. The ClusterRole permits the server to read composites and
    /// claims. CompositeResourceDefinitions in the cluster define the kinds of these objects. Returns `None` if the
    /// server watches no such kind.
    pub(super) fn reading_declared(&self) -> Option<String> {
        let name = format!("{DECLARED_NAME}-of-definitions");
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (_, Kind { group, plural, .. }) in
            self.declared.iter().filter(|(declaration, _)| declaration.storage.is_watched())
        {
            groups.entry(group).or_default().push(plural);
        }
        let rule = |(group, mut plurals): (&str, Vec<&str>)| {
            plurals.sort_unstable();
            format!(
                "  - {{apiGroups: [\"{group}\"], resources: [{}], verbs: [get, list, watch]}}\n",
                plurals.join(", ")
            )
        };
        let rules: String = groups.into_iter().map(rule).collect();
        let role = format!(
            "{GENERATED_FOR_DECLARED}apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \
             {name}\nrules:\n{rules}---\n{}",
            self.cluster_role_binding(&name)
        );
        (!rules.is_empty()).then_some(role)
    }

    /// Returns the YAML of a Role and its binding. The Role permits reading objects by name, for kinds that the server
    /// does not watch. The text is empty if there are no such kinds. The Role covers only the namespace of Portcullis,
    /// so other namespaces need their own Roles.
    fn reading_by_name(&self, registry: &Registry) -> String {
        let Self { namespace, service_account, .. } = self;
        let is_named = |kind: &Kind| kind.is_read_by_name() && !kind.is_read_everywhere();
        let named = registry.looked_up().into_iter().filter(|(kind, _)| is_named(kind));
        let named: Vec<_> = named.map(|(kind, families)| (kind, When::any(families.into_iter().collect()))).collect();
        let whole = When::either(named.iter().map(|(_, when)| when));
        let rule = |(kind, when): &(&Kind, When)| {
            let line = format!("  - {{apiGroups: [\"{}\"], resources: [{}], verbs: [get]}}\n", kind.group, kind.plural);
            self.families.lines(when, Some(&whole), line)
        };
        let rules: String = named.iter().map(rule).collect();
        if rules.is_empty() {
            return rules;
        }
        let role = format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: portcullis-reads-by-name\n  \
             namespace: {namespace}\nrules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
             metadata:\n  name: portcullis-reads-by-name\n  namespace: {namespace}\nroleRef:\n  apiGroup: \
             rbac.authorization.k8s.io\n  kind: Role\n  name: portcullis-reads-by-name\nsubjects:\n  - kind: \
             ServiceAccount\n    name: {service_account}\n    namespace: {namespace}\n"
        );
        self.families.lines(&whole, None, role)
    }

    /// Returns the rules of the server's ClusterRole, as YAML. They permit `list` and `watch` for the kinds that the
    /// server caches. They permit `get` for the kinds whose objects it reads from the API server during a request.
    fn rights(&self, registry: &Registry) -> String {
        let watched = lines(registry.looked_up().into_iter().filter(|(kind, _)| !kind.is_read_by_name()).collect());
        let is_read = |kind: &Kind| !kind.is_read_by_name() || kind.is_read_everywhere();
        let read = lines(registry.kinds_read_live().into_iter().filter(|(kind, _)| is_read(kind)).collect());
        let of = |lines: Lines, verbs: &str| {
            let line = |(group, when, plurals): (&str, When, Vec<&str>)| {
                let resources = plurals.join(", ");
                let line = format!("  - {{apiGroups: [\"{group}\"], resources: [{resources}], verbs: [{verbs}]}}\n");
                self.families.lines(&when, None, line)
            };
            lines.into_iter().map(line).collect::<String>()
        };
        of(watched, "list, watch") + &of(read, "get")
    }
}

/// RBAC rules without their verbs. Each item has an API group, a condition, and the plural names of resources. The
/// condition holds if a rule family of Portcullis that needs the resources, such as `KZ`, is enabled.
type Lines = Vec<(&'static str, When, Vec<&'static str>)>;

fn lines(mut kinds: Vec<(&'static Kind, Vec<&'static str>)>) -> Lines {
    kinds.sort_by_key(|(kind, _)| (kind.group, kind.plural));
    let mut lines: Lines = Vec::new();
    for (Kind { group, plural, .. }, families) in kinds {
        let when = When::any(families.into_iter().collect());
        match lines.iter_mut().find(|(known, with, _)| known == group && *with == when) {
            Some((_, _, plurals)) if plurals.contains(plural) => {}
            Some((_, _, plurals)) => plurals.push(plural),
            None => lines.push((group, when, vec![plural])),
        }
    }
    lines
}
