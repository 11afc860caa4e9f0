//! Reimplements the parts of Go's standard library and of `k8s.io/apimachinery` that determine results of Kubernetes
//! tools.
//!
//! Kubernetes, kustomize, Crossplane and Landscaper are written in Go. In some cases, Rust's own functions give
//! different results. For example, they accept different inputs, or format numbers differently. The functions here are
//! tested against recorded results of Go. This module does not depend on the rest of Portcullis.

mod any;
pub mod base64;
mod case;
pub mod duration;
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
pub use float::{format_float, format_float32};
pub use json::{Target, floats, integers, unmarshal};
pub use quantity::parse_quantity;
pub use quote::quote;
pub use strconv::{parse_bool, parse_float, parse_int};
