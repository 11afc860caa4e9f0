//! Two replicas of `portcullis serve` behind one address, a real kube-apiserver and etcd, calls without a pause, and one
//! thing after the other that goes wrong. Shared by the end-to-end tests, which have a part of it, and `make chaos`.
#![allow(dead_code, reason = "the end-to-end tests use a part of it")]

pub mod calls;
pub mod incidents;
pub mod replica;
pub mod stage;
pub mod writers;
pub mod written;
