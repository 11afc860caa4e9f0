//! What stands between the API server and the replicas: one address, new connections to the ready ones.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::harness::get;

/// A Kubernetes Service in small: as kube-proxy does, it chooses a replica when a connection is made and lets it be
/// from then on, and as the kubelet and the endpoint controller do, it asks each `/readyz` now and then. Bytes are
/// copied; whatever one side closes or resets, the other side sees closed.
pub struct Service {
    pub address: SocketAddr,
    replicas: Arc<Mutex<Vec<Replica>>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct Replica {
    address: SocketAddr,
    admin: SocketAddr,
    ready: bool,
}

/// Far longer than a loopback needs, and well below the lame duck's time.
const PROBES: Duration = Duration::from_millis(100);

impl Service {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replicas: Arc<Mutex<Vec<Replica>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(listener, Arc::clone(&replicas)));
        tasks.spawn(probe(Arc::clone(&replicas)));
        Self { address, replicas, _tasks: tasks }
    }

    pub fn add(&self, address: SocketAddr, admin: SocketAddr) {
        self.replicas.lock().unwrap().push(Replica { address, admin, ready: false });
    }

    pub fn remove(&self, address: SocketAddr) {
        self.replicas.lock().unwrap().retain(|replica| replica.address != address);
    }

    pub fn is_ready(&self, address: SocketAddr) -> bool {
        self.replicas.lock().unwrap().iter().any(|replica| replica.address == address && replica.ready)
    }
}

async fn forward(listener: TcpListener, replicas: Arc<Mutex<Vec<Replica>>>) {
    let mut streams = JoinSet::new();
    for turn in 0.. {
        let (mut client, _) = listener.accept().await.unwrap();
        let ready: Vec<Replica> = replicas.lock().unwrap().iter().copied().filter(|replica| replica.ready).collect();
        assert!(!ready.is_empty(), "the test replaces replicas one after the other");
        let replica = ready[turn % ready.len()];
        streams.spawn(async move {
            let Ok(mut server) = TcpStream::connect(replica.address).await else { return };
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        while streams.try_join_next().is_some() {}
    }
}

async fn probe(replicas: Arc<Mutex<Vec<Replica>>>) {
    loop {
        let now = replicas.lock().unwrap().clone();
        for replica in now {
            let answer = get(replica.admin, "/readyz").await;
            let mut replicas = replicas.lock().unwrap();
            for known in replicas.iter_mut().filter(|known| known.address == replica.address) {
                match &answer {
                    Ok((200, _)) => known.ready = true,
                    Ok((_, text)) if text.contains("shutting down") => known.ready = false,
                    // A kubelet asks three times; on a machine this busy a probe that fails now and then says nothing.
                    _ => {}
                }
            }
        }
        sleep(PROBES).await;
    }
}
