//! Tests of recording decisions and replaying them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;
mod support;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cases::{Case, objects, repository};
use portcullis::admission::{Operation, Phase};
use portcullis::catalog::{Coverage, Kind, LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::kustomize::delivery::{Artifact, Judge, Judging, Outcome, Root};
use portcullis::process;
use portcullis::recording::{
    Aspect, Metrics, Options, RecordedReads, RecordedTrees, Recorder, Recording, Replayed, replay,
};
use serde_json::{Value, json};
use support::client::{self, Connection};
use support::pki::{Authority, SecretMount};

/// Name of an environment variable. If it is set, the tests record the decisions about the objects in the folder
/// `examples`, and write the recordings to `tests/recordings/examples`.
const WRITE: &str = "PORTCULLIS_WRITE_RECORDINGS";

fn portcullis(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(args).current_dir(repository()).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn replays_recorded_requests_without_differences() {
    let output = portcullis(&["replay", "tests/recordings"]);
    assert!(
        output.status.success(),
        "decisions about requests of real controllers differ from the recordings; if that is intended, accept them with\n  \
         cargo run --features otlp -- replay --accept tests/recordings\n\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// A simulated cluster. It sends each object to both webhooks, records their decisions, and stores admitted objects in
/// the catalog.
struct Cluster {
    gate: Gate,
    recorder: Arc<Recorder>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Self {
        Self::with(Policy::default(), u64::MAX, |_| {})
    }

    fn with(policy: Policy, limit: u64, change: impl FnOnce(&mut portcullis::catalog::Catalog)) -> Self {
        let registry = Registry::standard();
        let folder = tempfile::tempdir().unwrap();
        let options = Options { folder: folder.path().to_owned(), limit, families: registry.families() };
        let recorder = Recorder::start(&options, Metrics::register(&mut process::registry())).unwrap();
        let recorder = Arc::new(recorder);
        let mut catalog = registry.catalog();
        catalog.set_observer(recorder.clone());
        change(&mut catalog);
        catalog.replace_all(Vec::new());
        Self { gate: Gate::new(registry, policy, Arc::new(catalog)), recorder, _folder: folder }
    }

    async fn decide(&self, phase: Phase, case: &Case) -> portcullis::admission::Verdict {
        let (text, old) = (case.object.to_string(), case.old.as_ref().map(Value::to_string));
        let mut request = case.request();
        if case.operation != Operation::Delete {
            request.object = portcullis::admission::Object::raw(Some(&text));
        }
        if let Some(old) = &old {
            request.old_object = portcullis::admission::Object::raw(Some(old));
        }
        self.recorder.decision(phase, &request, self.gate.decide(phase, &request)).await
    }

    /// Sends an object to the mutating and the validating webhook. If both admit the object, stores the mutated object
    /// and returns it.
    async fn write(&self, case: Case) -> Option<Value> {
        let mutated = self.decide(Phase::Mutate, &case).await;
        let mut object = case.object.clone();
        if let Some(patch) = &mutated.patch {
            json_patch::patch(&mut object, patch).unwrap();
        }
        let validated = self.decide(Phase::Validate, &Case { object: object.clone(), ..case }).await;
        let is_stored = mutated.is_allowed() && validated.is_allowed();
        if let Some(kind) = self.kind(&object).filter(|_| is_stored) {
            self.gate.catalog().insert(kind, object.clone());
        }
        is_stored.then_some(object)
    }

    async fn delete(&self, object: Value) {
        if self.decide(Phase::Validate, &Case::new(Operation::Delete, object.clone())).await.is_allowed()
            && let Some(kind) = self.kind(&object)
        {
            let name = |key| object["metadata"][key].as_str().unwrap_or_default();
            self.gate.catalog().remove(kind, name("namespace"), name("name"));
        }
    }

    fn kind(&self, object: &Value) -> Option<&'static Kind> {
        let catalog = self.gate.catalog();
        catalog.kinds().chain(catalog.declared()).find(|kind| kind.is_kind_of(object))
    }

    /// Creates objects in order, sends an unchanged update of each one, and deletes them in reverse order.
    async fn create_update_and_delete(&self, objects: Vec<Value>) {
        let mut stored = Vec::new();
        for object in objects {
            if let Some(object) = self.write(Case::new(Operation::Create, object)).await {
                stored.push(object);
            }
        }
        for object in &stored {
            let again = Case::new(Operation::Create, object.clone()).update(object.clone());
            self.write(again.user("system:serviceaccount:system:controller")).await;
        }
        for object in stored.into_iter().rev() {
            self.delete(object).await;
        }
    }

    /// Ends the recording, and returns its text.
    fn finish_recording(&self) -> String {
        self.recorder.finish();
        fs::read_to_string(self.recorder.path()).unwrap()
    }
}

async fn with_replay(text: &str, policy: Option<Policy>, inspect: impl FnOnce(Vec<Replayed<'_>>)) {
    let recording = Recording::parse(text).unwrap();
    inspect(replay(&recording, policy).await.unwrap());
}

/// Returns the objects in the files `files` of the folder `examples`, as `kubectl apply` sends them.
fn example(files: &[&str]) -> Vec<Value> {
    let read = |file: &&str| objects(&fs::read_to_string(repository().join("examples").join(file)).unwrap());
    let mut objects: Vec<Value> = files.iter().flat_map(read).filter(|object| !object.is_null()).collect();
    for metadata in objects.iter_mut().filter_map(|object| object.get_mut("metadata")) {
        metadata["uid"] = "0f5d".into();
    }
    objects
}

const EXAMPLES: [(&str, &[&str]); 4] = [
    ("landscaper", &["landscaper/overwrites.yaml", "landscaper/context.yaml", "landscaper/installation.yaml"]),
    (
        "dry-run",
        &["dry-run/configuration.yaml", "dry-run/context.yaml", "dry-run/installation.yaml", "dry-run/execution.yaml"],
    ),
    (
        "crossplane",
        &[
            "crossplane/definition.yaml",
            "crossplane/environment-configs.yaml",
            "crossplane/composition.yaml",
            "crossplane/composite.yaml",
        ],
    ),
    ("environment", &["environment/configs.yaml", "environment/native.yaml", "environment/functions.yaml"]),
];

#[tokio::test]
async fn replays_the_decisions_about_the_examples() {
    for (name, files) in EXAMPLES {
        let cluster = Cluster::new();
        cluster.create_update_and_delete(example(files)).await;
        let text = cluster.finish_recording();
        with_replay(&text, None, |replayed| {
            assert!(replayed.len() > files.len(), "{name}: {}", replayed.len());
            for replayed in &replayed {
                let before = replayed.decision.answer.as_ref().unwrap();
                assert_eq!(before, &replayed.now, "{name}:{} {}", replayed.line, replayed.request);
            }
        })
        .await;
        if std::env::var_os(WRITE).is_some() {
            let folder = repository().join("tests/recordings/examples");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
        }
    }
}

fn context() -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context",
           "metadata": {"name": "base", "namespace": "demo"}, "componentVersionOverwrites": "mirror"})
}

/// A live reader that returns an object for every reference, as if every object existed.
struct EveryObjectReader;

impl LiveReader for EveryObjectReader {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        let Reference { kind, namespace, name } = reference;
        let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "overwrites": [],
                            "metadata": {"name": name, "namespace": namespace, "managedFields": []}});
        Box::pin(async move { Ok(Some(object.to_string())) })
    }
}

#[tokio::test]
async fn replays_live_reads() {
    let create = || Case::new(Operation::Create, context());
    let cluster = Cluster::with(Policy::default(), u64::MAX, |catalog| {
        catalog.set_live_reader(Arc::new(RecordedReads(EveryObjectReader)));
    });
    let verdict = cluster.decide(Phase::Validate, &create()).await;
    assert!(verdict.findings.is_empty(), "{verdict:?}");
    let text = cluster.finish_recording();
    with_replay(&text, None, |replayed| {
        assert_eq!(replayed[0].decision.live_reads.len(), 1);
        assert!(replayed[0].differences.is_empty(), "{replayed:?}");
    })
    .await;
    // Without the recorded live read, the object is looked up in the catalog, which does not contain it.
    let without: String = text.lines().map(|line| without_member(line, "liveReads") + "\n").collect();
    with_replay(&without, None, |replayed| {
        let new: Vec<_> = replayed[0].differences.iter().flat_map(|difference| &difference.now).collect();
        assert!(new.iter().any(|text| text.contains("OW005")), "{replayed:?}");
    })
    .await;
}

fn without_member(line: &str, member: &str) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    if let Some(decision) = line.get_mut("decision").and_then(Value::as_object_mut) {
        decision.remove(member);
    }
    line.to_string()
}

#[tokio::test]
async fn decisions_are_replayed_at_the_state_in_which_they_began() {
    let cluster = Cluster::new();
    let overwrites = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
                            "metadata": {"name": "mirror", "namespace": "demo"}, "overwrites": []});
    let before = cluster.decide(Phase::Validate, &Case::new(Operation::Create, context())).await;
    assert_eq!(before.findings[0].rule, "OW005");
    cluster.gate.catalog().insert(cluster.kind(&overwrites).unwrap(), overwrites.clone());
    let after = cluster.decide(Phase::Validate, &Case::new(Operation::Create, context())).await;
    assert!(after.findings.is_empty());
    let text = cluster.finish_recording();
    // Decisions that take long are written later, so their order may differ.
    let (mut others, mut decisions): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| !line.starts_with("{\"decision\""));
    decisions.reverse();
    others.extend(decisions);
    for text in [text.clone(), others.join("\n") + "\n"] {
        with_replay(&text, None, |replayed| {
            let rules = |replayed: &Replayed<'_>| replayed.now.findings.len();
            assert_eq!(replayed.iter().map(rules).collect::<Vec<_>>(), [1, 0]);
            assert!(replayed.iter().all(|replayed| replayed.differences.is_empty()));
        })
        .await;
    }
}

fn composites_definition() -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xexamples.example.org", "labels": {"portcullis.dev/composites": "true"}},
        "spec": {"group": "example.org", "names": {"kind": "XExample", "plural": "xexamples"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}}}]}})
}

fn native_composition() -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "main"}, "spec": {
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XExample"},
        "environment": {"environmentConfigs": [{"type": "Reference", "ref": {"name": "base"}}]},
        "resources": [{"name": "a", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [
            {"type": "FromEnvironmentFieldPath", "fromFieldPath": "region", "toFieldPath": "data.region"}]}]}})
}

/// Regression test for issue 18 (recorded traffic): Crossplane 1 has EnvironmentConfigs of v1alpha1, Crossplane 2 of
/// v1beta1. Both kinds had the same name in a recording, so a replay used the objects and the [`Coverage`] of the wrong
/// version.
#[tokio::test]
async fn two_versions_of_a_kind_are_replayed_as_two_kinds() {
    let cluster = Cluster::new();
    let catalog = cluster.gate.catalog();
    let config = json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig",
                        "metadata": {"name": "base"}, "data": {"region": "eu-1"}});
    let configs =
        |version| catalog.kinds().find(|kind| kind.plural == "environmentconfigs" && kind.version == version).unwrap();
    let (alpha, beta) = (configs("v1alpha1"), configs("v1beta1"));
    catalog.replace(alpha, Coverage::Complete, vec![config]);
    catalog.set_coverage(beta, Coverage::Absent);
    for object in [composites_definition(), native_composition()] {
        catalog.insert(cluster.kind(&object).unwrap(), object);
    }
    let composite = json!({"apiVersion": "example.org/v1", "kind": "XExample", "metadata": {"name": "mine"},
                           "spec": {"compositionRef": {"name": "main"}}});
    catalog.replace(cluster.kind(&composite).unwrap(), Coverage::Complete, Vec::new());
    for phase in [Phase::Mutate, Phase::Validate] {
        let verdict = cluster.decide(phase, &Case::new(Operation::Create, composite.clone())).await;
        assert_eq!(verdict.patch.is_some(), phase == Phase::Mutate, "{verdict:?}");
    }
    with_replay(&cluster.finish_recording(), None, |replayed| {
        for replayed in replayed {
            assert_eq!(replayed.decision.answer.as_ref(), Some(&replayed.now));
        }
    })
    .await;
}

/// Regression test for issue 18 (recorded traffic). If the catalog changes while a decision waits for live reads, the
/// rules use the changed catalog after these reads. A replay must do the same.
#[tokio::test]
async fn decisions_are_replayed_with_the_changes_during_live_reads() {
    let cluster = Cluster::new();
    let overwrites = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
                            "metadata": {"name": "mirror", "namespace": "demo"}, "overwrites": []});
    let (case, text) = (Case::new(Operation::Create, context()), context().to_string());
    let mut request = case.request();
    request.object = portcullis::admission::Object::raw(Some(&text));
    let decide = async {
        cluster.gate.catalog().insert(cluster.kind(&overwrites).unwrap(), overwrites.clone());
        cluster.gate.decide(Phase::Validate, &request).await
    };
    let verdict = cluster.recorder.decision(Phase::Validate, &request, decide).await;
    assert!(verdict.findings.is_empty(), "{verdict:?}");
    with_replay(&cluster.finish_recording(), None, |replayed| {
        let decision = replayed[0].decision;
        assert_eq!(decision.changes_at_end, Some(decision.changes + 1));
        assert!(replayed[0].differences.is_empty(), "{replayed:?}");
    })
    .await;
}

#[tokio::test]
async fn coverage_is_recorded_when_it_changes() {
    let cluster = Cluster::new();
    let kind = cluster.kind(&context()).unwrap();
    let coverages = [Coverage::Absent, Coverage::Absent, Coverage::Complete, Coverage::Complete, Coverage::Absent];
    coverages.into_iter().for_each(|coverage| cluster.gate.catalog().replace(kind, coverage, Vec::new()));
    let text = cluster.finish_recording();
    let of_contexts = |line: &&str| line.contains("\"coverage\"") && line.contains("contexts.v1alpha1.landscaper");
    let all: Vec<_> = text.lines().filter(of_contexts).collect();
    assert_eq!(all.len(), 4, "{all:#?}");
}

/// If several rules need a live read of the same object, the object is read once.
#[tokio::test]
async fn an_object_is_read_once_for_a_decision() {
    let cluster = Cluster::with(Policy::default(), u64::MAX, |catalog| {
        catalog.set_live_reader(Arc::new(RecordedReads(EveryObjectReader)));
    });
    let catalog = cluster.gate.catalog();
    for object in [composites_definition(), native_composition()] {
        catalog.insert(cluster.kind(&object).unwrap(), object);
    }
    let composite = json!({"apiVersion": "example.org/v1", "kind": "XExample", "metadata": {"name": "mine"},
                           "spec": {"compositionRef": {"name": "main"}}});
    cluster.decide(Phase::Validate, &Case::new(Operation::Create, composite)).await;
    with_replay(&cluster.finish_recording(), None, |replayed| {
        let reads = &replayed[0].decision.live_reads;
        let names: std::collections::BTreeSet<_> =
            reads.iter().map(|read| (&read.kind, &read.namespace, &read.name)).collect();
        assert!(!reads.is_empty());
        assert_eq!(names.len(), reads.len(), "{reads:?}");
    })
    .await;
}

/// A [`Judge`] that cannot fetch any tree, so its result is always unknown.
struct UnreachableJudge;

impl Judge for UnreachableJudge {
    fn judge<'a>(&'a self, _: &'a Root, _: &'a [String], _: Instant) -> Judging<'a> {
        Box::pin(async { Outcome::Unknown("the host is away".to_owned()) })
    }

    fn fetch_ahead(&self, _: &Artifact, _: &[String]) {}
}

#[tokio::test]
async fn replays_verdicts_about_trees() {
    let mut cluster = Cluster::new();
    cluster.gate = cluster.gate.with_trees(Arc::new(RecordedTrees(Arc::new(UnreachableJudge))));
    let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "apps", "namespace": "flux-system", "generation": 1},
        "spec": {"url": "https://example.org/a.git"},
        "status": {"observedGeneration": 1, "artifact": {
            "url": "http://source-controller.flux-system/a.tar.gz",
            "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "revision": "main@sha1:3f2c"}}});
    cluster.gate.catalog().insert(cluster.kind(&source).unwrap(), source);
    let kustomization = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": {"path": "./apps", "prune": true, "interval": "1m",
                 "sourceRef": {"kind": "GitRepository", "name": "apps"}}});
    let verdict = cluster.decide(Phase::Validate, &Case::new(Operation::Create, kustomization)).await;
    assert!(verdict.findings.iter().any(|finding| finding.message.contains("the host is away")), "{verdict:?}");
    let text = cluster.finish_recording();
    with_replay(&text, None, |replayed| {
        assert_eq!(replayed[0].decision.trees.len(), 1);
        assert_eq!(replayed[0].decision.answer.as_ref(), Some(&replayed[0].now));
    })
    .await;
}

#[tokio::test]
async fn stops_recording_at_its_limit() {
    let cluster = Cluster::with(Policy::default(), 20_000, |_| {});
    for _ in 0..100 {
        let verdict = cluster.decide(Phase::Validate, &Case::new(Operation::Create, context())).await;
        assert_eq!(verdict.findings.len(), 1);
    }
    let text = cluster.finish_recording();
    assert!(text.len() <= 20_000 && text.lines().count() > 10, "{} bytes", text.len());
    with_replay(&text, None, |replayed| assert!(replayed.len() < 100)).await;
}

#[tokio::test]
async fn reads_a_truncated_recording() {
    let cluster = Cluster::new();
    for _ in 0..2 {
        cluster.decide(Phase::Validate, &Case::new(Operation::Create, context())).await;
    }
    let text = cluster.finish_recording();
    with_replay(&text[..text.len() - 20], None, |replayed| assert_eq!(replayed.len(), 1)).await;
    let first = text.lines().next().unwrap();
    let broken = format!("{first}\nnonsense\n{first}\n");
    assert!(Recording::parse(&broken).unwrap_err().to_string().starts_with("line 2: "));
    let error = Recording::parse(&first.replace("\"format\":1", "\"format\":2")).unwrap_err().to_string();
    assert_eq!(error, "line 1: the format is 2, and this version reads 1");
    assert!(Recording::parse("").is_err() && Recording::parse("{\"lost\": {}}\n").is_err());
}

#[tokio::test]
async fn omits_secrets_and_skips_their_decisions() {
    let cluster = Cluster::new();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "demo"},
                        "data": {"password": "c3dvcmRmaXNo"}, "stringData": {"token": "swordfish"}});
    let mut case = Case::new(Operation::Create, secret.clone()).update(secret);
    case.object["data"]["more"] = "c3dvcmRmaXNo".into();
    cluster.decide(Phase::Validate, &case).await;
    let text = cluster.finish_recording();
    assert!(!text.contains("swordfish") && !text.contains("c3dvcmRmaXNo"), "{text}");
    assert!(text.contains("\"password\""), "{text}");
    let denied = text.replace("\"allowed\":true", "\"allowed\":false");
    with_replay(&denied, None, |replayed| {
        assert_eq!(replayed[0].decision.redacted.len(), 4);
        assert_eq!(replayed[0].differences[0].aspect, Aspect::Decision);
        assert!(!replayed[0].differs() && replayed[0].not_comparable.is_some());
    })
    .await;
}

/// A running `portcullis serve --record`.
struct Server {
    child: Child,
    address: SocketAddr,
    authority: Authority,
    folder: PathBuf,
    _certs: SecretMount,
}

impl Server {
    fn start(folder: &Path, config: &Path) -> Self {
        let authority = Authority::new();
        let certs = SecretMount::new(&authority.leaf());
        let address = || TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let (address, admin) = (address(), address());
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["serve", "--listen", &address.to_string(), "--admin-listen", &admin.to_string()]);
        command.arg("--certs").arg(certs.path()).arg("--record").arg(folder).arg("--config").arg(config);
        command.args(["--lame-duck", "0", "--manifests", "examples/landscaper"]).current_dir(repository());
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, address, authority, folder: folder.to_owned(), _certs: certs }
    }

    async fn post(&self, webhook: &str, review: &str) -> Value {
        let config = Arc::new(client::config(&self.authority.root, rustls::ALL_VERSIONS));
        let begun = Instant::now();
        let mut connection = loop {
            match Connection::open(self.address, config.clone()).await {
                Ok(connection) => break connection,
                Err(error) => assert!(begun.elapsed() < support::deadline::deadline(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        connection.post(webhook, review.as_bytes()).await.unwrap().json()
    }

    /// Stops the server, and returns the path of the recording.
    fn stop(mut self) -> PathBuf {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
        let mut files = fs::read_dir(&self.folder).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        file
    }
}

#[tokio::test]
async fn replays_with_the_recorded_and_another_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (recordings, config) = (folder.path().join("recordings"), folder.path().join("config.yaml"));
    fs::write(&config, "rules: {OW004: deny}\n").unwrap();
    let server = Server::start(&recordings, &config);
    for file in ["patched.json", "refused.json", "warned.json"] {
        let review = fs::read_to_string(repository().join("examples/reviews").join(file)).unwrap();
        server.post("/mutate", &review).await;
        server.post("/validate", &review).await;
    }
    let file = server.stop();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let file = file.to_str().unwrap();

    let same = portcullis(&["replay", recordings.to_str().unwrap()]);
    assert_eq!(same.status.code(), Some(0), "{}{}", text(&same.stdout), text(&same.stderr));
    assert!(text(&same.stdout).starts_with("recordings: 1, decisions: "), "{}", text(&same.stdout));

    fs::write(&config, "rules: {OW: off}\nmutators: {overwrites: off}\n").unwrap();
    let with_config = ["replay", file, "--config", config.to_str().unwrap()];
    let other = portcullis(&with_config);
    let shown = text(&other.stdout);
    assert_eq!(other.status.code(), Some(1), "{shown}{}", text(&other.stderr));
    for expected in ["  - denied\n  + allowed\n", "  - deny OW", "/metadata/annotations/", "validate CREATE"] {
        assert!(shown.contains(expected), "{expected:?} is not in:\n{shown}");
    }
    let json = portcullis(&[&with_config[..], &["--output", "json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["different"].as_u64().unwrap() >= 2, "{json:#}");
    assert_eq!(json["differences"].as_array().unwrap().len() as u64, json["different"].as_u64().unwrap());

    let accepted = portcullis(&[&with_config[..], &["--accept"]].concat());
    assert_eq!(accepted.status.code(), Some(0));
    assert_eq!(portcullis(&with_config).status.code(), Some(0), "accepted differences are reported again");
    assert_eq!(
        portcullis(&["replay", file]).status.code(),
        Some(1),
        "with the recorded configuration, the accepted decisions differ"
    );
    assert_eq!(portcullis(&["replay", "examples"]).status.code(), Some(2), "there is no recording");
}

/// Regression test for issue 18: for each scenario of the tests with real controllers, a recording must contain its
/// requests. `make test` only replays these recordings, because the controllers cannot be built everywhere.
#[test]
fn every_scenario_is_recorded() {
    for (system, file, scenarios) in [
        ("flux", "flux", 12),
        ("flux-defaults", "flux_defaults", 3),
        ("guard", "guard", 3),
        ("held", "held", 1),
        ("landscaper", "landscaper", 9),
        ("crossplane", "crossplane", 8),
        ("crossplane-1", "crossplane_one", 6),
    ] {
        let read = |path: String| fs::read_to_string(repository().join(path)).unwrap();
        let source = read(format!("tests/systems/{file}.rs"));
        let recorded = read(format!("tests/recordings/systems/{system}.jsonl"));
        let begins = ["Scenario::new(", "scenario_with_environments("];
        let names = begins.iter().flat_map(|begin| source.split(begin).skip(1));
        let names: Vec<_> = names.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()).collect();
        assert_eq!(names.len(), scenarios, "{system}: {names:?}");
        for name in names {
            let places = [format!("\"namespace\":\"{system}-{name}\""), format!("\"{system}-{name}.example.org\"")];
            let is_of_scenario = |line: &&str| places.iter().any(|place| line.contains(place));
            let decisions = recorded.lines().filter(|line| line.starts_with("{\"decision\"")).filter(is_of_scenario);
            assert!(decisions.count() > 5, "{system}::{name} is not recorded");
        }
    }
}
