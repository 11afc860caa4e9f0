//! Tests of `portcullis verify` with a simulated API server that serves the kinds of Crossplane 1.17.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const SERVED: &str = "/apis/apiextensions.crossplane.io/v1alpha1/environmentconfigs?dryRun=All";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps?dryRun=All";

/// Returns the response of the simulated API server to a request for `path`: the status, a header and the body.
/// `registered` contains the resources for which webhooks are registered.
fn answer(path: &str, registered: &[&str]) -> (&'static str, &'static str, Value) {
    let rules = json!([{"resources": registered}]);
    let webhooks = json!([{"name": "validate.portcullis.dev", "rules": rules}]);
    match path {
        REGISTRATION => ("200 OK", "", json!({"kind": "List", "items": [{"webhooks": webhooks}]})),
        SERVED if registered.contains(&"environmentconfigs") => {
            ("201 Created", "Warning: 299 - \"portcullis 1.2.3 answers\"\r\n", json!({}))
        }
        SERVED | CONFIG_MAPS => ("201 Created", "", json!({})),
        _ => ("404 Not Found", "", json!({"kind": "Status", "code": 404, "message": "the server could not find it"})),
    }
}

fn serve(stream: TcpStream, registered: &[&str]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or_default();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let (status, header, body) = answer(&path, registered);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n{header}\r\n",
        body.len()
    );
    reader.get_mut().write_all((head + &body).as_bytes())
}

/// Runs `verify` without `--families`, in a cluster with webhooks for the resources `registered`. `within` is the
/// timeout in seconds. Returns the exit code and the output.
fn run_verify(registered: &'static [&'static str], within: &str) -> (Option<i32>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || drop(serve(stream, registered)));
        }
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    let named = |kind: &str, content: Value| json!([{"name": "test", kind: content}]);
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test", "users": named("user", json!({})),
        "clusters": named("cluster", json!({"server": server})),
        "contexts": named("context", json!({"cluster": "test", "user": "test"})),
    });
    std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["verify", "--namespace", "default", "--within", within, "--kubeconfig"]).arg(file.path());
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Regression test for issue 18 (Crossplane, item 10): Crossplane 1.17 serves EnvironmentConfigs only in version
/// v1alpha1, so `verify` must use this version.
#[test]
fn uses_a_version_that_the_cluster_serves() {
    let (code, text) = run_verify(&["environmentconfigs"], "30");
    assert!(text.contains("environmentconfigs (EN): portcullis 1.2.3 answers\n"), "{text}");
    assert_eq!(code, Some(0), "{text}");
}

/// Regression test for issue 18 (Crossplane, item 10): if no webhook is registered for ConfigMaps, `verify` must finish
/// although no webhook answers its request about ConfigMaps.
#[test]
fn waits_only_for_registered_kinds() {
    let (code, text) = run_verify(&["environmentconfigs"], "30");
    assert!(code == Some(0) && text.contains("configmaps (KZ): not registered\n"), "{text}");
    let (code, text) = run_verify(&["configmaps"], "0");
    assert!(code == Some(1) && text.contains("configmaps (KZ): NOT ANSWERED: "), "{text}");
}
