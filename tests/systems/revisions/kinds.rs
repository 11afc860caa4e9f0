//! The kinds of the objects in generated trees.

/// A kind, with a manifest that the API server accepts.
pub struct Template {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The API versions in manifests. An object can have different API versions in the two revisions of a test.
    pub versions: &'static [&'static str],
    pub kind: &'static str,
    /// The plural name of the kind, as in URLs.
    pub plural: &'static str,
    pub namespaced: bool,
    /// The YAML fields of the manifest after `metadata`. The text `$VALUE` stands for a number.
    body: &'static str,
}

/// The templates of all kinds. In generated trees, objects of the first kind are more frequent than others.
pub const TEMPLATES: [Template; 19] = [
    template("", "ConfigMap", "configmaps", "data: {key: '$VALUE'}\n"),
    template("", "ServiceAccount", "serviceaccounts", ""),
    template("", "Secret", "secrets", "stringData: {key: 'v$VALUE'}\n"),
    template("", "Service", "services", "spec: {selector: {app: a}, ports: [{name: web, port: 80}]}\n"),
    template(
        "apps",
        "Deployment",
        "deployments",
        "spec:\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec: {containers: [{name: a, \
         image: 'a:$VALUE'}]}\n",
    ),
    template(
        "apps",
        "StatefulSet",
        "statefulsets",
        "spec:\n  serviceName: a\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec: \
         {containers: [{name: a, image: 'a:$VALUE'}]}\n",
    ),
    template(
        "batch",
        "CronJob",
        "cronjobs",
        "spec:\n  schedule: '0 0 * * *'\n  jobTemplate:\n    spec:\n      template:\n        spec: {restartPolicy: Never, containers: \
         [{name: a, image: 'a:$VALUE'}]}\n",
    ),
    template("networking.k8s.io", "NetworkPolicy", "networkpolicies", "spec: {podSelector: {}}\n"),
    template(
        "networking.k8s.io",
        "Ingress",
        "ingresses",
        "spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}\n",
    ),
    template("rbac.authorization.k8s.io", "Role", "roles", "rules: []\n"),
    template("policy", "PodDisruptionBudget", "poddisruptionbudgets", "spec: {minAvailable: 1}\n"),
    template(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
    ),
    template("", "LimitRange", "limitranges", "spec: {limits: []}\n"),
    Template {
        versions: &["v2", "v1"],
        ..template(
            "autoscaling",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}\n",
        )
    },
    template("example.org", "Widget", "widgets", "spec: {size: $VALUE}\n"),
    of_cluster(template("example.org", "Gadget", "gadgets", "spec: {size: $VALUE}\n")),
    of_cluster(template("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", "rules: []\n")),
    of_cluster(template("scheduling.k8s.io", "PriorityClass", "priorityclasses", "value: 7\n")),
    of_cluster(template("", "Namespace", "namespaces", "")),
];

/// The CRDs of the kinds in [`TEMPLATES`] that are not built into Kubernetes.
pub const DEFINITIONS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

const fn template(group: &'static str, kind: &'static str, plural: &'static str, body: &'static str) -> Template {
    Template { group, versions: &["v1"], kind, plural, namespaced: true, body }
}

const fn of_cluster(template: Template) -> Template {
    Template { namespaced: false, ..template }
}

impl Template {
    /// Returns the YAML fields of the manifest after `metadata`, with `value` in place of `$VALUE`.
    pub fn body(&self, value: u64) -> String {
        self.body.replace("$VALUE", &value.to_string())
    }

    /// Returns the `apiVersion` of a manifest, such as `apps/v1`. `version` is an index in `versions`. An index that
    /// is too large wraps around to the start of the list.
    pub fn api_version(&self, version: usize) -> String {
        let version = self.versions[version % self.versions.len()];
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}

/// Returns the template of a resource. `plural` is the plural name of the kind.
pub fn of_resource(group: &str, plural: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| (template.group, template.plural) == (group, plural))
}

/// Returns the template of a kind.
pub fn of_kind(group: &str, kind: &str) -> Option<&'static Template> {
    TEMPLATES.iter().find(|template| (template.group, template.kind) == (group, kind))
}
