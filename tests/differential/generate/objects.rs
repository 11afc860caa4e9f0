//! Generates Kubernetes objects.

use super::content;
use super::yaml::{Yaml, raw, text};
use crate::dice::Dice;

/// The identity of an object: API version, kind, name and namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectId {
    pub api: &'static str,
    pub kind: &'static str,
    pub name: String,
    pub namespace: Option<String>,
}

const KINDS: &[(&str, &str)] = &[
    ("v1", "ConfigMap"),
    ("v1", "ConfigMap"),
    ("v1", "ConfigMap"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "Deployment"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ServiceAccount"),
    ("v1", "Namespace"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("example.com/v1", "Widget"),
    ("example.com/v1", "ConfigMap"),
    ("batch/v1", "CronJob"),
    ("extensions/v1beta1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("networking.k8s.io/v1", "Ingress"),
    ("v1", "PersistentVolumeClaim"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("kustomize.config.k8s.io/v1alpha1", "Component"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
];
/// Names of objects.
pub const NAMES: &[&str] = &["x", "web", "db", "conf", "app-web", "web-x", "x.y"];
/// Names of namespaces.
pub const NAMESPACES: &[&str] = &["default", "prod", "dev", "web"];

const POD: &str = "
    metadata:
      labels: {app: web}
    spec:
      serviceAccountName: x
      containers:
      - name: main
        image: nginx:1.25
        env:
        - {name: A, value: \"1\"}
        - name: B
          valueFrom: {configMapKeyRef: {name: conf, key: a}}
        envFrom:
        - configMapRef: {name: x}
        - secretRef: {name: db}
      - {name: side, image: \"busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123\"}
      volumes:
      - {name: v, configMap: {name: web}}
";

impl ObjectId {
    /// Returns a random identity.
    pub fn random(dice: &mut Dice) -> Self {
        let (api, kind) = KINDS[dice.below(KINDS.len())];
        let namespace = dice.chance(20).then(|| dice.pick(NAMESPACES).to_owned());
        Self { api, kind, name: dice.pick(NAMES).to_owned(), namespace }
    }

    /// Returns a mapping with only `apiVersion`, `kind` and `metadata` of the object.
    pub fn header(&self) -> Yaml {
        let mut metadata = Yaml::Map(vec![("name".to_owned(), text(&self.name))]);
        if let Some(namespace) = &self.namespace {
            metadata = metadata.with("namespace", text(namespace));
        }
        super::yaml::map([("apiVersion", text(self.api)), ("kind", text(self.kind)), ("metadata", metadata)])
    }

    /// Returns the group, which is empty for the core API, and the version.
    pub fn group_version(&self) -> (&'static str, &'static str) {
        self.api.split_once('/').unwrap_or(("", self.api))
    }

    /// Returns the text of a manifest of the object, with random content.
    pub fn manifest(&self, dice: &mut Dice) -> String {
        format!("{}{}", self.head(dice), self.body(dice))
    }

    fn head(&self, dice: &mut Dice) -> String {
        let Yaml::Map(mut head) = self.header() else { return String::new() };
        if let Some((_, metadata)) = head.last_mut() {
            if dice.chance(25) {
                let labels = super::yaml::map([("app", text("web")), ("tier", text(dice.pick(&["a", "b", "on"])))]);
                *metadata = metadata.clone().with("labels", labels);
            }
            if dice.chance(10) {
                let (key, value) = ANNOTATIONS[dice.below(ANNOTATIONS.len())];
                let annotations = Yaml::Map(vec![(format!("\"{key}\""), raw(value))]);
                *metadata = metadata.clone().with("annotations", annotations);
            } else if dice.chance(2) {
                let texts = ["", "{}", "[]", "text", "{note: first}"];
                *metadata = metadata.clone().with("annotations", raw(dice.pick(&texts)));
            }
        }
        Yaml::Map(head).document(dice)
    }

    fn body(&self, dice: &mut Dice) -> String {
        match self.kind {
            _ if dice.chance(4) => mapping_with_unusual_keys(dice),
            _ if dice.chance(5) => content::anchored(dice, self),
            _ if dice.chance(50) => match content::body(dice, self, content::Usage::Object) {
                Some(body) => body.document(dice),
                None => self.plain_body(dice),
            },
            _ => self.plain_body(dice),
        }
    }

    fn plain_body(&self, dice: &mut Dice) -> String {
        match self.kind {
            "ConfigMap" => dice
                .pick(&["data: {a: b}\n", "data:\n  a: b\n  c: \"1\"\n", "", "data: {on: yes, a: 0777}\n", "data: null\n"])
                .to_owned(),
            "Secret" => dice.pick(&["stringData: {a: b}\n", "data: {a: Yg==}\n", "type: Opaque\n"]).to_owned(),
            "Service" => "spec:\n  selector: {app: web}\n  ports: [{port: 80, name: http}]\n".to_owned(),
            "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController" => {
                let replicas = dice.pick(&["  replicas: 1\n", ""]);
                let selector = dice.pick(&["  selector: {matchLabels: {app: web}}\n", ""]);
                format!("spec:\n{replicas}{selector}  template:{POD}")
            }
            "CronJob" => "spec:\n  schedule: '* * * * *'\n  jobTemplate: {spec: {suspend: true}}\n".to_owned(),
            "ClusterRole" => "rules: [{apiGroups: [''], resources: [pods], resourceNames: [x], verbs: [get]}]\n".to_owned(),
            "RoleBinding" | "ClusterRoleBinding" => {
                let kind = dice.pick(&["ClusterRole", "Role"]);
                let subject = dice.pick(&["{kind: ServiceAccount, name: x, namespace: default}", "{kind: ServiceAccount, name: default}", "{kind: User, name: u}"]);
                format!("roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: web}}\nsubjects:\n- {subject}\n")
            }
            "CustomResourceDefinition" => "spec: {group: example.com, names: {kind: Widget, plural: widgets}, scope: Cluster}\n".to_owned(),
            "Ingress" => "spec:\n  rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]\n".to_owned(),
            "HorizontalPodAutoscaler" => "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}\n".to_owned(),
            "ValidatingWebhookConfiguration" => "webhooks:\n- name: a.b.c\n  clientConfig: {service: {name: web, namespace: default}}\n".to_owned(),
            "Widget" => dice.pick(&["spec: {size: 1}\n", "spec:\n  list: [{name: a, value: 1}, {name: b}]\n", ""]).to_owned(),
            _ => String::new(),
        }
    }
}

/// Returns the text of mappings with unusual keys: keys that are not strings, that look like other types, or that occur
/// twice.
fn mapping_with_unusual_keys(dice: &mut Dice) -> String {
    let keys = [
        "1",
        "0x1F",
        "true",
        "yes",
        "~",
        "1.5",
        "2001-01-01",
        "2024-13-01",
        "[a]",
        "\"1\"",
        "<<",
        "!!str 1",
        "0o8",
        "1e3",
    ];
    let key = dice.pick(&keys);
    match dice.below(6) {
        0 => format!("data: {{a: b, {key}: c}}\n"),
        1 => format!("data: {{\"1\": a, {key}: c}}\n"),
        2 => "data: {a: b, a: c}\n".to_owned(),
        3 => format!("list: [{{{key}: c}}]\n"),
        4 => format!("{key}: c\n"),
        _ => format!("more: &more {{{key}: c}}\ndata: {{<<: *more, a: b}}\n"),
    }
}

const ANNOTATIONS: &[(&str, &str)] = &[
    ("note", "hello"),
    ("note", "yes"),
    ("config.kubernetes.io/local-config", "\"true\""),
    ("internal.config.kubernetes.io/previousNames", "old"),
    ("kustomize.config.k8s.io/needs-hash", "\"true\""),
    ("kustomize.config.k8s.io/behavior", "merge"),
];

/// Returns the text of a file with manifests of these objects, in one of several layouts.
pub fn manifests(dice: &mut Dice, objects: &[ObjectId]) -> String {
    let documents: Vec<String> = objects.iter().map(|object| object.manifest(dice)).collect();
    match dice.below(12) {
        0 => list_of(&documents, "v1", "List"),
        1 if documents.len() == 1 => format!("---\n{}---\n", documents[0]),
        2 => documents.iter().map(|document| format!("# comment\n---\n{document}...\n")).collect(),
        3 if objects.iter().all(|object| object.kind == "ConfigMap") => list_of(&documents, "v1", "ConfigMapList"),
        _ => documents.join("---\n"),
    }
}

fn list_of(documents: &[String], api: &str, kind: &str) -> String {
    let mut list = format!("apiVersion: {api}\nkind: {kind}\nitems:\n");
    for document in documents {
        for (number, line) in document.lines().enumerate() {
            list.push_str(&format!("{} {line}\n", if number == 0 { "-" } else { " " }));
        }
    }
    list
}
