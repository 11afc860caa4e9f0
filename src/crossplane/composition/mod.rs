//! Compositions: the environment that one declares, and everything that is wrong with its text.
//!
//! There are two ways to declare an environment. Crossplane 1.11 to 1.17 has `spec.environment` and patches of
//! `spec.resources`; since then pipelines of functions do the same, with the environment in the inputs of
//! function-environment-configs and function-patch-and-transform. Both are read here. The first design spelled some
//! fields otherwise; what is left of it is read where it can be, and told how to write it today.

mod decode;
mod expressions;
mod formats;
pub(crate) mod labels;
mod native;
mod patches;
pub mod pipeline;
pub mod problem;
mod reader;
mod sources;
mod transforms;

use std::sync::Arc;

use serde_json::Value;

use crate::admission::FieldPath;
use crate::crossplane::environment::Profile;
pub use decode::{declaration, profile, sources};
pub use problem::{Problem, Topic};
pub(super) use reader::distance;
use reader::{Node, Reader};

/// Everything that is wrong with the text of a Composition, in the order in which it stands there.
pub fn problems(composition: &Value) -> Arc<[Problem]> {
    let Some(spec) = composition.get("spec") else { return Arc::default() };
    let spec = Node::new(spec, FieldPath::of(["spec"]));
    let mut native = Reader::new(Profile::Native117);
    if !native.is_object(&spec) {
        return native.problems.into();
    }
    native::check(&mut native, &spec);
    let mut functions = Reader::new(Profile::Function);
    pipeline::check(&mut functions, &spec);
    native.problems.into_iter().chain(functions.problems).collect()
}
