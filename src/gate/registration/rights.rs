//! What the server may do in the cluster: read and watch what the rules look up.

use std::collections::BTreeMap;

use super::when::When;
use super::{GENERATED, Registration};
use crate::catalog::Kind;
use crate::gate::Registry;

/// To notice kinds that come later.
const DEFINITIONS: &str =
    "  - {apiGroups: [\"apiextensions.k8s.io\"], resources: [customresourcedefinitions], verbs: [list, watch]}\n";

impl Registration {
    pub(super) fn rbac(&self, registry: &Registry) -> String {
        let Self { namespace, service_account, .. } = self;
        let rules = format!("{DEFINITIONS}{}", self.rights(registry));
        format!(
            "{GENERATED}apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {service_account}\n  namespace: \
             {namespace}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \
             portcullis\nrules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n\
             metadata:\n  name: portcullis\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  \
             name: portcullis\nsubjects:\n  - kind: ServiceAccount\n    name: {service_account}\n    namespace: \
             {namespace}\n{}",
            self.reading_by_name(registry)
        )
    }

    /// What is read when it is named, and never watched: in our own namespace only. Whoever keeps such objects elsewhere
    /// gives the right there.
    fn reading_by_name(&self, registry: &Registry) -> String {
        let Self { namespace, service_account, .. } = self;
        let named = registry.looked_up().into_iter().filter(|(kind, _)| kind.is_read_by_name());
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

    /// A line for the kinds of a group that the same families look up.
    fn rights(&self, registry: &Registry) -> String {
        let mut groups: BTreeMap<&str, Vec<(When, Vec<&str>)>> = BTreeMap::new();
        for (kind, families) in registry.looked_up().into_iter().filter(|(kind, _)| !kind.is_read_by_name()) {
            let Kind { group, plural, .. } = kind;
            let (when, lines) = (When::any(families.into_iter().collect()), groups.entry(group).or_default());
            match lines.iter_mut().find(|(known, _)| *known == when) {
                Some((_, plurals)) => plurals.push(plural),
                None => lines.push((when, vec![plural])),
            }
        }
        let line = |group: &str, (when, mut plurals): (When, Vec<&str>)| {
            plurals.sort_unstable();
            plurals.dedup();
            let resources = plurals.join(", ");
            let line =
                format!("  - {{apiGroups: [\"{group}\"], resources: [{resources}], verbs: [get, list, watch]}}\n");
            self.families.lines(&when, None, line)
        };
        let lines = groups.into_iter().flat_map(|(group, lines)| lines.into_iter().map(move |one| line(group, one)));
        lines.collect()
    }
}
