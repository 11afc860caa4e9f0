//! Admission control for composed configuration.
pub mod admission;
pub mod server;
