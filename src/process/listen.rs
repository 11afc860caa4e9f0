//! Binds TCP listeners for IPv4 and IPv6.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

/// Binds a TCP listener to an address.
///
/// A listener on the unspecified IPv6 address (`[::]`) also accepts IPv4 connections, which is the default on Linux. If
/// the machine has no IPv6, the unspecified IPv4 address is bound instead.
///
/// # Errors
/// Fails if the address cannot be bound.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() && has_no_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

/// Returns whether a bind error means that IPv6 is not available: the kernel does not support it (`EAFNOSUPPORT`), or
/// no IPv6 address is configured.
fn has_no_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(EAFNOSUPPORT)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn accepts_both_ip_versions() {
        let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
        }
    }

    #[tokio::test]
    async fn reports_an_address_that_is_in_use() {
        let first = listen((Ipv6Addr::UNSPECIFIED, 0).into()).await.unwrap();
        let again = SocketAddr::new(IpAddr::from(Ipv6Addr::UNSPECIFIED), first.local_addr().unwrap().port());
        assert_eq!(listen(again).await.unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
