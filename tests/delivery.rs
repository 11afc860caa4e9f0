//! Tests how requests about kustomize trees are admitted or denied: trees for Flux, Fleet, Sveltos and Argo CD, trees
//! in ConfigMaps, stored Kustomizations that refer to each other, and artifact servers that work or fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod artifacts;
mod cases;
#[path = "support/deadline.rs"]
mod deadline;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use artifacts::{Answer, ArtifactServer, Packer, bomb, digest_of, packed, packed_map};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cases::{Case, objects, vectors};
use deadline::deadline;
use portcullis::admission::{Level, Operation, Phase, Verdict};
use portcullis::artifacts::{Artifacts, Limits, Metrics};
use portcullis::catalog::{Catalog, Coverage, LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::kustomize::delivery::Artifact;
use serde_json::{Value, json};

const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: ldap-\n";
const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n";
const MISPLACED: [(&str, &str); 3] = [
    ("apps/kustomization.yaml", "resources:\n  - settings.yaml\n  - ../components/ldap\n"),
    ("apps/settings.yaml", SETTINGS),
    ("components/ldap/kustomization.yaml", COMPONENT),
];
const PLACED: [(&str, &str); 3] = [
    ("apps/kustomization.yaml", "resources:\n  - settings.yaml\ncomponents:\n  - ../components/ldap\n"),
    ("apps/settings.yaml", SETTINGS),
    ("components/ldap/kustomization.yaml", COMPONENT),
];

/// A gate that fetches artifacts from a test server. The catalog of the gate has the sources and Kustomizations of a
/// cluster.
struct Cluster {
    server: ArtifactServer,
    gate: Gate,
}

impl Cluster {
    fn new() -> Self {
        Self::with_levels(Limits::default(), &[])
    }

    fn with_levels(limits: Limits, deliveries: &[(&str, Level)]) -> Self {
        Self::with_reader(limits, deliveries, None)
    }

    /// Creates the gate and its artifact server. `reader` answers live reads. If it is `None`, live reads return the
    /// objects in the catalog.
    fn with_reader(limits: Limits, deliveries: &[(&str, Level)], reader: Option<Arc<dyn LiveReader>>) -> Self {
        let server = ArtifactServer::start();
        let registry = Registry::standard();
        let mut catalog = Catalog::new(registry.kinds());
        if let Some(reader) = reader {
            catalog.set_live_reader(reader);
        }
        for kind in registry.kinds() {
            catalog.set_coverage(kind, Coverage::Complete);
        }
        let policy = Policy {
            deliveries: deliveries.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect(),
            artifact_hosts: vec![server.host()],
            ..Policy::default()
        };
        let trees = Artifacts::new(limits, Metrics::default());
        let gate = Gate::new(registry, policy, Arc::new(catalog)).with_trees(Arc::new(trees));
        Self { server, gate }
    }

    fn store(&self, object: Value) {
        let kinds = self.gate.registry().kinds();
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| kind.is_kind_of(&object)).collect();
        assert!(!kinds.is_empty(), "no rule looks up objects of this kind");
        kinds.into_iter().for_each(|kind| self.gate.catalog().insert(kind, object.clone()));
    }

    fn store_source(&self, artifact: &Artifact) {
        self.store(source(artifact));
    }

    async fn apply(&self, object: Value) -> Verdict {
        let mut request = Case::new(Operation::Create, object).request();
        request.deadline = Some(Instant::now() + deadline());
        self.gate.decide(Phase::Validate, &request).await
    }

    /// Decides on an update of the status of the source `fleet`. The update sets the artifact of the source to
    /// `artifact`. `old` is the object before the update.
    async fn update_source_status(&self, artifact: &Artifact, old: Option<Value>) -> Verdict {
        let case = Case::new(Operation::Create, source(artifact)).update(old.unwrap_or(json!({})));
        let mut request = case.request();
        request.resource.subresource = "status".into();
        request.resource.plural = "gitrepositories".into();
        self.gate.decide(Phase::Validate, &request).await
    }
}

fn source(artifact: &Artifact) -> Value {
    let Artifact { url, digest, revision } = artifact;
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "fleet", "namespace": "flux-system"},
        "status": {"artifact": {"url": url, "digest": digest, "revision": revision, "path": "x"}},
    })
}

fn flux(path: &str, components: &[&str]) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": {"path": path, "components": components, "prune": true, "interval": "10m",
                 "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
    })
}

fn rules(verdict: &Verdict, level: Level) -> Vec<&'static str> {
    verdict.at_level(level).map(|finding| finding.rule).collect()
}

fn ids(verdict: &Verdict) -> Vec<&'static str> {
    verdict.findings.iter().map(|finding| finding.rule).collect()
}

/// Checks that a verdict admits the request with exactly one warning, which contains these words.
#[track_caller]
fn assert_warns(verdict: &Verdict, words: &[&str]) {
    assert!(verdict.is_allowed(), "{}", verdict.message());
    let warnings = verdict.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for word in words {
        assert!(warnings[0].contains(word), "{warnings:?} without {word:?}");
    }
}

#[tokio::test]
async fn reports_a_misplaced_component_with_file_line_and_revision() {
    let cluster = Cluster::new();
    cluster.store_source(&cluster.server.artifact(&packed(MISPLACED), "main@sha1:3f2c"));
    let verdict = cluster.apply(flux("./apps", &[])).await;
    assert_warns(
        &verdict,
        &["KZ001 apps/kustomization.yaml:3:5 of main@sha1:3f2c: resources[1]", "\"../components/ldap\""],
    );
    let denying = Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)]);
    denying.store_source(&denying.server.artifact(&packed(MISPLACED), "main@sha1:3f2c"));
    let verdict = denying.apply(flux("./apps", &[])).await;
    let message = verdict.message();
    assert!(
        message.contains("KZ001 spec.path: resources[1]: \"../components/ldap\" is a kustomize Component"),
        "{message}"
    );
    assert!(message.contains("\n  at apps/kustomization.yaml:3:5 of main@sha1:3f2c\n"), "{message}");
}

#[tokio::test]
async fn accepts_valid_trees_and_fetches_them_once() {
    let cluster = Cluster::new();
    let artifact = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    cluster.store_source(&artifact);
    for _ in 0..3 {
        assert_eq!(cluster.apply(flux("./apps", &[])).await, Verdict::default());
    }
    assert_eq!(
        cluster.apply(flux("./apps", &["../components/ldap"])).await.warnings().len(),
        1,
        "the component is listed twice"
    );
    assert_eq!(cluster.server.requests(&artifact), 1);
}

#[tokio::test]
async fn concurrent_requests_share_one_fetch() {
    let cluster = Cluster::new();
    let artifact = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    cluster.store_source(&artifact);
    let verdicts = futures::future::join_all((0..50).map(|_| cluster.apply(flux("./apps", &[])))).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::default()));
    assert_eq!(cluster.server.requests(&artifact), 1);
}

#[tokio::test]
async fn a_source_status_prefetches_the_artifact() {
    let cluster = Cluster::new();
    let artifact = cluster.server.artifact(&packed(MISPLACED), "main@sha1:2");
    assert_eq!(cluster.update_source_status(&artifact, None).await, Verdict::default());
    for _ in 0..200 {
        if cluster.server.requests(&artifact) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cluster.store_source(&artifact);
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ001"]);
    assert_eq!(cluster.server.all_requests(), 1);
}

#[tokio::test]
async fn judges_every_kustomization_of_a_source() {
    for level in [Level::Warn, Level::Deny] {
        let cluster = Cluster::with_levels(Limits::default(), &[("flux-sources", level)]);
        let good = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
        let bad = cluster.server.artifact(&packed(MISPLACED), "main@sha1:2");
        let mut other = flux("apps", &[]);
        other["metadata"] = json!({"name": "tenant", "namespace": "team-a"});
        other["spec"]["sourceRef"]["namespace"] = "flux-system".into();
        let mut suspended = flux("apps", &[]);
        suspended["metadata"]["name"] = "suspended".into();
        suspended["spec"]["suspend"] = true.into();
        [flux("apps", &[]), other, suspended].into_iter().for_each(|object| cluster.store(object));
        assert_eq!(cluster.update_source_status(&good, None).await, Verdict::default());
        let verdict = cluster.update_source_status(&bad, Some(source(&good))).await;
        assert_eq!(rules(&verdict, level), ["KZ001", "KZ001"]);
        let shown = format!("{} {}", verdict.message(), verdict.warnings().join(" "));
        for words in ["Kustomization flux-system/apps", "Kustomization team-a/tenant", "main@sha1:2"] {
            assert!(shown.contains(words), "{shown}");
        }
        assert_eq!(
            cluster.update_source_status(&bad, Some(source(&bad))).await,
            Verdict::default(),
            "the source has this artifact already"
        );
    }
}

/// Decides on an update of a Kustomization, and returns level and rule of each finding. `inventory` is the inventory in
/// the old status, and `object` is the new Kustomization.
async fn update_findings(cluster: &Cluster, object: Value, inventory: &[&str]) -> Vec<String> {
    let mut old = flux("./former", &[]);
    let entries: Vec<_> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    old["status"] = json!({"inventory": {"entries": entries}});
    let mut request = Case::new(Operation::Create, object).update(old).request();
    request.deadline = Some(Instant::now() + deadline());
    let verdict = cluster.gate.decide(Phase::Validate, &request).await;
    verdict.findings.iter().map(|finding| format!("{} {}", finding.level, finding.rule)).collect()
}

#[tokio::test]
async fn warns_about_objects_that_an_update_deletes() {
    let cluster = Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)]);
    let files = [
        ("apps/kustomization.yaml", "resources: [settings.yaml]\n"),
        ("apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n  namespace: ${ns}\n"),
    ];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let mut apps = flux("./apps", &[]);
    apps["spec"]["postBuild"] = json!({"substitute": {"ns": "a"}});
    assert_eq!(
        update_findings(&cluster, apps.clone(), &["a_s__ConfigMap"]).await,
        [""; 0],
        "after substitution, it is the object in the inventory"
    );
    assert_eq!(update_findings(&cluster, apps.clone(), &["a_s__ConfigMap", "_a__Namespace"]).await, ["warn KZ060"]);
    assert_eq!(
        update_findings(&cluster, apps.clone(), &["b_s__ConfigMap"]).await,
        ["warn KZ061"],
        "no object of the inventory is rendered"
    );
    let many: Vec<_> = (0..10).map(|number| format!("a_x{number}__ConfigMap")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).chain(["a_s__ConfigMap"]).collect();
    assert_eq!(update_findings(&cluster, apps.clone(), &many).await, ["warn KZ061"]);
    assert_eq!(
        update_findings(&cluster, apps.clone(), &many[5..]).await,
        [""; 0],
        "five deletions are below the limit"
    );
    let mut without_pruning = apps.clone();
    without_pruning["spec"]["prune"] = false.into();
    assert_eq!(update_findings(&cluster, without_pruning, &["_a__Namespace"]).await, [""; 0]);
    let mut unknown = apps.clone();
    unknown["spec"]["postBuild"] = json!({"substituteFrom": [{"kind": "Secret", "name": "s"}]});
    let found = update_findings(&cluster, unknown, &["_a__Namespace"]).await;
    assert!(
        !found.iter().any(|finding| finding.contains("KZ06")),
        "the namespace of the ConfigMap is unknown: {found:?}"
    );
    let mut unchanged = apps;
    unchanged["spec"]["path"] = "./former".into();
    unchanged["spec"].as_object_mut().unwrap().remove("postBuild");
    assert!(
        !update_findings(&cluster, unchanged, &["_a__Namespace"]).await.iter().any(|finding| finding.contains("KZ06"))
    );
}

/// Returns a Kustomization with this name that builds the folder of the same name from the source `fleet`.
fn kustomization_named(name: &str, spec: Value) -> Value {
    let mut object = flux(name, &[]);
    object["metadata"]["name"] = name.into();
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

#[tokio::test]
async fn compares_kustomizations_of_a_source() {
    let cluster = Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)]);
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: a\n");
    let (one, two, three) = (map("one"), map("two"), map("three"));
    let files = [
        ("apps/one.yaml", &*one),
        ("web/two.yaml", &*two),
        ("web/three.yaml", &*three),
        ("both/kustomization.yaml", "resources: [../web/two.yaml, ../apps/one.yaml]\n"),
    ];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let inventory = ["a_one__ConfigMap", "a_two__ConfigMap"];
    let apps = || kustomization_named("apps", json!({}));
    let spec = |spec: Value| kustomization_named("web", spec);
    assert_eq!(update_findings(&cluster, apps(), &inventory).await, [""; 0], "one deletion is below the limit");
    cluster.store(spec(json!({})));
    assert_eq!(update_findings(&cluster, apps(), &inventory).await, ["warn KZ063"]);
    let waits = kustomization_named("apps", json!({"dependsOn": [{"name": "web"}]}));
    assert_eq!(update_findings(&cluster, waits.clone(), &inventory).await, [""; 0]);
    assert_eq!(
        update_findings(&cluster, waits, &["a_two__ConfigMap"]).await,
        [""; 0],
        "the object moves and is not deleted"
    );
    let waits = json!({"dependsOn": [{"name": "web", "readyExpr": "true"}]});
    assert_eq!(
        update_findings(&cluster, kustomization_named("apps", waits), &inventory).await,
        ["warn KZ063"],
        "`readyExpr` does not compare the revision"
    );
    cluster.store(kustomization_named("both", json!({})));
    let warned = cluster.apply(apps()).await;
    assert_eq!(rules(&warned, Level::Warn), ["KZ062"]);
    assert!(warned.warnings()[0].contains("Kustomization flux-system/both renders ConfigMap a/one too"));
    for elsewhere in [json!({"suspend": true}), json!({"kubeConfig": {"secretRef": {"name": "remote"}}})] {
        cluster.store(kustomization_named("both", elsewhere));
        assert_eq!(cluster.apply(apps()).await, Verdict::default());
    }
}

#[tokio::test]
async fn the_configuration_sets_the_limits_of_deletions() {
    let cluster = Cluster::with_levels(Limits::default(), &[]);
    let files = [("apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n  namespace: a\n")];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let inventory = ["a_s__ConfigMap", "a_x__Secret", "_n__Namespace"];
    let under = async |text: &str| {
        let registry = Registry::standard();
        let policy = portcullis::config::parse(text, "portcullis.yaml", &registry).unwrap();
        cluster.gate.set_policy(Policy { artifact_hosts: vec![cluster.server.host()], ..policy });
        update_findings(&cluster, flux("apps", &[]), &inventory).await
    };
    assert_eq!(under("{}").await, ["warn KZ060"]);
    assert_eq!(under("deletions: {protectedKinds: [Secret]}").await, ["warn KZ060"]);
    assert_eq!(under("deletions: {protectedKinds: []}").await, [""; 0]);
    assert_eq!(under("deletions: {protectedKinds: [], maxCount: 1}").await, ["warn KZ061"]);
    assert_eq!(under("deletions: {protectedKinds: [], maxCount: 1, maxPercent: 70}").await, [""; 0]);
}

#[tokio::test]
async fn audits_report_what_the_current_revision_deletes() {
    let cluster = Cluster::new();
    let files = [("apps/settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n  namespace: a\n")];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let mut stored = flux("apps", &[]);
    stored["status"] = json!({"inventory": {"entries": [{"id": "_n__Namespace", "v": "v1"}]}});
    let found = async |new: Value| {
        let mut request = Case::new(Operation::Create, new).update(stored.clone()).request();
        request.deadline = Some(Instant::now() + deadline());
        let verdict = cluster.gate.decide(Phase::Validate, &request).await;
        verdict.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(found(stored.clone()).await, ["KZ060", "KZ061"]);
    let mut labelled = stored.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(found(labelled).await, [""; 0], "the build does not change");
}

#[tokio::test]
async fn judges_the_flux_vectors_like_flux() {
    for case in vectors("kustomize/flux.json").as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let cluster = Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)]);
        let files = serde_json::from_value(case["files"].clone()).unwrap();
        cluster.store_source(&cluster.server.artifact(&packed_map(&files), "main@sha1:3f2c"));
        let mut object = objects(case["flux_kustomization"].as_str().unwrap()).remove(0);
        object["spec"]["sourceRef"] = json!({"kind": "GitRepository", "name": "fleet", "namespace": "flux-system"});
        let verdict = cluster.apply(object).await;
        let accept = case["expect"]["accept"].as_bool().unwrap();
        // A remote base cannot be checked without git, so it is not denied.
        let is_unknown = ids(&verdict).contains(&"KZ040");
        // A missing file may exist in another revision, so it is not denied.
        let is_late = rules(&verdict, Level::Warn).contains(&"KZ004");
        assert!(verdict.is_allowed() == accept || is_unknown || is_late, "{name}: {}", verdict.message());
        for finding in verdict.denials().filter(|finding| finding.location.is_some()) {
            assert!(finding.location.as_ref().unwrap().ends_with(" of main@sha1:3f2c"), "{name}: {finding:?}");
        }
    }
}

#[tokio::test]
async fn static_findings_need_no_source_and_deny() {
    let cluster = Cluster::new();
    let judged =
        async |components: &[&str]| rules(&cluster.apply(flux("./apps", components)).await, Level::Deny).join(" ");
    assert_eq!(judged(&["https://github.com/o/r//c", "/c", "git@github.com:o/r"]).await, "KZ011 KZ011 KZ011");
    assert_eq!(judged(&["", ".", "..", "../.."]).await, "KZ004 KZ009 KZ009 KZ009");
    assert_eq!(judged(&["../components/ldap", "${which}", "../${which}"]).await, "");
    let mut suspended = flux("./apps", &["/c"]);
    suspended["spec"]["suspend"] = true.into();
    assert_eq!(cluster.apply(suspended).await, Verdict::default());
    let mut unchanged = Case::new(Operation::Create, flux("./apps", &["/c"])).update(flux("./apps", &["/c"]));
    unchanged.object["metadata"]["finalizers"] = json!(["finalizers.fluxcd.io"]);
    assert!(cluster.gate.decide(Phase::Validate, &unchanged.request()).await.is_allowed());
}

#[tokio::test]
async fn warns_about_a_missing_source_or_artifact() {
    let cluster = Cluster::new();
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "GitRepository flux-system/fleet does not exist"]);
    let mut empty = source(&Artifact { url: String::new(), digest: String::new(), revision: String::new() });
    empty["status"] = json!({"observedGeneration": -1});
    cluster.store(empty);
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "has no artifact yet"]);
}

type Behaviour = Box<dyn Fn(Arc<[u8]>) -> Answer>;

/// Returns limits that are low enough to be exceeded by a small archive.
fn small_limits() -> Limits {
    Limits { fetch: deadline(), packed: 1 << 20, unpacked: 1 << 21, ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_server_errors_never_deny() {
    const SLOW: &str = "did not send the archive";
    let good = packed(MISPLACED);
    let answers: Vec<(&str, Behaviour)> = vec![
        ("404", Box::new(|_| Answer::Status(404))),
        ("500", Box::new(|_| Answer::Status(500))),
        ("redirect", Box::new(|_| Answer::Redirect("http://169.254.169.254/".to_owned()))),
        (SLOW, Box::new(Answer::Slow)),
        (SLOW, Box::new(|_| Answer::Hang)),
        ("was interrupted", Box::new(Answer::Truncated)),
        ("is larger than", Box::new(|_| Answer::Endless)),
        ("its digest is", Box::new(|_| Answer::Bytes(packed(PLACED).into()))),
    ];
    for (words, answer) in answers {
        // Tests with a slow server use a short timeout, so that they end soon.
        let fetch = if words == SLOW { Duration::from_millis(700) } else { deadline() };
        let cluster = Cluster::with_levels(Limits { fetch, ..small_limits() }, &[("flux-trees", Level::Deny)]);
        cluster.store_source(&cluster.server.artifact_with_answer(&good, "main@sha1:1", answer));
        assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "main@sha1:1 is not checked", words]);
        let requests_before = cluster.server.all_requests();
        assert_warns(&cluster.apply(flux("apps", &[])).await, &[words]);
        assert_eq!(cluster.server.all_requests(), requests_before, "{words}: a failed fetch is repeated at once");
    }
}

#[tokio::test]
async fn reports_unreachable_servers_and_foreign_hosts() {
    let cluster = Cluster::with_levels(small_limits(), &[("flux-trees", Level::Deny)]);
    let mut artifact = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    artifact.url = "http://127.0.0.1:1/a.tar.gz".to_owned();
    cluster.store_source(&artifact);
    assert_warns(
        &cluster.apply(flux("apps", &[])).await,
        &["KZ041", "127.0.0.1:1 is not in the list of allowed artifact hosts"],
    );
    let policy = Policy { artifact_hosts: vec!["127.0.0.1:1".to_owned()], ..Policy::default() };
    cluster.gate.set_policy(policy);
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "127.0.0.1:1 does not answer"]);
}

#[tokio::test]
async fn levels_of_rules_do_not_exceed_that_of_the_source() {
    let cluster = Cluster::with_levels(small_limits(), &[]);
    let mut artifact = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    artifact.url = "http://127.0.0.1:1/a.tar.gz".to_owned();
    cluster.store_source(&artifact);
    let with = |max_level| Policy {
        levels: [("KZ041".to_owned(), Level::Deny)].into(),
        deliveries: [("flux-trees".to_owned(), max_level)].into(),
        ..Policy::default()
    };
    cluster.gate.set_policy(with(Level::Deny));
    assert!(!cluster.apply(flux("apps", &[])).await.is_allowed());
    cluster.gate.set_policy(with(Level::Warn));
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041"]);
}

#[tokio::test]
async fn late_artifacts_serve_the_next_request() {
    let cluster = Cluster::new();
    let is_open = Arc::new(AtomicBool::new(false));
    let late = |bytes| Answer::WaitForFlag(bytes, is_open.clone());
    let late_artifact = cluster.server.artifact_with_answer(&packed(MISPLACED), "main@sha1:1", late);
    cluster.store_source(&late_artifact);
    let mut request = Case::new(Operation::Create, flux("apps", &[])).request();
    request.deadline = Some(Instant::now() + Duration::from_millis(300));
    let verdict = cluster.gate.decide(Phase::Validate, &request).await;
    assert_warns(&verdict, &["KZ041", "still being fetched"]);
    is_open.store(true, Ordering::SeqCst);
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ001"]);
    assert_eq!(cluster.server.requests(&late_artifact), 1);
}

#[tokio::test]
async fn rejects_bombs_links_and_names_outside_the_tree() {
    let cluster = Cluster::with_levels(small_limits(), &[("flux-trees", Level::Deny)]);
    let bomb = bomb(64);
    assert!(bomb.len() < 1 << 20);
    cluster.store_source(&cluster.server.artifact(&bomb, "main@sha1:1"));
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "when unpacked"]);

    let mut archive = Packer::new();
    archive.file("../../apps/kustomization.yaml", b"resources: []\n");
    cluster.store_source(&cluster.server.artifact(&archive.finish(), "main@sha1:2"));
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "which may point outside of it"]);

    // Flux does not extract links, no matter where they lead.
    let mut archive = Packer::new();
    archive.file("apps/kustomization.yaml", b"resources: [out, passwd.yaml]\n");
    archive.link("apps/out", "../../../../etc");
    archive.link("apps/passwd.yaml", "/etc/passwd");
    cluster.store_source(&cluster.server.artifact(&archive.finish(), "main@sha1:2"));
    assert_eq!(rules(&cluster.apply(flux("apps", &[])).await, Level::Deny), ["KZ004", "KZ004"]);

    cluster.store_source(&cluster.server.artifact(b"this is no archive", "main@sha1:3"));
    assert_warns(&cluster.apply(flux("apps", &[])).await, &["KZ041", "cannot be read"]);
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn gzip_base64(text: &str) -> String {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    base64(&packer.finish().unwrap())
}

fn decided(object: Value) -> Verdict {
    Case::new(Operation::Create, object).decide(Phase::Validate)
}

fn bundle(files: &[(&str, &str)], dir: Option<&str>) -> Value {
    let resource = |(at, (name, text)): (usize, &(&str, &str))| match at % 2 {
        0 => json!({"name": name, "content": text}),
        _ => json!({"name": name, "content": gzip_base64(text), "encoding": "base64+gz"}),
    };
    let resources: Vec<_> = files.iter().enumerate().map(resource).collect();
    json!({
        "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "apps", "namespace": "fleet-local"},
        "spec": {"resources": resources, "kustomize": {"dir": dir.unwrap_or_default()}},
    })
}

#[test]
fn judges_trees_in_fleet_bundles() {
    let verdict = decided(bundle(&MISPLACED, Some("apps")));
    let message = verdict.message();
    assert!(
        message.contains("KZ001 spec.kustomize.dir: resources[1]") && message.contains("apps/kustomization.yaml:3:5")
    );
    assert_eq!(decided(bundle(&PLACED, Some("apps"))), Verdict::default());
    assert_eq!(
        decided(bundle(&MISPLACED, None)),
        Verdict::default(),
        "the root of the bundle has no kustomization file"
    );
    let mut target = bundle(&MISPLACED, None);
    target["spec"]["targets"] = json!([{"name": "prod"}, {"kustomize": {"dir": "./apps"}}]);
    let verdict = decided(target);
    assert_eq!(verdict.findings[0].field.to_string(), "spec.targets[1].kustomize.dir");
    let mut unreadable = bundle(&PLACED, Some("apps"));
    unreadable["spec"]["resources"][1]["content"] = "!".into();
    assert_warns(&decided(unreadable), &["KZ041", "is not base64"]);
}

fn config_map(labels: Value, data: Value, binary: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tree", "namespace": "team-a", "labels": labels},
        "data": data, "binaryData": binary,
    })
}

#[test]
fn judges_every_root_of_sveltos_trees() {
    let map =
        |files| config_map(json!({}), json!({}), json!({"kustomize.tar.gz": base64(&packed::<&str, &str>(files))}));
    let verdict = decided(map(MISPLACED));
    assert_eq!(rules(&verdict, Level::Deny), ["KZ001"]);
    assert_eq!(verdict.findings[0].field.to_string(), "binaryData[kustomize.tar.gz]");
    assert_eq!(decided(map(PLACED)), Verdict::default());
    assert_eq!(decided(config_map(json!({}), json!({"a": "b"}), json!({}))), Verdict::default());
    let secret = |files| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tree", "namespace": "team-a"},
               "data": {"kustomize.tar.gz": base64(&packed::<&str, &str>(files))}})
    };
    assert_eq!(rules(&decided(secret(MISPLACED)), Level::Deny), ["KZ001"]);
    assert_eq!(decided(secret(PLACED)), Verdict::default());
}

#[test]
fn judges_labelled_config_maps() {
    let label = || json!({"portcullis.dev/kustomize-tree": "flux"});
    let keys = |files: [(&str, &str); 3]| -> Value {
        files
            .iter()
            .map(|(path, text)| (path.replace('/', "__"), Value::from(*text)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let verdict = decided(config_map(label(), keys(MISPLACED), json!({})));
    assert_eq!(rules(&verdict, Level::Deny), ["KZ001"]);
    assert_eq!(verdict.findings[0].location.as_deref(), Some("apps/kustomization.yaml:3:5"));
    assert_eq!(decided(config_map(label(), keys(PLACED), json!({}))), Verdict::default());
    let archive = json!({"kustomize.tar.gz": base64(&packed(MISPLACED))});
    let mut one = config_map(label(), json!({}), archive);
    assert_eq!(rules(&decided(one.clone()), Level::Deny), ["KZ001"]);
    one["metadata"]["annotations"] = json!({"portcullis.dev/path": "components/ldap"});
    assert_eq!(rules(&decided(one), Level::Warn), ["KZ020"]);
    assert_eq!(ids(&decided(config_map(label(), json!({"a.yaml": SETTINGS}), json!({})))), ["KZ005"]);
}

#[test]
fn judges_argo_cd_applications() {
    let source =
        |components: &[&str]| json!({"repoURL": "https://x", "path": "apps", "kustomize": {"components": components}});
    let application = |spec: Value| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
               "metadata": {"name": "a", "namespace": "argocd"}, "spec": spec})
    };
    let bad = ["/abs", "", ".", "../x", "{{ .path }}", "../glob-*", "https://github.com/o/r//c"];
    let verdict = decided(application(json!({"sources": [source(&["../x"]), source(&bad)]})));
    let fields: Vec<_> = verdict.denials().map(|finding| format!("{} {}", finding.rule, finding.field)).collect();
    let field = |rule, index| format!("{rule} spec.sources[1].kustomize.components[{index}]");
    assert_eq!(fields, [field("KZ010", 0), field("KZ004", 1), field("KZ009", 2)]);
    assert_warns(&decided(application(json!({"source": source(&["../c/kustomization.yaml"])}))), &["KZ003"]);
    let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "a", "namespace": "argocd"},
                     "spec": {"template": {"spec": {"source": source(&["/abs", "{{x}}"])}}}});
    assert_eq!(rules(&decided(set), Level::Deny), ["KZ010"]);
    let mut lenient = source(&["/abs"]);
    lenient["kustomize"]["ignoreMissingComponents"] = true.into();
    assert_warns(&decided(application(json!({"source": lenient}))), &["KZ010"]);
}

fn stored_kustomization(kind: &str, name: &str, path: &str, lists: Value) -> Value {
    let version = if kind == "Component" { "v1alpha1" } else { "v1beta1" };
    let mut object = json!({
        "apiVersion": format!("kustomize.config.k8s.io/{version}"), "kind": kind,
        "metadata": {"name": name, "namespace": "team-a", "annotations": {"portcullis.dev/path": path}},
    });
    object.as_object_mut().unwrap().extend(lists.as_object().unwrap().clone());
    object
}

fn denials_after(existing: &[Value], operation: Operation, object: Value) -> Vec<&'static str> {
    let verdict = Case::new(operation, object).stored(existing.to_vec()).decide(Phase::Validate);
    rules(&verdict, Level::Deny)
}

#[test]
fn stored_kustomizations_are_judged_in_both_directions() {
    let component = stored_kustomization("Component", "ldap", "components/ldap", json!({}));
    let base = stored_kustomization("Kustomization", "base", "base", json!({"resources": ["a.yaml"]}));
    let app = |lists| stored_kustomization("Kustomization", "app", "clusters/app", lists);
    let wrong = app(json!({"resources": ["../../base", "../../components/ldap"], "components": ["../../base"]}));
    let right = app(json!({"resources": ["../../base", "x.yaml"], "components": ["../../components/ldap"]}));
    let existing = [component.clone(), base.clone()];
    assert_eq!(denials_after(&existing, Operation::Create, wrong.clone()), ["KZ001", "KZ002"]);
    assert_eq!(denials_after(&existing, Operation::Create, right.clone()), [""; 0]);
    // The other order: the Kustomization with the error exists first.
    assert_eq!(denials_after(std::slice::from_ref(&wrong), Operation::Create, component.clone()), ["KZ001"]);
    assert_eq!(denials_after(&[wrong], Operation::Create, base.clone()), ["KZ002"]);
    assert_eq!(denials_after(std::slice::from_ref(&right), Operation::Create, component.clone()), [""; 0]);
    // An object that another object uses must not be deleted.
    let all = [component.clone(), base.clone(), right];
    assert_eq!(denials_after(&all, Operation::Delete, component.clone()), ["KZ004"]);
    assert_eq!(denials_after(&existing, Operation::Delete, component.clone()), [""; 0]);
    let mut moved =
        Case::new(Operation::Create, stored_kustomization("Component", "ldap", "components/other", json!({})));
    moved = moved.update(component.clone()).stored(all.to_vec());
    assert_eq!(rules(&moved.decide(Phase::Validate), Level::Deny), ["KZ004"]);
    // An object of another kind in the same folder.
    let changed = stored_kustomization("Kustomization", "ldap", "components/ldap", json!({"resources": []}));
    assert_eq!(denials_after(&all, Operation::Create, changed), ["KZ006", "KZ002"]);
    assert_eq!(denials_after(&[], Operation::Create, app(json!({"resources": [".."]}))), ["KZ009"]);
    let mut elsewhere = component;
    elsewhere["metadata"]["namespace"] = "team-b".into();
    assert_eq!(
        denials_after(&[elsewhere], Operation::Create, app(json!({"resources": ["../../components/ldap"]}))),
        [""; 0]
    );
}

#[test]
fn does_not_deny_garbage_collection_and_namespace_deletion() {
    let component = stored_kustomization("Component", "ldap", "components/ldap", json!({}));
    let app = stored_kustomization("Kustomization", "app", "app", json!({"components": ["../components/ldap"]}));
    let case = || Case::new(Operation::Delete, component.clone()).stored(vec![component.clone(), app.clone()]);
    assert!(!case().decide(Phase::Validate).is_allowed());
    assert!(case().user("system:serviceaccount:kube-system:namespace-controller").decide(Phase::Validate).is_allowed());
    let terminating = json!({"apiVersion": "v1", "kind": "Namespace",
                       "metadata": {"name": "team-a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut case = case();
    case.stored.push(terminating);
    assert!(case.decide(Phase::Validate).is_allowed());
}

#[test]
fn reports_a_stored_kustomization_without_a_path() {
    let mut object = stored_kustomization("Kustomization", "app", "app", json!({"resources": []}));
    object["metadata"]["annotations"] = json!({});
    assert_eq!(denials_after(&[], Operation::Create, object), ["KZ050"]);
}

/// Checks that a build stops at a limit if patches copy an object into itself. Each copy doubles the size of the
/// object. Without a limit, forty copies would expand it to about 10^12 values.
#[test]
fn bounds_patches_that_copy_recursively() {
    let copies: String =
        (0..40).map(|number| format!("    - {{op: copy, from: /data, path: /data/c{number}}}\n")).collect();
    let root = format!("resources: [settings.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |-\n{copies}");
    let settings = format!("{SETTINGS}data: {{a: b}}\n");
    let bundle = bundle(&[("apps/kustomization.yaml", &root), ("apps/settings.yaml", &settings)], Some("apps"));
    let verdict = decided(bundle);
    assert!(verdict.is_allowed() && verdict.findings[0].message.contains("which is the limit"), "{verdict:?}");
}

#[test]
fn accepts_digests_in_flux_format() {
    assert_eq!(digest_of(b""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/// Adds to `object` the labels that Flux sets on objects of the Kustomization `owner`.
fn applied_by(owner: &str, mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
    });
    object
}

fn denying_cluster() -> Cluster {
    Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)])
}

/// Regression test for issue 18 (Flux, item 1): a Kustomization whose path does not exist in the revision of its source
/// gets a warning, not a denial. Flux may apply the Kustomization together with a new branch of the source, in which
/// the path exists. A denial would make the whole apply operation fail, so the source would keep its old branch.
#[tokio::test]
async fn never_denies_a_path_missing_in_the_revision() {
    let cluster = denying_cluster();
    cluster.store_source(&cluster.server.artifact(&packed(PLACED), "main@sha1:3f2c9a1b04de77"));
    assert_warns(
        &cluster.apply(flux("./app", &[])).await,
        &["KZ004 spec.path: \"app\" does not exist (revision main@sha1:3f2c9a1b04de)", "did you mean \"apps\"?"],
    );
    assert_warns(
        &cluster.apply(flux("./apps", &["../gone"])).await,
        &["KZ004 spec.components[0]: \"../gone\" does not exist"],
    );
    let similar = cluster.apply(flux("./apps", &["../components/ldp"])).await;
    assert_warns(&similar, &["KZ004 spec.components[0]: ", "did you mean \"../components/ldap\"?"]);
    let nothing_similar = cluster.apply(flux("./elsewhere", &[])).await;
    assert!(!nothing_similar.warnings()[0].contains("relative to"), "{:?}", nothing_similar.warnings());
}

/// Regression test for issue 18 (Flux, item 1): errors in the tree of a Kustomization cause only warnings if a new
/// revision of the source is expected, because this revision may fix the errors.
#[tokio::test]
async fn never_denies_errors_that_another_revision_may_fix() {
    let cluster = denying_cluster();
    let artifact = cluster.server.artifact(&packed(MISPLACED), "main@sha1:1");
    type Change = fn(&mut Value);
    let late: [(&str, Change); 5] = [
        ("has changed since", |source| source["metadata"]["generation"] = 2.into()),
        ("reconciliation of the source was requested", |source| {
            source["metadata"]["annotations"] = json!({"reconcile.fluxcd.io/requestedAt": "now"});
        }),
        ("is not ready", |source| source["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}])),
        ("is not ready", |source| source["status"]["conditions"] = json!([{"type": "Reconciling", "status": "True"}])),
        ("by the same apply", |source| *source = applied_by("apps", source.clone())),
    ];
    let child = applied_by("apps", flux("./apps", &[]));
    for (why, change) in late {
        let mut source = source(&artifact);
        change(&mut source);
        cluster.store(source);
        let verdict = cluster.apply(child.clone()).await;
        assert_warns(&verdict, &["KZ001"]);
        let noted = verdict.at_level(Level::Audit).any(|finding| finding.message.contains(why));
        assert!(noted, "{why}: {:?}", verdict.findings);
    }
    cluster.store(applied_by("infrastructure", source(&artifact)));
    assert!(!cluster.apply(child).await.is_allowed(), "another Kustomization applies the source");
    cluster.store_source(&artifact);
    assert!(
        !cluster.apply(flux("./apps", &[])).await.is_allowed(),
        "the Kustomization is not applied together with its source"
    );
    assert!(
        cluster.apply(applied_by("apps", flux("./apps", &[]))).await.is_allowed(),
        "the same apply may change the source"
    );
}

/// Regression test for issue 18 (Flux, item 1): a revision may lack the path or a component of a Kustomization. This
/// only causes a warning, because the same revision may change the Kustomization too.
#[tokio::test]
async fn does_not_deny_revisions_that_may_change_the_kustomization() {
    let cluster = Cluster::with_levels(Limits::default(), &[("flux-sources", Level::Deny)]);
    let artifact = cluster.server.artifact(&packed(PLACED), "main@sha1:2");
    cluster.store(applied_by("flux-system", flux("./apps", &["../gone"])));
    let verdict = cluster.update_source_status(&artifact, None).await;
    assert_warns(&verdict, &["KZ004", "spec.components[0]: \"../gone\" does not exist"]);
    cluster.store(flux("./renamed", &[]));
    assert_warns(&cluster.update_source_status(&artifact, None).await, &["KZ004", "\"renamed\" does not exist"]);
}

/// Regression test for issue 18 (Flux, item 2): in the kustomization file of a root, Flux converts numbers to strings
/// where strings are needed, and ignores unknown fields. Portcullis must not deny such a file.
#[tokio::test]
async fn converts_scalars_of_the_root_file_to_strings() {
    let cluster = denying_cluster();
    let root = "resources: [settings.yaml]\nnamePrefix: 7\nimages: [{name: a, newTag: 1.25}]\nunknown: true\n";
    let files = [("apps/kustomization.yaml", root), ("apps/settings.yaml", SETTINGS)];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    assert_warns(
        &cluster.apply(flux("./apps", &[])).await,
        &["KZ008", "there is no field \"unknown\"", "Flux ignores it"],
    );
}

/// Regression test for issue 18 (Flux, item 3): errors in the spec of a Kustomization are found even if its source
/// does not exist.
#[tokio::test]
async fn denies_an_invalid_spec_without_its_source() {
    let cluster = Cluster::new();
    let judged = async |patches: Value| {
        let mut object = flux("./apps", &[]);
        object["spec"]["patches"] = patches;
        let verdict = cluster.apply(object).await;
        let fields: Vec<_> = verdict.denials().map(|finding| format!("{} {}", finding.rule, finding.field)).collect();
        fields.join(" ")
    };
    assert_eq!(judged(json!([{"patch": "garbage"}])).await, "KZ014 spec.patches[0]");
    let no_target = json!([{"patch": SETTINGS}, {"patch": "[{op: remove, path: /data}]"}]);
    assert_eq!(judged(no_target).await, "KZ014 spec.patches[1]");
    assert_eq!(judged(json!([{"patch": SETTINGS}, {"patch": "${patch}"}])).await, "");
}

/// Regression test for issue 18 (Flux, item 3): Portcullis must substitute variables in the same way as Flux.
#[tokio::test]
async fn substitutes_variables_like_flux() {
    let cluster = denying_cluster();
    let settings = format!("{SETTINGS}data: {{a: '${{{{ x }}}}'}}\n");
    let files = [("apps/kustomization.yaml", "resources: [settings.yaml]\n"), ("apps/settings.yaml", &*settings)];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    assert_eq!(cluster.apply(flux("./apps", &[])).await, Verdict::default(), "no variable is substituted");
    let mut object = flux("./apps", &[]);
    object["spec"]["postBuild"] = json!({"substitute": {"cluster": "prod"}});
    let verdict = cluster.apply(object).await;
    assert_eq!(rules(&verdict, Level::Deny), ["KZ018"]);
    assert!(verdict.message().contains("apps/settings.yaml:1:1 of main@sha1:1"), "{}", verdict.message());
}

/// Regression test for issue 18 (Flux, item 3): Portcullis does not read the Secrets and ConfigMaps of
/// `substituteFrom`. It must record that the values of their variables are unknown.
#[tokio::test]
async fn records_that_variables_of_secrets_are_unknown() {
    let cluster = denying_cluster();
    let settings = format!("{SETTINGS}data: {{a: '${{color}}'}}\n");
    let files = [("apps/kustomization.yaml", "resources: [settings.yaml]\n"), ("apps/settings.yaml", &*settings)];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let mut object = flux("./apps", &[]);
    object["spec"]["postBuild"] = json!({"substituteFrom": [{"kind": "Secret", "name": "colors"}]});
    let verdict = cluster.apply(object).await;
    assert!(verdict.is_allowed() && verdict.warnings().is_empty(), "{:?}", verdict.findings);
    let recorded: Vec<_> = verdict.at_level(Level::Audit).collect();
    let is_expected = |message: &str| message.contains("the content of Secret/colors is unknown");
    assert!(recorded.iter().any(|finding| finding.rule == "KZ040" && is_expected(&finding.message)), "{recorded:?}");
}

/// Regression test for issue 18 (Flux, item 4): an update that does not change the build gets warnings instead of a
/// denial.
#[tokio::test]
async fn never_denies_updates_that_do_not_change_the_build() {
    let cluster = denying_cluster();
    cluster.store_source(&cluster.server.artifact(&packed(MISPLACED), "main@sha1:1"));
    let decided = async |change: fn(&mut Value)| {
        let mut case = Case::new(Operation::Create, flux("./apps", &["/abs"])).update(flux("./apps", &["/abs"]));
        change(&mut case.object);
        cluster.gate.decide(Phase::Validate, &case.request()).await
    };
    let verdict = decided(|object| object["spec"]["interval"] = "5m".into()).await;
    assert!(verdict.is_allowed(), "{}", verdict.message());
    assert_eq!(rules(&verdict, Level::Warn), ["KZ011", "KZ001"]);
    assert!(!decided(|object| object["spec"]["targetNamespace"] = "x".into()).await.is_allowed());
}

/// Sends the two status updates with which source-controller publishes a revision: first the conditions, then the
/// artifact. Returns the source as it is stored after both updates.
async fn publish_revision(cluster: &Cluster, before: &Value, artifact: &Artifact) -> Value {
    let stored = format!("stored artifact for revision '{}'", artifact.revision);
    let mut announced = before.clone();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Succeeded", "message": stored});
    announced["status"]["conditions"] = json!([condition("Ready"), condition("ArtifactInStorage")]);
    let announced = update_status(cluster, before, announced).await;
    let mut complete = announced.clone();
    complete["status"]["artifact"] = source(artifact)["status"]["artifact"].clone();
    update_status(cluster, &announced, complete).await
}

/// Sends an update of a source's status to the mutating webhook, and then the result to the validating webhook. Returns
/// the source as it is stored after the update.
async fn update_status(cluster: &Cluster, before: &Value, now: Value) -> Value {
    let decide = async |phase, object: Value| {
        let mut request = Case::new(Operation::Create, object).update(before.clone()).request();
        request.resource.subresource = "status".into();
        request.resource.plural = "gitrepositories".into();
        cluster.gate.decide(phase, &request).await
    };
    let mut stored = now.clone();
    if let Some(patch) = decide(Phase::Mutate, now).await.patch {
        json_patch::patch(&mut stored, &patch).expect("the patch applies");
    }
    let served = stored["status"]["artifact"]["revision"].as_str();
    let [status, message] = ready_condition(&stored);
    assert!(status != "True" || served.is_some_and(|served| message.contains(served)), "{served:?}: {message}");
    assert!(decide(Phase::Validate, stored.clone()).await.is_allowed(), "the update is denied");
    assert_eq!(decide(Phase::Mutate, stored.clone()).await.patch, None, "the stored status is patched again");
    stored
}

fn ready_condition(source: &Value) -> [&str; 2] {
    let ready = &source["status"]["conditions"][0];
    [ready["status"].as_str().unwrap(), ready["message"].as_str().unwrap()]
}

/// Regression test for issue 18 (Flux, item 5): while Portcullis denies the new revision of a source, the condition
/// `Ready` of the source must be false.
#[tokio::test]
async fn a_denied_revision_is_never_ready() {
    let cluster = Cluster::with_levels(Limits::default(), &[("flux-sources", Level::Deny)]);
    cluster.store(flux("apps", &[]));
    let good = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    let bad = cluster.server.artifact(&packed(MISPLACED), "main@sha1:2");
    let mut empty = source(&good);
    empty["status"] = json!({});
    let first = publish_revision(&cluster, &empty, &good).await;
    assert_eq!(ready_condition(&first), ["True", "stored artifact for revision 'main@sha1:1'"]);
    let mut refused = first.clone();
    for _ in 0..2 {
        refused = publish_revision(&cluster, &refused, &bad).await;
        assert_eq!(refused["status"]["artifact"], first["status"]["artifact"]);
        let [status, message] = ready_condition(&refused);
        assert!(status == "False" && message.contains("revision main@sha1:2 is withheld"), "{message}");
        assert!(message.contains("KZ001") && message.contains("Kustomization flux-system/apps"), "{message}");
    }
    let repaired = publish_revision(&cluster, &refused, &good).await;
    assert_eq!(ready_condition(&repaired), ["True", "stored artifact for revision 'main@sha1:1'"]);
    let alone = publish_revision(&cluster, &empty, &bad).await;
    assert_eq!((alone["status"].get("artifact"), ready_condition(&alone)[0]), (None, "False"));
}

/// Configures the guard with `hold: source`, so that a source keeps its previous revision if the new one would delete
/// too much. `more` is additional configuration.
fn set_hold_policy(cluster: &Cluster, more: &str) {
    let text = format!("guard: {{hold: source}}\ndeletions: {{maxCount: 2, protectedKinds: [Secret]}}\n{more}");
    let policy = portcullis::config::parse(&text, "portcullis.yaml", cluster.gate.registry()).unwrap();
    cluster.gate.set_policy(Policy { artifact_hosts: vec![cluster.server.host()], ..policy });
}

/// Returns a Flux Kustomization with an inventory of objects in the namespace `a`. Its annotation
/// `portcullis.dev/approve-deletions` approves the deletions of objects by the revision `approves`.
fn kustomization_with_inventory(name: &str, inventory: &[&str], approves: &str) -> Value {
    let mut object = kustomization_named(name, json!({}));
    let entries: Vec<_> = inventory.iter().map(|id| json!({"id": format!("a_{id}"), "v": "v1"})).collect();
    object["status"] = json!({"inventory": {"entries": entries}});
    object["metadata"]["annotations"] = json!({"portcullis.dev/approve-deletions": approves});
    object
}

/// Returns an artifact with the folders `apps`, which has one ConfigMap, and `web`, which has none.
fn shrunk_artifact(cluster: &Cluster, revision: &str) -> Artifact {
    let kept = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  namespace: a\n";
    let files = [("apps/kept.yaml", kept), ("web/kustomization.yaml", "resources: []\n"), ("note", revision)];
    cluster.server.artifact(&packed(files), revision)
}

/// Creates a source, and returns it with `artifact` in its status. The admission of the first revision may remove the
/// artifact from the status, so this function adds it again.
async fn source_serving(cluster: &Cluster, artifact: &Artifact) -> Value {
    let mut empty = source(artifact);
    empty["status"] = json!({});
    let mut first = publish_revision(cluster, &empty, artifact).await;
    first["status"]["artifact"] = source(artifact)["status"]["artifact"].clone();
    first
}

const FOUR_OBJECTS: [&str; 4] = ["one__ConfigMap", "two__ConfigMap", "three__ConfigMap", "kept__ConfigMap"];

#[tokio::test]
async fn a_revision_that_deletes_too_much_waits_for_the_approval_of_each_kustomization() {
    let cluster = Cluster::new();
    set_hold_policy(&cluster, "");
    let old = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    let before = source_serving(&cluster, &old).await;
    let new = shrunk_artifact(&cluster, "main@sha1:12");
    let outcome = async |apps: &str, web: &str| {
        cluster.store(kustomization_with_inventory("apps", &FOUR_OBJECTS, apps));
        cluster.store(kustomization_with_inventory("web", &["x__Secret"], web));
        publish_revision(&cluster, &before, &new).await
    };
    let requests_approval = |object: &Value, name: &str| {
        let command = format!(
            "kubectl -n flux-system annotate kustomization {name} --overwrite portcullis.dev/approve-deletions=main@sha1:12"
        );
        ready_condition(object)[1].lines().any(|line| line.ends_with(&command))
    };
    let held = outcome("", "").await;
    assert_eq!(held["status"]["artifact"]["revision"], "main@sha1:1");
    let [status, message] = ready_condition(&held);
    assert!(status == "False" && message.starts_with("revision main@sha1:12 is withheld"), "{message}");
    for words in [
        "GD002 status.artifact: Kustomization flux-system/apps: revision main@sha1:12 would delete 3 of 4 objects, more than 2",
        "Kustomization flux-system/web: revision main@sha1:12 would delete Secret a/x: its kind is protected; in all, 1 of 1 \
         objects, and renders no objects",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert!(requests_approval(&held, "apps") && requests_approval(&held, "web"));
    let half = outcome("main@sha1:12", "main@sha1:1").await;
    assert!(
        ready_condition(&half)[0] == "False" && !requests_approval(&half, "apps") && requests_approval(&half, "web"),
        "{half}"
    );
    let released = outcome("main@sha1:12", "main@sha1:12").await;
    assert_eq!(released["status"]["artifact"]["revision"], "main@sha1:12");
    assert_eq!(ready_condition(&released), ["True", "stored artifact for revision 'main@sha1:12'"]);
    let recorded = cluster.update_source_status(&new, Some(source(&old))).await;
    assert_eq!((rules(&recorded, Level::Audit), recorded.is_allowed()), (vec!["GD002", "GD002"], true));
}

#[tokio::test]
async fn withholds_revisions_only_if_configured_and_known() {
    let cluster = Cluster::new();
    let old = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    let new = shrunk_artifact(&cluster, "main@sha1:2");
    let judged = async |configuration: &str, change: fn(&mut Value)| {
        set_hold_policy(&cluster, configuration);
        let mut object = kustomization_with_inventory("apps", &FOUR_OBJECTS, "");
        change(&mut object);
        cluster.store(object);
        let verdict = cluster.update_source_status(&new, Some(source(&old))).await;
        verdict.findings.iter().map(|finding| format!("{} {}", finding.level, finding.rule)).collect::<Vec<_>>()
    };
    let unchanged = |_: &mut Value| {};
    assert_eq!(judged("", unchanged).await, ["deny GD002"]);
    assert_eq!(judged("rules: {GD001: warn}", unchanged).await, ["warn GD002"]);
    assert_eq!(judged("rules: {GD: off}", unchanged).await, [""; 0]);
    assert_eq!(judged("deliveries: {guard-sources: audit}", unchanged).await, ["audit GD002"]);
    assert_eq!(judged("", |object| object["spec"]["prune"] = false.into()).await, [""; 0]);
    assert_eq!(judged("", |object| object["spec"]["suspend"] = true.into()).await, [""; 0]);
    assert_eq!(judged("", |object| object["spec"]["path"] = "gone".into()).await, [""; 0], "the tree cannot be built");
    assert_eq!(judged("", |object| object["status"] = json!({})).await, [""; 0], "the inventory is empty");
    let deleting = |object: &mut Value| object["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z".into();
    assert_eq!(judged("", deleting).await, [""; 0]);
    let unknown = |object: &mut Value| {
        object["spec"]["namePrefix"] = "${prefix}".into();
        object["spec"]["postBuild"] = json!({"substituteFrom": [{"kind": "Secret", "name": "s"}]});
    };
    assert_eq!(judged("", unknown).await, ["audit GD002"]);
    set_hold_policy(&cluster, "");
    cluster.gate.set_policy(Policy { artifact_hosts: vec![cluster.server.host()], ..Policy::default() });
    assert_eq!(
        cluster.update_source_status(&new, Some(source(&old))).await,
        Verdict::default(),
        "the guard is disabled by default"
    );
}

/// A live reader that gives the same answer to every read. The value in it determines the answer: an object is
/// returned, null means that the object does not exist, a string is an error, and a boolean means that the read never
/// ends.
struct FixedReader(Value);

impl LiveReader for FixedReader {
    fn read<'a>(&'a self, _: &'a Reference) -> LiveReading<'a> {
        Box::pin(async {
            match &self.0 {
                Value::Null => Ok(None),
                Value::String(error) => Err(error.clone()),
                Value::Bool(_) => std::future::pending().await,
                object => Ok(Some(object.to_string())),
            }
        })
    }
}

#[tokio::test]
async fn does_not_withhold_revisions_if_the_inventory_cannot_be_read() {
    let elsewhere = || {
        let mut object = kustomization_with_inventory("apps", &FOUR_OBJECTS, "");
        object["spec"]["sourceRef"]["name"] = "other".into();
        object
    };
    let none: &[&str] = &[];
    for (answer, expected) in [
        (
            kustomization_with_inventory("apps", &FOUR_OBJECTS, ""),
            &["deny: revision main@sha1:2 would delete 3 of 4 objects"][..],
        ),
        (
            json!("forbidden"),
            &[
                "audit: it is unknown which objects revision main@sha1:2 deletes for Kustomization flux-system/apps: forbidden",
            ],
        ),
        (
            json!(true),
            &[
                "audit: it is unknown which objects revision main@sha1:2 deletes for Kustomization flux-system/apps: the API server",
            ],
        ),
        (Value::Null, none),
        (elsewhere(), none),
    ] {
        let cluster = Cluster::with_reader(Limits::default(), &[], Some(Arc::new(FixedReader(answer.clone()))));
        set_hold_policy(&cluster, "");
        cluster.store(kustomization_with_inventory("apps", &FOUR_OBJECTS, "main@sha1:2"));
        let (old, new) =
            (cluster.server.artifact(&packed(PLACED), "main@sha1:1"), shrunk_artifact(&cluster, "main@sha1:2"));
        let mut request =
            Case::new(Operation::Create, source(&new)).update(source(&old)).for_subresource("status").request();
        let is_silent = answer == json!(true);
        request.deadline = Some(Instant::now() + if is_silent { Duration::from_millis(200) } else { deadline() });
        let verdict = cluster.gate.decide(Phase::Validate, &request).await;
        let found = verdict.findings.iter().map(|finding| format!("{}: {}", finding.level, finding.message));
        let found: Vec<_> =
            found.map(|text| text.replace("Kustomization flux-system/apps: revision", "revision")).collect();
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(|(one, other)| one.starts_with(other)),
            "{found:#?}"
        );
    }
}

#[tokio::test]
async fn judges_a_bounded_number_of_kustomizations_at_a_source() {
    let cluster = Cluster::new();
    set_hold_policy(&cluster, "");
    let (old, new) =
        (cluster.server.artifact(&packed(PLACED), "main@sha1:1"), shrunk_artifact(&cluster, "main@sha1:2"));
    for number in 0..101 {
        let mut object = kustomization_with_inventory(&format!("apps-{number:03}"), &FOUR_OBJECTS, "");
        object["spec"]["path"] = "apps".into();
        cluster.store(object);
    }
    let verdict = cluster.update_source_status(&new, Some(source(&old))).await;
    assert_eq!(rules(&verdict, Level::Deny).len(), 100);
    let others: Vec<_> = verdict.at_level(Level::Audit).map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        others,
        ["it is unknown which objects revision main@sha1:2 deletes for the other Kustomizations: only 100 are checked"]
    );
}

/// If the configuration does not allow withholding revisions, Portcullis must not change the conditions of a source.
#[tokio::test]
async fn leaves_the_status_of_sources_alone_unless_revisions_can_be_withheld() {
    let cluster = Cluster::new();
    cluster.store(kustomization_with_inventory("apps", &FOUR_OBJECTS, ""));
    let old = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    let announced = json!({"type": "Ready", "status": "True", "message": "stored artifact for revision 'main@sha1:2'"});
    let stored = json!({"type": "ArtifactInStorage", "status": "True", "message": announced["message"]});
    let mut object = source(&old);
    object["status"]["conditions"] = json!([announced, stored]);
    let patch = async |configuration: &str| {
        set_hold_policy(&cluster, configuration);
        let mut request = Case::new(Operation::Create, object.clone()).update(source(&old)).request();
        request.resource.subresource = "status".into();
        cluster.gate.decide(Phase::Mutate, &request).await.patch
    };
    assert!(patch("").await.is_some(), "the source is ready without the artifact");
    assert_eq!(patch("rules: {GD001: warn}").await, None);
    assert_eq!(patch("deliveries: {guard-sources: warn}").await, None);
}

/// Both `flux-sources` and `guard-sources` can withhold a revision. If one of them withholds a revision, the revision
/// must stay withheld, even if the other one has no findings.
#[tokio::test]
async fn findings_of_flux_sources_and_the_guard_are_reported_together() {
    let cluster = Cluster::new();
    let old = cluster.server.artifact(&packed(PLACED), "main@sha1:1");
    let broken = cluster.server.artifact(&packed(MISPLACED), "main@sha1:2");
    for (configuration, inventory, expected) in [
        ("deliveries: {flux-sources: deny}", &[][..], [true, false]),
        ("deliveries: {flux-sources: deny}", &FOUR_OBJECTS[..], [true, false]),
        ("", &FOUR_OBJECTS[..], [false, false]),
    ] {
        set_hold_policy(&cluster, configuration);
        cluster.store(kustomization_with_inventory("apps", inventory, ""));
        let before = source_serving(&cluster, &old).await;
        let message = ready_condition(&publish_revision(&cluster, &before, &broken).await)[1].to_owned();
        assert_eq!(["KZ001", "GD002"].map(|rule| message.contains(rule)), expected, "{message}");
    }
    set_hold_policy(&cluster, "deliveries: {flux-sources: deny}");
    cluster.store(kustomization_with_inventory("web", &FOUR_OBJECTS, ""));
    let files = MISPLACED.into_iter().chain([("web/kustomization.yaml", "resources: []\n")]);
    let both = cluster.server.artifact(&packed(files), "main@sha1:3");
    let message =
        ready_condition(&publish_revision(&cluster, &source_serving(&cluster, &old).await, &both).await)[1].to_owned();
    assert!(message.contains("KZ001") && message.contains("GD002"), "{message}");
}

#[tokio::test]
async fn compares_kustomizations_of_other_sources() {
    let cluster = Cluster::with_levels(Limits::default(), &[("flux-trees", Level::Deny)]);
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: a\n");
    let (one, two) = (map("one"), map("two"));
    cluster.store_source(&cluster.server.artifact(&packed([("apps/one.yaml", &*one)]), "main@sha1:1"));
    let mut elsewhere = source(&cluster.server.artifact(&packed([("web/two.yaml", &*two)]), "v2@sha1:2"));
    elsewhere["metadata"]["name"] = "web".into();
    cluster.store(elsewhere.clone());
    let web = |spec: Value| {
        let mut object = kustomization_named("web", spec);
        object["spec"]["sourceRef"]["name"] = "web".into();
        object
    };
    let inventory = ["a_one__ConfigMap", "a_two__ConfigMap"];
    cluster.store(web(json!({})));
    assert_eq!(update_findings(&cluster, kustomization_named("apps", json!({})), &inventory).await, ["warn KZ063"]);
    let waits = kustomization_named("apps", json!({"dependsOn": [{"name": "web"}]}));
    assert_eq!(
        update_findings(&cluster, waits, &inventory).await,
        ["warn KZ063"],
        "it waits for readiness with any revision"
    );
    let mut both = kustomization_named("apps", json!({}));
    both["spec"]["path"] = "web".into();
    both["spec"]["sourceRef"]["name"] = "web".into();
    both["metadata"]["name"] = "both".into();
    let verdict = cluster.apply(both).await;
    assert!(verdict.warnings()[0].contains("in revision v2@sha1:2, Kustomization flux-system/web renders"));
    cluster.store_source(&cluster.server.artifact(&packed([("apps/two.yaml", &*two)]), "main@sha1:3"));
    let verdict = cluster.apply(kustomization_named("apps", json!({}))).await;
    let words = "revision main@sha1:3 renders ConfigMap a/two, and Kustomization flux-system/web too, in revision v2@sha1:2 of \
                 GitRepository flux-system/web";
    assert!(verdict.warnings()[0].contains(words), "{:?}", verdict.warnings());
    for change in [json!({"suspend": true}), json!({"kubeConfig": {"secretRef": {"name": "remote"}}})] {
        cluster.store(web(change));
        assert_eq!(cluster.apply(kustomization_named("apps", json!({}))).await, Verdict::default());
    }
    cluster.store(web(json!({})));
    elsewhere["status"]["artifact"]["url"] = "http://127.0.0.1:1/a.tar.gz".into();
    elsewhere["status"]["artifact"]["digest"] = "sha256:0".into();
    cluster.store(elsewhere);
    assert_eq!(
        cluster.apply(kustomization_named("apps", json!({}))).await,
        Verdict::default(),
        "the artifact cannot be fetched"
    );
}

/// `spec.kubeConfig` of a Kustomization refers to a Secret in the namespace of the Kustomization. So two Secrets with
/// the same name in different namespaces are the kubeconfigs of two clusters.
#[tokio::test]
async fn equal_kubeconfigs_of_two_namespaces_are_two_clusters() {
    let cluster = Cluster::new();
    let one = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: a\n";
    cluster.store_source(&cluster.server.artifact(&packed([("apps/one.yaml", one)]), "main@sha1:1"));
    let remote = |name: &str, namespace: &str| {
        let mut object =
            kustomization_named(name, json!({"path": "apps", "kubeConfig": {"secretRef": {"name": "remote"}}}));
        object["metadata"]["namespace"] = namespace.into();
        object["spec"]["sourceRef"]["namespace"] = "flux-system".into();
        object
    };
    cluster.store(remote("web", "team-a"));
    assert_eq!(ids(&cluster.apply(remote("apps", "flux-system")).await), [""; 0]);
    cluster.store(remote("web", "flux-system"));
    assert_eq!(ids(&cluster.apply(remote("apps", "flux-system")).await), ["KZ062"]);
}

/// Regression test for issue 18 (Flux, item 8): deprecated fields are recorded, but cause no warning. They do not
/// affect the build, and Flux would get the same warning each time it applies the object.
#[tokio::test]
async fn records_deprecated_fields_in_trees() {
    let cluster = Cluster::new();
    let files = [("apps/kustomization.yaml", "resources: [s.yaml]\ncommonLabels: {a: b}\n"), ("apps/s.yaml", SETTINGS)];
    cluster.store_source(&cluster.server.artifact(&packed(files), "main@sha1:1"));
    let verdict = cluster.apply(flux("apps", &[])).await;
    assert_eq!((rules(&verdict, Level::Audit), verdict.warnings()), (vec!["KZ024"], Vec::new()));
}

/// Regression test for issue 18 (Flux, item 8): controllers only write warnings to their log, where users do not
/// see them. So service accounts get warnings only if that is configured.
#[tokio::test]
async fn warns_service_accounts_only_if_configured() {
    let cluster = Cluster::new();
    cluster.store_source(&cluster.server.artifact(&packed(MISPLACED), "main@sha1:1"));
    let decided = async |warns: bool, user: &'static str| {
        let policy = Policy { warn_service_accounts: warns, ..(*cluster.gate.policy()).clone() };
        cluster.gate.set_policy(policy);
        let case = Case::new(Operation::Create, flux("apps", &[])).user(user);
        cluster.gate.decide(Phase::Validate, &case.request()).await
    };
    let controller = "system:serviceaccount:flux-system:kustomize-controller";
    let verdict = decided(false, controller).await;
    assert_eq!((rules(&verdict, Level::Warn), verdict.warnings()), (vec!["KZ001"], Vec::new()));
    assert_eq!(decided(true, controller).await.warnings().len(), 1);
    assert_eq!(decided(false, "somebody").await.warnings().len(), 1);
}
