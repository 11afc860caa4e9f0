//! Crossplane: composition environments, worked out at admission.
//!
//! | module | what is in it |
//! |---|---|
//! | [`environment`] | what EnvironmentConfigs and patches make of a composite |
//! | [`field_path`] | paths such as `spec.items[0].name`: reading, writing, wildcards, merging |
//! | [`go`] | what Go's standard library makes of values: the parts that Crossplane's results depend on |

pub mod environment;
pub mod field_path;
pub mod go;
