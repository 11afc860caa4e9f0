//! Writes objects directly into etcd, as the API server stores custom resources. This is minutes faster than creating
//! the objects through the API server.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::objects::{Row, namespace};

/// Maximum number of operations in one transaction. It is the default limit of etcd.
const OPERATIONS: usize = 128;
/// Maximum size of the objects in one transaction, in bytes. etcd accepts requests of up to 1.5 MiB.
const REQUEST_BYTES: usize = 1024 * 1024;
/// Number of threads that write. More threads are not faster, because etcd does most of the work.
const WRITERS: usize = 2;

/// Writes objects of the kind that `row` describes into etcd. The number of objects is `row.count`.
pub fn store(port: u16, row: &Row) {
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let numbers = (writer..row.count).step_by(WRITERS);
            scope.spawn(move || store_each(port, row, numbers));
        }
    });
}

fn store_each(port: u16, row: &Row, numbers: impl Iterator<Item = usize>) {
    let (mut operations, mut bytes) = (Vec::new(), 0);
    for number in numbers {
        let object = row.object(number).to_string();
        if operations.len() >= OPERATIONS || bytes + object.len() > REQUEST_BYTES {
            commit(port, std::mem::take(&mut operations));
            bytes = 0;
        }
        bytes += object.len();
        let put = json!({"key": STANDARD.encode(key(row, number)), "value": STANDARD.encode(object)});
        operations.push(json!({"requestPut": put}));
    }
    commit(port, operations);
}

/// Returns the etcd key under which the API server stores object `number` of the kind that `row` describes.
fn key(row: &Row, number: usize) -> String {
    let place = if row.is_namespaced { format!("{}/", namespace(number)) } else { String::new() };
    format!("/registry/{}/{}/{place}{}", row.group, row.plural, row.object_name(number))
}

fn commit(port: u16, operations: Vec<Value>) {
    let answer = post(port, "/v3/kv/txn", &json!({"success": operations}).to_string()).expect("etcd answers");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

fn post(port: u16, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
