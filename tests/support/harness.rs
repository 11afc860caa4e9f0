//! A server for tests, with a stub instead of the gate. The stub decides each request by the name of the object in the
//! request.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use portcullis::admission::patch::diff;
use portcullis::admission::{FieldPath, Finding, Level, Phase, Request, Verdict};
use portcullis::server::{Certificates, Decide, Metrics, Options, Parts, Readiness, Running, Shutdown, metrics};
use rustls::ClientConfig;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::client::{self, Connection};
use super::deadline::deadline;
use super::pki::{Authority, SecretMount};

/// A stub that decides admission requests in place of Portcullis's rules. Its decision depends only on the name of the
/// object in the request. For example, it denies an object named `denied`.
pub struct Stub {
    /// Requests about an object named `held` wait for a permit of this semaphore.
    pub hold_permits: Semaphore,
    /// Number of requests that this stub has begun to decide.
    pub begun: AtomicUsize,
    /// Requests about an object named `busy` block their thread until [`Stub::release_busy`] sets this flag.
    busy_release: (Mutex<bool>, Condvar),
    /// The names of the objects in the requests, in the order in which the stub began to decide the requests.
    order: Mutex<Vec<String>>,
}

impl Stub {
    pub fn new() -> Self {
        Self {
            hold_permits: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            busy_release: (Mutex::new(false), Condvar::new()),
            order: Mutex::default(),
        }
    }

    /// Unblocks the requests about an object named `busy`.
    pub fn release_busy(&self) {
        *self.busy_release.0.lock().unwrap() = true;
        self.busy_release.1.notify_all();
    }

    /// Blocks the thread until [`Stub::release_busy`] is called. Panics after a timeout, so that a failing test ends.
    fn block_until_released(&self) {
        let (is_released, condition) = &self.busy_release;
        let waited = condition
            .wait_timeout_while(is_released.lock().unwrap(), deadline() * 3, |is_released| !*is_released)
            .unwrap()
            .1;
        assert!(!waited.timed_out(), "the test did not call `Stub::release_busy`");
    }

    pub fn order(&self) -> Vec<String> {
        self.order.lock().unwrap().clone()
    }

    pub async fn wait_until_begun(&self, count: usize) {
        eventually("requests are being decided", async || self.begun.load(Ordering::SeqCst) >= count).await;
    }

    async fn verdict(&self, request: &Request<'_>) -> Verdict {
        self.order.lock().unwrap().push(request.name.to_string());
        self.begun.fetch_add(1, Ordering::SeqCst);
        request.read(None).unwrap();
        let finding = |level| Finding::new("OW001", level, FieldPath::of(["spec", "replicas"]), "is too large");
        match &*request.name {
            "held" => drop(self.hold_permits.acquire().await.unwrap()),
            "busy" => self.block_until_released(),
            "never" => std::future::pending().await,
            "panics" => panic!("the stub panics for requests with this name"),
            "denied" => return Verdict { findings: vec![finding(Level::Deny)], ..Verdict::default() },
            "warned" => return Verdict { findings: vec![finding(Level::Warn)], ..Verdict::default() },
            "patched" => {
                let mut after = request.object().clone();
                after["spec"] = serde_json::json!({"replicas": 1});
                return Verdict { patch: diff(request.object(), &after), ..Verdict::default() };
            }
            _ => {}
        }
        Verdict::default()
    }
}

impl Decide for Stub {
    fn decision<'a>(&'a self, _: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>> {
        (request.resource.plural == "widgets").then(|| self.verdict(request).boxed())
    }
}

/// Returns an AdmissionReview about a widget with the name `name`. The stub decides only requests about widgets.
pub fn review(name: &str) -> Vec<u8> {
    review_of("widgets", name, 0)
}

/// Returns an AdmissionReview about an object of the resource `plural` with the name `name`. The object has `padding`
/// additional bytes.
pub fn review_of(plural: &str, name: &str, padding: usize) -> Vec<u8> {
    serde_json::json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": format!("uid-of-{name}"),
            "kind": {"group": "example.org", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.org", "version": "v1", "resource": plural},
            "name": name,
            "namespace": "shop",
            "operation": "CREATE",
            "userInfo": {"username": "alice\nbob", "groups": ["system:authenticated"]},
            "object": {"metadata": {"name": name}, "spec": {"secret": "swordfish", "padding": "x".repeat(padding)}},
            "dryRun": false
        }
    })
    .to_string()
    .into_bytes()
}

/// A running server, with its addresses, its certificates, and the stub that decides its requests. A test can change
/// its readiness and shut it down.
pub struct Server {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub authority: Authority,
    pub mount: SecretMount,
    pub stub: Arc<Stub>,
    pub readiness: Readiness,
    pub shutdown: Shutdown,
    pub running: Running,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let authority = Authority::new();
        let mount = SecretMount::new(&authority.leaf());
        let (stub, readiness) = (Arc::new(Stub::new()), Readiness::default());
        let running = start(&mount, &stub, &readiness, change).await;
        let (address, admin, shutdown) = (running.address(), running.admin_address(), running.shutdown());
        Self { address, admin, authority, mount, stub, readiness, shutdown, running }
    }

    pub fn client(&self) -> ClientConfig {
        client::config(&self.authority.root, &[&TLS13, &TLS12])
    }

    pub async fn connect(&self) -> Connection {
        self.connect_with(self.client()).await.unwrap()
    }

    pub async fn connect_with(&self, config: ClientConfig) -> io::Result<Connection> {
        Connection::open(self.address, Arc::new(config)).await
    }

    /// Returns the value of a metric. `name` is the name with the labels, as in the output of `/metrics`.
    pub async fn metric(&self, name: &str) -> f64 {
        let (_, text) = get(self.admin, "/metrics").await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in:\n{text}")).parse().unwrap()
    }
}

/// Starts a server on free ports. `mount` contains its certificates, and `stub` decides its requests. `change` can
/// change its options before it starts.
pub async fn start(
    mount: &SecretMount,
    stub: &Arc<Stub>,
    readiness: &Readiness,
    change: impl FnOnce(&mut Options),
) -> Running {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut options = Options { certificate_poll: Duration::from_millis(100), ..Options::new(any, any) };
    change(&mut options);
    let bound = options.bind().await.unwrap();
    let mut registry = metrics::registry();
    let metrics = Arc::new(Metrics::register(&mut registry, ["OW001"]));
    let certificates = Arc::new(Certificates::from_folder(mount.path()).unwrap());
    let decide: Arc<dyn Decide> = Arc::clone(stub) as _;
    bound.start(Parts { decide, certificates, metrics, registry, readiness: readiness.clone() }).unwrap()
}

/// Sends a GET request to the admin port without TLS. Returns the status and the body.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, body.to_owned()))
}

/// Waits until a condition is true. Panics after the timeout of tests, with a message that contains `what`.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(deadline(), wait).await.unwrap_or_else(|_| panic!("timeout after {:?}: {what}", deadline()));
}

/// Waits for a future. Panics after the timeout of tests.
pub async fn within_deadline<T>(future: impl Future<Output = T>) -> T {
    timeout(deadline(), future).await.unwrap_or_else(|_| panic!("timeout after {:?}", deadline()))
}
