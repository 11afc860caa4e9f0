//! Compositions: the environment that one declares, and everything that is wrong with its text.
//!
//! There are two ways to declare an environment. Crossplane 1.11 to 1.17 has `spec.environment` and patches of
//! `spec.resources`; since then pipelines of functions do the same, with the environment in the inputs of
//! function-environment-configs and function-patch-and-transform. Both are read here. The first design spelled some
//! fields otherwise; what is left of it is read where it can be, and told how to write it today.

mod declared;
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
use crate::crossplane::schema::Schema;
use crate::crossplane::structural::Structural;
use declared::Declared;
pub use decode::{declaration, profile, sources};
pub use problem::{Problem, Topic};
use reader::{Node, Reader};

/// Everything that is wrong with the text of a Composition, in the order in which it stands there.
pub fn problems(composition: &Value) -> Arc<[Problem]> {
    checked(composition, None).into()
}

/// What a Composition reads from its environment that a schema does not have, or has of other types than it can take.
pub fn against_schema(composition: &Value, schema: Arc<Schema>) -> Vec<Problem> {
    let declared = Declared::new(schema, declaration(composition).as_ref());
    let mut problems = checked(composition, Some(Arc::new(declared)));
    problems.retain(|problem| problem.topic == Topic::Schema);
    problems
}

/// What a Composition reads from the composite that its transforms cannot take, by the composite's schema.
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
