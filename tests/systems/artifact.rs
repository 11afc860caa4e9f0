//! Tests `portcullis plan` with the current artifact of the real source-controller. The artifact is fetched from a
//! Service in the cluster, through the proxy of the API server.

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::thread;

use libtest_mimic::{Arguments, Trial};
use serde_json::json;

use crate::context::Context;
use crate::flux::{
    self, KUSTOMIZATIONS, config_map, kustomization, request_reconciliation, source, wait_until_applied,
};
use crate::runner;
use crate::system::System;
use crate::testbed::{Mode, Testbed};
use crate::user::User;

/// Name of the test.
const NAME: &str = "plan::artifact";
/// The host in the URLs of artifacts. It is the default host of source-controller.
const HOST: &str = "source-controller.flux-system.svc.cluster.local.";

const SYSTEM: System = System {
    name: "plan-artifact",
    start: |cluster, fixtures| flux::start_at(cluster, fixtures, flux::KUSTOMIZE_PIN, &[], HOST),
    scenarios: &[],
    ..flux::SYSTEM
};

/// RBAC objects that grant the user `developer` all rights that `portcullis plan` needs, except the right to fetch the
/// artifact.
const RIGHTS: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plans}
rules:
- {apiGroups: [kustomize.toolkit.fluxcd.io], resources: [kustomizations], verbs: [get, list]}
- {apiGroups: [source.toolkit.fluxcd.io], resources: [gitrepositories], verbs: [get]}
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plans}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plans}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: developer}]
";

/// RBAC objects that grant the user `developer` the right to fetch the artifact. The error message of `portcullis plan`
/// asks for this right.
const PROXY_RIGHT: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: artifacts, namespace: flux-system}
rules: [{apiGroups: [''], resources: [services/proxy], resourceNames: ['source-controller:80'], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: artifacts, namespace: flux-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: artifacts}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: developer}]
";

/// Runs the only test of this file, and returns its result. `None` if `arguments` do not select the test.
pub fn run(arguments: &Arguments) -> Option<Trial> {
    let is_selected = !arguments.is_filtered_out(&Trial::test(NAME, || Ok(())));
    if arguments.list || !is_selected {
        return None;
    }
    let result = catch_unwind(AssertUnwindSafe(|| {
        let testbed = Testbed::start(&SYSTEM, Mode::Without);
        serve_in_cluster(&testbed);
        plans_the_current_artifact(&Context::begin(&testbed, "current"));
    }));
    let failure = result.err().map(|panic| runner::panic_message(&*panic));
    Some(Trial::test(NAME, move || failure.map_or(Ok(()), |why| Err(why.into()))))
}

/// Creates the Service to which the URLs of artifacts refer. Its endpoint forwards requests to source-controller.
fn serve_in_cluster(testbed: &Testbed) {
    let address = own_address().expect("this machine has an address besides those of its loopback interface");
    let port = forward(address, flux::artifact_host(&testbed.fixtures)).expect("a port is free");
    let (name, namespace) = ("source-controller", "flux-system");
    let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    let pod = json!({"kind": "Pod", "name": name, "namespace": namespace});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
         "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
         "spec": {"containers": [{"name": "manager", "image": name}]}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, "namespace": namespace},
         "subsets": [{"addresses": [{"ip": address, "targetRef": pod}], "ports": ports}]},
    ]});
    let kubectl = |arguments: &[&str]| testbed.cluster.kubectl().args(["--namespace", namespace]).args(arguments);
    kubectl(&["apply", "-f", "-"]).stdin(objects.to_string()).run().expect_success();
    // The API server forwards requests only to endpoints that have the IP address of a Pod.
    let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}}).to_string();
    kubectl(&["patch", "pod", name, "--subresource=status", "--type=merge", "-p", &status]).run().expect_success();
}

/// Returns an IP address of this machine. The address is not a loopback address, because the API server does not accept
/// loopback addresses as endpoints of a Service.
fn own_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // This sends nothing. The operating system only selects the network interface.
    socket.connect("198.51.100.1:9")?;
    Ok(socket.local_addr()?.ip())
}

/// Listens on `address`, and forwards connections to the address `to`. Returns the port of the listener.
fn forward(address: IpAddr, to: String) -> io::Result<u16> {
    let listener = TcpListener::bind((address, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&to) else { continue };
            for (from, to) in [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))] {
                let (Ok(mut from), Ok(mut to)) = (from, to) else { continue };
                thread::spawn(move || {
                    // At the end of the input, close the output, so that the receiver gets the end of the stream too.
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    Ok(port)
}

/// Checks that `portcullis plan` uses the current artifact of the source. Flux does not apply this artifact during the
/// test, because the Kustomization depends on a Kustomization that does not exist.
fn plans_the_current_artifact(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let maps = ["a", "b", "kept"].map(|name| (format!("app/{name}.yaml"), config_map(name, "one")));
    let files = |names: &[usize]| names.iter().map(|at| (&*maps[*at].0, &*maps[*at].1)).collect::<Vec<_>>();
    let first = repository.commit("main", &files(&[0, 2]));
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "")));
    wait_until_applied(ctx, "app", "main", &first);
    let patch = r#"{"spec": {"dependsOn": [{"name": "never"}]}}"#;
    ctx.kubectl(&["patch", KUSTOMIZATIONS, "app", "--type=merge", "-p", patch]);
    let second = repository.commit("main", &files(&[1, 2]));
    request_reconciliation(ctx, "app", 1);
    let has_second_commit =
        |object: &serde_json::Value| object["status"]["artifact"]["revision"] == format!("main@sha1:{second}");
    let source = ctx.wait_for("gitrepositories", "app", "at the second commit", has_second_commit);
    let url = source["status"]["artifact"]["url"].as_str().unwrap_or_default();
    assert!(url.starts_with(&format!("http://{HOST}/")), "{url}");

    let expected = format!(
        "Kustomization {ns}/app, revision main@sha1:{second}\n  - delete   ConfigMap {ns}/a\n  + create   ConfigMap {ns}/b\n",
        ns = ctx.namespace
    );
    let (code, text, notes) = plan(ctx, User::Admin, &[]);
    assert!(code == Some(0) && text.starts_with(&expected) && notes.is_empty(), "{text}{notes}");
    let (code, _, error) = plan(ctx, User::Admin, &["--revision", &first]);
    assert!(code == Some(2) && error.contains("only the current artifact can be fetched"), "{error}");

    ctx.apply(RIGHTS);
    let (code, _, error) = plan(ctx, User::Developer, &[]);
    let right = "grant the verb get for services/proxy, with the resource name source-controller:80, in the namespace flux-system";
    assert!(
        code == Some(2) && error.contains("cannot get resource \"services/proxy\"") && error.contains(right),
        "{error}"
    );
    ctx.testbed().cluster.kubectl().args(["apply", "-f", "-"]).stdin(PROXY_RIGHT.to_owned()).run().expect_success();
    let (code, text, notes) = plan(ctx, User::Developer, &["--revision", &second]);
    assert!(code == Some(0) && text.starts_with(&expected) && notes.is_empty(), "{text}{notes}");
}

/// Runs `portcullis plan`. Returns its exit code, standard output and standard error.
fn plan(ctx: &Context<'_>, user: User, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["plan", "kustomization/app", "--namespace", &ctx.namespace]).args(arguments);
    command.arg("--kubeconfig").arg(ctx.testbed().cluster.kubeconfig(user));
    let output = command.output().expect("portcullis runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
