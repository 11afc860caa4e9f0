//! Tests with Flux: source-controller and kustomize-controller.

use std::process::Command;

use serde_json::Value;

use crate::account::{Account, KUSTOMIZE_CONTROLLER, SOURCE_CONTROLLER};
use crate::cluster::Cluster;
use crate::context::{Context, DEADLINE, has_condition};
use crate::daemon::Daemon;
use crate::gate;
use crate::git::Repository;
use crate::http;
use crate::normalize;
use crate::programs;
use crate::system::{Kind, Scenario, System, program};
use crate::testbed::Fixtures;

/// Name of source-controller's entry in `assets/pins.json`.
pub const SOURCE_PIN: &str = "flux-source-controller";
/// Name of the current kustomize-controller's entry in `assets/pins.json`.
pub const KUSTOMIZE_PIN: &str = "flux-kustomize-controller";

/// The test system with Flux.
pub const SYSTEM: System = System {
    name: "flux",
    title: || {
        let version = |pin| programs::pin(pin).version().trim_start_matches('v');
        let (source, kustomize) = (version(SOURCE_PIN), version(KUSTOMIZE_PIN));
        format!("Flux (source-controller {source}, kustomize-controller {kustomize})")
    },
    pins: &[SOURCE_PIN, KUSTOMIZE_PIN],
    prepare: |fixtures| {
        fixtures.port(ARTIFACT_PORT);
    },
    start,
    configuration,
    is_active: |cluster| gate::is_denied(cluster, "portcullis.dev", PROBE),
    reconcile: &[],
    kinds: |_| {
        vec![
            Kind::namespaced("source.toolkit.fluxcd.io/v1", "GitRepository", "gitrepositories"),
            Kind::namespaced("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "kustomizations"),
            Kind::namespaced("v1", "ConfigMap", "configmaps"),
            Kind::namespaced("v1", "ServiceAccount", "serviceaccounts"),
        ]
    },
    is_converged: |object| {
        let is_reconciled = ["GitRepository", "Kustomization"].iter().any(|kind| object["kind"] == *kind);
        !is_reconciled || (is_current(object) && has_condition(object, "Ready", "True"))
    },
    scenarios: &[
        Scenario::new("apply", "a tree with a component and a generator is applied", apply),
        Scenario::new("revision", "a new revision is applied", revision),
        Scenario::new("branch-and-path", "one commit changes a source's branch and a child's path", branch_and_path),
        Scenario::new("broken", "a revision that does not build, and one that does", broken),
        Scenario::new("prune", "an object that left the tree is deleted", prune),
        Scenario::new("spec", "patches, components, images and substitutions in the spec", spec),
        Scenario::new("depends-on", "one Kustomization waits for another", depends_on),
        Scenario::new("force", "an immutable object is recreated with force", force),
        Scenario::new("lax", "a root file that only Flux's lax reader takes", lax),
        Scenario::new("late", "Kustomization and source come before the path is there", late),
        Scenario::new("interval", "the interval of a Kustomization changes", interval),
        Scenario::new("delete", "a Kustomization is deleted with what it applied", delete),
    ],
};

/// Name of the port at which source-controller serves artifacts. [`Fixtures::port`] returns the number of the port with
/// this name.
const ARTIFACT_PORT: &str = "artifacts";
/// The resource name of Flux Kustomizations in kubectl commands. It includes the API group, because the name
/// `kustomizations` is ambiguous: portcullis can install a CustomResourceDefinition of kustomize's kind Kustomization.
pub const KUSTOMIZATIONS: &str = "kustomizations.kustomize.toolkit.fluxcd.io";
/// A Kustomization with an absolute path in `components`, which is invalid. At the default levels, portcullis warns
/// about it. In the test system with Flux ([`SYSTEM`]), portcullis denies it. Tests create it in a dry run to detect
/// that the webhooks are active.
pub const PROBE: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: probe, namespace: default}
spec: {interval: 1h, prune: true, path: ./apps, components: [/abs], sourceRef: {kind: GitRepository, name: none}}
";

fn configuration(fixtures: &Fixtures) -> String {
    format!("deliveries: {{flux-trees: deny, flux-sources: deny}}\n{}", artifact_hosts(fixtures))
}

/// Returns the section `artifactHosts` of portcullis' configuration. It allows portcullis to fetch artifacts from the
/// source-controller on this machine.
pub fn artifact_hosts(fixtures: &Fixtures) -> String {
    format!("artifactHosts: [\"{}\"]\n", artifact_host(fixtures))
}

/// Returns the host and port at which source-controller serves artifacts.
pub fn artifact_host(fixtures: &Fixtures) -> String {
    format!("127.0.0.1:{}", fixtures.port(ARTIFACT_PORT))
}

fn start(cluster: &Cluster, fixtures: &Fixtures) -> Vec<Daemon> {
    start_with(cluster, fixtures, KUSTOMIZE_PIN, &[])
}

/// Starts source-controller and a kustomize-controller. `pin` is the name of the kustomize-controller in
/// `assets/pins.json`, and `arguments` are additional arguments of both controllers.
pub fn start_with(cluster: &Cluster, fixtures: &Fixtures, pin: &str, arguments: &[&str]) -> Vec<Daemon> {
    start_at(cluster, fixtures, pin, arguments, &artifact_host(fixtures))
}

/// Starts the controllers as [`start_with`] does. `advertised` is the host in the URLs of artifacts. It may differ from
/// the address on which source-controller listens.
pub fn start_at(
    cluster: &Cluster,
    fixtures: &Fixtures,
    pin: &str,
    arguments: &[&str],
    advertised: &str,
) -> Vec<Daemon> {
    let address = artifact_host(fixtures);
    let source = |command: &mut Command| {
        command.args(arguments);
        let storage = fixtures.folder.path().join("artifacts");
        std::fs::create_dir_all(&storage).expect("the folder can be created");
        command.args([format!("--storage-addr={address}"), format!("--storage-adv-addr={advertised}")]);
        command.arg(format!("--storage-path={}", storage.display()));
    };
    let kustomize = |command: &mut Command| {
        command.args(arguments).env("SOURCE_CONTROLLER_LOCALHOST", &address);
        command.args(["--requeue-dependency=1s", "--min-retry-delay=500ms", "--max-retry-delay=5s"]);
    };
    vec![
        start_controller(cluster, fixtures, SOURCE_CONTROLLER, SOURCE_PIN, "source-health", source),
        start_controller(cluster, fixtures, KUSTOMIZE_CONTROLLER, pin, "kustomize-health", kustomize),
    ]
}

fn start_controller(
    cluster: &Cluster,
    fixtures: &Fixtures,
    account: Account,
    pin: &str,
    health: &'static str,
    add_arguments: impl FnOnce(&mut Command),
) -> Daemon {
    let health = fixtures.port(health);
    let mut command = Command::new(program(pin, account.name));
    command.env("KUBECONFIG", account.kubeconfig(cluster).expect("the kubeconfig can be written"));
    command.env("RUNTIME_NAMESPACE", account.namespace).env("TMPDIR", fixtures.folder.path());
    command.args(["--events-addr=", "--metrics-addr=127.0.0.1:0", "--enable-leader-election=false"]);
    command.args([format!("--health-addr=127.0.0.1:{health}"), "--interval-jitter-percentage=0".to_owned()]);
    add_arguments(&mut command);
    let log = cluster.folder().join(format!("{}.log", account.name));
    let daemon = Daemon::start(account.name, &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    let ready = daemon.wait_until(DEADLINE, || http::is_ok(&http::get(health, "/readyz")));
    ready.unwrap_or_else(|error| panic!("{error}"));
    daemon
}

pub fn source(name: &str, repository: &Repository, branch: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: {name}, namespace: $NS}}\nspec: \
         {{interval: 1h, url: \"{}\", ref: {{branch: {branch}}}}}\n---\n",
        repository.url
    )
}

/// Returns the manifest of a Kustomization. `source` is the name of its GitRepository, and `more` contains additional
/// lines of `spec`.
pub fn kustomization(name: &str, source: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: \
         $NS}}\nspec:\n  interval: 1h\n  retryInterval: 2s\n  timeout: 30s\n  prune: true\n  path: {path}\n  \
         targetNamespace: $NS\n  sourceRef: {{kind: GitRepository, name: {source}}}\n{more}---\n"
    )
}

pub fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value}\n")
}

/// Requests that source-controller checks immediately for a new revision. `number` must differ between requests.
pub fn request_reconciliation(ctx: &Context<'_>, source: &str, number: usize) {
    let request = format!("reconcile.fluxcd.io/requestedAt={number}");
    ctx.kubectl(&["annotate", "--overwrite", "gitrepository", source, &request]);
}

fn is_current(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// Waits until a Kustomization has applied a commit and is ready.
#[track_caller]
pub fn wait_until_applied(ctx: &Context<'_>, name: &str, branch: &str, commit: &str) {
    let revision = format!("{branch}@sha1:{commit}");
    let is_expected = |object: &Value| {
        is_current(object)
            && has_condition(object, "Ready", "True")
            && object["status"]["lastAppliedRevision"] == revision.as_str()
    };
    ctx.wait_for("kustomizations", name, &format!("ready at {revision}"), is_expected);
}

const ROOT: &str = "resources: [settings.yaml]\ncomponents: [../component]\nconfigMapGenerator:\n- name: \
                    generated\n  literals: [a=b]\n";
const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: pre-\n";

/// Creates a repository, and waits until Flux has applied its tree. Returns the repository and the commit.
fn start_with_applied_tree(ctx: &Context<'_>) -> (Repository, String) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let commit = repository.commit("main", &tree(&config_map("settings", "one")));
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "")));
    wait_until_applied(ctx, "app", "main", &commit);
    (repository, commit)
}

fn tree(settings: &str) -> [(&str, &str); 3] {
    [("app/kustomization.yaml", ROOT), ("app/settings.yaml", settings), ("component/kustomization.yaml", COMPONENT)]
}

fn apply(ctx: &Context<'_>) {
    start_with_applied_tree(ctx);
    ctx.snapshot("applied");
}

fn revision(ctx: &Context<'_>) {
    let (repository, _) = start_with_applied_tree(ctx);
    let commit = repository.commit("main", &tree(&config_map("settings", "two")));
    request_reconciliation(ctx, "app", 1);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_for("configmaps", "pre-settings", "changed", |object| object["data"]["key"] == "two");
    ctx.snapshot("changed");
}

/// Tests a commit that changes the branch of an application's source and the path of its Kustomization. The new path
/// exists only in the new branch. So portcullis must not check the new path in the old branch. Otherwise, it would deny
/// the Kustomization, and Flux could never apply the commit.
fn branch_and_path(ctx: &Context<'_>) {
    let git = &ctx.testbed().fixtures.git;
    let application = git.repository(&format!("{}-application", ctx.namespace));
    let old = application.commit("main", &[("v1/settings.yaml", &config_map("settings", "one"))]);
    let new = application.commit("next", &[("v2/settings.yaml", &config_map("settings", "two"))]);
    let fleet = git.repository(&format!("{}-fleet", ctx.namespace));
    let files = |branch: &str, path: &str| {
        let text = source("application", &application, branch) + &kustomization("application", "application", path, "");
        text.replace("$NS", &ctx.namespace)
    };
    let commit = fleet.commit("main", &[("clusters/application.yaml", &files("main", "./v1"))]);
    ctx.apply(&(source("fleet", &fleet, "main") + &kustomization("fleet", "fleet", "./clusters", "")));
    wait_until_applied(ctx, "fleet", "main", &commit);
    wait_until_applied(ctx, "application", "main", &old);
    let commit = fleet.commit("main", &[("clusters/application.yaml", &files("next", "./v2"))]);
    request_reconciliation(ctx, "fleet", 1);
    wait_until_applied(ctx, "fleet", "main", &commit);
    wait_until_applied(ctx, "application", "next", &new);
    ctx.wait_for("configmaps", "settings", "changed", |object| object["data"]["key"] == "two");
    ctx.snapshot("changed");
}

/// A git repository whose last commit contains a tree that kustomize cannot build.
pub struct Broken {
    repository: Repository,
    /// The hash of the last commit.
    pub commit: String,
    /// The GitRepository and the Kustomization before the commit. Each entry contains the plural name of the kind, and
    /// the resource version of the object.
    before: [(&'static str, String); 2],
    /// The number of this revision among the revisions that do not build, counted from 1.
    number: usize,
}

/// Waits until Flux has applied a tree that builds, and then publishes a revision that does not build.
pub fn break_tree(ctx: &Context<'_>) -> Broken {
    publish_broken(ctx, start_with_applied_tree(ctx).0, 1)
}

/// Waits until Flux has reported that a revision does not build, and then publishes another revision that does not
/// build.
pub fn break_tree_again(ctx: &Context<'_>, broken: Broken) -> Broken {
    ctx.wait_for("kustomizations", "app", "not ready: it cannot be built", |object| {
        is_failed_at(object, &broken.commit)
    });
    publish_broken(ctx, broken.repository, broken.number + 1)
}

fn publish_broken(ctx: &Context<'_>, repository: Repository, number: usize) -> Broken {
    let version = |plural| {
        let object = ctx.get(plural, "app").expect("the object exists");
        (plural, object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
    };
    let before = ["gitrepositories", "kustomizations"].map(version);
    let root = format!("# {number}\nresources: [missing.yaml]\n");
    let commit = repository.commit("main", &[("app/kustomization.yaml", &root)]);
    request_reconciliation(ctx, "app", number);
    Broken { repository, commit, before, number }
}

fn is_failed_at(kustomization: &Value, commit: &str) -> bool {
    has_condition(kustomization, "Ready", "False") && kustomization["status"].to_string().contains(commit)
}

/// Returns whether portcullis reported a broken revision before Flux did. Compares the resource version of portcullis'
/// Event with those of Flux's Event and of Flux's condition.
pub fn is_reported_before_flux(ctx: &Context<'_>, broken: &Broken) -> bool {
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
    let own = version(&ctx.wait_for_event("Kustomization", "app", "BrokenRevision", &broken.commit[..7]));
    let failed = |object: &Value| is_failed_at(object, &broken.commit);
    ctx.wait_for("kustomizations", "app", "not ready: it cannot be built", failed);
    let written = ctx.history("kustomizations", "app", &broken.before[1].1);
    let condition = written.iter().find(|object| failed(object)).and_then(version);
    let event = version(&ctx.wait_for_event("Kustomization", "app", "BuildFailed", &broken.commit));
    assert!(own.is_some() && condition.is_some() && event.is_some(), "{own:?} {condition:?} {event:?}");
    own < condition && own < event
}

/// Checks that the deployed objects are unchanged. Then publishes a revision that builds, and waits until the
/// Kustomization and its source are ready again.
pub fn repair(ctx: &Context<'_>, broken: &Broken) {
    let deployed = ctx.get("configmaps", "pre-settings");
    assert!(deployed.is_some_and(|object| object["data"]["key"] == "one"), "the deployed objects must not change");
    let commit = broken.repository.commit("main", &tree(&config_map("settings", "three")));
    request_reconciliation(ctx, "app", broken.number + 1);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_for("gitrepositories", "app", "ready again", |object| {
        is_current(object) && has_condition(object, "Ready", "True")
    });
    ctx.snapshot("repaired");
}

/// Regression test for issue 18 (Flux, item 5): portcullis rejects a revision that Flux cannot build. The GitRepository
/// then keeps its previous artifact. Events about the GitRepository and the Kustomization contain the reason, and
/// `kubectl get` never shows the rejected revision as ready. Without portcullis, Flux fails to build the revision. In
/// both cases, deployed objects stay unchanged.
fn broken(ctx: &Context<'_>) {
    let broken = break_tree(ctx);
    let (plural, words) = if ctx.has_webhooks() {
        ("gitrepositories", "not ready: its revision is refused")
    } else {
        ("kustomizations", "not ready: it cannot be built")
    };
    ctx.wait_for(plural, "app", words, |object| has_condition(object, "Ready", "False"));
    if ctx.has_webhooks() {
        for kind in ["GitRepository", "Kustomization"] {
            let note = ctx.wait_for_event_note(kind, "app", "RevisionWithheld");
            assert!(note.contains("missing.yaml") && note.contains(&broken.commit[..7]), "{kind}: {note}");
        }
    }
    let never_ready: &[_] = if ctx.has_webhooks() { &broken.before } else { &broken.before[1..] };
    for (written, since) in never_ready {
        let versions = ctx.history(written, "app", since);
        assert!(*written != plural || !versions.is_empty(), "the history of {plural} must not be empty");
        for version in versions {
            assert!(!shows_ready(&version, &broken.commit), "{written}: {}", normalize::readable(&version));
        }
    }
    let event_count = count_artifact_events(ctx);
    assert!(
        event_count <= 2,
        "source-controller must not create more than one Event for each of two revisions, but there are {event_count}"
    );
    repair(ctx, &broken);
}

/// Returns how often source-controller created an Event about a new artifact. It creates the Event before each attempt
/// to write the artifact into the status, so a denied attempt results in another Event.
fn count_artifact_events(ctx: &Context<'_>) -> u64 {
    let listed = ctx.kubectl(&["get", "events", "-o", "json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("kubectl writes JSON");
    let events = listed["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let announced = events.iter().filter(|event| event["reason"] == "NewArtifact");
    announced.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
}

/// Returns whether the output of `kubectl get` shows that `object` is ready at the commit `commit`. This output
/// contains the status and the message of the condition `Ready`.
fn shows_ready(object: &Value, commit: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    let message = ready.and_then(|ready| ready["message"].as_str()).unwrap_or_default();
    has_condition(object, "Ready", "True") && message.contains(commit)
}

fn prune(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let (first, second) = (config_map("first", "one"), config_map("second", "one"));
    let commit = repository.commit("main", &[("app/first.yaml", &first), ("app/second.yaml", &second)]);
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "")));
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_for("configmaps", "second", "there", |_| true);
    let commit = repository.commit("main", &[("app/first.yaml", &first)]);
    request_reconciliation(ctx, "app", 1);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_until_gone("configmaps", "second");
    ctx.snapshot("pruned");
}

const SPEC: &str = "  components: [../component]
  namePrefix: x-
  nameSuffix: -y
  commonMetadata: {labels: {team: blue}, annotations: {note: kept}}
  images: [{name: example, newTag: v2}]
  patches:
  - target: {kind: ConfigMap, name: settings}
    patch: |
      - {op: add, path: /data/patched, value: 'yes'}
  - patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings}
      data: {merged: 'yes'}
  postBuild:
    substitute: {color: green, number: '7'}
    substituteFrom: [{kind: ConfigMap, name: values}, {kind: ConfigMap, name: absent, optional: true}]
";
const SUBSTITUTED: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: ${color}
  from: ${from}
  default: ${unset:=nothing}
  kept: $${color}
  upper: ${color^^}
  number: n${number}
  quoted: \"${color:0:3}\"
";

fn spec(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let files = [
        ("app/settings.yaml", SUBSTITUTED),
        (
            "component/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {by: component}\n",
        ),
    ];
    let commit = repository.commit("main", &files);
    let values =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values, namespace: $NS}\ndata: {from: a map}\n---\n";
    ctx.apply(&(values.to_owned() + &source("app", &repository, "main") + &kustomization("app", "app", "./app", SPEC)));
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_for("configmaps", "x-settings-y", "substituted", |object| object["data"]["color"] == "green");
    ctx.snapshot("applied");
}

fn depends_on(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let files = [("base/base.yaml", &*config_map("base", "one")), ("app/app.yaml", &*config_map("app", "one"))];
    let commit = repository.commit("main", &files);
    let app = kustomization("app", "shared", "./app", "  dependsOn: [{name: base}]\n  wait: true\n");
    ctx.apply(&app);
    ctx.apply(&source("shared", &repository, "main"));
    ctx.apply(&kustomization("base", "shared", "./base", "  wait: true\n"));
    wait_until_applied(ctx, "base", "main", &commit);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.snapshot("applied");
}

fn force(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let file = |value: &str| config_map("frozen", value) + "immutable: true\n";
    let commit = repository.commit("main", &[("app/frozen.yaml", &file("one"))]);
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "  force: true\n")));
    wait_until_applied(ctx, "app", "main", &commit);
    let before = ctx.get("configmaps", "frozen").expect("the object exists");
    let commit = repository.commit("main", &[("app/frozen.yaml", &file("two"))]);
    request_reconciliation(ctx, "app", 1);
    wait_until_applied(ctx, "app", "main", &commit);
    let after = ctx.wait_for("configmaps", "frozen", "recreated", |object| object["data"]["key"] == "two");
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    ctx.snapshot("recreated");
}

/// A kustomization file with numbers and booleans in place of strings, and with an unknown field. Flux converts the
/// numbers and booleans to strings, and ignores the unknown field.
const LAX: &str = "resources: [settings.yaml, 7]
namePrefix: 7
nameSuffix: true
namespace: 7
labels: [{pairs: {number: 1.5, boolean: true}}]
commonAnnotations: {number: 1.5, boolean: true}
images: [{name: example, newTag: 1.25}]
unknownField: 1
";

fn lax(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let (settings, seven) = (config_map("settings", "one"), config_map("seven", "one"));
    let files = [("app/kustomization.yaml", LAX), ("app/settings.yaml", &*settings), ("app/7", &seven)];
    let commit = repository.commit("main", &files);
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "")));
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.snapshot("applied");
}

/// Tests a Kustomization whose path does not exist in the first revision, but exists in the second revision.
fn late(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    repository.commit("main", &[("other/settings.yaml", &config_map("settings", "one"))]);
    ctx.apply(&source("app", &repository, "main"));
    ctx.wait_for("gitrepositories", "app", "ready", |object| has_condition(object, "Ready", "True"));
    ctx.apply(&kustomization("app", "app", "./app", ""));
    ctx.wait_for("kustomizations", "app", "not ready: there is no such path", |object| {
        has_condition(object, "Ready", "False")
    });
    let commit = repository.commit("main", &[("app/settings.yaml", &config_map("settings", "two"))]);
    request_reconciliation(ctx, "app", 1);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.snapshot("applied");
}

fn interval(ctx: &Context<'_>) {
    let (_, commit) = start_with_applied_tree(ctx);
    ctx.kubectl(&["patch", KUSTOMIZATIONS, "app", "--type=merge", "-p", r#"{"spec":{"interval":"2h"}}"#]);
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.snapshot("applied");
}

fn delete(ctx: &Context<'_>) {
    start_with_applied_tree(ctx);
    ctx.kubectl(&["delete", KUSTOMIZATIONS, "app", "--wait=false"]);
    ctx.wait_until_gone("kustomizations", "app");
    ctx.wait_until_gone("configmaps", "pre-settings");
    ctx.snapshot("deleted");
}
