//! Serves Git repositories over HTTP, so that source-controller can clone them. A small HTTP server runs
//! `git http-backend`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use tempfile::TempDir;

/// The date of all commits. It is constant, so that the same files result in the same commit hash in every run.
const DATE: &str = "2026-01-01T00:00:00Z";
const AUTHOR: &str = "systems";
const ADDRESS: &str = "systems@example.org";
/// Maximum size of a request body, in bytes. Clients only fetch, so their requests are small.
const MAX_BODY: u64 = 1 << 20;

/// The port of the only Git server in this process, and the folder that the server currently serves. Each run of a
/// system sets a new folder. A repository has the same URL in all runs, so commits with files that contain the URL have
/// the same hash in all runs too.
static SERVER: OnceLock<(u16, Arc<Mutex<PathBuf>>)> = OnceLock::new();

/// The Git repositories for one run of the scenarios of a test system. Dropping this value deletes them.
pub struct GitServer {
    folder: TempDir,
    port: u16,
}

/// A Git repository on the server, with a work tree.
pub struct Repository {
    folder: PathBuf,
    /// The URL for cloning the repository.
    pub url: String,
}

impl GitServer {
    /// Creates an empty folder for repositories, and makes the server serve this folder. Starts the server if it is not
    /// running.
    ///
    /// # Panics
    ///
    /// If the operating system does not provide a folder or a port.
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder can be created");
        crate::cleanup::add_folder(folder.path());
        let (port, root) = SERVER.get_or_init(start_listener);
        folder.path().clone_into(&mut root.lock().expect("no thread panicked while it held the lock"));
        Self { folder, port: *port }
    }

    /// Returns the host and port of the server.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Creates an empty repository.
    pub fn repository(&self, name: &str) -> Repository {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).expect("the folder can be created");
        let repository = Repository { folder, url: format!("http://{}/{name}", self.host()) };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["remote", "add", "origin", &repository.url]);
        repository
    }
}

impl Repository {
    /// Returns the path of the work tree.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a commit that contains exactly `files`. The parent of the commit is the current commit. Then `branch`
    /// points to the new commit. Returns the commit hash.
    pub fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        self.git(&["checkout", "--quiet", "-B", branch]);
        for entry in fs::read_dir(&self.folder).expect("the folder can be read").flatten() {
            let path = entry.path();
            match path.file_name().is_some_and(|name| name == ".git") {
                true => {}
                false if path.is_dir() => fs::remove_dir_all(&path).expect("the folder can be removed"),
                false => fs::remove_file(&path).expect("the file can be removed"),
            }
        }
        for (path, text) in files {
            let path = self.folder.join(path);
            fs::create_dir_all(path.parent().expect("the path has a parent folder"))
                .expect("the folder can be created");
            fs::write(path, text).expect("the file can be written");
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(&self.folder).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_DATE"), DATE).env(format!("GIT_{role}_NAME"), AUTHOR);
            command.env(format!("GIT_{role}_EMAIL"), ADDRESS);
        }
        let output = command.output().expect("git is installed");
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        stdout.trim().to_owned()
    }
}

fn start_listener() -> (u16, Arc<Mutex<PathBuf>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("the socket is bound").port();
    let root = Arc::new(Mutex::new(PathBuf::new()));
    let served = Arc::clone(&root);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = served.lock().expect("no thread panicked while it held the lock").clone();
            // Errors are ignored: they only mean that the client has closed the connection.
            thread::spawn(move || drop(serve(stream, &root)));
        }
    });
    (port, root)
}

/// The parts of an HTTP request that `git http-backend` receives through CGI.
struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn serve(mut stream: TcpStream, root: &Path) -> io::Result<()> {
    let request = read_request(&stream)?;
    let answer = run_backend(&request, root)?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or(answer.len());
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let body = answer.get(end + 4..).unwrap_or_default();
    let other_headers: String =
        head.lines().filter(|line| !line.starts_with("Status: ")).map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\n{other_headers}Content-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(body)
}

fn read_request(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: u64 = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut body = Vec::new();
    reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    Ok(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body })
}

fn run_backend(request: &Request, root: &Path) -> io::Result<Vec<u8>> {
    let header = |name: &str| request.headers.get(name).map(String::as_str).unwrap_or_default();
    let mut command = Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("PATH_INFO", &request.path).env("QUERY_STRING", &request.query).env("REQUEST_METHOD", &request.method);
    command.env("CONTENT_TYPE", header("content-type")).env("CONTENT_LENGTH", request.body.len().to_string());
    command.env("HTTP_CONTENT_ENCODING", header("content-encoding")).env("GIT_PROTOCOL", header("git-protocol"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&request.body))?;
    Ok(child.wait_with_output()?.stdout)
}
