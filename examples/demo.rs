//! Runs the demo of `make run`: starts a server with the objects in `examples/landscaper`, sends three requests to it,
//! and prints the answers as kubectl does.

#![allow(clippy::print_stdout, reason = "printing is the purpose of this program")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Timeout for the server to become ready. A debug build needs less than a second, even on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

fn main() -> Outcome<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let binary = std::env::current_exe()?.parent().and_then(Path::parent).ok_or("no target folder")?.join("portcullis");
    let certs = root.join("target/demo-certs");
    let status = Command::new(&binary).arg("certs").arg("--out").arg(&certs).status()?;
    if !status.success() {
        return Err("`portcullis certs` failed".into());
    }
    let server = Server::start(&binary, &root, &certs)?;
    for (file, webhook, title) in [
        ("refused.json", "validate", "An overwrite that Landscaper cannot decode is denied"),
        ("warned.json", "validate", "A change of overwrites causes a warning"),
        ("patched.json", "mutate", "An Installation is changed"),
    ] {
        let review = std::fs::read_to_string(root.join("examples/reviews").join(file))?;
        let answer = server.post(webhook, &review)?;
        println!("\n== {title}\n   POST examples/reviews/{file} to /{webhook}\n");
        show(webhook, &answer["response"])?;
    }
    // Prints the path of the binary that was just built, because `cargo run` would build a binary with other features.
    let program = binary.strip_prefix(&root).unwrap_or(&binary).display();
    println!(
        "\nTo keep the server running:\n\n  {program} serve --manifests examples/landscaper --certs target/demo-certs \\\n    \
         --listen 127.0.0.1:9443 --admin-listen 127.0.0.1:8080\n\nand send a request:\n\n  curl --cacert target/demo-certs/ca.crt \
         -H 'Content-Type: application/json' \\\n    --data @examples/reviews/refused.json https://localhost:9443/validate\n"
    );
    Ok(())
}

/// Prints the response of a webhook as kubectl does. Also prints the patch in the response, which kubectl does not
/// show.
fn show(webhook: &str, response: &Value) -> Outcome<()> {
    for warning in response["warnings"].as_array().into_iter().flatten() {
        println!("Warning: {}", warning.as_str().unwrap_or_default());
    }
    if response["allowed"] != true {
        let message = response["status"]["message"].as_str().unwrap_or_default();
        println!(
            "Error from server (Forbidden): admission webhook \"{webhook}.portcullis.dev\" denied the request: {message}"
        );
    }
    if let Some(patch) = response["patch"].as_str() {
        let patch: Value = serde_json::from_slice(&STANDARD.decode(patch)?)?;
        println!("\nPatch: {patch:#}");
    }
    Ok(())
}

struct Server {
    child: Child,
    port: u16,
    roots: RootCertStore,
}

impl Server {
    fn start(binary: &Path, root: &Path, certs: &Path) -> Outcome<Self> {
        let (port, admin) = (free_port()?, free_port()?);
        let child = Command::new(binary)
            .arg("serve")
            .arg("--manifests")
            .arg(root.join("examples/landscaper"))
            .arg("--certs")
            .arg(certs)
            .args(["--listen", &format!("127.0.0.1:{port}"), "--admin-listen", &format!("127.0.0.1:{admin}")])
            .args(["--log", "warn"])
            .stdin(Stdio::null())
            .spawn()?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certs.join("ca.crt"))?)?;
        let server = Self { child, port, roots };
        let begun = Instant::now();
        while !is_ready(admin) {
            if begun.elapsed() > READY_TIMEOUT {
                return Err(format!("the server was not ready within {READY_TIMEOUT:?}").into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn post(&self, webhook: &str, body: &str) -> Outcome<Value> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(self.roots.clone()).with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
        let mut stream = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", self.port))?);
        write!(
            stream,
            "POST /{webhook}?timeout=3s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, json) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        Ok(serde_json::from_str(json)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn is_ready(port: u16) -> bool {
    let get_readyz = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    get_readyz().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
