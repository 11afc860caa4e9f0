//! The permissions of the controller manager, derived from its controllers. The ClusterRole of each controller is in a
//! separate file, because controllers can be enabled separately.

use std::collections::BTreeMap;

use super::{Controller, Permission};
use crate::audit::Listed;
use crate::catalog::Kind;
use crate::gate::registration::{Choice, with_common_labels};

/// The default name of the Lease for leader election.
pub const LEASE: &str = "portcullis-companion";

const GENERATED: &str = "# Written by `portcullis manifests`; do not edit.\n";
const NAME: &str = "portcullis-companion";
/// Condition in the chart that is true if any controller is enabled. See `_helpers.tpl`.
const RUNS: &str = "include \"portcullis.companion\" .";

/// The settings from which the RBAC manifests of Portcullis's controller manager are generated.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The namespace of the controller manager.
    pub namespace: String,
    /// The name of the controller manager's ServiceAccount.
    pub service_account: String,
    /// The rule families that are enabled. The letters at the start of a rule id, such as `OW`, name its family. In the
    /// Helm chart, the values of the release select the families.
    pub families: Choice,
}

impl Registration {
    /// Returns the settings for generating the RBAC manifests of the controller manager as templates of the Helm chart.
    /// The namespace and the service account are template expressions, such as `{{ .Release.Namespace }}`. The values
    /// of the release select the rule families.
    pub fn chart() -> Self {
        Self {
            namespace: "{{ .Release.Namespace }}".to_owned(),
            service_account: "{{ include \"portcullis.companionServiceAccount\" . }}".to_owned(),
            families: Choice::Values,
        }
    }

    /// Returns the RBAC manifests of the controller manager, as pairs of file path and YAML text. Empty if none of
    /// `controllers` belongs to an enabled rule family.
    pub fn manifests(&self, controllers: &[Box<dyn Controller>]) -> Vec<(String, String)> {
        let on: Vec<_> = controllers
            .iter()
            .map(AsRef::as_ref)
            .filter(|one| one.family().is_none_or(|family| self.families.may_have(family)))
            .collect();
        if on.is_empty() {
            return Vec::new();
        }
        let (optional, always): (Vec<_>, Vec<_>) = on.into_iter().partition(|controller| controller.is_optional());
        let account = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {}\n  namespace: {}\n---\n",
            self.service_account, self.namespace
        );
        // The chart has a template of its own for ServiceAccounts.
        let account = if self.families == Choice::Values { String::new() } else { account };
        let mut files = vec![("companion/rbac.yaml".to_owned(), self.file(RUNS, &(account + &self.lease_role())))];
        files.extend(always.into_iter().map(|controller| self.role_of(controller, "Always")));
        files.extend(
            optional.into_iter().map(|controller| self.role_of(controller, &format!("For --{}", controller.name()))),
        );
        files
    }

    /// Returns the path and the text of the manifest file with the ClusterRole of a controller. `wanted` says when the
    /// controller runs, such as `Always`. It is written into a comment of the file.
    fn role_of(&self, controller: &dyn Controller, wanted: &str) -> (String, String) {
        let name = controller.name();
        let asked = match controller.family() {
            None => format!(".Values.{name}.enabled"),
            Some(family) if controller.is_optional() => {
                format!(".Values.families.{family} (has \"{name}\" .Values.companion.controllers)")
            }
            Some(family) => format!(".Values.families.{family}"),
        };
        let condition = format!("and .Values.companion.enabled {asked}");
        let role = self.cluster_role(&format!("{NAME}-{name}"), &self.rules(controller));
        let text = format!("# {wanted}: {}\n{role}", controller.summary());
        (format!("companion/{name}.yaml"), self.file(&condition, &text))
    }

    fn file(&self, condition: &str, text: &str) -> String {
        match self.families {
            Choice::Values => {
                let text = with_common_labels(text);
                format!("{GENERATED}{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
            }
            Choice::These(_) => format!("{GENERATED}{text}"),
        }
    }

    /// Returns the Role and RoleBinding that permit the controller manager to use the Lease of its leader election. The
    /// rule for `create` has no resource name, because RBAC cannot restrict `create` by name.
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

    /// Returns the RBAC rules that a controller needs to watch, read, list and write objects. If the controller watches
    /// at least one kind, the rules also permit it to watch CustomResourceDefinitions, because it must notice kinds
    /// that are installed later.
    fn rules(&self, controller: &dyn Controller) -> String {
        let definitions = line("apiextensions.k8s.io", &["customresourcedefinitions"], &[], &["list", "watch"]);
        let definitions = (!controller.watches().is_empty()).then_some(definitions);
        let watched = lines([controller.watches(), controller.looks_up()].concat(), &["list", "watch"]);
        let read = lines(controller.reads(), &["get"]);
        let write = |Permission { group, resources, names, verbs }: &Permission| line(group, resources, names, verbs);
        let reading = definitions.into_iter().chain(watched).chain(read).chain([self.lists(controller)]);
        reading.chain(controller.permissions().iter().map(write)).collect()
    }

    /// Returns the RBAC rules that permit a controller to list resources. There is one RBAC rule for all resources that
    /// have the same API group and are needed by the same rule families, such as `OW`. Each family can be enabled
    /// separately.
    fn lists(&self, controller: &dyn Controller) -> String {
        let mut lists: BTreeMap<(&str, &[&'static str]), Vec<&str>> = BTreeMap::new();
        for Listed { group, plural, families } in controller.lists() {
            lists.entry((group, families)).or_default().push(plural);
        }
        let list = |((group, families), plurals): ((&str, &[&'static str]), Vec<&str>)| {
            self.families.lines_for(families, line(group, &plurals, &[], &["list"]))
        };
        lists.into_iter().map(list).collect()
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

/// Returns RBAC rules that permit `verbs` on the resources of `kinds`. There is one rule for each API group.
fn lines(kinds: Vec<&'static Kind>, verbs: &[&str]) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Kind { group, plural, .. } in kinds {
        groups.entry(group).or_default().push(plural);
    }
    let line = |(group, mut plurals): (&str, Vec<&str>)| {
        plurals.sort_unstable();
        plurals.dedup();
        line(group, &plurals, &[], verbs)
    };
    groups.into_iter().map(line).collect()
}

fn line(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> String {
    let (resources, verbs) = (resources.join(", "), verbs.join(", "));
    let names = if names.is_empty() { String::new() } else { format!("resourceNames: [{}], ", names.join(", ")) };
    format!("  - {{apiGroups: [\"{group}\"], resources: [{resources}], {names}verbs: [{verbs}]}}\n")
}
