//! The queue of the limiter, whose time is a parameter.
#![allow(dead_code, unused_imports, reason = "the simulation uses a part of it")]

#[path = "../../src/server/concurrency/credit.rs"]
mod credit;
#[path = "../../src/server/concurrency/policy.rs"]
mod policy;
#[path = "../../src/server/concurrency/queue.rs"]
mod queue;
#[path = "report.rs"]
mod report;
#[path = "simulation.rs"]
mod simulation;

pub(super) use policy::QueuePolicy;
pub use report::report;

/// A permit, which is only the message that a request is served.
#[derive(Debug)]
pub struct Permit;
