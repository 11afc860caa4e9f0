//! The module `server`, in which the items of the queue are visible.

#[path = "concurrency.rs"]
pub mod concurrency;
