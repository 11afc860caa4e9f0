//! Tests of `portcullis build --fetch` with a git server over HTTP in this process, for which git packs the objects.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

const FILE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: raw\n";
const OUTPUT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p-settings\n";

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

/// A repository with the tag `v1`, and another name of the object on the branch `main`.
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

/// A server of a repository at `/team/app.git`, and of a file.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(repository: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (repository, log) = (repository.to_owned(), Arc::clone(&requests));
        thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap(), &repository, &log)));
        Self { address, requests }
    }

    /// Returns how many packs were sent.
    fn packs(&self) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.starts_with("POST") && request.contains("fetch")).count()
    }
}

fn answer(stream: TcpStream, repository: &Path, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
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
    log.lock().unwrap().push(format!("{request} {command}"));
    let protocol = header("git-protocol").unwrap_or_default();
    let pack = |arguments: &[&str]| {
        let mut process = Command::new("git");
        process.arg("upload-pack").arg("--stateless-rpc").args(arguments).arg(repository);
        process.env("GIT_PROTOCOL", &protocol).env("HOME", repository).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process.spawn().expect("these tests need git");
        child.stdin.take().unwrap().write_all(&body).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    let (status, kind, content) = match request.split(' ').nth(1).unwrap() {
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
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content)).unwrap();
}

/// A folder with a repository, its server, and a root.
struct Lab {
    folder: TempDir,
    server: Server,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("repository");
        repository(&repo);
        let server = Server::start(&repo);
        Self { folder, server }
    }

    /// Builds a root with these entries in `resources`.
    fn build(&self, entries: &[&str], arguments: &[&str]) -> Output {
        let resources: String = entries.iter().map(|entry| format!("- {entry}\n")).collect();
        write(self.folder.path(), &[("root/kustomization.yaml", &format!("namePrefix: p-\nresources:\n{resources}"))]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["build", "root"]).args(arguments).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache")).env("HOME", self.folder.path());
        command.env("GIT_TERMINAL_PROMPT", "0").output().unwrap()
    }

    fn entry(&self, path: &str) -> String {
        format!("{}{path}", self.server.address)
    }
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn builds_a_base_in_a_repository_and_clones_a_commit_once() {
    let lab = Lab::new();
    let entry = lab.entry("/team/app.git//base?ref=v1");
    for _ in 0..2 {
        let run = texts(&lab.build(&[&entry], &["--fetch"]));
        assert_eq!(run, (0, OUTPUT.to_owned(), String::new()));
        assert_eq!(lab.server.packs(), 1, "{:?}", lab.server.requests.lock().unwrap());
    }
    let newest = texts(&lab.build(&[&lab.entry("/team/app.git//base")], &["--fetch"]));
    assert_eq!(newest, (0, OUTPUT.replace("settings", "newer"), String::new()));
    assert_eq!(lab.server.packs(), 2);
}

#[test]
fn builds_a_base_in_a_repository_on_disk() {
    let lab = Lab::new();
    let entry = format!("file://{}//base?ref=v1", lab.folder.path().join("repository").display());
    assert_eq!(texts(&lab.build(&[&entry], &["--fetch"])), (0, OUTPUT.to_owned(), String::new()));
}

/// Recorded with kustomize 5.8.1 and a repository on disk.
#[test]
fn annotates_objects_with_their_repository() {
    let lab = Lab::new();
    let address = format!("file://{}", lab.folder.path().join("repository").display());
    let entry = format!("{address}//base?ref=v1\nbuildMetadata: [originAnnotations]");
    let note = format!("path: parts/map.yaml\n      repo: {address}\n      ref: v1\n");
    let annotations = format!("  annotations:\n    config.kubernetes.io/origin: |\n      {note}  name: p-settings\n");
    let expected = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n{annotations}");
    assert_eq!(texts(&lab.build(&[&entry], &["--fetch"])), (0, expected, String::new()));
}

#[test]
fn fetches_files_and_follows_redirects() {
    let lab = Lab::new();
    let run = texts(&lab.build(&[&lab.entry("/moved/map.yaml")], &["--fetch"]));
    assert_eq!(run, (0, FILE.replace("raw", "p-raw"), String::new()));
}

#[test]
fn fetches_nothing_without_the_flag() {
    let lab = Lab::new();
    let (code, stdout, stderr) = texts(&lab.build(&[&lab.entry("/raw/map.yaml")], &[]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with("not built here: ") && stderr.contains("fetched over HTTP"), "{stderr}");
    assert_eq!(lab.server.requests.lock().unwrap().len(), 0);
}

#[test]
fn a_fetched_base_cannot_read_folders_outside_its_repository() {
    let lab = Lab::new();
    write(
        lab.folder.path(),
        &[("cache/secret/kustomization.yaml", "resources: [map.yaml]\n"), ("cache/secret/map.yaml", FILE)],
    );
    let (code, stdout, stderr) = texts(&lab.build(&[&lab.entry("/team/app.git//thief")], &["--fetch"]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("../../../../../secret"), "{stderr}");
}

#[test]
fn reports_what_cannot_be_fetched() {
    let lab = Lab::new();
    let reported = |path: &str| texts(&lab.build(&[&lab.entry(path)], &["--fetch"])).2;
    let branch = reported("/team/app.git//base?ref=lost");
    assert!(branch.contains("cannot be fetched") && branch.contains("lost"), "{branch}");
    let folder = reported("/team/app.git//lost");
    assert!(folder.contains("the repository has no folder lost"), "{folder}");
    let nothing = reported("/nothing/there.git//base");
    assert!(nothing.contains("404"), "{nothing}");
}
