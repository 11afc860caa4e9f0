//! An HTTP server that serves artifacts as source-controller does. It can also send wrong responses, or none at all.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use portcullis::kustomize::delivery::Artifact;
use ring::digest::{SHA256, digest};

/// The response of the server to requests for a path.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A complete response with these bytes.
    Bytes(Arc<[u8]>),
    /// An empty response with this HTTP status.
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// A very slow response: one byte every 200 milliseconds.
    Slow(Arc<[u8]>),
    /// A complete response with these bytes. The server sends it when the flag becomes true.
    WaitForFlag(Arc<[u8]>, Arc<AtomicBool>),
    /// No response. The server closes the connection after two minutes.
    Hang,
    /// A response that ends after half of these bytes, although its header `Content-Length` states the length of all
    /// bytes.
    Truncated(Arc<[u8]>),
    /// A response with chunked encoding that never ends.
    Endless,
}

#[derive(Default)]
struct State {
    answers: Mutex<HashMap<String, Answer>>,
    requests: Mutex<HashMap<String, usize>>,
    all: AtomicUsize,
}

/// A running artifact server.
pub struct ArtifactServer {
    port: u16,
    state: Arc<State>,
    numbers: AtomicUsize,
}

impl ArtifactServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let serving = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = serving.clone();
                thread::spawn(move || drop(serve(stream, &state)));
            }
        });
        Self { port, state, numbers: AtomicUsize::new(0) }
    }

    /// Returns the host and port of the server, in the format of the configuration key `artifactHosts`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Serves an archive under a new path. Returns the artifact in the form that Flux writes to `status.artifact` of a
    /// source.
    pub fn artifact(&self, packed: &[u8], revision: &str) -> Artifact {
        self.artifact_with_answer(packed, revision, Answer::Bytes)
    }

    /// Serves an archive under a new path. `answer` determines the response from the content of the archive. The digest
    /// in the returned artifact is always the digest of the archive, even if the response has other content.
    pub fn artifact_with_answer(
        &self,
        packed: &[u8],
        revision: &str,
        answer: impl Fn(Arc<[u8]>) -> Answer,
    ) -> Artifact {
        let path = format!("/gitrepository/test/{}.tar.gz", self.numbers.fetch_add(1, Ordering::Relaxed));
        self.state.answers.lock().unwrap().insert(path.clone(), answer(packed.into()));
        let url = format!("http://{}{path}", self.host());
        Artifact { url, digest: digest_of(packed), revision: revision.to_owned() }
    }

    /// Returns the number of requests for an artifact.
    pub fn requests(&self, artifact: &Artifact) -> usize {
        let path = artifact.url.splitn(4, '/').nth(3).unwrap();
        self.state.requests.lock().unwrap().get(&format!("/{path}")).copied().unwrap_or_default()
    }

    /// Returns the number of all requests.
    pub fn all_requests(&self) -> usize {
        self.state.all.load(Ordering::SeqCst)
    }
}

/// Returns the SHA-256 digest of an archive, as `sha256:<hex>`.
pub fn digest_of(packed: &[u8]) -> String {
    let bytes = digest(&SHA256, packed);
    let hexadecimal: String = bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

/// Returns a tar.gz archive of the files, which are pairs of path and content.
pub fn packed<P: AsRef<str>, T: AsRef<[u8]>>(files: impl IntoIterator<Item = (P, T)>) -> Vec<u8> {
    let mut archive = Packer::new();
    for (path, text) in files {
        archive.file(path.as_ref(), text.as_ref());
    }
    archive.finish()
}

/// Returns a tar.gz archive of the files in a map from path to content.
pub fn packed_map(files: &BTreeMap<String, String>) -> Vec<u8> {
    packed(files.iter())
}

/// A writer of tar.gz archives. It can also write archives that are unusual or unsafe.
pub struct Packer(tar::Builder<GzEncoder<Vec<u8>>>);

impl Packer {
    pub fn new() -> Self {
        Self(tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, tar::EntryType::Regular, None, content);
    }

    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path, tar::EntryType::Symlink, Some(target), b"");
    }

    /// Adds an entry. The path is written unchanged, even if it is absolute or contains `..`.
    fn entry(&mut self, path: &str, kind: tar::EntryType, target: Option<&str>, content: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..path.len()].copy_from_slice(path.as_bytes());
        if let Some(target) = target {
            gnu.linkname[..target.len()].copy_from_slice(target.as_bytes());
        }
        header.set_cksum();
        self.0.append(&header, content).unwrap();
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.into_inner().unwrap().finish().unwrap()
    }
}

/// Returns a small tar.gz archive that unpacks to `megabytes` mebibytes.
pub fn bomb(megabytes: usize) -> Vec<u8> {
    let mut archive = Packer::new();
    let zeros = vec![b' '; 1 << 20];
    for number in 0..megabytes {
        archive.file(&format!("f{number}.yaml"), &zeros);
    }
    archive.finish()
}

fn serve(stream: TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while reader.read_line(&mut line)? > 2 {
        assert!(!line.to_lowercase().contains("authorization"), "the request must not contain credentials");
    }
    state.all.fetch_add(1, Ordering::SeqCst);
    *state.requests.lock().unwrap().entry(path.clone()).or_default() += 1;
    let answer = state.answers.lock().unwrap().get(&path).cloned().unwrap_or(Answer::Status(404));
    write(stream, &answer)
}

fn head(status: &str, length: usize, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: application/gzip\r\nContent-Length: {length}\r\n{more}\r\n")
}

fn write(mut stream: TcpStream, answer: &Answer) -> std::io::Result<()> {
    match answer {
        Answer::Bytes(bytes) => {
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            stream.write_all(bytes)
        }
        Answer::Status(status) => stream.write_all(head(&format!("{status} No"), 0, "").as_bytes()),
        Answer::Redirect(to) => stream.write_all(head("302 Found", 0, &format!("Location: {to}\r\n")).as_bytes()),
        Answer::Slow(bytes) => {
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            bytes.iter().try_for_each(|byte| {
                thread::sleep(Duration::from_millis(200));
                stream.write_all(&[*byte])
            })
        }
        Answer::WaitForFlag(bytes, flag) => {
            while !flag.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            stream.write_all(bytes)
        }
        Answer::Hang => {
            thread::sleep(Duration::from_secs(120));
            Ok(())
        }
        Answer::Truncated(bytes) => {
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            stream.write_all(&bytes[..bytes.len() / 2])
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let chunk = [format!("{:x}\r\n", 1 << 16).into_bytes(), vec![0; 1 << 16], b"\r\n".to_vec()].concat();
            loop {
                stream.write_all(&chunk)?;
            }
        }
    }
}
