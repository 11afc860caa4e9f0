//! Tests of kustomize trees that Kubernetes objects contain, and of trees in the artifacts of Flux sources. The tests
//! write objects as a user of kubectl and as Flux's controllers do.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Case;
use crate::artifacts::{Answer, Packer, bomb, packed, packed_map};
use crate::context::Context;
use crate::deadline::deadline;
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, rejects, warns};
use portcullis::kustomize::delivery::Artifact;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("delivery::reports_a_misplaced_component_with_file_line_and_revision", reports_a_misplaced_component),
    ("delivery::dry_runs_get_the_same_answer", dry_runs_get_the_same_answer),
    ("delivery::denies_errors_in_the_spec_without_the_tree", denies_errors_in_the_spec_without_the_tree),
    ("delivery::dependencies_that_never_become_ready_are_reported", dependencies_are_reported),
    ("delivery::an_absent_source_is_warned_about", an_absent_source_is_warned_about),
    ("delivery::a_source_status_prefetches_the_artifact", a_source_status_prefetches_the_artifact),
    ("delivery::denies_a_bad_revision_at_its_source", denies_a_bad_revision_at_its_source),
    ("delivery::agrees_with_flux_about_the_test_vectors", agrees_with_flux_about_the_test_vectors),
    ("delivery::faulty_artifact_servers_do_not_block_requests", faulty_artifact_servers_do_not_block_requests),
    ("delivery::other_requests_are_not_slowed_and_memory_is_bounded", other_requests_are_not_slowed),
    ("delivery::checks_fleet_bundles", checks_fleet_bundles),
    ("delivery::checks_sveltos_trees", checks_sveltos_trees),
    ("delivery::ordinary_config_maps_cause_no_webhook_call", ordinary_config_maps_cause_no_webhook_call),
    ("delivery::checks_labelled_config_maps", checks_labelled_config_maps),
    ("delivery::checks_argo_cd_applications", checks_argo_cd_applications),
    ("delivery::checks_stored_kustomizations", checks_stored_kustomizations),
];

/// Returns the part of the configuration file for these tests. It makes portcullis deny a Flux source whose new
/// revision has errors. In namespaces whose names begin with `lenient-`, `config.yaml` reduces the denials to warnings.
/// `host` is the only host from which portcullis may fetch artifacts.
pub fn configuration(host: &str) -> String {
    format!("deliveries: {{flux-sources: deny}}\nguard: {{hold: source}}\nartifactHosts: [\"{host}\"]\n")
}

/// The memory limit of the server in the chart, in bytes.
const MEMORY_LIMIT: u64 = 1 << 30;

/// The interval at which an object is applied again in a dry run.
const PAUSE: Duration = Duration::from_millis(300);

const COMPONENT: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: ldap-\n";
const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n";
/// The files of an invalid kustomize tree. A Component is listed under `resources`, which kustomize rejects.
pub const WRONG_TREE: [(&str, &str); 3] = [
    ("apps/kustomization.yaml", "resources:\n  - settings.yaml\n  - ../components/ldap\n"),
    ("apps/settings.yaml", SETTINGS),
    ("components/ldap/kustomization.yaml", COMPONENT),
];
/// The files of a correct tree: the Component is listed under `components`.
pub const CORRECT_TREE: [(&str, &str); 3] = [
    ("apps/kustomization.yaml", "resources:\n  - settings.yaml\ncomponents:\n  - ../components/ldap\n"),
    ("apps/settings.yaml", SETTINGS),
    ("components/ldap/kustomization.yaml", COMPONENT),
];

pub fn repository(name: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": name},
        "spec": {"interval": "1m", "url": "https://github.com/org/fleet"},
    })
}

fn status(name: &str, artifact: &Artifact) -> Value {
    let Artifact { url, digest, revision } = artifact;
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": name},
        "status": {"observedGeneration": 1, "artifact": {
            "url": url, "digest": digest, "revision": revision, "path": "gitrepository/x.tar.gz",
            "lastUpdateTime": "2026-11-20T12:00:00Z",
        }},
    })
}

/// Returns a Flux Kustomization that builds the folder `path` of the GitRepository `source` with the given
/// `components`.
pub fn kustomization(name: &str, source: &str, path: &str, components: &[&str]) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": name},
        "spec": {"path": path, "components": components, "prune": true, "interval": "10m",
                 "sourceRef": {"kind": "GitRepository", "name": source}},
    })
}

/// Writes an artifact into the status of a GitRepository, as source-controller does. Returns the output of kubectl.
fn set_status(ctx: &Context, ns: &str, name: &str, artifact: &Artifact) -> Output {
    let apply = ["apply", "--server-side", "--force-conflicts", "--subresource=status", "--namespace", ns, "-f", "-"];
    ctx.cluster.kubectl().args(apply).stdin(status(name, artifact).to_string()).run()
}

/// Creates a GitRepository if it does not exist, and writes the artifact into its status.
pub fn set_source(ctx: &Context, ns: &str, name: &str, artifact: &Artifact) {
    ctx.cluster
        .kubectl()
        .args(["apply", "--namespace", ns, "-f", "-"])
        .stdin(repository(name).to_string())
        .run()
        .expect_success();
    set_status(ctx, ns, name, artifact).expect_success();
}

pub fn dry_run(ctx: &Context, ns: &str, object: &Value) -> Output {
    let apply = ["apply", "--dry-run=server", "--namespace", ns, "-f", "-"];
    ctx.cluster.kubectl().args(apply).stdin(object.to_string()).run()
}

/// Applies an object in a dry run until the output of kubectl contains `words`, and returns this output. Retries are
/// needed because watches may lag, and because a debug build is slow with large archives.
#[track_caller]
pub fn dry_run_until(ctx: &Context, ns: &str, object: &Value, words: &str) -> Output {
    let start = Instant::now();
    loop {
        let output = dry_run(ctx, ns, object);
        if output.stderr.contains(words) {
            return output;
        }
        assert!(start.elapsed() < 2 * deadline(), "the output does not contain {words:?}: {output}");
        thread::sleep(PAUSE);
    }
}

/// Creates a GitRepository with this artifact. Returns a Kustomization with the same name, whose source is this
/// GitRepository.
fn with_artifact(ctx: &Context, ns: &str, name: &str, artifact: &Artifact) -> Value {
    set_source(ctx, ns, name, artifact);
    kustomization(name, name, "./apps", &[])
}

fn reports_a_misplaced_component(ctx: &Context) {
    let ns = ctx.cluster.namespace("flux");
    let artifact = ctx.artifacts.artifact(&packed(WRONG_TREE), "main@sha1:3f2c");
    let object = with_artifact(ctx, &ns, "apps", &artifact);
    let words = "KZ001 apps/kustomization.yaml:3:5 of main@sha1:3f2c: resources[1]: \"../components/ldap\" is a kustomize \
                 Component (components/ldap/kustomization.yaml:2)";
    dry_run_until(ctx, &ns, &object, "KZ001");
    warns(ctx, &ns, &object.to_string(), &[words]);
    set_source(ctx, &ns, "good", &ctx.artifacts.artifact(&packed(CORRECT_TREE), "main@sha1:5a5a"));
    let good = kustomization("good", "good", "./apps", &[]);
    eventually(|| Some(dry_run(ctx, &ns, &good)).filter(|output| !output.stderr.contains("Warning")));
    accepts(ctx, &ns, &good.to_string());
}

fn dry_runs_get_the_same_answer(ctx: &Context) {
    let ns = ctx.cluster.namespace("flux-dry");
    let artifact = ctx.artifacts.artifact(&packed(WRONG_TREE), "main@sha1:3f2c");
    let object = with_artifact(ctx, &ns, "apps", &artifact);
    let dry = dry_run_until(ctx, &ns, &object, "KZ001").stderr;
    let real = ctx.cluster.kubectl().args(["apply", "--namespace", &ns, "-f", "-"]).stdin(object.to_string()).run();
    assert_eq!(dry, real.expect_success().stderr);
    let bad = kustomization("bad", "apps", "./apps", &["/abs"]);
    let dry = dry_run(ctx, &ns, &bad).stderr;
    let real = ctx.cluster.kubectl().args(["apply", "--namespace", &ns, "-f", "-"]).stdin(bad.to_string()).run();
    assert!(dry == real.stderr && dry.contains("KZ011"), "{dry}\n{real}");
}

fn denies_errors_in_the_spec_without_the_tree(ctx: &Context) {
    let ns = ctx.cluster.namespace("static");
    let refused = |components: &[&str], words: &[&str]| {
        rejects(ctx, &ns, &kustomization("bad", "none", "./apps", components).to_string(), words);
    };
    refused(&["https://github.com/o/r//c"], &["KZ011 spec.components[0]", "is not a local, relative path"]);
    refused(&["../ok", ""], &["KZ004 spec.components[1]: the entry is empty"]);
    refused(&["..", "/abs"], &["KZ009 spec.components[0]", "KZ011 spec.components[1]"]);
    let mut suspended = kustomization("suspended", "none", "./apps", &["/abs"]);
    suspended["spec"]["suspend"] = true.into();
    accepts(ctx, &ns, &suspended.to_string());
    let variable = kustomization("variable", "${source}", "./apps", &["../${which}"]);
    accepts(ctx, &ns, &variable.to_string());
}

fn dependencies_are_reported(ctx: &Context) {
    let ns = ctx.cluster.namespace("depends");
    let depending = |name: &str, on: &[&str]| {
        let mut object = kustomization(name, "none", "./apps", &[]);
        object["spec"]["suspend"] = true.into();
        object["spec"]["dependsOn"] = on.iter().map(|name| json!({"name": name})).collect();
        object
    };
    let mut alone = depending("alone", &["alone"]);
    alone["spec"]["suspend"] = false.into();
    rejects(ctx, &ns, &alone.to_string(), &["KZ043 spec.dependsOn[0]", "depends on itself"]);
    warns(ctx, &ns, &depending("app", &["base"]).to_string(), &["KZ043 spec.dependsOn[0]", "does not exist"]);
    accepts(ctx, &ns, &depending("base", &[]).to_string());
    accepts(ctx, &ns, &depending("other", &["base"]).to_string());
}

fn an_absent_source_is_warned_about(ctx: &Context) {
    let ns = ctx.cluster.namespace("absent");
    let object = kustomization("apps", "fleet", "./apps", &[]);
    let missing = format!("KZ041 spec.sourceRef: the tree is not checked: GitRepository {ns}/fleet does not exist");
    dry_run_until(ctx, &ns, &object, &missing);
    let repository = repository("fleet").to_string();
    accepts(ctx, &ns, &repository);
    dry_run_until(ctx, &ns, &object, "has no artifact yet");
    warns(ctx, &ns, &object.to_string(), &["KZ041"]);
}

fn a_source_status_prefetches_the_artifact(ctx: &Context) {
    let ns = ctx.cluster.namespace("warm");
    accepts(ctx, &ns, &repository("fleet").to_string());
    let artifact = ctx
        .artifacts
        .artifact(&packed(WRONG_TREE.map(|(path, text)| (path, format!("{text}# warm\n")))), "main@sha1:1");
    set_status(ctx, &ns, "fleet", &artifact).expect_success();
    eventually(|| (ctx.artifacts.requests(&artifact) == 1).then_some(()));
    let object = kustomization("apps", "fleet", "./apps", &[]);
    dry_run_until(ctx, &ns, &object, "KZ001");
    warns(ctx, &ns, &object.to_string(), &["KZ001", "main@sha1:1"]);
    assert_eq!(ctx.artifacts.requests(&artifact), 1, "the admission must not fetch the artifact again");
}

fn denies_a_bad_revision_at_its_source(ctx: &Context) {
    for (prefix, refused) in [("gate", true), ("lenient", false)] {
        let ns = ctx.cluster.namespace(prefix);
        let good = ctx.artifacts.artifact(&packed(CORRECT_TREE), "main@sha1:1");
        let object = with_artifact(ctx, &ns, "apps", &good);
        eventually(|| Some(dry_run(ctx, &ns, &object)).filter(|output| !output.stderr.contains("Warning")));
        accepts(ctx, &ns, &object.to_string());
        let bad = ctx.artifacts.artifact(&packed(WRONG_TREE), "main@sha1:2");
        let words = format!("Kustomization {ns}/apps: resources[1]: \"../components/ldap\" is a kustomize Component");
        let output =
            eventually(|| Some(set_status(ctx, &ns, "apps", &bad)).filter(|output| output.stderr.contains(&words)));
        assert_eq!(output.status.success(), !refused, "{output}");
        assert!(output.stderr.contains("apps/kustomization.yaml:3:5 of main@sha1:2"), "{output}");
        let get = ["get", "gitrepository", "apps", "--namespace", &ns, "-o", "jsonpath={.status.artifact.revision}"];
        let stored = ctx.cluster.kubectl().args(get).run().expect_success().stdout;
        assert_eq!(stored, if refused { "main@sha1:1" } else { "main@sha1:2" });
    }
}

fn vectors() -> Value {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let folder = std::env::var_os("PORTCULLIS_VECTORS").map_or_else(|| own.into(), std::path::PathBuf::from);
    let text = std::fs::read_to_string(folder.join("kustomize/flux.json")).expect("the vectors are there");
    serde_json::from_str(&text).expect("the vectors are JSON")
}

/// Sends every test vector through the API server, as an artifact and a Kustomization. Checks that portcullis reports
/// an error if and only if Flux fails. There are two exceptions: warnings do not count, and portcullis does not report
/// the error of a vector that needs git.
fn agrees_with_flux_about_the_test_vectors(ctx: &Context) {
    let ns = ctx.cluster.namespace("vectors");
    for (number, case) in vectors().as_array().expect("the test vectors are a list").iter().enumerate() {
        let (name, source) = (case["name"].as_str().expect("the test vector has a name"), format!("s{number}"));
        let files = serde_json::from_value(case["files"].clone()).expect("the test vector has files");
        let artifact = ctx.artifacts.artifact(&packed_map(&files), &format!("main@sha1:{number}"));
        set_source(ctx, &ns, &source, &artifact);
        let read = portcullis::yaml::read(
            case["flux_kustomization"].as_str().expect("the test vector has a Kustomization"),
            &portcullis::yaml::Limits::default(),
        );
        let mut object = read.expect("the Kustomization is YAML").remove(0).value;
        object["metadata"]["namespace"] = ns.clone().into();
        object["spec"]["sourceRef"] = json!({"kind": "GitRepository", "name": source});
        object["spec"]["interval"] = "1m".into();
        object["spec"]["prune"] = true.into();
        let accepted = case["expect"]["accept"] == true;
        let output = eventually(|| Some(dry_run(ctx, &ns, &object)).filter(|output| !output.stderr.contains("KZ041")));
        let ignored_rules = ["KZ02", "KZ04"];
        let errors = output
            .stderr
            .lines()
            .filter(|line| line.contains("KZ0") && !ignored_rules.iter().any(|id| line.contains(id)));
        let reported: Vec<_> = errors.collect();
        // Vector X7c needs git, which portcullis does not run.
        let is_unknown = case["expect"]["error"].as_str().is_some_and(|error| error.contains("git fetch"));
        assert!(reported.is_empty() == (accepted || is_unknown), "{name}: {output}");
        assert!(output.status.success() || case["expect"]["stage"] == "generate", "{name}: {output}");
    }
}

fn faulty_artifact_servers_do_not_block_requests(ctx: &Context) {
    let ns = ctx.cluster.namespace("bad-servers");
    // Each case uses a different archive, because portcullis does not fetch an archive again that is in its cache.
    let archive = |name: &str| packed([("apps/kustomization.yaml", format!("resources: []\n# {name}\n"))]);
    let mut outside = Packer::new();
    outside.file("../../apps/kustomization.yaml", b"resources: []\n");
    let mut links = Packer::new();
    links.file("apps/kustomization.yaml", b"resources: [passwd.yaml]\n");
    links.link("apps/passwd.yaml", "/etc/passwd");
    let foreign =
        Artifact { url: "http://127.0.0.1:1/a.tar.gz".into(), ..ctx.artifacts.artifact(&archive("foreign"), "r:1") };
    let answering = |name: &str, answer: &dyn Fn(Arc<[u8]>) -> Answer| {
        ctx.artifacts.artifact_with_answer(&archive(name), "r:1", answer)
    };
    let redirecting = |_| Answer::Redirect("http://169.254.169.254/".to_owned());
    let other_archive = |_| Answer::Bytes(packed(CORRECT_TREE).into());
    let tests = [
        ("missing", "answered 404", answering("missing", &|_| Answer::Status(404))),
        ("redirect", "redirect, which is not followed", answering("redirect", &redirecting)),
        ("slow", "still being fetched", answering("slow", &Answer::Slow)),
        ("hangs", "still being fetched", answering("hangs", &|_| Answer::Hang)),
        ("truncated", "was interrupted", answering("truncated", &Answer::Truncated)),
        ("wrong", "its digest is", answering("wrong", &other_archive)),
        ("bomb", "when unpacked", ctx.artifacts.artifact(&bomb(200), "r:1")),
        ("leading", "which may point outside of it", ctx.artifacts.artifact(&outside.finish(), "r:1")),
        ("foreign", "is not in the list of allowed artifact hosts", foreign),
        ("links", "\"passwd.yaml\" does not exist", ctx.artifacts.artifact(&links.finish(), "r:1")),
    ];
    for (name, words, artifact) in tests {
        let object = with_artifact(ctx, &ns, name, &artifact);
        let output = dry_run_until(ctx, &ns, &object, words);
        assert!(output.status.success(), "{name} must be accepted: {output}");
        let output = dry_run(ctx, &ns, &object);
        assert!(output.status.success() && output.stderr.contains("Warning: KZ0"), "{name}: {output}");
    }
}

/// Returns the sum of the API server's counters whose name begins with `metric` and whose labels contain `webhook`.
fn sum_of_counters(ctx: &Context, metric: &str, webhook: &str) -> f64 {
    let metrics = ctx.cluster.kubectl().args(["get", "--raw", "/metrics"]).run().expect_success().stdout;
    let is_ours = |line: &&str| line.starts_with(metric) && line.contains(webhook);
    metrics.lines().filter(is_ours).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Checks that other requests are answered as usual while many Kustomizations wait for slow and malicious servers, and
/// that portcullis stays below the memory limit.
fn other_requests_are_not_slowed(ctx: &Context) {
    let ns = ctx.cluster.namespace("siege");
    let repeat_nine_times = |name: &str| [name; 9].join(", ");
    let lines = ["a: &a [x]", "b: &b [*a]", "c: &c [*b]", "d: &d [*c]", "e: [*d]"];
    let laugh = lines.map(|line| line.replace("[x]", &format!("[{}]", repeat_nine_times("x"))));
    let aliases = laugh.map(|line| match line.rsplit_once("[*") {
        Some((before, name)) => {
            format!("{before}[{}]\n", repeat_nine_times(&format!("*{}", name.trim_end_matches(']'))))
        }
        None => format!("{line}\n"),
    });
    let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: NAME}}\n{}", aliases.concat());
    let alias_bombs: Vec<_> = (0..200)
        .map(|number| (format!("apps/f{number}.yaml"), object.replace("NAME", &format!("n{number}"))))
        .collect();
    let bad = |number: usize| match number % 4 {
        0 => ctx.artifacts.artifact_with_answer(&packed([("a", format!("{number}"))]), "r:hangs", |_| Answer::Hang),
        1 => ctx.artifacts.artifact_with_answer(&packed([("a", format!("{number}"))]), "r:drips", Answer::Slow),
        2 => ctx.artifacts.artifact(&bomb(100 + number), "r:bomb"),
        _ => ctx
            .artifacts
            .artifact(&packed(alias_bombs.iter().take(100 + number).map(|(path, text)| (path, text))), "r:laughs"),
    };
    let objects: Vec<_> =
        (0..12).map(|number| with_artifact(ctx, &ns, &format!("bad{number}"), &bad(number))).collect();
    thread::scope(|scope| {
        let slow_requests: Vec<_> = objects.iter().map(|object| scope.spawn(|| dry_run(ctx, &ns, object))).collect();
        while slow_requests.iter().any(|request| !request.is_finished()) {
            rejects(ctx, &ns, &kustomization("static", "none", "./apps", &["/abs"]).to_string(), &["KZ011"]);
        }
        for request in slow_requests {
            let output = request.join().expect("kubectl ran");
            assert!(output.status.success(), "{output}");
        }
        // Portcullis checks an artifact that arrives late after it has answered the request. These checks also use
        // memory.
        for object in objects.iter().skip(3).step_by(4) {
            wait_until_checked(ctx, &ns, object);
        }
    });
    // Portcullis answered every call. No request was admitted because of `failurePolicy: Ignore`.
    assert!(sum_of_counters(ctx, "apiserver_admission_webhook_fail_open_count", ".portcullis.dev") < 1.0);
    let peak = ctx.gate.as_ref().and_then(crate::gate::Gate::peak_memory);
    if let Some(peak) = peak {
        eprintln!("e2e: portcullis had at most {} MiB resident", peak >> 20);
        assert!(peak < MEMORY_LIMIT, "{peak} bytes");
    }
}

fn wait_until_checked(ctx: &Context, ns: &str, object: &Value) {
    let start = Instant::now();
    while dry_run(ctx, ns, object).stderr.contains("KZ041") {
        assert!(start.elapsed() < 2 * deadline(), "the tree of {object} was not checked in time");
        thread::sleep(PAUSE);
    }
}

fn bundle(files: &[(&str, &str)]) -> String {
    let resources: Vec<_> = files.iter().map(|(name, text)| json!({"name": name, "content": text})).collect();
    json!({
        "apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "apps"},
        "spec": {"resources": resources, "kustomize": {"dir": "apps"}},
    })
    .to_string()
}

fn checks_fleet_bundles(ctx: &Context) {
    let ns = ctx.cluster.namespace("fleet");
    let words = ["KZ001 spec.kustomize.dir: resources[1]", "at apps/kustomization.yaml:3:5", "help: list it under"];
    rejects(ctx, &ns, &bundle(&WRONG_TREE), &words);
    accepts(ctx, &ns, &bundle(&CORRECT_TREE));
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn checks_sveltos_trees(ctx: &Context) {
    let ns = ctx.cluster.namespace("sveltos");
    for (kind, member) in [("ConfigMap", "binaryData"), ("Secret", "data")] {
        let object = |files| {
            let archive = base64(&packed::<&str, &str>(files));
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "tree"}, member: {"kustomize.tar.gz": archive}}).to_string()
        };
        rejects(ctx, &ns, &object(WRONG_TREE), &["trees.portcullis.dev", "KZ001", "at apps/kustomization.yaml:3:5"]);
        accepts(ctx, &ns, &object(CORRECT_TREE));
    }
}

fn ordinary_config_maps_cause_no_webhook_call(ctx: &Context) {
    let ns = ctx.cluster.namespace("ordinary");
    let calls = || sum_of_counters(ctx, "apiserver_admission_webhook_request_total", "trees.portcullis.dev");
    // Other tests may send trees meanwhile, so the counter may increase. But if ordinary objects were sent, it would
    // increase by a hundred.
    let before = calls();
    let many: Vec<_> = (0..50)
        .flat_map(|number| {
            ["ConfigMap", "Secret"]
                .map(|kind| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": format!("o{number}")}}))
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": many}).to_string();
    ctx.cluster.kubectl().args(["create", "--namespace", &ns, "-f", "-"]).stdin(list).run().expect_success();
    assert!(calls() - before < 50.0, "the API server must not send ordinary objects");
}

fn checks_labelled_config_maps(ctx: &Context) {
    let ns = ctx.cluster.namespace("labelled");
    let object = |files: [(&str, &str); 3]| {
        let data: serde_json::Map<_, _> =
            files.iter().map(|(path, text)| (path.replace('/', "__"), Value::from(*text))).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
               "metadata": {"name": "tree", "labels": {"portcullis.dev/kustomize-tree": "kubectl"}}})
        .to_string()
    };
    rejects(ctx, &ns, &object(WRONG_TREE), &["KZ001 data: resources[1]", "at apps/kustomization.yaml:3:5"]);
    accepts(ctx, &ns, &object(CORRECT_TREE));
}

fn checks_argo_cd_applications(ctx: &Context) {
    let ns = ctx.cluster.namespace("argo");
    let application = |component: &str| {
        let source = json!({"repoURL": "https://github.com/org/fleet", "path": "apps", "kustomize": {"components": [component]}});
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "apps"},
               "spec": {"project": "default", "destination": {"namespace": "default", "server": "x"}, "source": source}})
    };
    let words = ["argo-cd.portcullis.dev", "KZ010 spec.source.kustomize.components[0]", "is an absolute path"];
    rejects(ctx, &ns, &application("/abs").to_string(), &words);
    accepts(ctx, &ns, &application("../components/ldap").to_string());
    let set = |component: &str| {
        let template = application(component);
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "apps"},
               "spec": {"generators": [], "template": {"metadata": {"name": "{{x}}"}, "spec": template["spec"]}}})
        .to_string()
    };
    rejects(ctx, &ns, &set("/abs"), &["KZ010 spec.template.spec.source.kustomize.components[0]"]);
    accepts(ctx, &ns, &set("{{component}}"));
}

fn checks_stored_kustomizations(ctx: &Context) {
    let ns = ctx.cluster.namespace("stored");
    let object = |kind: &str, name: &str, path: &str, lists: &str| {
        let version = if kind == "Component" { "v1alpha1" } else { "v1beta1" };
        format!(
            "apiVersion: kustomize.config.k8s.io/{version}\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations: \
             {{portcullis.dev/path: {path}}}\n{lists}"
        )
    };
    let app = |lists: &str| object("Kustomization", "app", "clusters/app", lists);
    let component = object("Component", "ldap", "components/ldap", "namePrefix: ldap-\n");
    accepts(ctx, &ns, &component);
    let wrong = app("resources: [../../components/ldap]\n");
    eventually(|| {
        let create = ["create", "--dry-run=server", "--namespace", &ns, "-f", "-"];
        let answer = ctx.cluster.kubectl().args(create).stdin(&*wrong).run();
        answer.stderr.contains("KZ001").then_some(())
    });
    rejects(
        ctx,
        &ns,
        &wrong,
        &["KZ001 resources[0]: \"../../components/ldap\" is a kustomize Component (Component ldap)"],
    );
    accepts(ctx, &ns, &app("components: [../../components/ldap]\n"));
    let kind = "components.kustomize.config.k8s.io";
    let delete = || ctx.cluster.kubectl().args(["delete", kind, "ldap", "--dry-run=server", "--namespace", &ns]).run();
    let output = eventually(|| Some(delete()).filter(|output| !output.status.success()));
    assert!(output.stderr.contains("Kustomization app lists components/ldap in components[0]"), "{output}");
    let moved = object("Component", "ldap", "elsewhere", "namePrefix: ldap-\n");
    rejects(ctx, &ns, &moved, &["KZ004", "no other object has this folder"]);
    let conflicting = object("Kustomization", "other", "components/ldap", "resources: []\n");
    rejects(
        ctx,
        &ns,
        &conflicting,
        &["KZ002", "Kustomization app lists this folder, components/ldap, in components[0]"],
    );
    accepts(ctx, &ns, &app("resources: []\n"));
    eventually(|| delete().status.success().then_some(()));
    let without_path =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\nresources: []\n";
    rejects(ctx, &ns, without_path, &["KZ050", "use kubectl apply -k"]);
}
