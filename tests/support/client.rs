//! An HTTP/1.1 client over TLS for tests. It sends requests without changing their bytes, and never retries a request.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ALL_VERSIONS, ClientConfig, ConfigBuilder, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::pki::Leaf;

pub fn config(root: &CertificateDer<'static>, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    config_with_roots(std::slice::from_ref(root), versions)
}

/// Returns a TLS configuration of a client that trusts the root certificates `trusted`. `versions` contains the TLS
/// versions that the client supports.
pub fn config_with_roots(
    trusted: &[CertificateDer<'static>],
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    configure_like_api_server(builder(trusted, versions).with_no_client_auth())
}

/// Returns a TLS configuration of a client that trusts the root certificate `root`, and presents `leaf` as client
/// certificate.
pub fn config_with_client_certificate(root: &CertificateDer<'static>, leaf: &Leaf) -> ClientConfig {
    let chain = CertificateDer::pem_slice_iter(leaf.chain.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
    configure_like_api_server(
        builder(std::slice::from_ref(root), ALL_VERSIONS).with_client_auth_cert(chain, key).unwrap(),
    )
}

fn builder(
    trusted: &[CertificateDer<'static>],
    versions: &[&'static SupportedProtocolVersion],
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|root| roots.add(root.clone()).unwrap());
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
}

/// Configures HTTP/1.1 without TLS session resumption, like the client of the API server.
fn configure_like_api_server(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config
}

/// An open TLS connection to a server.
pub struct Connection {
    pub stream: BufReader<TlsStream<TcpStream>>,
}

/// A response to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn closes_connection(&self) -> bool {
        self.headers.get("connection").is_some_and(|value| value == "close")
    }
}

impl Connection {
    pub async fn open(address: SocketAddr, config: Arc<ClientConfig>) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub fn leaf(&self) -> CertificateDer<'static> {
        self.stream.get_ref().get_ref().1.peer_certificates().unwrap()[0].clone()
    }

    /// Returns the local address of the connection.
    pub fn local(&self) -> SocketAddr {
        self.stream.get_ref().get_ref().0.local_addr().unwrap()
    }

    /// Sends a POST request with a JSON body, and returns the response.
    pub async fn post(&mut self, path: &str, body: &[u8]) -> io::Result<Reply> {
        self.request("POST", path, &[("Content-Type", "application/json")], body).await
    }

    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        self.send(&message).await?;
        self.reply().await
    }

    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    pub async fn reply(&mut self) -> io::Result<Reply> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(Reply { status, headers, body })
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Waits until the server closes the connection. Returns an error if the server sends data before it closes the
    /// connection.
    pub async fn wait_until_closed(&mut self) -> io::Result<()> {
        match self.stream.read(&mut [0; 1]).await {
            Ok(0) | Err(_) => Ok(()),
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn is_open(&mut self) -> bool {
        self.wait_until_closed().now_or_never().is_none()
    }
}

/// A connection pool for one host that behaves like the pool of Go's HTTP client. It keeps up to 25 idle connections,
/// uses the most recently used one first, and closes connections that were idle for too long. If the server closes an
/// idle connection before the next request, the pool uses another connection. If the server closes it later, the
/// request fails.
pub struct Pool {
    address: SocketAddr,
    config: Arc<ClientConfig>,
    idle: Mutex<Vec<(Instant, Connection)>>,
    idle_timeout: Duration,
}

const MAX_IDLE: usize = 25;

impl Pool {
    pub fn new(address: SocketAddr, config: ClientConfig, idle_timeout: Duration) -> Self {
        Self { address, config: Arc::new(config), idle: Mutex::default(), idle_timeout }
    }

    pub async fn post(&self, path: &str, body: &[u8]) -> io::Result<(Reply, CertificateDer<'static>)> {
        let mut connection = match self.take() {
            Some(connection) => connection,
            None => self.dial().await.map_err(|error| io::Error::other(format!("dialling: {error}")))?,
        };
        let local = connection.local();
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{error} (from {local})"));
        let reply = connection.post(path, body).await.map_err(failed)?;
        let leaf = connection.leaf();
        let mut idle = self.idle.lock().unwrap();
        if !reply.closes_connection() && idle.len() < MAX_IDLE {
            idle.push((Instant::now(), connection));
        }
        Ok((reply, leaf))
    }

    async fn dial(&self) -> io::Result<Connection> {
        Connection::open(self.address, Arc::clone(&self.config)).await
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap();
        idle.retain(|(since, _)| since.elapsed() < self.idle_timeout);
        while let Some((_, mut connection)) = idle.pop() {
            if connection.is_open() {
                return Some(connection);
            }
        }
        None
    }
}
