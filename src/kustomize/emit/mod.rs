//! The writer of what a build prints: YAML 1.1 as go-yaml v2 writes it.

pub mod value;
