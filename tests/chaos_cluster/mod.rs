//! Chaos tests: two replicas of `portcullis serve` behind one address, a real kube-apiserver and etcd, and clients that
//! continuously call the webhooks. The tests cause a series of incidents, such as a killed replica. The end-to-end
//! tests run some of the incidents; `make chaos` runs all of them.
#![allow(dead_code, reason = "the end-to-end tests use a part of it")]

pub mod calls;
pub mod incidents;
pub mod replica;
pub mod stage;
pub mod writers;
pub mod written;
