//! A minimal HTTP client for health endpoints on this machine.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Sends a GET request, and returns the response with its status line, headers and body.
pub fn get(port: u16, path: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns whether `answer` is a response with status 200.
pub fn is_ok(answer: &io::Result<String>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}
