//! Generates the webhook configurations and RBAC permissions with which Portcullis runs in a cluster. They contain only
//! what the enabled rule families, such as `KZ`, need. Webhooks that would receive no requests are omitted.
//!
//! A webhook has only one failure policy, so there are two webhooks for mutation and two for validation. The webhook
//! with `failurePolicy: Fail` receives the requests that must be denied while the server does not answer. The webhook
//! with `failurePolicy: Ignore` receives the other requests. Some checks have an additional webhook with their own
//! match conditions.

mod labels;
mod requests;
mod rights;
mod when;

pub(crate) use labels::with_common_labels;
use requests::{Rules, Share, WEBHOOKS, Webhook, webhooks};
pub use when::Choice;
use when::When;

use super::Registry;
use crate::admission::{COLLECTORS, Operation, Phase};
use crate::catalog::{Declaration, Kind};
use crate::kustomize::delivery::Narrowed;
use crate::rule::{ANY, Definition, MatchCondition};

/// The address at which the API server calls the webhooks.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A Service in the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
    },
    /// The URL of a server outside of the cluster, without a path.
    Url(String),
}

/// The settings from which the manifests of webhook configurations and permissions are generated.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The address at which the API server calls the webhooks.
    pub endpoint: Endpoint,
    /// The CA of the serving certificate, as base64-encoded PEM. `None` if the server or cert-manager later writes the
    /// CA into the webhook configurations.
    pub ca_bundle: Option<String>,
    /// The namespace of the Portcullis server, which all webhooks exclude.
    pub namespace: String,
    /// The name of the server's ServiceAccount.
    pub service_account: String,
    /// The kinds that CompositeResourceDefinitions in the cluster declare and that the webhooks handle.
    pub declared: Vec<(&'static Declaration, &'static Kind)>,
    /// The enabled rule families. With [`Choice::Values`], the manifests are Helm templates, and the values of the
    /// chart decide which families are enabled.
    pub families: Choice,
}

impl Default for Registration {
    fn default() -> Self {
        let namespace = "portcullis-system".to_owned();
        let service_account = "portcullis".to_owned();
        let endpoint = Endpoint::Service { namespace: namespace.clone(), name: service_account.clone() };
        let families = Choice::These(Registry::standard().default_families());
        Self { endpoint, ca_bundle: None, namespace, service_account, declared: Vec::new(), families }
    }
}

/// A generated file of manifests, such as the webhook configurations or the permissions of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The file name, such as `rbac.yaml`.
    pub file: &'static str,
    /// The content of the file: YAML, or a Helm template if the file is generated for the chart.
    pub text: String,
}

const GENERATED: &str = "# Written by `portcullis manifests`; do not edit.\n";
const GENERATED_FOR_DECLARED: &str = "# Written by `portcullis manifests`; do not edit. The rules follow the \
                                      selected CompositeResourceDefinitions.\n";
/// The name of two webhook configurations: the mutating one and the validating one.
pub const NAME: &str = "portcullis";
/// The name of the webhook configurations for composites and claims, whose kinds CompositeResourceDefinitions declare.
pub const DECLARED_NAME: &str = "portcullis-composites";

/// Helm template that adds the chart value `namespaceSelector.matchExpressions` to the namespace selector.
const CHART_NAMESPACES: &str = "        {{- with .Values.namespaceSelector.matchExpressions }}\n        \
                                {{- toYaml . | nindent 8 }}\n        {{- end }}\n";
/// The chart value that enables the optional CustomResourceDefinitions.
const CHART_OPTIONAL: &str = ".Values.storedKustomizations";

impl Registration {
    /// Returns the settings for generating templates of the Helm chart instead of plain manifests. Names in the
    /// templates are expressions, such as `{{ .Release.Name }}`. The values of the chart decide which rule families,
    /// such as `KZ`, are enabled.
    pub fn chart() -> Self {
        let (namespace, name) = ("{{ .Release.Namespace }}".to_owned(), "{{ .Release.Name }}".to_owned());
        let service_account = "{{ include \"portcullis.serviceAccount\" . }}".to_owned();
        Self {
            endpoint: Endpoint::Service { namespace: namespace.clone(), name: name.clone() },
            ca_bundle: None,
            namespace,
            service_account,
            declared: Vec::new(),
            families: Choice::Values,
        }
    }

    /// Returns all generated files: CustomResourceDefinitions, webhook configurations and permissions. The files
    /// contain only what the enabled rule families, such as `KZ`, need. `registry` must contain the rules of all
    /// families, not only of the enabled ones.
    pub fn manifests(&self, registry: &Registry) -> Vec<Manifest> {
        let definition = |definition: &&'static Definition| self.definition(definition, None);
        let optional = |definition: &&'static Definition| self.definition(definition, Some(CHART_OPTIONAL));
        let mut manifests: Vec<_> = registry.definitions().iter().filter_map(definition).collect();
        manifests.extend(registry.optional_definitions().iter().filter_map(optional));
        for (file, phase) in [("mutating.yaml", Phase::Mutate), ("validating.yaml", Phase::Validate)] {
            manifests.extend(self.configuration(phase, registry).map(|text| Manifest { file, text }));
        }
        manifests.push(Manifest { file: "rbac.yaml", text: self.rbac(registry) });
        for (file, phase) in
            [("mutating-composites.yaml", Phase::Mutate), ("validating-composites.yaml", Phase::Validate)]
        {
            manifests.extend(self.composites(phase, registry).map(|text| Manifest { file, text }));
        }
        manifests.extend(self.reading_declared().map(|text| Manifest { file: "rbac-composites.yaml", text }));
        if self.is_chart() {
            manifests.iter_mut().for_each(|manifest| manifest.text = with_common_labels(&manifest.text));
        }
        manifests
    }

    fn is_chart(&self) -> bool {
        self.families == Choice::Values
    }

    fn definition(&self, definition: &'static Definition, value: Option<&str>) -> Option<Manifest> {
        let when = When::any([definition.family].into());
        if !self.families.may(&when) {
            return None;
        }
        let mut text = definition.text.to_owned();
        if let Some(value) = value.filter(|_| self.is_chart()) {
            text = format!("{{{{- if {value} }}}}\n{text}{{{{- end }}}}\n");
        }
        Some(Manifest { file: definition.file, text: format!("{GENERATED}{}", self.families.lines(&when, None, text)) })
    }

    fn configuration(&self, phase: Phase, registry: &Registry) -> Option<String> {
        let webhooks: Vec<_> =
            webhooks(phase, registry).into_iter().map(|webhook| (webhook.rules(registry), webhook)).collect();
        let all = When::either(webhooks.iter().flat_map(|(rules, _)| rules).map(|rules| &rules.when));
        let text: String =
            webhooks.iter().map(|(rules, webhook)| self.lines_of(webhook, rules, registry, &all)).collect();
        let text = self.families.lines(&all, None, self.head(phase, NAME) + &text);
        self.families.may(&all).then(|| format!("{GENERATED}{text}"))
    }

    fn lines_of(&self, webhook: &Webhook, rules: &[Rules], registry: &Registry, around: &When) -> String {
        let when = When::either(rules.iter().map(|rules| &rules.when));
        if !self.families.may(&when) {
            return String::new();
        }
        let rule = |rules: &Rules| self.families.lines(&rules.when, Some(&when), rules.yaml());
        let listed = format!("    rules:\n{}", rules.iter().map(rule).collect::<String>());
        let conditions = self.match_conditions(rules, webhook.narrowed) + &self.share_conditions(webhook, registry);
        self.families.lines(&when, Some(around), self.webhook(webhook, &conditions, &listed))
    }

    /// Returns the webhook configuration for composites and claims, whose kinds CompositeResourceDefinitions declare.
    /// It is separate from the main configuration, because its rules are updated at run time.
    fn composites(&self, phase: Phase, registry: &Registry) -> Option<String> {
        let webhooks: Vec<_> = WEBHOOKS.iter().filter(|webhook| webhook.phase == phase).collect();
        let whens: Vec<_> = webhooks.iter().map(|webhook| webhook.declared_when(registry)).collect();
        let all = When::either(&whens);
        let webhook = |(webhook, when): (&&Webhook, &When)| {
            let rules = webhook.declared_rules(registry, &self.declared);
            let listed = match &rules[..] {
                // The chart omits the field, so that an upgrade does not reset the rules that were written at run time.
                [] if self.is_chart() => String::new(),
                [] => "    rules: []\n".to_owned(),
                rules => format!("    rules:\n{}", rules.iter().map(Rules::yaml).collect::<String>()),
            };
            let text = self.webhook(webhook, &self.match_conditions(&rules, None), &listed);
            if self.families.may(when) { self.families.lines(when, Some(&all), text) } else { String::new() }
        };
        let text: String = webhooks.iter().zip(&whens).map(webhook).collect();
        let text = self.families.lines(&all, None, self.head(phase, DECLARED_NAME) + &text);
        self.families.may(&all).then(|| format!("{GENERATED_FOR_DECLARED}{text}"))
    }

    fn head(&self, phase: Phase, name: &str) -> String {
        let kind = match phase {
            Phase::Mutate => "MutatingWebhookConfiguration",
            Phase::Validate => "ValidatingWebhookConfiguration",
        };
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  \
             labels:\n    app.kubernetes.io/name: portcullis\nwebhooks:\n"
        )
    }

    fn webhook(&self, webhook: &Webhook, conditions: &str, rules: &str) -> String {
        let (timeout, failure_policy) = self.policies(webhook);
        let reinvocation = match webhook.phase {
            Phase::Mutate => {
                "    # Another webhook may change the fields that this one reads; this one is idempotent.\n    \
                              reinvocationPolicy: IfNeeded\n"
            }
            Phase::Validate => "",
        };
        format!(
            "  - name: {name}\n    admissionReviewVersions: [v1, v1beta1]\n    sideEffects: None\n    \
             matchPolicy: Equivalent\n    timeoutSeconds: {timeout}\n    # {reason}\n    \
             failurePolicy: {failure_policy}\n{reinvocation}{client}{selector}{conditions}{rules}",
            name = webhook.name,
            reason = webhook.reason,
            client = self.client_config(webhook.phase),
            selector = self.namespace_selector(),
        )
    }

    /// Returns the timeout and the failure policy of a webhook. In the templates of the Helm chart, these are template
    /// expressions such as `{{ .Values.webhooks.validate.failurePolicy }}`, which Helm replaces with chart values.
    fn policies(&self, webhook: &Webhook) -> (String, String) {
        if self.is_chart() {
            let value = |key: &str| format!("{{{{ .Values.webhooks.{}.{key} }}}}", webhook.key());
            return (value("timeoutSeconds"), value("failurePolicy"));
        }
        let failure_policy = if webhook.failure_policy.fails() { "Fail" } else { "Ignore" };
        (webhook.timeout_seconds.to_string(), failure_policy.to_owned())
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

    /// Returns a selector that excludes the namespace `kube-system` and the namespace of Portcullis. They are excluded
    /// because a cluster must be able to start without Portcullis.
    fn namespace_selector(&self) -> String {
        let further = if self.is_chart() { CHART_NAMESPACES } else { "" };
        format!(
            "    namespaceSelector:\n      matchExpressions:\n        - key: kubernetes.io/metadata.name\n          \
             operator: NotIn\n          values: [kube-system, {}]\n{further}",
            self.namespace
        )
    }

    /// Returns the match conditions of a webhook. They exclude objects that are being deleted, because their finalizers
    /// must be removable. They also exclude deletions by the controllers that clean up after the deletion of a
    /// namespace or owner. `narrowed` contains further conditions, if the webhook needs only some of the requests.
    fn match_conditions(&self, rules: &[Rules], narrowed: Option<&Narrowed>) -> String {
        let when = |has: fn(&Rules) -> bool| When::either(rules.iter().filter(|rule| has(rule)).map(|rule| &rule.when));
        let deletes = when(|rules| rules.operations.contains(&Operation::Delete));
        let has_status = when(|rules| rules.resources.iter().any(|resource| resource.ends_with("/status")));
        let delete = self.families.words(&deletes, "request.operation == 'DELETE' || ");
        let status = "(has(request.subResource) && request.subResource == 'status') || ";
        let status = self.families.words(&has_status, status);
        let mut text = format!(
            "    matchConditions:\n      - name: not-being-deleted\n        expression: \
             \"{delete}{status}!has(object.metadata.deletionTimestamp)\"\n"
        );
        if self.families.may(&deletes) {
            text.push_str(&self.families.lines(&deletes, None, not_deleted_by_a_collector()));
        }
        text.push_str(&narrowed.map(narrowing_condition).unwrap_or_default());
        text
    }

    /// Returns the match conditions that divide the requests for a resource between a fail-closed and a fail-open
    /// webhook. Mutation and validation each have two such webhooks, because a webhook has only one failure policy.
    /// Deletions are not divided, because they have no object that a condition could read.
    fn share_conditions(&self, webhook: &Webhook, registry: &Registry) -> String {
        let (prefix, not) = if webhook.failure_policy.fails() { ("all-but", "!") } else { ("only", "") };
        // A deletion has no object that a condition could read.
        let deletes = webhook.rules(registry).iter().any(|rules| rules.operations.contains(&Operation::Delete));
        let delete = if deletes { "request.operation == 'DELETE' || " } else { "" };
        let share = |share: Share| {
            let (resource, MatchCondition { name, expression }) = (&share.resource, share.match_condition);
            let text = format!(
                "      - name: {prefix}-{name}-of-{resource}\n        expression: >-\n          \
                 {delete}request.resource.resource != '{resource}' ||\n          {not}({expression})\n"
            );
            if self.families.may(&share.when) { self.families.lines(&share.when, None, text) } else { String::new() }
        };
        webhook.shares(registry).into_iter().map(share).collect()
    }
}

fn not_deleted_by_a_collector() -> String {
    let users: Vec<_> = COLLECTORS.iter().map(|user| format!("'{user}'")).collect();
    format!(
        "      - name: not-deleted-by-a-collector\n        expression: >-\n          request.operation != 'DELETE' || \
         !(request.userInfo.username in\n          [{}])\n",
        users.join(",\n           ")
    )
}

fn narrowing_condition(narrowed: &Narrowed) -> String {
    let alternatives: Vec<_> = narrowed.when.iter().map(|when| format!("({when})")).collect();
    format!("      - name: worth-a-call\n        expression: >-\n          {}\n", alternatives.join(" ||\n          "))
}

/// Returns the name of a resource as YAML. `*` is quoted, because without quotes it would begin a YAML alias.
fn quoted(resource: &str) -> String {
    if resource == ANY { format!("\"{resource}\"") } else { resource.to_owned() }
}

impl Rules {
    fn yaml(&self) -> String {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.as_str()).collect();
        format!(
            "      - apiGroups: [\"{}\"]\n        apiVersions: [{}]\n        operations: [{}]\n        resources: [{}]\n",
            self.group,
            self.versions.join(", "),
            operations.join(", "),
            self.resources.iter().map(|resource| quoted(resource)).collect::<Vec<_>>().join(", "),
        )
    }
}
