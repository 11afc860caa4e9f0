//! Calling the own port: a server that cannot be called is not ready, whatever it thinks of itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::certificates::Certificates;
use super::tls;

/// A probe of the kubelet has a second by default; a handshake takes a fraction of a millisecond.
const LIMIT: Duration = Duration::from_secs(1);
/// The path that the webhook port answers for the probe.
pub(super) const PATH: &str = "/livez";

/// Calls the webhook port as a client would that trusts the certificate served at present.
#[derive(Debug)]
pub(super) struct Probe {
    address: SocketAddr,
    certificates: Arc<Certificates>,
}

impl Probe {
    /// A probe of the port that is bound to `address`.
    pub(super) fn new(address: SocketAddr, certificates: Arc<Certificates>) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Self { address: SocketAddr::new(ip, address.port()), certificates }
    }

    /// Connects, asks, and reads a status line.
    pub(super) async fn call(&self) -> Result<(), String> {
        match timeout(LIMIT, self.exchange()).await {
            Ok(result) => result.map_err(|error| format!("{}: {error}", self.address)),
            Err(_) => Err(format!("{}: no answer within {LIMIT:?}", self.address)),
        }
    }

    async fn exchange(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let connector = TlsConnector::from(Arc::new(self.client_config()?));
        let stream = TcpStream::connect(self.address).await?;
        // Or the request waits behind the handshake's end for 40 ms, until that is acknowledged.
        stream.set_nodelay(true)?;
        let mut stream = connector.connect(ServerName::IpAddress(self.address.ip().into()), stream).await?;
        let request = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        if &status == b"HTTP/1.1 200" { Ok(()) } else { Err(String::from_utf8_lossy(&status).into()) }
    }

    fn client_config(&self) -> Result<ClientConfig, Error> {
        let provider = tls::provider();
        let pinned = Pinned { certificates: Arc::clone(&self.certificates), provider: Arc::clone(&provider) };
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_client_cert_resolver(Arc::new(Own(Arc::clone(&self.certificates)))))
    }
}

/// Shows the leaf served at present where a client has to show something: who has its key is the server itself.
#[derive(Debug)]
struct Own(Arc<Certificates>);

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.key())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Trusts the leaf served at present and nothing else: no name, no authority, but the very bytes and the proof of
/// their key.
#[derive(Debug)]
struct Pinned {
    certificates: Arc<Certificates>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *leaf != self.certificates.leaf() {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
