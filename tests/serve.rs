//! Tests of `portcullis serve` as a process: catalog, configuration, shutdown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;
mod support;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cases::repository;
use portcullis::gate::Registry;
use serde_json::{Value, json};
use support::client::{self, Connection};
use support::deadline::deadline;
use support::pki::{Authority, SecretMount};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

struct Server {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    authority: Authority,
    folder: tempfile::TempDir,
    _certs: SecretMount,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let authority = Authority::new();
        let certs = SecretMount::new(&authority.leaf());
        let folder = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let (address, admin) = (free_address(), free_address());
        let child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["serve", "--listen", &address.to_string(), "--admin-listen", &admin.to_string(), "--certs"])
            .arg(certs.path())
            .args(["--lame-duck", "0"])
            .args(args)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary is there");
        Self { child, address, admin, authority, folder, _certs: certs }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    async fn readiness(&self) -> Option<String> {
        self.get("/readyz").await
    }

    async fn wait_for_log(&self, condition: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !condition(&self.log()) {
            assert!(begun.elapsed() < deadline(), "{}", self.log());
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.expect("the server answers");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).parse().unwrap()
    }

    async fn wait_for_readiness(&self, condition: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            match self.readiness().await {
                Some(answer) if condition(&answer) => return answer,
                answer if begun.elapsed() > deadline() => panic!("{answer:?}\n{}", self.log()),
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn post(&self, webhook: &str, review: &str) -> Value {
        let config = Arc::new(client::config(&self.authority.root, rustls::ALL_VERSIONS));
        let mut connection = Connection::open(self.address, config).await.expect("the server accepts connections");
        connection.post(webhook, review.as_bytes()).await.expect("the server answers").json()
    }

    async fn wait_for_answer(&self, webhook: &str, review: &str, condition: impl Fn(&Value) -> bool) {
        let begun = Instant::now();
        loop {
            let answer = self.post(webhook, review).await;
            if condition(&answer) {
                return;
            }
            assert!(begun.elapsed() < deadline(), "{answer}\n{}", self.log());
            sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

fn review(file: &str) -> String {
    std::fs::read_to_string(repository().join("examples/reviews").join(file)).unwrap()
}

fn copy_examples(folder: &Path) {
    for entry in std::fs::read_dir(repository().join("examples/landscaper")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
}

fn is_patched(answer: &Value) -> bool {
    answer["response"].get("patch").is_some()
}

#[tokio::test]
async fn reloads_the_folder_of_manifests() {
    let manifests = tempfile::tempdir().unwrap();
    copy_examples(manifests.path());
    let server = Server::start(&["--manifests", &manifests.path().display().to_string()]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    let installation = review("patched.json");
    assert!(is_patched(&server.post("/mutate", &installation).await));
    let overwrites = manifests.path().join("overwrites.yaml");
    // The file is invalid, as if it were half written, so the previous content stays in use.
    let text = std::fs::read_to_string(&overwrites).unwrap();
    std::fs::write(&overwrites, "overwrites: [").unwrap();
    let begun = Instant::now();
    while !server.log().contains("manifests not reloaded") {
        assert!(begun.elapsed() < deadline(), "{}", server.log());
        sleep(Duration::from_millis(100)).await;
    }
    assert!(is_patched(&server.post("/mutate", &installation).await));
    std::fs::write(&overwrites, text.replace("componentName: github.com", "componentName: elsewhere.com")).unwrap();
    server.wait_for_answer("/mutate", &installation, |answer| !is_patched(answer)).await;
}

#[tokio::test]
async fn logs_how_many_objects_are_stored() {
    let manifests = tempfile::tempdir().unwrap();
    let list = |first: usize| {
        let context = |number: usize| {
            let metadata =
                json!({"namespace": "landscape", "name": format!("context-{number}"), "uid": "x".repeat(200)});
            json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context", "metadata": metadata})
        };
        let items: Vec<_> = (first..first + 200).map(context).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    };
    // The file is read twice, because it contains two lists.
    std::fs::write(manifests.path().join("contexts.json"), list(0) + &list(200)).unwrap();
    let server = Server::start(&["--manifests", &manifests.path().display().to_string()]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    let (log, objects) = (server.log(), "objects=400 ");
    assert!(
        log.lines().any(|line| line.contains("contexts.landscaper.gardener.cloud") && line.contains(objects)),
        "{log}"
    );
}

#[tokio::test]
async fn reloads_the_configuration_and_keeps_the_last_valid_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("portcullis.yaml");
    std::fs::write(&config, "rules: {OW001: audit}\n").unwrap();
    let server = Server::start(&["--manifests", "examples/landscaper", "--config", &config.display().to_string()]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    let refused = review("refused.json");
    assert_eq!(server.post("/validate", &refused).await["response"]["allowed"], true);
    std::fs::write(&config, "rules: {OW001: deny}\n").unwrap();
    server.wait_for_answer("/validate", &refused, |answer| answer["response"]["allowed"] == false).await;
    std::fs::write(&config, "rulez: {}\n").unwrap();
    let begun = Instant::now();
    while !server.log().contains("configuration not reloaded") {
        assert!(begun.elapsed() < deadline(), "{}", server.log());
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.post("/validate", &refused).await["response"]["allowed"], false);
}

/// A configuration file in a folder like that of a mounted ConfigMap. The file is a symbolic link to
/// `..data/portcullis.yaml`, and `..data` is a symbolic link to a folder. An update replaces the link `..data`.
struct ConfigMount {
    folder: tempfile::TempDir,
    version: std::cell::Cell<usize>,
}

impl ConfigMount {
    fn new(text: &str) -> Self {
        let mount = Self { folder: tempfile::tempdir().unwrap(), version: Default::default() };
        mount.publish(text);
        symlink("..data/portcullis.yaml", mount.folder.path().join("portcullis.yaml")).unwrap();
        mount
    }

    fn file(&self) -> String {
        self.folder.path().join("portcullis.yaml").display().to_string()
    }

    fn publish(&self, text: &str) {
        let name = format!("..version_{}", self.version.replace(self.version.get() + 1));
        let path = |name: &str| self.folder.path().join(name);
        std::fs::create_dir(path(&name)).unwrap();
        std::fs::write(path(&name).join("portcullis.yaml"), text).unwrap();
        symlink(&name, path("..data_tmp")).unwrap();
        std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
    }
}

#[tokio::test]
async fn readyz_reports_an_invalid_configuration_until_it_is_fixed() {
    let mount = ConfigMount::new("rules: {OW001: audit}\n");
    let server = Server::start(&["--manifests", "examples/landscaper", "--config", &mount.file()]);
    server.wait_for_readiness(|answer| answer.contains("[+] configuration ok\n")).await;
    mount.publish("rules: {OW001: audit}\nrulez: {}\n");
    let answer = server.wait_for_readiness(|answer| answer.contains("the current file is invalid")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("[+] configuration ok, but") && answer.contains("stays in use") && answer.contains("rulez"),
        "{answer}"
    );
    let failed = server.metric(r#"portcullis_configuration_reloads_total{result="failed"}"#).await;
    let (loaded, last) = (
        r#"portcullis_configuration_reloads_total{result="loaded"}"#,
        "portcullis_configuration_last_success_timestamp_seconds",
    );
    assert_eq!((failed, server.metric(loaded).await), (1.0, 0.0));
    assert!(server.metric(last).await > 0.0);
    assert_eq!(server.post("/validate", &review("refused.json")).await["response"]["allowed"], true);
    mount.publish("rules: {OW001: deny}\n");
    server.wait_for_readiness(|answer| answer.contains("[+] configuration ok\n")).await;
    assert_eq!(server.post("/validate", &review("refused.json")).await["response"]["allowed"], false);
    assert_eq!(server.metric(loaded).await, 1.0);
}

#[tokio::test]
async fn reports_expired_exemptions() {
    let mount = ConfigMount::new("# none\n");
    let server = Server::start(&["--manifests", "examples/landscaper", "--config", &mount.file()]);
    server.wait_for_readiness(|answer| answer.contains("[+] configuration ok\n")).await;
    let exempt = |seconds| {
        let until = time::OffsetDateTime::now_utc() + Duration::from_secs(seconds);
        let until = until.format(&time::format_description::well_known::Rfc3339).unwrap();
        mount.publish(&format!("exemptions:\n  - {{rule: OW001, namespaces: ['*'], until: '{until}'}}\n"));
    };
    let refused = review("refused.json");
    exempt(3600);
    server.wait_for_answer("/validate", &refused, |answer| answer["response"]["allowed"] == true).await;
    exempt(2);
    server.wait_for_answer("/validate", &refused, |answer| answer["response"]["allowed"] == false).await;
    let answer = server.wait_for_readiness(|answer| answer.contains("exemptions have expired: OW001 in *")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.wait_for_log(|log| log.contains("an exemption has expired")).await;
    assert_eq!(server.metric(r#"portcullis_exemptions{state="expired"}"#).await, 1.0);
}

#[tokio::test]
async fn shadow_mode_denies_nothing_and_is_visible() {
    let server = Server::start(&["--manifests", "examples/landscaper", "--shadow"]);
    let answer = server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    assert!(answer.contains("[+] enforcement ok, but off: --shadow is set"), "{answer}");
    let response = &server.post("/validate", &review("refused.json")).await["response"];
    assert_eq!((&response["allowed"], &response["auditAnnotations"]["shadow"]), (&true.into(), &"deny".into()));
    assert!(!is_patched(&server.post("/mutate", &review("patched.json")).await));
    server.wait_for_log(|log| log.contains("every request is admitted unchanged")).await;
    let is_shadow_record = |line: &str| line.contains("shadow=\"deny\"") && line.contains("OW001=deny");
    server.wait_for_log(|log| log.lines().any(is_shadow_record)).await;
}

#[tokio::test]
async fn answers_verify_in_shadow_mode() {
    let server = Server::start(&["--manifests", "examples/landscaper", "--shadow"]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    let mut verify: serde_json::Value = serde_json::from_str(&review("refused.json")).unwrap();
    verify["request"]["dryRun"] = true.into();
    verify["request"]["object"]["metadata"]["annotations"]["portcullis.dev/verify"] = "true".into();
    let response = &server.post("/validate", &verify.to_string()).await["response"];
    let answer = concat!("portcullis ", env!("CARGO_PKG_VERSION"), " answers");
    assert_eq!((&response["allowed"], &response["warnings"]), (&true.into(), &serde_json::json!([answer])));
}

/// Rules of disabled families do not run. A configuration with such rules is valid, both at start and after a reload.
#[tokio::test]
async fn only_enabled_families_decide() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("portcullis.yaml");
    std::fs::write(&config, "rules: {OW001: deny, DP: deny}\n").unwrap();
    let config_path = config.display().to_string();
    let server =
        Server::start(&["--manifests", "examples/landscaper", "--config", &config_path, "--families", "KZ,DR"]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    assert_eq!(server.post("/validate", &review("refused.json")).await["response"]["allowed"], true);
    assert!(!is_patched(&server.post("/mutate", &review("patched.json")).await));
    std::fs::write(&config, "rules: {OW001: warn, DP: deny}\n").unwrap();
    server.wait_for_log(|log| log.contains("configuration reloaded")).await;
    assert!(!server.log().contains("not reloaded"), "{}", server.log());
}

/// Without an API server, the server is alive but not ready. It logs one line for each kind that it cannot watch, not
/// one for each attempt.
#[tokio::test]
async fn waits_for_an_unreachable_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let nowhere = free_address();
    std::fs::write(
        &kubeconfig,
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"http://{nowhere}\"}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        ),
    )
    .unwrap();
    let server = Server::start(&["--kubeconfig", &kubeconfig.display().to_string()]);
    let answer = server.wait_for_readiness(|answer| answer.contains("not listed yet")).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("contexts.landscaper.gardener.cloud"), "{answer}");
    let kinds = Registry::standard().kinds().into_iter().filter(|kind| !kind.is_read_by_name()).count();
    server.wait_for_log(|log| log.matches("cannot watch").count() >= kinds).await;
    // The watch of each kind is retried within this time.
    sleep(Duration::from_secs(4)).await;
    let log = server.log();
    assert_eq!(log.matches("cannot watch").count(), kinds, "one line for each kind:\n{log}");
    assert_eq!(log.lines().count(), kinds + 1, "the only other line reports the start:\n{log}");
    let answer = server.readiness().await.expect("the server answers");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test]
async fn shuts_down_in_order() {
    let mut server = Server::start(&["--manifests", "examples/landscaper"]);
    server.wait_for_readiness(|answer| answer.starts_with("HTTP/1.1 200")).await;
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(server.log().contains("shut down"), "{}", server.log());
}

/// Checks that a build without the feature `otlp` rejects the flag `--otlp-endpoint`. `make test` builds with this
/// feature, so only a plain `cargo test` runs this test.
#[cfg(not(feature = "otlp"))]
#[test]
fn a_build_without_traces_rejects_the_flag() {
    let arguments = ["serve", "--otlp-endpoint", "http://collector:4318"];
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis")).args(arguments).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("--features otlp"), "{stderr}");
}

#[tokio::test]
async fn reports_start_errors_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis")).arg("serve").args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let empty = folder.path().display().to_string();
    let (code, stderr) = run(&["--certs", &empty, "--manifests", "examples/landscaper"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("tls.crt") && stderr.lines().count() == 1, "{stderr}");
    std::fs::write(folder.path().join("bad.yaml"), "a: [\n").unwrap();
    let certs = SecretMount::new(&Authority::new().leaf());
    let (code, stderr) = run(&["--certs", &certs.path().display().to_string(), "--manifests", &empty]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("bad.yaml:1:"), "{stderr}");
}
