//! What the server may do in the cluster: watch what the rules look up, and read what they want confirmed.

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
             {namespace}\n"
        )
    }

    /// Watching what is looked up, and reading what is confirmed.
    fn rights(&self, registry: &Registry) -> String {
        let (watched, read) = (lines(registry.looked_up()), lines(registry.confirmed()));
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

/// Kinds of a group that the same families are interested in, and when one of those is on.
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
