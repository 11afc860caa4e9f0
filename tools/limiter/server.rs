//! Includes files from `src/server`. These files use the visibility `pub(in crate::server)`, so they must be in a
//! module with the name `server`.

#[path = "concurrency.rs"]
pub mod concurrency;
