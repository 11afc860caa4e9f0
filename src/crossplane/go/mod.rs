//! The parts of Go's standard library that Crossplane's results depend on.
//!
//! Rust's own functions give other results in some cases, which would change a computed environment. These functions
//! are tested against recorded results of Go.

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
