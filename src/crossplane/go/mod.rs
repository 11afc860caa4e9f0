//! What Go's standard library makes of values, as far as Crossplane's results depend on it.
//!
//! Rust's own answers differ in places that show in a computed environment, so these are written out and tested against
//! what Go answered.

mod any;
pub mod base64;
mod case;
mod decode;
mod float;
pub mod fmt;
pub mod hash;
pub mod json;
mod quantity;
mod quote;
pub mod regexp;
mod strconv;

pub use any::{Any, type_of};
pub use case::{to_lower, to_upper};
pub use decode::{Target, floats, integers, unmarshal};
pub use float::format_float;
pub use quantity::parse_quantity;
pub use quote::quote;
pub use strconv::{parse_bool, parse_float, parse_int};
