//! Tests of `portcullis build --fetch` with a git server over HTTP and HTTPS in this process. The server runs git to
//! pack the objects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

const FILE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: raw\n";
const OUTPUT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p-settings\n";

/// User and password for private repositories.
const CREDENTIALS: &str = "ada:secret";

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments);
    let output = command.env("HOME", folder).output().expect("these tests need git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Creates a repository with a kustomization that builds one ConfigMap. The ConfigMap has the name `settings` at the
/// tag `v1`, and the name `newer` on the branch `main`.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch", "main"]);
    write(
        folder,
        &[
            ("base/kustomization.yaml", "resources: [../parts]\n"),
            ("parts/kustomization.yaml", "resources: [map.yaml]\n"),
            ("parts/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
            ("thief/kustomization.yaml", "resources: [../../../../../secret]\n"),
        ],
    );
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", "one"]);
    git(folder, &["tag", "-a", "v1", "-m", "one"]);
    write(folder, &[("parts/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: newer}\n")]);
    git(folder, &["commit", "--quiet", "-am", "two"]);
}

/// A server with a file and a repository. The repository is public at `/team/app.git`, and needs a password at
/// `/private/app.git`.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// The content of a server. Contains the path of the repository that the server serves. Requests for the URL path
/// `moved.git` are redirected to the server at `redirect_address`.
struct Content {
    repository: PathBuf,
    redirect_address: String,
}

impl Server {
    fn start(repository: &Path) -> Self {
        Self::of(Content { repository: repository.to_owned(), redirect_address: String::new() }, None)
    }

    fn of(content: Content, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                match &tls {
                    None => serve_request(stream, &content, &log),
                    Some(tls) => {
                        let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
                        serve_request(StreamOwned::new(connection, stream), &content, &log);
                    }
                }
            }
        });
        Self { address, requests }
    }

    /// Returns how many requests contained `text`. Searches the request line, the first line of the body, and the
    /// credentials.
    fn count_requests_with(&self, text: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.contains(text)).count()
    }

    /// Returns the number of git packs that the server has sent.
    fn pack_count(&self) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.starts_with("POST") && request.contains("fetch")).count()
    }
}

fn serve_request(stream: impl Read + Write, served: &Content, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        // The client closes the connection if it does not trust the certificate.
        if reader.read_line(&mut line).is_err() {
            return;
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let Some(request) = lines.first().cloned() else { return };
    let header = |name: &str| {
        let headers = lines.iter().filter_map(|line| line.split_once(": "));
        headers.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let command = String::from_utf8_lossy(&body).lines().next().unwrap_or_default().to_owned();
    let authorization = header("authorization").unwrap_or_default();
    log.lock().unwrap().push(format!("{request} {command} {authorization}"));
    let protocol = header("git-protocol").unwrap_or_default();
    let pack = |arguments: &[&str]| {
        let mut process = Command::new("git");
        process.arg("upload-pack").arg("--stateless-rpc").args(arguments).arg(&served.repository);
        process
            .env("GIT_PROTOCOL", &protocol)
            .env("HOME", &served.repository)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = process.spawn().expect("these tests need git");
        child.stdin.take().unwrap().write_all(&body).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    let path = request.split(' ').nth(1).unwrap();
    let is_allowed =
        !path.starts_with("/private/") || authorization == format!("Basic {}", STANDARD.encode(CREDENTIALS));
    let moved =
        format!("302 Found\r\nLocation: {}/team/app.git/info/refs?service=git-upload-pack", served.redirect_address);
    let (status, kind, content) = match &*path.replace("/private/", "/team/") {
        _ if !is_allowed => ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"team\"", "text/plain", Vec::new()),
        "/team/moved.git/info/refs?service=git-upload-pack" => (&*moved, "text/plain", Vec::new()),
        "/team/app.git/info/refs?service=git-upload-pack" => {
            let mut content = b"001e# service=git-upload-pack\n0000".to_vec();
            content.extend(pack(&["--advertise-refs"]));
            ("200 OK", "application/x-git-upload-pack-advertisement", content)
        }
        "/team/app.git/git-upload-pack" => ("200 OK", "application/x-git-upload-pack-result", pack(&[])),
        "/raw/map.yaml" => ("200 OK", "text/plain", FILE.into()),
        "/moved/map.yaml" => ("302 Found\r\nLocation: /raw/map.yaml", "text/plain", Vec::new()),
        _ => ("404 Not Found", "text/html", Vec::new()),
    };
    let mut stream = reader.into_inner();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content)).and_then(|()| stream.flush()).unwrap();
}

/// The environment of a test. The folder contains a git repository, a kustomize root and a cache. The server serves the
/// git repository.
struct TestSetup {
    folder: TempDir,
    server: Server,
}

impl TestSetup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("repository");
        repository(&repo);
        let server = Server::start(&repo);
        Self { folder, server }
    }

    /// Runs `portcullis build` on a root with these entries in `resources`.
    fn build(&self, entries: &[&str], arguments: &[&str]) -> Output {
        let resources: String = entries.iter().map(|entry| format!("- {entry}\n")).collect();
        write(self.folder.path(), &[("root/kustomization.yaml", &format!("namePrefix: p-\nresources:\n{resources}"))]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.env("SSL_CERT_FILE", self.folder.path().join("authority.pem"));
        command.args(["build", "root"]).args(arguments).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache")).env("HOME", self.folder.path());
        command.env("GIT_TERMINAL_PROMPT", "0").output().unwrap()
    }

    /// Starts an HTTPS server for the git repository of this environment. Later calls of `build` trust the certificate
    /// of the server. The server redirects requests for `moved.git` to the server at `redirect_address`.
    fn start_https_server(&self, redirect_address: &str) -> Server {
        let certified_key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let bundle = OpenOptions::new().create(true).append(true).open(self.folder.path().join("authority.pem"));
        bundle.unwrap().write_all(certified_key.cert.pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(certified_key.signing_key.serialize_pem().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certified_key.cert.into()], key).unwrap();
        let content = Content {
            repository: self.folder.path().join("repository"),
            redirect_address: redirect_address.to_owned(),
        };
        Server::of(content, Some(Arc::new(config)))
    }

    /// Configures git's credential helper with the password for a server.
    fn store_credentials(&self, server: &Server) {
        let url_with_credentials = server.address.replace("://", &format!("://{CREDENTIALS}@"));
        let file = self.folder.path().join("accounts");
        let config = format!("[credential]\n\thelper = store --file={}\n", file.display());
        write(self.folder.path(), &[("accounts", &format!("{url_with_credentials}\n")), (".gitconfig", &config)]);
    }

    fn entry(&self, path: &str) -> String {
        format!("{}{path}", self.server.address)
    }
}

fn exit_code_and_output(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn builds_a_base_in_a_repository_and_clones_a_commit_once() {
    let setup = TestSetup::new();
    let entry = setup.entry("/team/app.git//base?ref=v1");
    for _ in 0..2 {
        let run = exit_code_and_output(&setup.build(&[&entry], &["--fetch"]));
        assert_eq!(run, (0, OUTPUT.to_owned(), String::new()));
        assert_eq!(setup.server.pack_count(), 1, "{:?}", setup.server.requests.lock().unwrap());
    }
    let newest = exit_code_and_output(&setup.build(&[&setup.entry("/team/app.git//base")], &["--fetch"]));
    assert_eq!(newest, (0, OUTPUT.replace("settings", "newer"), String::new()));
    assert_eq!(setup.server.pack_count(), 2);
}

#[test]
fn builds_a_base_in_a_repository_on_disk() {
    let setup = TestSetup::new();
    let entry = format!("file://{}//base?ref=v1", setup.folder.path().join("repository").display());
    assert_eq!(exit_code_and_output(&setup.build(&[&entry], &["--fetch"])), (0, OUTPUT.to_owned(), String::new()));
}

/// Checks the annotation `config.kubernetes.io/origin` of an object from a remote base. The annotation contains the
/// repository and the file of the object. The expected output was recorded with kustomize 5.8.1 and a repository on
/// disk.
#[test]
fn annotates_objects_with_their_repository() {
    let setup = TestSetup::new();
    let address = format!("file://{}", setup.folder.path().join("repository").display());
    let entry = format!("{address}//base?ref=v1\nbuildMetadata: [originAnnotations]");
    let note = format!("path: parts/map.yaml\n      repo: {address}\n      ref: v1\n");
    let annotations = format!("  annotations:\n    config.kubernetes.io/origin: |\n      {note}  name: p-settings\n");
    let expected = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n{annotations}");
    assert_eq!(exit_code_and_output(&setup.build(&[&entry], &["--fetch"])), (0, expected, String::new()));
}

#[test]
fn fetches_files_and_follows_redirects() {
    let setup = TestSetup::new();
    let run = exit_code_and_output(&setup.build(&[&setup.entry("/moved/map.yaml")], &["--fetch"]));
    assert_eq!(run, (0, FILE.replace("raw", "p-raw"), String::new()));
}

#[test]
fn fetches_nothing_without_the_flag() {
    let setup = TestSetup::new();
    let (code, stdout, stderr) = exit_code_and_output(&setup.build(&[&setup.entry("/raw/map.yaml")], &[]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with("cannot be built by portcullis: ") && stderr.contains("is an HTTP URL"), "{stderr}");
    assert_eq!(setup.server.requests.lock().unwrap().len(), 0);
}

#[test]
fn a_fetched_base_cannot_read_folders_outside_its_repository() {
    let setup = TestSetup::new();
    write(
        setup.folder.path(),
        &[("cache/secret/kustomization.yaml", "resources: [map.yaml]\n"), ("cache/secret/map.yaml", FILE)],
    );
    let (code, stdout, stderr) =
        exit_code_and_output(&setup.build(&[&setup.entry("/team/app.git//thief")], &["--fetch"]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("../../../../../secret"), "{stderr}");
}

#[test]
fn reports_fetch_errors() {
    let setup = TestSetup::new();
    let reported = |path: &str| exit_code_and_output(&setup.build(&[&setup.entry(path)], &["--fetch"])).2;
    let branch = reported("/team/app.git//base?ref=lost");
    assert!(branch.contains("cannot be fetched") && branch.contains("lost"), "{branch}");
    let folder = reported("/team/app.git//lost");
    assert!(folder.contains("the repository has no folder lost"), "{folder}");
    let nothing = reported("/nothing/there.git//base");
    assert!(nothing.contains("404"), "{nothing}");
}

#[test]
fn sends_the_password_of_gits_helper_to_the_server_that_asks() {
    let setup = TestSetup::new();
    let server = setup.start_https_server("");
    setup.store_credentials(&server);
    let entry = format!("{}/private/app.git//base?ref=v1", server.address);
    assert_eq!(exit_code_and_output(&setup.build(&[&entry], &["--fetch"])), (0, OUTPUT.to_owned(), String::new()));
    assert!(server.count_requests_with("Basic") > 0, "{:?}", server.requests.lock().unwrap());
    let public = format!("{}/team/app.git//base?ref=v1", server.address);
    server.requests.lock().unwrap().clear();
    assert_eq!(exit_code_and_output(&setup.build(&[&public], &["--fetch"])).0, 0);
    assert_eq!(server.count_requests_with("Basic"), 0, "a password was sent although the server did not request it");
}

#[test]
fn sends_no_password_to_another_server() {
    let setup = TestSetup::new();
    let other = setup.start_https_server("");
    let server = setup.start_https_server(&other.address);
    setup.store_credentials(&server);
    let entry = format!("{}/private/moved.git//base?ref=v1", server.address);
    assert_eq!(exit_code_and_output(&setup.build(&[&entry], &["--fetch"])), (0, OUTPUT.to_owned(), String::new()));
    assert!(server.count_requests_with("Basic") > 0, "{:?}", server.requests.lock().unwrap());
    assert!(other.pack_count() == 1 && other.count_requests_with("Basic") == 0, "{:?}", other.requests.lock().unwrap());
}

#[test]
fn sends_no_password_without_encryption() {
    let setup = TestSetup::new();
    setup.store_credentials(&setup.server);
    let (code, _, stderr) = exit_code_and_output(&setup.build(&[&setup.entry("/private/app.git//base")], &["--fetch"]));
    assert_eq!((code, setup.server.count_requests_with("Basic")), (1, 0));
    assert!(stderr.contains("clear text over http"), "{stderr}");
}

#[test]
fn reports_that_a_password_is_missing_or_wrong() {
    let setup = TestSetup::new();
    let server = setup.start_https_server("");
    let entry = format!("{}/private/app.git//base", server.address);
    let (code, _, stderr) = exit_code_and_output(&setup.build(&[&entry], &["--fetch"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot be fetched"), "{stderr}");
    let url_with_credentials = server.address.replace("://", "://ada:wrong-one@");
    let config = format!("[credential]\n\thelper = store --file={}/accounts\n", setup.folder.path().display());
    write(setup.folder.path(), &[("accounts", &format!("{url_with_credentials}\n")), (".gitconfig", &config)]);
    let (code, _, stderr) = exit_code_and_output(&setup.build(&[&entry], &["--fetch"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot be fetched") && !stderr.contains("wrong-one"), "{stderr}");
}
