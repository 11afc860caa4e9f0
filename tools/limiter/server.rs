//! The module `server` of this program. The included files use the visibility `pub(in crate::server)`, so they must be
//! in a module with this name.

#[path = "concurrency.rs"]
pub mod concurrency;
