//! Predicts from the live object whether Flux deletes an object that a revision does not render any more.
//!
//! Source: `DeleteAll` in fluxcd/pkg's `ssa/manager_delete.go`, with the selectors of kustomize-controller's
//! `deleteObjects`.

use serde_json::Value;

use super::kustomization::GROUP;
use crate::admission::Metadata;

/// Labels and annotations that prevent Flux from deleting an object. Each entry contains the key without the prefix
/// `kustomize.toolkit.fluxcd.io/`, and the value in lower case.
pub(super) const OPT_OUTS: [(&str, &str); 3] = [("prune", "disabled"), ("reconcile", "disabled"), ("ssa", "ignore")];

/// A prediction of whether Flux deletes an object that a revision does not render any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Flux deletes the object.
    Deleted,
    /// It is unknown whether Flux deletes or keeps the object, because the object in the cluster could not be read.
    /// Contains the error.
    Possible(String),
    /// Flux keeps the object. Contains the reason.
    Kept(String),
    /// The object does not exist any more, or is already being deleted.
    Gone,
}

impl Fate {
    /// Predicts whether Flux deletes an object of the Kustomization `owner` (namespace and name). `live` contains the
    /// live object, or `None` if the object does not exist. If the object cannot be read, `live` contains the reason.
    pub fn of(live: Result<Option<&Value>, String>, owner: (&str, &str)) -> Self {
        let live = match live {
            Ok(Some(live)) => live,
            Ok(None) => return Self::Gone,
            Err(why) => return Self::Possible(why),
        };
        let metadata = Metadata::of(live);
        if metadata.is_deleting() {
            return Self::Gone;
        }
        if self::owner(live) != Some(owner) {
            let of = self::owner(live).map_or("nobody".to_owned(), |(namespace, name)| format!("{namespace}/{name}"));
            return Self::Kept(format!("its labels name {of} as the owner"));
        }
        match opt_out(live) {
            Some(opt_out) => Self::Kept(opt_out),
            None => Self::Deleted,
        }
    }

    /// Returns the name of the prediction in reports, such as `delete`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Deleted => "delete",
            Self::Possible(_) => "possible",
            Self::Kept(_) => "keep",
            Self::Gone => "gone",
        }
    }

    /// Returns the reason why Flux keeps the object, or why it is unknown whether Flux deletes it. `None` if Flux
    /// deletes the object, or if the object is already gone.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Possible(why) | Self::Kept(why) => Some(why),
            Self::Deleted | Self::Gone => None,
        }
    }
}

/// Returns namespace and name of the Kustomization that owns an object. Flux writes them to labels of the object.
/// `None` if the object has no such labels.
pub fn owner(live: &Value) -> Option<(&str, &str)> {
    let metadata = Metadata::of(live);
    let [namespace, name] = ["namespace", "name"].map(|key| metadata.label(&format!("{GROUP}/{key}")));
    Some((namespace.unwrap_or_default(), name.filter(|name| !name.is_empty())?))
}

/// Returns the first label or annotation that excludes an object from pruning, as `KEY: VALUE`. `None` if there is
/// none. Ignores the case of the value.
fn opt_out(live: &Value) -> Option<String> {
    let members = |place: &str| live.pointer(&format!("/metadata/{place}")).and_then(Value::as_object);
    let all = ["labels", "annotations"].into_iter().filter_map(members).flatten();
    let mut found = all.filter_map(|(key, value)| {
        let (word, value) = (key.strip_prefix(GROUP)?.strip_prefix('/')?, value.as_str()?);
        OPT_OUTS.contains(&(word, &value.to_lowercase())).then(|| format!("{key}: {value}"))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fate(metadata: Value) -> Fate {
        Fate::of(Ok(Some(&json!({"metadata": metadata}))), ("a", "app"))
    }

    fn owned(more: (&str, Value)) -> Value {
        let labels = json!({"kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": "a"});
        let mut metadata = json!({"labels": labels});
        metadata[more.0] = more.1;
        metadata
    }

    #[test]
    fn the_live_object_decides() {
        assert_eq!(fate(owned(("name", json!("x")))), Fate::Deleted);
        assert_eq!(fate(owned(("deletionTimestamp", json!("2026-11-23T12:00:00Z")))), Fate::Gone);
        assert_eq!(Fate::of(Ok(None), ("a", "app")), Fate::Gone);
        assert_eq!(Fate::of(Err("forbidden".into()), ("a", "app")), Fate::Possible("forbidden".into()));
        let disabled = json!({"kustomize.toolkit.fluxcd.io/prune": "Disabled"});
        let kept = Fate::Kept("kustomize.toolkit.fluxcd.io/prune: Disabled".to_owned());
        assert_eq!(fate(owned(("annotations", disabled))), kept);
        let merge = json!({"kustomize.toolkit.fluxcd.io/ssa": "Merge"});
        assert_eq!(fate(owned(("annotations", merge))), Fate::Deleted);
        let other = json!({"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "a"});
        assert_eq!(fate(json!({"labels": other})).reason(), Some("its labels name a/web as the owner"));
        assert_eq!(fate(json!({})).reason(), Some("its labels name nobody as the owner"));
    }
}
