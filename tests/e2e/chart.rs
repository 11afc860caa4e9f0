//! Tests of the chart: its rendering by Helm, its acceptance by the API server, and the life cycle of a release.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use portcullis::gate::Registry;
use portcullis::rule::Mode;
use portcullis::{config, yaml};
use serde_json::{Map, Value, json};

use crate::Case;
use crate::context::Context;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::deadline::deadline;
use crate::gate;
use crate::helm::{Helm, NAMESPACE, RELEASE, Rendered, list};
use crate::http;
use crate::sentences::{accepts, eventually, rejects};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("chart::the_chart_passes_helm_lint", the_chart_passes_helm_lint),
    ("chart::two_renderings_are_identical", two_renderings_are_identical),
    (
        "chart::the_chart_renders_the_objects_of_portcullis_manifests",
        the_chart_renders_the_objects_of_portcullis_manifests,
    ),
    (
        "chart::manifests_with_an_image_contain_the_objects_of_the_chart",
        manifests_with_an_image_contain_the_objects_of_the_chart,
    ),
    ("chart::the_api_server_accepts_every_rendering", the_api_server_accepts_every_rendering),
    ("chart::rejects_unknown_values_at_every_level", rejects_unknown_values),
    ("chart::rejects_conflicting_values", rejects_conflicting_values),
    (
        "chart::routes_deploy_items_to_the_dry_run_deployer_if_it_is_enabled",
        routes_deploy_items_to_the_dry_run_deployer,
    ),
    ("chart::pods_run_with_minimal_privileges", pods_run_with_minimal_privileges),
    ("chart::a_server_with_one_family_runs_with_the_rights_of_the_family", a_server_with_one_family_runs),
    ("chart::self_managed_servers_get_the_tested_rights", self_managed_servers_get_the_tested_rights),
    ("chart::audits_use_the_configuration", audits_use_the_configuration),
    ("chart::the_registration_does_not_depend_on_certificate_way", the_registration_does_not_depend_on_certificate_way),
    ("chart::the_server_restores_the_secret_with_the_state_of_its_ca", restores_the_state_of_the_ca),
    ("chart::applies_every_value_that_users_of_other_charts_expect", applies_every_expected_value),
    ("chart::rejects_an_image_with_a_tag_in_its_repository", rejects_a_tag_in_the_repository),
    ("chart::gives_the_permissions_to_an_existing_service_account", uses_an_existing_service_account),
    ("chart::checks_configuration_and_arguments_before_anything_changes", checks_configuration_and_arguments),
    ("chart::restarts_pods_only_for_changes_that_they_do_not_reload", restarts_pods_only_where_needed),
    ("chart::verify_reports_which_server_answers", verify_reports_which_server_answers),
    (
        "chart::the_manifests_of_the_kind_test_are_judged_as_expected",
        the_manifests_of_the_kind_test_are_judged_as_expected,
    ),
];

/// Tests that must run last, because they delete the webhook configurations of portcullis.
pub const LAST: &[Case] = &[("chart::unregister_deletes_the_webhook_configurations", unregister)];

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const VALUES: &str = include_str!("../../charts/portcullis/values.yaml");
/// The kinds of cert-manager and their plural names. The tests define these kinds with CRDs that accept any content.
const CERT_MANAGER: [(&str, &str); 2] = [("Issuer", "issuers"), ("Certificate", "certificates")];

fn helm() -> Helm {
    Helm::find().expect("Helm is installed")
}

/// Returns the chart values for each way to issue certificates.
fn certificate_ways() -> [Value; 4] {
    [
        json!({"certificate": {"way": "self-managed"}}),
        json!({"certificate": {"way": "cert-manager"}}),
        json!({"certificate": {"way": "cert-manager", "issuerRef": {"name": "ours", "kind": "ClusterIssuer"}}}),
        json!({"certificate": {"way": "secret", "caBundle": "QQ=="}}),
    ]
}

/// Returns all combinations of rule families that contain at least one family.
fn family_combinations() -> Vec<Vec<&'static str>> {
    let families = Registry::standard().families();
    let chosen = |bits: usize| families.iter().enumerate().filter(move |(at, _)| bits & (1 << at) != 0);
    (1..1 << families.len()).map(|bits| chosen(bits).map(|(_, family)| *family).collect()).collect()
}

/// Returns chart values that enable only the rule families `on`, and the optional controllers that belong to these
/// families. The values also enable audits and the check of stored Kustomizations.
fn values_for_families(on: &[&str]) -> Value {
    let all = Registry::standard().families();
    let families: Map<_, _> = all.into_iter().map(|one| (one.to_owned(), json!(on.contains(&one)))).collect();
    let controllers = [("composites", "EN"), ("dry-run-deployer", "DR"), ("overwrite-trees", "OW")];
    let controllers: Vec<_> =
        controllers.iter().filter(|(_, family)| on.contains(family)).map(|(name, _)| *name).collect();
    json!({
        "families": families,
        "storedKustomizations": true,
        "companion": {"controllers": controllers},
        "audit": {"enabled": true},
    })
}

fn merge(mut values: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().expect("values are an object") {
        values[key] = value.clone();
    }
    values
}

fn the_chart_passes_helm_lint(_: &Context) {
    let helm = helm();
    for values in certificate_ways() {
        let output = helm.lint(&values).expect("Helm runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Checks that the chart renders the same output twice, so that the output does not depend on time or chance.
fn two_renderings_are_identical(_: &Context) {
    let helm = helm();
    for values in certificate_ways() {
        let render = || helm.template(&values).expect("Helm runs").stdout;
        let (first, second) = (render(), render());
        assert!(!first.is_empty() && first == second, "{values}");
    }
}

/// Checks that the chart and `portcullis manifests` write the same objects, for every combination of families and for
/// every way to issue certificates.
fn the_chart_renders_the_objects_of_portcullis_manifests(_: &Context) {
    let helm = helm();
    for families in family_combinations() {
        let rendered = helm.render(&values_for_families(&families)).expect("Helm renders the chart");
        assert_same_objects(&rendered, &families);
    }
    let all = Registry::standard().families();
    for way in certificate_ways() {
        assert_same_objects(
            &helm.render(&merge(values_for_families(&all), &way)).expect("Helm renders the chart"),
            &all,
        );
    }
}

#[track_caller]
fn assert_same_objects(rendered: &Rendered, families: &[&str]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let mut command = Command::new(BINARY);
    command.args(["manifests", "--families", &families.join(","), "--out"]).arg(folder.path());
    assert!(command.status().expect("portcullis runs").success());
    let written = by_name(read_objects(folder.path()).into_iter());
    let rendered = by_name(rendered.objects.iter().filter(|object| is_written_by_manifests(object)).cloned());
    assert_eq!(rendered.keys().collect::<Vec<_>>(), written.keys().collect::<Vec<_>>(), "{families:?}");
    for (name, object) in &written {
        assert_eq!(&rendered[name], object, "{families:?}: {name}");
    }
}

/// Returns whether `portcullis manifests` writes this object of the chart. `portcullis manifests` writes no
/// Deployments, Services or similar objects, and no rights for certificates.
fn is_written_by_manifests(object: &Value) -> bool {
    const KINDS: [&str; 6] =
        ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"];
    let kind = object["kind"].as_str().unwrap_or_default();
    let is_of_certificates = object["metadata"]["name"] == "portcullis-certificates";
    (KINDS.contains(&kind) || kind.ends_with("WebhookConfiguration")) && !is_of_certificates
}

/// Checks that `portcullis manifests --image` writes all objects of the chart, except for NetworkPolicies and the
/// Secret of the server, and that the API server accepts these objects.
fn manifests_with_an_image_contain_the_objects_of_the_chart(ctx: &Context) {
    let (helm, all) = (helm(), Registry::standard().families());
    for families in [all.clone(), vec!["OW"], vec!["DR"], vec!["KZ"]] {
        let on: Map<_, _> = all.iter().map(|one| ((*one).to_owned(), json!(families.contains(one)))).collect();
        let image = json!({"repository": "registry.example/portcullis", "tag": "1"});
        let values = json!({"families": on, "image": image, "networkPolicy": {"enabled": false}});
        let rendered = helm.render(&values).expect("Helm renders the chart").objects;
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let mut command = Command::new(BINARY);
        command.args([
            "manifests",
            "--image=registry.example/portcullis:1",
            "--families",
            &families.join(","),
            "--out",
        ]);
        assert!(command.arg(folder.path()).status().expect("portcullis runs").success());
        let folders =
            ["1-prerequisites", "2-permissions", "3-server", "4-webhooks"].map(|name| folder.path().join(name));
        let is_of_release = |object: &Value| object["kind"] != "Secret";
        let expected = by_name(rendered.into_iter().filter(is_of_release).map(without_labels));
        let written =
            folders.iter().flat_map(|folder| read_objects(folder)).filter(|object| object["kind"] != "Namespace");
        let written = by_name(written.map(without_labels));
        assert_eq!(written.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{families:?}");
        for (name, object) in &expected {
            assert_eq!(&written[name], object, "{families:?}: {name}");
        }
        for folder in folders {
            let apply = [
                "apply",
                "--server-side",
                "--force-conflicts",
                "--dry-run=server",
                "-f",
                &folder.display().to_string(),
            ];
            ctx.cluster.kubectl().args(apply).run().expect_success();
        }
    }
}

/// Removes labels that differ between the chart and `portcullis manifests`, such as the version of the chart.
fn without_labels(mut object: Value) -> Value {
    let labels = ["app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"];
    if let Some(pod_labels) = object.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut) {
        labels.iter().for_each(|label| drop(pod_labels.remove(*label)));
    }
    let is_derived = object["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("WebhookConfiguration") || kind == "CustomResourceDefinition");
    let metadata = object["metadata"].as_object_mut().expect("the object has metadata");
    if !is_derived {
        metadata.remove("labels");
    }
    object
}

/// Returns the objects by kind and name. Removes annotations, caBundles and empty lists of rules from webhook
/// configurations.
fn by_name(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let named = |mut object: Value| {
        if object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration")) {
            object["metadata"].as_object_mut().expect("the object has metadata").remove("annotations");
            for webhook in object["webhooks"].as_array_mut().expect("the configuration has webhooks") {
                webhook["clientConfig"].as_object_mut().expect("the webhook has a clientConfig").remove("caBundle");
                if webhook["rules"].as_array().is_none_or(Vec::is_empty) {
                    webhook.as_object_mut().expect("the webhook is an object").remove("rules");
                }
            }
        }
        (format!("{} {}", object["kind"], object["metadata"]["name"]), object)
    };
    objects.map(named).collect()
}

fn read_objects(folder: &std::path::Path) -> Vec<Value> {
    let mut objects = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            objects.extend(read_objects(&path));
        } else {
            let text = fs::read_to_string(path).expect("the file can be read");
            let documents = yaml::read(&text, &yaml::Limits::default()).expect("the text is YAML");
            objects.extend(documents.into_iter().map(|document| document.value));
        }
    }
    objects
}

/// Checks that the API server accepts the objects of the chart. Renders the chart for each way to issue the serving
/// certificate, with all rule families and with each family alone. Then renders it once more, with a value for almost
/// every setting of the chart.
fn the_api_server_accepts_every_rendering(ctx: &Context) {
    CERT_MANAGER.into_iter().for_each(|(kind, plural)| define_kind(ctx, "cert-manager.io", kind, plural));
    let helm = helm();
    let all = Registry::standard().families();
    let choices = all.iter().map(|family| vec![*family]).chain([all.clone()]);
    for families in choices {
        for way in certificate_ways() {
            assert_accepted(
                ctx,
                &helm.render(&merge(values_for_families(&families), &way)).expect("Helm renders the chart"),
                &way,
            );
        }
    }
    let all_values = json!({
        "certificate": {"way": "self-managed"}, "shadow": true, "audit": {"enabled": true, "interval": "30m"},
        "clientCertificates": {"configMapName": "clients", "names": ["kube-apiserver", "system:apiserver"]},
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
        "imagePullSecrets": [{"name": "registry"}], "nodeSelector": {"a": "b"}, "podAnnotations": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "image": {"digest": format!("sha256:{}", "0".repeat(64))}, "arguments": ["--max-in-flight=10"],
        "traces": {"endpoint": "http://collector.observability:4318", "secretName": "collector"},
        "networkPolicy": {
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "apiServer": {"cidrs": ["10.0.0.1/32"], "ports": [6443]},
            "traces": {"to": [{"podSelector": {"matchLabels": {"app": "collector"}}}]},
        },
        "config": {"rules": {"OW": "warn"}, "namespaces": [{"names": ["a-*"], "rules": {"OW": "deny"}}]},
    });
    let rendered = helm.render(&merge(values_for_families(&all), &all_values)).expect("Helm renders the chart");
    assert_accepted(ctx, &rendered, &all_values);
    let arguments = rendered.arguments(RELEASE).join(" ");
    let expected = "--self-managed=portcullis-system/portcullis-ca --server-name=portcullis.portcullis-system.svc \
                  --client-ca=/etc/portcullis/clients/ca.crt --client-name=kube-apiserver --client-name=system:apiserver \
                  --shadow --otlp-endpoint=http://collector.observability:4318";
    assert!(arguments.contains(expected), "{arguments}");
    assert!(rendered.arguments("portcullis-companion").contains(&"--audit=30m".to_owned()));
    let env = &rendered.find("Deployment", RELEASE)["spec"]["template"]["spec"]["containers"][0]["env"];
    let variable = |name: &str| {
        env.as_array().into_iter().flatten().find(|one| one["name"] == name).expect("the environment variable is set")
    };
    let attributes = format!("k8s.namespace.name={NAMESPACE},k8s.pod.name=$(POD_NAME)");
    assert_eq!(variable("OTEL_RESOURCE_ATTRIBUTES")["value"], attributes);
    let headers = json!({"secretKeyRef": {"name": "collector", "key": "headers"}});
    assert_eq!(variable("OTEL_EXPORTER_OTLP_HEADERS")["valueFrom"], headers);
    let egress = &rendered.find("NetworkPolicy", RELEASE)["spec"]["egress"];
    let to_collector = json!({"ports": [{"port": 4318}], "to": all_values["networkPolicy"]["traces"]["to"]});
    assert!(egress.as_array().is_some_and(|rules| rules.contains(&to_collector)), "{egress}");
}

#[track_caller]
fn assert_accepted(ctx: &Context, rendered: &Rendered, values: &Value) {
    let objects = [&rendered.objects[..], &rendered.hooks].concat();
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"];
    let output = ctx.cluster.kubectl().args(apply).stdin(list(&objects)).run();
    assert!(output.status.success() && !output.stderr.contains("Warning"), "{values}\n{output}");
}

fn define_kind(ctx: &Context, group: &str, kind: &str, plural: &str) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
        },
    });
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(definition.to_string()).run().expect_success();
    eventually(|| {
        let get = ["get", &format!("{plural}.{group}"), "--namespace", NAMESPACE];
        ctx.cluster.kubectl().args(get).run().status.success().then_some(())
    });
}

/// Checks that Helm rejects an unknown key in every map of the values.
fn rejects_unknown_values(_: &Context) {
    let helm = helm();
    let values = yaml::read(VALUES, &yaml::Limits::default()).expect("the text is YAML").remove(0).value;
    let mut pointers = Vec::new();
    collect_map_pointers(&values, "", &mut pointers);
    assert!(pointers.len() > 20, "{pointers:?}");
    for pointer in pointers {
        let mut values_with_unknown_key = values.clone();
        // Some maps accept any key, but none of them accepts an empty list as a value.
        values_with_unknown_key.pointer_mut(&pointer).expect("the value exists")["unknown"] = json!([]);
        let output = helm.template(&values_with_unknown_key).expect("Helm runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("schema"), "{pointer}: {stderr}");
    }
}

fn collect_map_pointers(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
    if let Some(members) = value.as_object() {
        pointers.push(pointer.to_owned());
        members.iter().for_each(|(key, member)| collect_map_pointers(member, &format!("{pointer}/{key}"), pointers));
    }
}

fn rejects_conflicting_values(_: &Context) {
    let helm = helm();
    let disabled: Map<_, _> =
        Registry::standard().families().into_iter().map(|one| (one.to_owned(), json!(false))).collect();
    for (values, expected) in [
        (json!({"families": disabled}), "families: all are off"),
        (
            json!({"families": {"OW": false}, "companion": {"controllers": ["overwrite-trees"]}}),
            "companion.controllers: overwrite-trees belongs to the family OW, which families.OW switches off",
        ),
        (json!({"certificate": {"way": "secret"}}), "certificate.caBundle: "),
        (json!({"clientCertificates": {"names": ["a"]}}), "clientCertificates.names: "),
        (json!({"audit": {"enabled": true}, "companion": {"enabled": false}}), "audit.enabled: "),
        (
            json!({"config": {"rules": {"KZ999": "warn"}}}),
            "at '/config/rules': additional properties 'KZ999' not allowed",
        ),
        (
            json!({"config": {"mutators": {"other": "off"}}}),
            "at '/config/mutators': additional properties 'other' not allowed",
        ),
    ] {
        let output = helm.template(&values).expect("Helm runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(expected), "{values}: {stderr}");
    }
}

/// Checks that DeployItems in dry run are routed to the dry-run deployer if this deployer is enabled. Regression test
/// for issue 18: the dry-run deployer ran beside real deployers, and nothing prevented the real deployers from
/// processing these DeployItems.
fn routes_deploy_items_to_the_dry_run_deployer(_: &Context) {
    let rendered = |values: &Value| {
        let objects = helm().render(values).expect("Helm renders the chart").objects;
        let configuration =
            objects.iter().find_map(|object| object["data"]["portcullis.yaml"].as_str().map(str::to_owned));
        let policy = config::parse(
            &configuration.expect("the ConfigMap has a configuration file"),
            "the chart",
            &Registry::standard(),
        );
        let mode = policy.expect("the configuration is valid").modes.get("dry-run").copied();
        let manager = objects.iter().find(|object| {
            object["kind"] == "Deployment"
                && object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-companion"))
        });
        let arguments = manager.map(|object| object["spec"]["template"]["spec"]["containers"][0]["args"].to_string());
        (mode, arguments.unwrap_or_default().matches("--dry-run-type=").count())
    };
    let with_deployer = json!({"controllers": ["dry-run-deployer"]});
    assert_eq!(rendered(&json!({})), (None, 0));
    assert_eq!(rendered(&json!({"companion": with_deployer})), (Some(Mode::Apply), 0));
    let types = json!({"dryRun": {"types": ["example.org/a", "example.org/b"]}});
    assert_eq!(rendered(&json!({"companion": with_deployer, "config": types})), (Some(Mode::Apply), 2));
    let annotate_only = json!({"mutators": {"dry-run": "annotate"}});
    assert_eq!(rendered(&json!({"companion": with_deployer, "config": annotate_only})), (Some(Mode::Annotate), 0));
}

fn pods_run_with_minimal_privileges(_: &Context) {
    let rendered =
        helm().render(&values_for_families(&Registry::standard().families())).expect("Helm renders the chart");
    let pods: Vec<_> = rendered.objects.iter().chain(&rendered.hooks).filter_map(pod_spec).collect();
    assert_eq!(pods.len(), 5, "expected the pods of the server, the controller manager and three Jobs");
    for pod in pods {
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true);
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
        for container in pod["containers"].as_array().expect("a pod has containers") {
            let context = &container["securityContext"];
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
            assert!(container["resources"]["limits"]["memory"].is_string());
        }
    }
}

fn pod_spec(object: &Value) -> Option<Value> {
    let has_pod_template = ["Deployment", "Job"].iter().any(|kind| object["kind"] == *kind);
    has_pod_template.then(|| object["spec"]["template"]["spec"].clone())
}

/// Checks that the chart grants a server with a self-managed CA the same rights that the tests in `self_managed` use,
/// and sets the arguments for a self-managed CA.
fn self_managed_servers_get_the_tested_rights(_: &Context) {
    let rendered = helm().render(&json!({"certificate": {"way": "self-managed"}})).expect("Helm renders the chart");
    let tested: Vec<Value> = yaml::read(include_str!("../../certs/self-managed.yaml"), &yaml::Limits::default())
        .expect("the text is YAML")
        .into_iter()
        .map(|document| document.value)
        .collect();
    for kind in ["Role", "ClusterRole"] {
        let tested = tested.iter().find(|object| object["kind"] == kind).expect("the manifests contain the role");
        let sorted = |rules: &Value| {
            let mut rules = rules.as_array().expect("a role has rules").clone();
            let lists =
                rules.iter_mut().flat_map(|rule| rule.as_object_mut().expect("a rule is an object").values_mut());
            lists.for_each(|list| {
                list.as_array_mut().expect("the rule consists of lists").sort_by_key(Value::to_string)
            });
            rules
        };
        let rules = &rendered.find(kind, "portcullis-certificates")["rules"];
        assert_eq!(sorted(rules), sorted(&tested["rules"]), "{kind}");
    }
    let server = rendered.find("Deployment", RELEASE);
    let arguments =
        server["spec"]["template"]["spec"]["containers"][0]["args"].as_array().expect("the container has arguments");
    for argument in ["--self-managed=portcullis-system/portcullis-ca", "--server-name=portcullis.portcullis-system.svc"]
    {
        assert!(arguments.iter().any(|one| one == argument), "{arguments:?}");
    }
}

/// Checks the arguments that the chart passes to the controller manager. They must be valid, and `--config` must be the
/// path of the configuration file that the server also reads.
fn audits_use_the_configuration(_: &Context) {
    let rendered = helm().render(&json!({"audit": {"enabled": true}})).expect("Helm renders the chart");
    let pod = &rendered.find("Deployment", &format!("{RELEASE}-companion"))["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments: Vec<_> = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let config = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--config="))
        .expect("the arguments contain --config");
    let mount = container["volumeMounts"][0]["mountPath"].as_str().expect("the volume is mounted");
    assert!(config.starts_with(mount) && pod["volumes"][0]["configMap"]["name"] == RELEASE, "{pod}");
    let output =
        Command::new(BINARY).args(&arguments).args(["--kubeconfig", "/nowhere"]).output().expect("portcullis runs");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("/nowhere"),
        "the arguments must be valid, and only the kubeconfig missing: {output:?}"
    );
}

/// Checks that the hook for installations and upgrades accepts valid configuration and arguments, and rejects unknown
/// flags. Before the chart had this hook (issue 21), Helm accepted an unknown flag or rule, and the next Pod did not
/// start.
fn checks_configuration_and_arguments(_: &Context) {
    let all_values = merge(
        values_for_families(&Registry::standard().families()),
        &json!({
            "config": {"rules": {"OW": "warn"}, "artifactHosts": ["minio.tools:9000"]}, "shadow": true,
        }),
    );
    let unknown_flag = merge(all_values.clone(), &json!({"arguments": ["--max-inflight=5"]}));
    let manager_values = json!({"arguments": ["--namespaces=a"], "controllers": []});
    let unknown_manager_flag = merge(all_values.clone(), &json!({"companion": manager_values}));
    for (values, expected) in [(all_values, [0, 0]), (unknown_flag, [1, 0]), (unknown_manager_flag, [0, 1])] {
        let rendered = helm().render(&values).expect("Helm renders the chart");
        let hook = |kind: &str| {
            let mut hooks = rendered.hooks.iter();
            hooks
                .find(|hook| hook["kind"] == kind && hook["metadata"]["name"] == "portcullis-check-config")
                .expect("the chart has the hook")
        };
        let (job, config) = (hook("Job"), hook("ConfigMap"));
        assert_eq!(job["metadata"]["annotations"]["helm.sh/hook"], "pre-install,pre-upgrade");
        assert_eq!(
            config["data"],
            rendered.find("ConfigMap", RELEASE)["data"],
            "the hook must check the new configuration"
        );
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be created");
        fs::write(
            file.path(),
            config["data"]["portcullis.yaml"].as_str().expect("the ConfigMap has a configuration file"),
        )
        .expect("the file can be written");
        let containers = job["spec"]["template"]["spec"]["containers"].as_array().expect("the Job has containers");
        let codes: Vec<_> = containers.iter().map(|container| run_container(container, file.path())).collect();
        assert_eq!(codes, expected.map(Some), "{values}");
    }
}

/// Runs the command of a container on this machine, with `config` instead of the mounted configuration file. Returns
/// the exit code.
fn run_container(container: &Value, config: &std::path::Path) -> Option<i32> {
    let arguments = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mounted = "/etc/portcullis/config/portcullis.yaml";
    let local_arguments =
        arguments.map(|argument| if argument == mounted { config.as_os_str().into() } else { argument.into() });
    let local_arguments: Vec<std::ffi::OsString> = local_arguments.collect();
    Command::new(BINARY).args(local_arguments).output().expect("portcullis runs").status.code()
}

/// Checks that a change of the configuration does not restart Pods that reload the configuration. The controller
/// manager reads some values, such as `artifactHosts`, only when it starts, so a change of these values restarts its
/// Pods.
fn restarts_pods_only_where_needed(_: &Context) {
    let templates = |config: Value| {
        let rendered =
            helm().render(&json!({"audit": {"enabled": true}, "config": config})).expect("Helm renders the chart");
        [RELEASE, "portcullis-companion"].map(|name| rendered.find("Deployment", name)["spec"]["template"].clone())
    };
    let [server, manager] = templates(json!({}));
    assert_eq!(templates(json!({"rules": {"OW": "warn"}, "composites": ["*"]})), [server.clone(), manager.clone()]);
    let [server_again, changed_manager] = templates(json!({"artifactHosts": ["minio.tools:9000"]}));
    assert_eq!(server_again, server);
    assert_ne!(changed_manager, manager);
}

/// Checks that the webhook configurations of the chart are the same for every way to issue certificates. Issue 21,
/// point 2: Helm never writes a caBundle, so Helm does not conflict with the server, and does not remove the caBundle
/// that the server has written.
fn the_registration_does_not_depend_on_certificate_way(_: &Context) {
    let registration = |way: &Value| {
        let rendered = helm()
            .render(&merge(values_for_families(&Registry::standard().families()), way))
            .expect("Helm renders the chart");
        let is_registration =
            |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"));
        rendered.objects.iter().filter(is_registration).cloned().collect::<Vec<_>>()
    };
    let all = certificate_ways().map(|way| registration(&way));
    assert!(all.iter().all(|one| *one == all[0]) && all[0].len() == 4);
    let webhooks =
        all[0].iter().flat_map(|object| object["webhooks"].as_array().expect("the configuration has webhooks"));
    assert!(webhooks.into_iter().all(|webhook| webhook["clientConfig"]["caBundle"].is_null()));
    assert!(
        all[0].iter().all(|object| object["metadata"]["annotations"].is_null()),
        "cert-manager must not inject a caBundle"
    );
}

/// Deletes the Secret `portcullis-ca`, which contains the CAs that servers use. Checks that the server creates the
/// Secret again, with the same CA. The certificate of this server is mounted from a file.
fn restores_the_state_of_the_ca(ctx: &Context) {
    let secret = ["secret", "portcullis-ca", "--namespace", NAMESPACE];
    let state = || {
        let output = ctx.cluster.kubectl().args(["get"]).args(secret).args(["-o", "jsonpath={.data}"]).run();
        output.status.success().then(|| serde_json::from_str::<Value>(&output.stdout).unwrap_or_default())
    };
    let confirmed_ca = |state: Value| {
        (state["old.crt"].is_string() && state["old.confirmed"].is_string()).then(|| state["old.crt"].clone())
    };
    let before = eventually(|| state().and_then(confirmed_ca));
    ctx.cluster.kubectl().args(["delete"]).args(secret).run().expect_success();
    assert_eq!(eventually(|| state().and_then(confirmed_ca)), before);
}

/// Checks the chart values that are common in other charts, such as `affinity`, `extraEnv` and common labels (issue 21,
/// point 8). Renders the chart with each `certificate.way`. Checks that the API server accepts the objects, and that
/// all objects and Pods have the common labels.
fn applies_every_expected_value(ctx: &Context) {
    CERT_MANAGER.into_iter().for_each(|(kind, plural)| define_kind(ctx, "cert-manager.io", kind, plural));
    define_monitors(ctx);
    let values = expected_values();
    for way in certificate_ways() {
        let rendered = helm().render(&merge(values.clone(), &way)).expect("Helm renders the chart");
        assert_accepted(ctx, &rendered, &values);
        for object in rendered.objects.iter().chain(&rendered.hooks) {
            let labels = |object: &Value| object["metadata"]["labels"]["team"].clone();
            assert_eq!(labels(object), "platform", "{} {}", object["kind"], object["metadata"]["name"]);
            if pod_spec(object).is_some() {
                assert_eq!(labels(&object["spec"]["template"]), "platform");
            }
        }
    }
    let rendered = helm().render(&values).expect("Helm renders the chart");
    for (name, volume) in [(RELEASE, "scratch"), ("portcullis-companion", "cache")] {
        let template = &rendered.find("Deployment", name)["spec"]["template"];
        let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
        assert_eq!(template["metadata"]["labels"]["sidecar"], "no");
        assert_eq!(pod["affinity"], values["affinity"]);
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(container["image"], "registry.example:5000/team/portcullis:1.2.3");
        assert_eq!(container["startupProbe"]["failureThreshold"], 7);
        let has = |list: &Value, key: &str, value: &str| {
            list.as_array().is_some_and(|all| all.iter().any(|one| one[key] == value))
        };
        assert!(has(&container["env"], "name", "HTTPS_PROXY") && has(&pod["volumes"], "name", volume), "{pod}");
        assert!(has(&container["volumeMounts"], "mountPath", "/extra"), "{pod}");
    }
    let server = &rendered.find("Deployment", RELEASE)["spec"];
    assert!(server["replicas"].is_null(), "the HorizontalPodAutoscaler sets the replicas");
    assert_eq!(server["template"]["spec"]["hostNetwork"], true);
    assert_eq!(server["template"]["spec"]["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(server["template"]["spec"]["containers"][0]["ports"][0]["containerPort"], 19443);
    let arguments = rendered.arguments(RELEASE);
    assert!(arguments.contains(&"--listen=[::]:19443".to_owned()), "{arguments:?}");
    let webhooks = &rendered.find("ValidatingWebhookConfiguration", "portcullis")["webhooks"];
    let validate = webhooks.as_array().and_then(|all| all.iter().find(|one| one["name"] == "validate.portcullis.dev"));
    let validate = validate.expect("the configuration has the webhook");
    assert_eq!((&validate["failurePolicy"], &validate["timeoutSeconds"]), (&json!("Ignore"), &json!(11)));
    assert_eq!(rendered.find("ServiceAccount", RELEASE)["metadata"]["annotations"]["role"], "reader");
    let monitored = &rendered.find("Service", "portcullis-metrics")["metadata"]["labels"];
    let selector = &rendered.find("ServiceMonitor", RELEASE)["spec"]["selector"]["matchLabels"];
    let selector = selector.as_object().expect("the selector is an object");
    assert!(selector.iter().all(|(key, value)| monitored[key] == *value), "{selector:?}");
}

fn expected_values() -> Value {
    let probe = json!({"failureThreshold": 7});
    let extra = |volume: &str| {
        json!({
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
            "extraVolumes": [{"name": volume, "emptyDir": {}}],
            "extraVolumeMounts": [{"name": volume, "mountPath": "/extra"}],
            "serviceAccount": {"annotations": {"role": "reader"}, "automountServiceAccountToken": false},
        })
    };
    let term = json!({"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]});
    let affinity =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    let values = json!({
        "image": {"registry": "registry.example:5000", "repository": "team/portcullis", "tag": "1.2.3"},
        "commonLabels": {"team": "platform"}, "podLabels": {"sidecar": "no"}, "affinity": affinity,
        "webhooks": {"validate": {"failurePolicy": "Ignore", "timeoutSeconds": 11}},
        "autoscaling": {"enabled": true}, "hostNetwork": true, "port": 19443, "adminPort": 18080,
        "automountServiceAccountToken": false,
        "startupProbe": probe, "livenessProbe": probe, "readinessProbe": probe,
        "monitoring": {"serviceMonitor": {"enabled": true}, "podMonitor": {"enabled": true}, "rules": {"enabled": true},
                       "dashboard": {"enabled": true}},
    });
    let all = merge(values_for_families(&Registry::standard().families()), &merge(values, &extra("scratch")));
    let manager = merge(all["companion"].clone(), &extra("cache"));
    merge(all, &json!({"companion": manager}))
}

/// Defines the kinds of the Prometheus operator with CRDs that accept any content.
fn define_monitors(ctx: &Context) {
    for (kind, plural) in
        [("PodMonitor", "podmonitors"), ("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")]
    {
        define_kind(ctx, "monitoring.coreos.com", kind, plural);
    }
}

fn rejects_a_tag_in_the_repository(_: &Context) {
    for (repository, is_valid) in [
        ("portcullis", true),
        ("registry.example:5000/team/portcullis", true),
        ("registry.example/portcullis:0.1.0", false),
        ("portcullis:0.1.0", false),
        ("portcullis@sha256:abc", false),
        ("", false),
    ] {
        let output = helm().template(&json!({"image": {"repository": repository}})).expect("Helm runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_valid, "{repository}: {stderr}");
        assert!(is_valid || stderr.contains("repository"), "{stderr}");
    }
}

fn uses_an_existing_service_account(_: &Context) {
    let existing = |name: &str| json!({"create": false, "name": name});
    let families = values_for_families(&Registry::standard().families());
    let manager = merge(families["companion"].clone(), &json!({"serviceAccount": existing("theirs")}));
    let values = merge(families, &json!({"serviceAccount": existing("ours"), "companion": manager}));
    let rendered = helm().render(&values).expect("Helm renders the chart");
    assert!(!rendered.objects.iter().any(|object| object["kind"] == "ServiceAccount"));
    let bindings =
        rendered.objects.iter().filter(|object| object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")));
    let mut subjects: Vec<_> = bindings.map(|binding| binding["subjects"][0]["name"].clone()).collect();
    assert!(subjects.len() > 6, "{subjects:?}");
    subjects.dedup();
    assert!(subjects.iter().all(|name| name == "ours" || name == "theirs"), "{subjects:?}");
    for (deployment, account) in [(RELEASE, "ours"), ("portcullis-companion", "theirs")] {
        let pod = &rendered.find("Deployment", deployment)["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], account);
    }
}

/// Enables one rule family at a time, with only the permissions that the chart grants for this family. Checks that the
/// server starts and can watch the objects.
fn a_server_with_one_family_runs(ctx: &Context) {
    let helm = helm();
    for family in Registry::standard().families() {
        let secret = json!({"certificate": {"way": "secret", "caBundle": "QQ=="}});
        let rendered = helm.render(&merge(values_for_families(&[family]), &secret)).expect("Helm renders the chart");
        let name = format!("only-{}", family.to_lowercase());
        grant(ctx, &rendered, &name);
        let folder = ctx.cluster.folder().join(&name);
        fs::create_dir_all(folder.join("config")).expect("the folder can be created");
        let config = rendered.find("ConfigMap", RELEASE)["data"]["portcullis.yaml"]
            .as_str()
            .expect("the ConfigMap has a configuration file");
        fs::write(folder.join("config/portcullis.yaml"), config).expect("the file can be written");
        let certs = Command::new(BINARY).args(["certs", "--out"]).arg(folder.join("certs")).output();
        assert!(certs.expect("portcullis runs").status.success());
        let kubeconfig = folder.join("kubeconfig");
        let admin = fs::read_to_string(ctx.cluster.kubeconfig(User::Admin)).expect("the file can be read");
        let impersonation = format!("\", as: \"system:serviceaccount:{NAMESPACE}:{name}\"}}");
        fs::write(&kubeconfig, admin.replace("-token\"}", &format!("-token{impersonation}")))
            .expect("the file can be written");
        let start = |[port, admin]: [u16; 2]| {
            let mut command = Command::new(BINARY);
            // Arguments about the CA are omitted, because the CA needs additional rights. Other tests cover these
            // rights.
            let is_ca_argument =
                |argument: &String| argument.starts_with("--publish-ca") || argument.starts_with("--ca-state");
            command.args(gate::arguments(&rendered, &folder).into_iter().filter(|argument| !is_ca_argument(argument)));
            command.arg("--kubeconfig").arg(&kubeconfig);
            command.args(["--listen", &format!("127.0.0.1:{port}"), "--admin-listen", &format!("127.0.0.1:{admin}")]);
            let daemon = Daemon::start("portcullis serve", &mut command, &folder.join("log"))?;
            daemon.wait_until(deadline(), || http::is_ok(&http::get(admin, "/readyz")))?;
            Ok(daemon)
        };
        let server: Daemon =
            on_free_ports(start, DaemonError::port_was_taken).unwrap_or_else(|error| panic!("{family}: {error}"));
        assert!(server.terminate().expect("the process receives the signal").success(), "{family}");
        let log = fs::read_to_string(folder.join("log")).expect("the log can be read");
        assert!(!log.contains("cannot watch") && !log.to_lowercase().contains("forbidden"), "{family}: {log}");
    }
}

fn grant(ctx: &Context, rendered: &Rendered, name: &str) {
    let mut role = rendered.find("ClusterRole", "portcullis").clone();
    let mut binding = rendered.find("ClusterRoleBinding", "portcullis").clone();
    role["metadata"]["name"] = json!(name);
    binding["metadata"]["name"] = json!(name);
    binding["roleRef"]["name"] = json!(name);
    binding["subjects"][0]["name"] = json!(name);
    let apply = ["apply", "--server-side", "-f", "-"];
    ctx.cluster.kubectl().args(apply).stdin(list(&[role, binding])).run().expect_success();
}

fn run_portcullis(ctx: &Context, user: User, arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--kubeconfig").arg(ctx.cluster.kubeconfig(user)).output().expect("portcullis runs")
}

/// Runs `portcullis verify` with the rights of the chart's hook, and checks its output.
fn verify_reports_which_server_answers(ctx: &Context) {
    let arguments = ["verify", "--namespace=default", "--within=30"];
    let output = run_portcullis(ctx, User::Verify, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for kind in [
        "configmaps (KZ)",
        "contexts (OW)",
        "dryrunconfigurations (DR)",
        "executions (DP, LS)",
        "environmentconfigs (EN)",
    ] {
        assert!(
            text.contains(&format!("{kind}: portcullis {} answers\n", env!("CARGO_PKG_VERSION"))),
            "{kind}: {text}"
        );
    }
    let remaining =
        ctx.cluster.kubectl().args(["get", "configmaps,contexts", "-n", "default", "-o", "name"]).run().stdout;
    assert!(!remaining.contains("portcullis-verify"), "verify must not store objects: {remaining}");
    let excluded_output =
        run_portcullis(ctx, User::Admin, &["verify", "--namespace=kube-system", "--within=0", "--families=KZ"]);
    let text = String::from_utf8_lossy(&excluded_output.stdout);
    assert_eq!(excluded_output.status.code(), Some(1), "{text}");
    assert!(
        text.starts_with(
            "configmaps (KZ): NOT ANSWERED: the API server admitted the object without calling portcullis"
        ),
        "{text}"
    );
}

/// Checks that the manifests of `make test-kind` are denied or accepted as `make test-kind` expects. This test exists
/// because `make test-kind` cannot run everywhere.
fn the_manifests_of_the_kind_test_are_judged_as_expected(ctx: &Context) {
    rejects(ctx, "default", include_str!("../../examples/getting-started/wrong.yaml"), &["KZ001"]);
    accepts(ctx, "default", include_str!("../../examples/getting-started/right.yaml"));
}

/// Runs `portcullis unregister` with the rights of the chart's hook that runs before a release is uninstalled.
/// Afterwards, no request is denied.
fn unregister(ctx: &Context) {
    let output = run_portcullis(ctx, User::Unregister, &["unregister"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("validatingwebhookconfigurations/portcullis: deleted"), "{text}");
    eventually(|| (!gate::is_denied(&ctx.cluster, "portcullis.dev", crate::PROBE)).then_some(()));
    let again = run_portcullis(ctx, User::Unregister, &["unregister"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout).matches(": not found\n").count(), 4, "{again:?}");
}
