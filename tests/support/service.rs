//! A replacement for a Kubernetes Service in tests: one address that forwards new connections to ready replicas.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::harness::get;

/// A minimal Kubernetes Service. Like kube-proxy, it chooses a replica for each connection. Like the kubelet and the
/// endpoint controller, it probes `/readyz` of each replica. It copies bytes between client and replica. If the client
/// or the replica closes or resets its connection, the Service also closes the connection to the other side.
pub struct Service {
    pub address: SocketAddr,
    replicas: Arc<Mutex<Vec<Replica>>>,
    replicas_by_client: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
    runtime: Handle,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct Replica {
    address: SocketAddr,
    ready: bool,
}

/// Interval of the probes. It is much longer than a probe takes on the loopback interface, and much shorter than the
/// lame-duck period.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

impl Service {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replicas: Arc<Mutex<Vec<Replica>>> = Arc::default();
        let mut tasks = JoinSet::new();
        let replicas_by_client = Arc::default();
        tasks.spawn(forward(listener, Arc::clone(&replicas), Arc::clone(&replicas_by_client)));
        Self { address, replicas, replicas_by_client, runtime: Handle::current(), _tasks: tasks }
    }

    /// Adds a replica. `address` is the address that receives its connections, and `admin` is the address of its
    /// `/readyz`. Each replica is probed separately, so that a slow replica does not delay the probes of other
    /// replicas.
    pub fn add(&self, address: SocketAddr, admin: SocketAddr) {
        self.replicas.lock().unwrap().push(Replica { address, ready: false });
        self.runtime.spawn(probe(address, admin, Arc::downgrade(&self.replicas)));
    }

    pub fn remove(&self, address: SocketAddr) {
        self.replicas.lock().unwrap().retain(|replica| replica.address != address);
    }

    /// Returns the address of the replica to which the last connection from the client address `client` was forwarded.
    pub fn replica_of(&self, client: SocketAddr) -> Option<SocketAddr> {
        self.replicas_by_client.lock().unwrap().get(&client).copied()
    }

    pub fn is_ready(&self, address: SocketAddr) -> bool {
        self.replicas.lock().unwrap().iter().any(|replica| replica.address == address && replica.ready)
    }
}

async fn forward(
    listener: TcpListener,
    replicas: Arc<Mutex<Vec<Replica>>>,
    replicas_by_client: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
) {
    let mut streams = JoinSet::new();
    for number in 0.. {
        let (mut client, from) = listener.accept().await.unwrap();
        let ready: Vec<Replica> = replicas.lock().unwrap().iter().copied().filter(|replica| replica.ready).collect();
        assert!(!ready.is_empty(), "no replica is ready");
        let replica = ready[number % ready.len()];
        replicas_by_client.lock().unwrap().insert(from, replica.address);
        streams.spawn(async move {
            let Ok(mut server) = TcpStream::connect(replica.address).await else { return };
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        while streams.try_join_next().is_some() {}
    }
}

/// Probes a replica periodically until it is removed from `replicas`.
async fn probe(address: SocketAddr, admin: SocketAddr, replicas: Weak<Mutex<Vec<Replica>>>) {
    loop {
        let answer = get(admin, "/readyz").await;
        let is_known =
            replicas.upgrade().is_some_and(|replicas| record_probe(&mut replicas.lock().unwrap(), address, &answer));
        if !is_known {
            return;
        }
        sleep(PROBE_INTERVAL).await;
    }
}

/// Records `answer`, the result of a probe of the replica at `address`. Returns false if the replica was removed.
fn record_probe(replicas: &mut [Replica], address: SocketAddr, answer: &io::Result<(u16, String)>) -> bool {
    let Some(replica) = replicas.iter_mut().find(|replica| replica.address == address) else { return false };
    match answer {
        Ok((200, _)) => replica.ready = true,
        Ok((_, text)) if text.contains("shutting down") => replica.ready = false,
        // Other failures are ignored, because single probes fail on a busy machine. A kubelet also needs three
        // failures.
        _ => {}
    }
    true
}
