//! The registration: which requests the API server is told to send, derived from the rows of the registry.
//!
//! A webhook has one failure policy, so the requests of a phase are split in two: those that must not go through while
//! nobody answers, and the rest. Each request is sent once in each phase.

use std::collections::BTreeMap;

use super::Registry;
use crate::admission::{COLLECTORS, Operation, Phase};
use crate::catalog::{CHOOSING_LABEL, Kind, Scope};
use crate::kustomize::delivery::Narrowed;
use crate::rule::{Definition, Match, Outage, Spared};

/// Where the API server finds the webhooks.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A Service in the cluster.
    Service {
        /// Its namespace, which is also left out of all webhooks.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An address outside of it, without a path.
    Url(String),
}

/// How the manifests are written.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Where the API server finds the webhooks.
    pub endpoint: Endpoint,
    /// The CA of the serving certificate, PEM in base64; `None` where something else will fill it in.
    pub ca_bundle: Option<String>,
    /// The namespace that portcullis runs in.
    pub namespace: String,
    /// The name of its ServiceAccount.
    pub service_account: String,
    /// Further lines of the configurations' metadata, indented by two.
    pub metadata: String,
    /// The kinds that objects in the cluster declare, and that are looked at.
    pub declared: Vec<&'static Kind>,
    /// The value of the chart that must be true for kinds that not everybody wants; `None` outside of a chart.
    pub opt_in: Option<&'static str>,
}

impl Default for Registration {
    fn default() -> Self {
        let namespace = "portcullis-system".to_owned();
        let service_account = "portcullis".to_owned();
        let endpoint = Endpoint::Service { namespace: namespace.clone(), name: service_account.clone() };
        let (metadata, declared) = (String::new(), Vec::new());
        Self { endpoint, ca_bundle: None, namespace, service_account, metadata, declared, opt_in: None }
    }
}

/// A file of the registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its name, in the folder of them all.
    pub file: &'static str,
    /// Its text.
    pub text: String,
}

/// A webhook of a configuration.
struct Webhook {
    name: &'static str,
    phase: Phase,
    outage: Outage,
    timeout_seconds: u8,
    reason: &'static str,
    /// What narrows it to some deliveries.
    narrowed: Option<&'static Narrowed>,
}

const WEBHOOKS: [Webhook; 4] = [
    Webhook {
        name: "mutate.portcullis.dev",
        phase: Phase::Mutate,
        outage: Outage::Admit,
        timeout_seconds: 2,
        reason: "What is missing is added with the next change of the object; nothing is deployed wrongly without it.",
        narrowed: None,
    },
    Webhook {
        name: "require.portcullis.dev",
        phase: Phase::Mutate,
        outage: Outage::Refuse,
        timeout_seconds: 3,
        reason: "Without the change the object would do what it must not do.",
        narrowed: None,
    },
    Webhook {
        name: "validate.portcullis.dev",
        phase: Phase::Validate,
        outage: Outage::Refuse,
        timeout_seconds: 3,
        reason: "People and pipelines write these, rarely; a wrong one breaks everything in its namespace that uses it.",
        narrowed: None,
    },
    Webhook {
        name: "advise.portcullis.dev",
        phase: Phase::Validate,
        outage: Outage::Admit,
        timeout_seconds: 3,
        reason: "Controllers write these all the time, and a deletion must never hang on us; the harm is small or mendable.",
        narrowed: None,
    },
];

/// The webhooks of a phase, those that are narrowed last.
fn webhooks(phase: Phase, registry: &Registry) -> Vec<Webhook> {
    let mut webhooks: Vec<_> = WEBHOOKS.into_iter().filter(|webhook| webhook.phase == phase).collect();
    for narrowed in registry.deliveries().iter().filter_map(|delivery| delivery.narrowed) {
        if phase == Phase::Validate && !webhooks.iter().any(|known| known.narrowed == Some(narrowed)) {
            webhooks.push(Webhook {
                name: narrowed.webhook,
                phase,
                outage: Outage::Admit,
                timeout_seconds: 3,
                reason: narrowed.reason,
                narrowed: Some(narrowed),
            });
        }
    }
    webhooks
}

const GENERATED: &str = "# Written by `portcullis manifests`; do not edit.\n";
const GENERATED_FOR_DECLARED: &str = "# Written by `portcullis manifests`; do not edit. The rules follow the \
                                      CompositeResourceDefinitions that are chosen.\n";
/// The name of the configurations for kinds that are declared.
pub const DECLARED_NAME: &str = "portcullis-composites";

impl Registration {
    /// The templates of the chart: what a release decides is left to Helm.
    pub fn chart() -> Self {
        let (namespace, name) = ("{{ .Release.Namespace }}".to_owned(), "{{ .Release.Name }}".to_owned());
        let metadata = "  {{- with .Values.certificate.injectCaFrom }}\n  annotations:\n    \
                        cert-manager.io/inject-ca-from: {{ . }}\n  {{- end }}\n";
        Self {
            endpoint: Endpoint::Service { namespace: namespace.clone(), name: name.clone() },
            ca_bundle: Some("{{ .Values.certificate.caBundle }}".to_owned()),
            namespace,
            service_account: name,
            metadata: metadata.to_owned(),
            declared: Vec::new(),
            opt_in: Some("storedKustomizations"),
        }
    }

    /// All files: the definitions of kinds, the two webhook configurations and the permissions.
    pub fn manifests(&self, registry: &Registry) -> Vec<Manifest> {
        let definition = |definition: &&'static Definition| Manifest {
            file: definition.file,
            text: format!("{GENERATED}{}", definition.text),
        };
        let mut manifests: Vec<_> = registry.definitions().iter().map(definition).collect();
        manifests
            .extend(registry.optional_definitions().iter().map(definition).map(|manifest| self.optional(manifest)));
        manifests.extend([
            Manifest { file: "mutating.yaml", text: self.configuration(Phase::Mutate, registry) },
            Manifest { file: "rbac.yaml", text: self.rbac(&registry.kinds()) },
            Manifest { file: "validating.yaml", text: self.configuration(Phase::Validate, registry) },
        ]);
        for (file, phase) in
            [("mutating-composites.yaml", Phase::Mutate), ("validating-composites.yaml", Phase::Validate)]
        {
            manifests.extend(self.composites(phase, registry).map(|text| Manifest { file, text }));
        }
        manifests.extend(self.reading_declared().map(|text| Manifest { file: "rbac-composites.yaml", text }));
        manifests
    }

    /// The right to read the kinds that are declared, where it is known which those are.
    fn reading_declared(&self) -> Option<String> {
        let name = format!("{DECLARED_NAME}-of-definitions");
        let rules: String = reading(&self.declared).iter().map(|rule| format!("  - {rule}\n")).collect();
        let role = format!(
            "{GENERATED_FOR_DECLARED}apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \
             {name}\nrules:\n{rules}---\n{}",
            self.cluster_role_binding(&name)
        );
        (!rules.is_empty()).then_some(role)
    }

    fn cluster_role_binding(&self, name: &str) -> String {
        let Self { namespace, service_account, .. } = self;
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: {name}\nroleRef:\n  \
             apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  name: {name}\nsubjects:\n  - kind: \
             ServiceAccount\n    name: {service_account}\n    namespace: {namespace}\n"
        )
    }

    /// A role that is made of all that have a label: whoever adds a kind of composites adds the right to read it, without
    /// touching ours.
    fn aggregated(&self) -> String {
        format!(
            "---\n# Every ClusterRole with this label is a part of it: whoever defines composites labels one that reads them.\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {DECLARED_NAME}\n\
             aggregationRule:\n  clusterRoleSelectors:\n    - matchLabels: {{{CHOOSING_LABEL}: \"true\"}}\nrules: []\n---\n{}",
            self.cluster_role_binding(DECLARED_NAME)
        )
    }

    fn optional(&self, manifest: Manifest) -> Manifest {
        match self.opt_in {
            Some(value) => {
                let text = format!("{{{{- if .Values.{value} }}}}\n{}{{{{- end }}}}\n", manifest.text);
                Manifest { text, ..manifest }
            }
            None => manifest,
        }
    }

    fn configuration(&self, phase: Phase, registry: &Registry) -> String {
        let mut text = self.head(phase, "portcullis", GENERATED);
        for webhook in webhooks(phase, registry) {
            let rules = webhook.rules(registry);
            if !rules.is_empty() {
                text.push_str(&self.webhook(&webhook, &rules, &webhook.shares(registry)));
            }
        }
        text
    }

    /// The configuration for kinds that are declared: apart, so that its rules can follow them without the others.
    fn composites(&self, phase: Phase, registry: &Registry) -> Option<String> {
        let is_asked = |webhook: &&Webhook| {
            let mut scopes = webhook.scopes(registry).into_iter();
            webhook.phase == phase && scopes.any(|scope| scope.is_declared() && scope.outage == webhook.outage)
        };
        let webhook = |webhook: &Webhook| self.webhook(webhook, &webhook.declared_rules(registry, &self.declared), "");
        let webhooks: String = WEBHOOKS.iter().filter(is_asked).map(webhook).collect();
        let head = || self.head(phase, DECLARED_NAME, GENERATED_FOR_DECLARED);
        (!webhooks.is_empty()).then(|| head() + &webhooks)
    }

    fn head(&self, phase: Phase, name: &str, generated: &str) -> String {
        let kind = match phase {
            Phase::Mutate => "MutatingWebhookConfiguration",
            Phase::Validate => "ValidatingWebhookConfiguration",
        };
        format!(
            "{generated}apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  \
             labels:\n    app.kubernetes.io/name: portcullis\n{}webhooks:\n",
            self.metadata
        )
    }

    fn webhook(&self, webhook: &Webhook, rules: &[Rules], shares: &str) -> String {
        let failure_policy = if webhook.outage.refuses() { "Fail" } else { "Ignore" };
        let reinvocation = match webhook.phase {
            Phase::Mutate => {
                "    # Another webhook may change what ours looks at; ours is idempotent.\n    \
                              reinvocationPolicy: IfNeeded\n"
            }
            Phase::Validate => "",
        };
        format!(
            "  - name: {name}\n    admissionReviewVersions: [v1, v1beta1]\n    sideEffects: None\n    \
             matchPolicy: Equivalent\n    timeoutSeconds: {timeout}\n    # {reason}\n    \
             failurePolicy: {failure_policy}\n{reinvocation}{client}{selector}{conditions}{shares}    rules:{rules}",
            name = webhook.name,
            timeout = webhook.timeout_seconds,
            reason = webhook.reason,
            client = self.client_config(webhook.phase),
            selector = self.namespace_selector(),
            conditions = match_conditions(rules, webhook.narrowed),
            rules = match rules {
                [] => " []\n".to_owned(),
                rules => format!("\n{}", rules.iter().map(Rules::yaml).collect::<String>()),
            },
        )
    }

    fn client_config(&self, phase: Phase) -> String {
        let path = phase.as_str();
        let place = match &self.endpoint {
            Endpoint::Service { namespace, name } => format!(
                "      service:\n        namespace: {namespace}\n        name: {name}\n        path: /{path}\n        \
                 port: 443\n"
            ),
            Endpoint::Url(url) => format!("      url: {}/{path}\n", url.trim_end_matches('/')),
        };
        let ca = self.ca_bundle.as_ref().map(|ca| format!("      caBundle: {ca}\n")).unwrap_or_default();
        format!("    clientConfig:\n{place}{ca}")
    }

    /// Our own namespace and the cluster's are left out: a cluster must be able to start without us.
    fn namespace_selector(&self) -> String {
        format!(
            "    namespaceSelector:\n      matchExpressions:\n        - key: kubernetes.io/metadata.name\n          \
             operator: NotIn\n          values: [kube-system, {}]\n",
            self.namespace
        )
    }

    fn rbac(&self, kinds: &[&'static Kind]) -> String {
        let Self { namespace, service_account, .. } = self;
        let rules: String = permissions(kinds).iter().map(|rule| format!("  - {rule}\n")).collect();
        format!(
            "{GENERATED}apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {service_account}\n  namespace: \
             {namespace}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: \
             portcullis\nrules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n\
             metadata:\n  name: portcullis\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\n  \
             name: portcullis\nsubjects:\n  - kind: ServiceAccount\n    name: {service_account}\n    namespace: \
             {namespace}\n{}",
            self.aggregated() + &self.reading_by_name(kinds)
        )
    }

    /// What is read when it is named, and never watched: in our own namespace only. Whoever keeps such objects elsewhere
    /// gives the right there.
    fn reading_by_name(&self, kinds: &[&'static Kind]) -> String {
        let Self { namespace, service_account, .. } = self;
        let rule = |kind: &&Kind| {
            format!("  - {{apiGroups: [\"{}\"], resources: [{}], verbs: [get]}}\n", kind.group, kind.plural)
        };
        let rules: String = kinds.iter().filter(|kind| kind.is_read_by_name()).map(rule).collect();
        if rules.is_empty() {
            return rules;
        }
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: portcullis-reads-by-name\n  \
             namespace: {namespace}\nrules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
             metadata:\n  name: portcullis-reads-by-name\n  namespace: {namespace}\nroleRef:\n  apiGroup: \
             rbac.authorization.k8s.io\n  kind: Role\n  name: portcullis-reads-by-name\nsubjects:\n  - kind: \
             ServiceAccount\n    name: {service_account}\n    namespace: {namespace}\n"
        )
    }
}

/// Reading and watching what rules look up, and CustomResourceDefinitions to notice kinds that come later.
fn permissions(kinds: &[&'static Kind]) -> Vec<String> {
    static DEFINITIONS: Kind = Kind {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        scope: Scope::Cluster,
        indexes: &[],
    };
    reading(&[kinds, &[&DEFINITIONS]].concat())
}

/// Reading and watching some kinds.
fn reading(kinds: &[&'static Kind]) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| !kind.is_read_by_name()) {
        groups.entry(kind.group).or_default().push(kind.plural);
    }
    let rule = |(group, mut plurals): (&str, Vec<&str>)| {
        plurals.sort_unstable();
        plurals.dedup();
        let resources = plurals.join(", ");
        format!("{{apiGroups: [\"{group}\"], resources: [{resources}], verbs: [get, list, watch]}}")
    };
    groups.into_iter().map(rule).collect()
}

/// Requests of the same group, versions and operations.
#[derive(PartialEq, Eq)]
struct Rules {
    group: &'static str,
    versions: &'static [&'static str],
    operations: Vec<Operation>,
    resources: Vec<String>,
}

impl Webhook {
    /// The requests of this webhook: those of its phase and outage that the stricter webhook of the phase does not get.
    fn rules(&self, registry: &Registry) -> Vec<Rules> {
        let wanted = self.requests(registry, self.outage);
        let stricter = if self.outage.refuses() { BTreeMap::new() } else { self.requests(registry, Outage::Refuse) };
        let spared = self.spared(registry);
        let mut rules: Vec<Rules> = Vec::new();
        for ((group, resource), (versions, mut operations)) in wanted {
            let key = (group, resource.clone());
            let taken = stricter.get(&key).filter(|_| !spared.contains_key(&key)).map(|(_, taken)| taken.as_slice());
            operations.retain(|operation| !taken.unwrap_or_default().contains(operation));
            let like =
                |rule: &&mut Rules| rule.group == group && rule.versions == versions && rule.operations == operations;
            match rules.iter_mut().find(like) {
                _ if operations.is_empty() => {}
                Some(rule) => rule.resources.push(resource),
                None => rules.push(Rules { group, versions, operations, resources: vec![resource] }),
            }
        }
        rules
    }

    /// The requests of this webhook about kinds that are declared.
    fn declared_rules(&self, registry: &Registry, kinds: &[&'static Kind]) -> Vec<Rules> {
        let scopes = self.scopes(registry);
        let scopes = scopes.into_iter().filter(|scope| scope.is_declared() && scope.outage == self.outage);
        let mut operations: Vec<Operation> = scopes.flat_map(|scope| scope.operations).copied().collect();
        operations.sort_by_key(|operation| *operation as u8);
        operations.dedup();
        let mut groups: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for kind in kinds {
            groups.entry(kind.group).or_default().push(kind.plural.to_owned());
        }
        let rules = |(group, mut resources): (_, Vec<String>)| {
            resources.sort_unstable();
            Rules { group, versions: &["\"*\""], operations: operations.clone(), resources }
        };
        groups.into_iter().map(rules).collect()
    }

    fn requests(&self, registry: &Registry, outage: Outage) -> Requests {
        let mut requests = Requests::new();
        let fixed = |scope: &&'static Match| !scope.is_declared() && scope.outage.refuses() == outage.refuses();
        for scope in self.scopes(registry).into_iter().filter(fixed) {
            let (_, operations) =
                requests.entry((scope.group, resource(scope))).or_insert((scope.versions, Vec::new()));
            operations.extend(
                scope
                    .operations
                    .iter()
                    .filter(|operation| !operations.contains(operation))
                    .copied()
                    .collect::<Vec<_>>(),
            );
            operations.sort_by_key(|operation| *operation as u8);
        }
        requests
    }

    /// The resources of which an outage stops only some requests: where every row that has others refused says so.
    fn spared(&self, registry: &Registry) -> BTreeMap<(&'static str, String), &'static Spared> {
        let mut spared = BTreeMap::new();
        for scope in self.scopes(registry).into_iter().filter(|scope| !scope.is_declared() && scope.outage.refuses()) {
            let one = match scope.outage {
                Outage::RefuseUnless(one) => Some(one),
                Outage::Refuse | Outage::Admit => None,
            };
            let all = spared.entry((scope.group, resource(scope))).or_insert(one);
            *all = all.filter(|all| Some(*all) == one);
        }
        spared.into_iter().filter_map(|(key, one)| Some((key, one?))).collect()
    }

    /// How the two webhooks of a phase share the requests of such a resource: each goes to one of them.
    fn shares(&self, registry: &Registry) -> String {
        let share = |((_, resource), Spared { name, expression }): ((&str, String), &Spared)| {
            let (prefix, not) = if self.outage.refuses() { ("all-but", "!") } else { ("only", "") };
            format!(
                "      - name: {prefix}-{name}-of-{resource}\n        expression: >-\n          \
                 request.resource.resource != '{resource}' ||\n          {not}({expression})\n"
            )
        };
        self.spared(registry).into_iter().map(share).collect()
    }

    fn scopes(&self, registry: &Registry) -> Vec<&'static Match> {
        match self.phase {
            Phase::Mutate => registry.mutators().iter().flat_map(|mutator| mutator.scope).collect(),
            Phase::Validate => {
                let rules = registry.rules().iter().filter(|_| self.narrowed.is_none()).flat_map(|rule| rule.scope);
                let deliveries = registry.deliveries().iter().filter(|delivery| delivery.narrowed == self.narrowed);
                rules.chain(deliveries.flat_map(|delivery| delivery.scope)).collect()
            }
        }
    }
}

type Requests = BTreeMap<(&'static str, String), (&'static [&'static str], Vec<Operation>)>;

fn resource(scope: &Match) -> String {
    match scope.subresource {
        "" => scope.plural.to_owned(),
        subresource => format!("{}/{subresource}", scope.plural),
    }
}

impl Rules {
    fn yaml(&self) -> String {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.as_str()).collect();
        format!(
            "      - apiGroups: [\"{}\"]\n        apiVersions: [{}]\n        operations: [{}]\n        resources: [{}]\n",
            self.group,
            self.versions.join(", "),
            operations.join(", "),
            self.resources.join(", "),
        )
    }
}

/// Calls that are not made: for objects on their way out, whose finalizers must come off, and for the controllers that
/// delete what has lost its namespace or owner.
fn match_conditions(rules: &[Rules], narrowed: Option<&Narrowed>) -> String {
    let has = |wanted| rules.iter().any(|rule| rule.operations.contains(&wanted));
    let mut text = "    matchConditions:\n".to_owned();
    let delete = if has(Operation::Delete) { "request.operation == 'DELETE' || " } else { "" };
    let has_status = rules.iter().any(|rule| rule.resources.iter().any(|resource| resource.ends_with("/status")));
    let status = match has_status {
        true => "(has(request.subResource) && request.subResource == 'status') || ",
        false => "",
    };
    let guard = format!("{delete}{status}");
    text.push_str(&format!(
        "      - name: not-being-deleted\n        expression: \"{guard}!has(object.metadata.deletionTimestamp)\"\n"
    ));
    if has(Operation::Delete) {
        let users: Vec<_> = COLLECTORS.iter().map(|user| format!("'{user}'")).collect();
        text.push_str(&format!(
            "      - name: not-deleted-by-a-collector\n        expression: >-\n          request.operation != 'DELETE' || \
             !(request.userInfo.username in\n          [{}])\n",
            users.join(",\n           ")
        ));
    }
    if let Some(narrowed) = narrowed {
        let alternatives: Vec<_> = narrowed.when.iter().map(|when| format!("({when})")).collect();
        let when = alternatives.join(" ||\n          ");
        text.push_str(&format!("      - name: worth-a-call\n        expression: >-\n          {when}\n"));
    }
    text
}
