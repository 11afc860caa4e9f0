//! Tests of the test harness itself. They do not need portcullis, because the API server itself denies or changes the
//! objects.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;

use crate::Case;
use crate::assets;
use crate::context::Context;
use crate::sentences::{accepts, patches, rejects, warns};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("smoke::the_api_server_reports_its_version", the_api_server_reports_its_version),
    ("smoke::landscapers_kinds_are_served", landscapers_kinds_are_served),
    ("smoke::crossplanes_kinds_are_served", crossplanes_kinds_are_served),
    ("smoke::a_namespace_is_created", a_namespace_is_created),
    ("smoke::a_developer_has_no_rights", a_developer_has_no_rights),
    ("smoke::assertions_that_hold_pass", assertions_that_hold_pass),
    ("smoke::assertions_that_do_not_hold_fail", assertions_that_do_not_hold_fail),
];

const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {key: value}
";
const INVALID_NAME: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: Not_A_Name}
";
/// A Pod that sets the same environment variable twice. The API server returns a warning about the variable, and sets
/// the default restart policy.
const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  containers:
  - name: main
    image: example
    env: [{name: TWICE, value: a}, {name: TWICE, value: b}]
";

fn the_api_server_reports_its_version(ctx: &Context) {
    let client = ctx.cluster.client();
    let answer = ctx.cluster.block_on(client.apiserver_version()).expect("the API server is ready");
    assert_eq!(answer.git_version, expected_version(ctx));
}

/// Returns the version of Kubernetes that the API server should report. This is the pinned version if the tests use the
/// pinned programs. Otherwise, it is the version of the kube-apiserver in `KUBEBUILDER_ASSETS`.
fn expected_version(ctx: &Context) -> String {
    if ctx.cluster.assets().pinned {
        return assets::pinned_kubernetes().to_owned();
    }
    let program = ctx.cluster.assets().program("kube-apiserver");
    let output = Command::new(program).arg("--version").output().expect("kube-apiserver runs");
    String::from_utf8_lossy(&output.stdout).trim().replace("Kubernetes ", "")
}

fn landscapers_kinds_are_served(ctx: &Context) {
    let list = ["api-resources", "--api-group=landscaper.gardener.cloud", "-o", "name"];
    let kinds = ctx.cluster.kubectl().args(list).run().expect_success().stdout;
    for kind in ["installations", "contexts", "deployitems", "targets", "componentversionoverwrites"] {
        assert!(kinds.contains(&format!("{kind}.landscaper.gardener.cloud")), "{kind} is not among\n{kinds}");
    }
}

fn crossplanes_kinds_are_served(ctx: &Context) {
    for version in ["v1alpha1", "v1beta1"] {
        let kind = format!("environmentconfigs.{version}.apiextensions.crossplane.io");
        ctx.cluster.kubectl().args(["get", &kind]).run().expect_success();
    }
    let kinds = "compositions.apiextensions.crossplane.io,compositeresourcedefinitions.apiextensions.crossplane.io";
    ctx.cluster.kubectl().args(["get", kinds]).run().expect_success();
}

fn a_namespace_is_created(ctx: &Context) {
    let name = ctx.cluster.namespace("smoke");
    let namespaces = Api::<Namespace>::all(ctx.cluster.client());
    let found = ctx.cluster.block_on(namespaces.get(&name)).expect("the created namespace can be read");
    assert_eq!(found.metadata.name, Some(name));
}

fn a_developer_has_no_rights(ctx: &Context) {
    let output = ctx.cluster.kubectl_as(User::Developer).args(["get", "secrets"]).run();
    assert!(output.stderr.contains("User \"developer\" cannot list"), "{output}");
}

fn assertions_that_hold_pass(ctx: &Context) {
    let ns = ctx.cluster.namespace("sentences");
    accepts(ctx, &ns, CONFIG_MAP);
    rejects(ctx, &ns, INVALID_NAME, &["is invalid", "metadata.name"]);
    warns(ctx, &ns, POD, &["TWICE"]);
    patches(ctx, &ns, POD, &[("/spec/restartPolicy", json!("Always")), ("/spec/hostname", json!(null))]);
}

fn assertions_that_do_not_hold_fail(ctx: &Context) {
    let ns = ctx.cluster.namespace("sentences");
    assert_fails(|| accepts(ctx, &ns, INVALID_NAME));
    assert_fails(|| accepts(ctx, &ns, POD));
    assert_fails(|| rejects(ctx, &ns, CONFIG_MAP, &[]));
    assert_fails(|| rejects(ctx, &ns, INVALID_NAME, &["words that are not in the output"]));
    assert_fails(|| warns(ctx, &ns, CONFIG_MAP, &[]));
    assert_fails(|| patches(ctx, &ns, CONFIG_MAP, &[("/data/key", json!("another"))]));
}

#[track_caller]
fn assert_fails(assertion: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(assertion)).is_err(), "the assertion must fail");
}
