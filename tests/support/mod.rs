//! Shared parts of the tests of the server: certificates, a folder with the layout of a mounted Secret, a server, and a
//! client that behaves like the client of the API server.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

pub mod client;
pub mod deadline;
pub mod harness;
pub mod pki;
pub mod service;
