//! What Go's standard library makes of values, as far as Crossplane's results depend on it.
//!
//! Rust's own answers differ in places that show in a computed environment, so these are written out and tested against
//! what Go answered.

mod quote;
mod types;

pub use quote::quote;
pub use types::type_of;
