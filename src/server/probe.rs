//! Calls the server's own webhook port, to detect whether the port can be reached. If the call fails, the server is not
//! ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

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

use super::certificates::{Certificates, HANDSHAKE_TIME};
use crate::cryptography::provider;

/// Timeout of the call to the webhook port. It is short because a kubelet probe times out after a second by default. It
/// is long enough because a handshake takes a fraction of a millisecond.
const TIMEOUT: Duration = HANDSHAKE_TIME;
/// The path that the readiness probe requests on the webhook port.
pub(super) const PATH: &str = "/livez";

/// A client of the webhook port that trusts only the current and the previous serving certificate.
#[derive(Debug)]
pub(super) struct Probe {
    address: SocketAddr,
    certificates: Arc<Certificates>,
}

impl Probe {
    /// Creates a client for the readiness probe. The client calls the webhook port at `address`. If `address` is
    /// unspecified, such as `0.0.0.0`, the client calls the loopback address instead.
    pub(super) fn new(address: SocketAddr, certificates: Arc<Certificates>) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Self { address: SocketAddr::new(ip, address.port()), certificates }
    }

    /// Sends a request to the webhook port. Fails with a message if the response does not arrive in time, or does not
    /// have the status 200.
    pub(super) async fn call(&self) -> Result<(), String> {
        match timeout(TIMEOUT, self.exchange()).await {
            Ok(result) => result.map_err(|error| format!("{}: {error}", self.address)),
            Err(_) => Err(format!("{}: no answer within {TIMEOUT:?}", self.address)),
        }
    }

    async fn exchange(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let connector = TlsConnector::from(Arc::new(self.client_config()?));
        let stream = TcpStream::connect(self.address).await?;
        // With Nagle's algorithm the request would wait 40 ms for the acknowledgement of the handshake.
        stream.set_nodelay(true)?;
        let mut stream = connector.connect(ServerName::IpAddress(self.address.ip().into()), stream).await?;
        let request = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        if &status == b"HTTP/1.1 200" { Ok(()) } else { Err(String::from_utf8_lossy(&status).into()) }
    }

    fn client_config(&self) -> Result<ClientConfig, Error> {
        let provider = provider();
        let pinned = Pinned { certificates: Arc::clone(&self.certificates), provider: Arc::clone(&provider) };
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_client_cert_resolver(Arc::new(OwnCertificate(Arc::clone(&self.certificates)))))
    }
}

/// A resolver that presents the serving certificate as client certificate, if the server requires a client certificate.
/// The server can trust this certificate, because only the server has its key.
#[derive(Debug)]
struct OwnCertificate(Arc<Certificates>);

impl ResolvesClientCert for OwnCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.key())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A verifier that accepts only the current or the previous leaf certificate of the server. It compares the
/// certificates byte for byte, and does not check names and CAs.
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
        if !self.certificates.is_own(leaf, Instant::now()) {
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

#[cfg(test)]
mod tests {
    use rustls::{ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData};

    use super::*;
    use crate::server::certificates::Pair;
    use crate::server::clients::{Clients, Verifier};
    use crate::server::metrics::Metrics;
    use crate::server::tls;

    fn pair() -> (String, Pair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let chain = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        let pair = Pair::parse(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        (chain, pair)
    }

    /// Returns a server configuration with a client CA that did not sign the server's own leaf certificate.
    fn server(certificates: &Arc<Certificates>) -> ServerConfig {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, pair().0).unwrap();
        let clients = Arc::new(Clients::from_file(file.path(), Vec::new()).unwrap());
        let metrics = Arc::new(Metrics::register(&mut prometheus_client::registry::Registry::default(), []));
        let verifier = Verifier::new(clients, Arc::clone(certificates), metrics);
        tls::server_config_for(Arc::clone(certificates), tls::Floor::default(), Some(verifier)).unwrap()
    }

    /// Transfers pending TLS records from one side to the other.
    fn transfer<A: SideData, B: SideData>(
        from: &mut ConnectionCommon<A>,
        to: &mut ConnectionCommon<B>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            to.read_tls(&mut bytes).unwrap();
            to.process_new_packets()?;
        }
        Ok(())
    }

    /// Performs a TLS handshake between the probe and the server, and replaces the certificate of the server during it.
    /// The handshake has four flights (groups of messages from one side), numbered from 0. `replaced_before` is the
    /// number of the flight before which the certificate is replaced.
    fn handshake(replaced_before: usize) -> Result<(), Error> {
        let certificates = Arc::new(Certificates::new(pair().1));
        let mut server = ServerConnection::new(Arc::new(server(&certificates)))?;
        let probe = Probe::new(([127, 0, 0, 1], 0).into(), Arc::clone(&certificates));
        let localhost = ServerName::IpAddress(probe.address.ip().into());
        let mut client = ClientConnection::new(Arc::new(probe.client_config()?), localhost)?;
        for flight in 0..4 {
            if flight == replaced_before {
                certificates.replace(pair().1);
            }
            match flight % 2 {
                0 => transfer(&mut client, &mut server)?,
                _ => transfer(&mut server, &mut client)?,
            }
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        Ok(())
    }

    #[test]
    fn probe_succeeds_when_the_certificate_is_replaced_during_its_handshake() {
        for flight in 0..4 {
            assert_eq!(handshake(flight), Ok(()), "replaced before flight {flight}");
        }
    }

    #[test]
    fn previous_leaf_is_accepted_only_while_a_handshake_may_last() {
        let certificates = Certificates::new(pair().1);
        let (before, other) = (certificates.leaf(), pair().1);
        certificates.replace(other);
        let now = Instant::now();
        assert!(certificates.is_own(&certificates.leaf(), now) && certificates.is_own(&before, now));
        assert!(!certificates.is_own(&before, now + HANDSHAKE_TIME));
        certificates.replace(pair().1);
        assert!(!certificates.is_own(&before, now), "the leaf before the previous one");
    }
}
