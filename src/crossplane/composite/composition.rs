//! Which Composition a composite uses.
//!
//! Crossplane fills `compositionRef` in once: from the definition's `enforcedCompositionRef`, from the composite itself,
//! by its `compositionSelector`, from the definition's `defaultCompositionRef`, or at random among those of its type. Source:
//! `internal/controller/apiextensions/composite/api.go` in Crossplane 1.17.

use std::sync::Arc;

use serde_json::Value;

use super::machinery;
use crate::catalog::{Stored, View};
use crate::crossplane::kinds::{self, BY_COMPOSITE_TYPE, COMPOSITIONS, DEFINITIONS};

/// More Compositions than one composite could mean are no choice that can be foreseen.
const MAX_CANDIDATES: usize = 100;

/// The Composition that a composite uses, as far as that can be foreseen.
#[derive(Debug)]
pub enum Choice {
    /// This one.
    One(Arc<Stored>),
    /// One of this name, which is not there.
    Missing(String),
    /// None that is known of: there is none of its type, or several that Crossplane will choose from.
    Open(Vec<String>),
}

/// The Composition of a composite of the kind with this group and plural name.
pub fn choose(composite: &Value, group: &str, plural: &str, view: &View<'_>) -> Choice {
    let definition = view.find(&DEFINITIONS, "", &format!("{plural}.{group}"));
    let of_definition = |key: &str| -> Option<String> {
        let name = definition.as_ref()?.value().get("spec")?.get(key)?.get("name")?.as_str()?;
        Some(name.to_owned()).filter(|name| !name.is_empty())
    };
    let selector =
        machinery(composite).and_then(|inner| inner.get("compositionSelector")?.get("matchLabels")?.as_object());
    let named =
        of_definition("enforcedCompositionRef").or_else(|| super::composition_name(composite).map(str::to_owned));
    let default = || of_definition("defaultCompositionRef").filter(|_| selector.is_none());
    if let Some(name) = named.or_else(default) {
        return view.find(&COMPOSITIONS, "", &name).map_or(Choice::Missing(name), Choice::One);
    }
    let mut found = of_type(composite, view);
    if let Some(labels) = selector {
        found.retain(|composition| {
            labels.iter().all(|(key, value)| {
                composition.value().pointer("/metadata/labels").and_then(|own| own.get(key)) == Some(value)
            })
        });
    }
    match found.as_slice() {
        [one] => Choice::One(one.clone()),
        several => Choice::Open(several.iter().map(|one| one.name().to_owned()).collect()),
    }
}

fn of_type(composite: &Value, view: &View<'_>) -> Vec<Arc<Stored>> {
    let text = |key| composite.get(key).and_then(Value::as_str).unwrap_or_default();
    let key = kinds::type_key(text("apiVersion"), text("kind"));
    view.indexed(&COMPOSITIONS, &BY_COMPOSITE_TYPE, "", &key, MAX_CANDIDATES)
}
