//! The directives of strategic merge patches: `$patch` in a mapping, or in an element of a list.
//!
//! Source: `kyaml/yaml/merge2/smpdirective.go`.

use super::Problem;
use super::element;
use crate::kustomize::node::{Kind, Node};

/// The key of a directive in a patch.
pub(super) const KEY: &str = "$patch";

/// The operation on a mapping or list that a patch requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Removes the directive `$patch` from a mapping or list of a patch, and returns the directive. Returns `Merge` if
/// there is none, and an error if the directive is unknown.
pub(super) fn take(patch: &mut Node) -> Result<Directive, Problem> {
    match &patch.kind {
        Kind::Map(_) => of_map(patch),
        Kind::Seq(_) => of_list(patch),
        // Callers pass no scalar but null, which has no directive.
        Kind::Scalar(_) => Ok(Directive::Merge),
    }
}

fn of_map(patch: &mut Node) -> Result<Directive, Problem> {
    let Some(word) = patch.get(KEY).map(word) else { return Ok(Directive::Merge) };
    let directive = parse(&word)?;
    patch.remove(KEY);
    Ok(directive)
}

/// Removes the directive `$patch` from a list of a patch, and returns the directive. In a list, the directive is an
/// element that contains only `$patch`. Returns `Merge` if there is no such element.
fn of_list(patch: &mut Node) -> Result<Directive, Problem> {
    let mut elements = patch.items().iter();
    let Some(element) = elements.find(|element| element.get(KEY).is_some()) else { return Ok(Directive::Merge) };
    let Some(directive) = element.get(KEY).filter(|_| element.entries().len() == 1) else {
        return Ok(Directive::Merge);
    };
    let word = word(directive);
    let directive = parse(&word)?;
    if let Some(items) = patch.items_mut() {
        element::set(items, None, &[KEY], &[&word])?;
    }
    Ok(directive)
}

fn word(node: &Node) -> String {
    node.text().unwrap_or_default().to_owned()
}

fn parse(word: &str) -> Result<Directive, Problem> {
    match word {
        "merge" => Ok(Directive::Merge),
        "replace" => Ok(Directive::Replace),
        "delete" => Ok(Directive::Delete),
        _ => Err(Problem::Directive(word.to_owned())),
    }
}
