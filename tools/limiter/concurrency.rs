//! Includes the queue of the limiter from `src/server/concurrency`, for the simulation. The functions of the queue get
//! the current time as a parameter, so the simulation can use its own clock.
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

/// A permit. The queue sends it to a request whose decision may begin.
#[derive(Debug)]
pub struct Permit;
