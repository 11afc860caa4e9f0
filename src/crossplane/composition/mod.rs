//! Reads the environment that a Composition declares, and reports errors in the declaration.
//!
//! There are two ways to declare an environment. Crossplane 1.11 to 1.17 uses `spec.environment` and patches of
//! `spec.resources`. Later versions use pipelines of functions. There, the environment is in the inputs of
//! function-environment-configs and function-patch-and-transform. This module supports both ways.
//!
//! Crossplane's first design document of environments used other field names, such as `reference` instead of `ref`.
//! This module accepts the old names if possible, and reports the current names to the user.

mod declared;
mod decode;
mod expressions;
mod formats;
pub(crate) mod labels;
mod native;
mod patches;
mod pipeline;
mod place;
pub mod problem;
mod reader;
pub mod required;
mod sources;
mod transforms;
mod types;

use std::sync::Arc;

use serde_json::Value;

use crate::admission::FieldPath;
use crate::crossplane::environment::Profile;
use crate::crossplane::schema::Schema;
use crate::crossplane::structural::Structural;
use declared::Declared;
pub use decode::{declaration, profile, sources};
pub use problem::{Problem, Topic};
use reader::{Node, Reader};

/// Returns all problems that can be found in a Composition alone, without the schemas of its environment and of its
/// composites.
pub fn problems(composition: &Value) -> Arc<[Problem]> {
    checked(composition, None).into()
}

/// Returns a problem for each patch that contradicts `schema`, the JSON Schema that the Composition declares for its
/// environment. For example, a patch reads a field that is not in the schema, or has a transform that does not accept
/// the type of this field.
pub fn against_schema(composition: &Value, schema: Arc<Schema>) -> Vec<Problem> {
    let declared = Declared::new(schema, declaration(composition).as_ref());
    let mut problems = checked(composition, Some(Arc::new(declared)));
    problems.retain(|problem| problem.topic == Topic::Schema);
    problems
}

/// Checks patches against the composite's schema, and returns the problems. For example, a transform does not accept
/// the declared type of its input.
pub fn against_composite(composition: &Value, schema: Structural) -> Vec<Problem> {
    let mut problems = checked_by(composition, None, Some(Arc::new(schema)));
    problems.retain(|problem| problem.topic == Topic::Schema);
    problems
}

fn checked(composition: &Value, declared: Option<Arc<Declared>>) -> Vec<Problem> {
    checked_by(composition, declared, None)
}

fn checked_by(
    composition: &Value,
    declared: Option<Arc<Declared>>,
    composite: Option<Arc<Structural>>,
) -> Vec<Problem> {
    let Some(spec) = composition.get("spec") else { return Vec::new() };
    let spec = Node::new(spec, FieldPath::of(["spec"]));
    let mut native =
        Reader { declared: declared.clone(), composite: composite.clone(), ..Reader::new(Profile::Native117) };
    if !native.is_object(&spec) {
        return native.problems;
    }
    native::check(&mut native, &spec);
    let mut functions = Reader { declared, composite, ..Reader::new(Profile::Function) };
    pipeline::check(&mut functions, &spec);
    native.problems.into_iter().chain(functions.problems).collect()
}
