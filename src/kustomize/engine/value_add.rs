//! The transformer `ValueAddTransformer`: sets a value in selected fields of objects.
//!
//! Source: kustomize's `ValueAddTransformer` and `api/filters/valueadd`.

use serde::Deserialize;

use super::field_spec::Steps;
use super::namespace::set_plainly;
use super::resmap::ResMap;
use super::run::Run;
use super::select::{Compiled, select};
use super::setters::{map_at, overwrite};
use super::stop::{Failed, Step};
use crate::kustomize::file::Selector;
use crate::kustomize::finding::Site;
use crate::kustomize::node::Node;

const NAMESPACE: &str = "metadata/namespace";

/// The settings of a `ValueAddTransformer`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ValueAdd {
    pub value: String,
    /// The fields to set.
    pub targets: Vec<ValueTarget>,
    /// The path of a file that lists more fields to set, in addition to `targets`.
    pub target_file_path: String,
}

/// A field to set in the objects that a selector selects.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub(super) struct ValueTarget {
    pub selector: Option<Selector>,
    pub not_selector: Option<Selector>,
    pub field_path: String,
    pub file_path_position: i64,
}

impl ValueAdd {
    /// Sets the value in the target fields of all selected objects.
    ///
    /// # Errors
    ///
    /// If a selector is invalid, or a limit is exceeded. In a build that stops at its first error, also if a field is
    /// not a scalar, or its path leads through a value that is not a mapping.
    pub(super) fn apply(&self, run: &Run<'_>, map: &mut ResMap, site: &Site) -> Step<()> {
        run.check_identities(map)?;
        let (scope, mut lost) = (map.scope.clone(), map.lost);
        for target in &self.targets {
            let places = match &target.selector {
                None => (0..map.resources().len()).collect(),
                Some(selector) => {
                    let selector = Compiled::new(selector).map_err(|bad| bad.at(site.clone()))?;
                    select(map.resources(), &selector, &scope).map_err(|bad| bad.at(site.clone()))?
                }
            };
            for at in places {
                let Some(resource) = map.resources_mut().get_mut(at) else { continue };
                let set = run.budget.text(&self.value).map_err(Failed::from).and_then(|()| {
                    if target.field_path == NAMESPACE {
                        if !scope.is_cluster(&resource.gvk()) {
                            set_plainly(resource, &self.value);
                        }
                        return Ok(());
                    }
                    self.set(&mut resource.node, target).map_err(Failed::from)
                });
                run.recover_object(resource, &mut lost, set.map_err(|failed| failed.at(site.clone())))?;
            }
        }
        map.lost = lost;
        Ok(())
    }

    fn set(&self, node: &mut Node, target: &ValueTarget) -> Result<(), String> {
        let steps = Steps::of(&target.field_path).to_vec();
        let wrong = || format!("`{}` does not lead to a scalar", target.field_path);
        let Some((last, steps)) = steps.split_last() else { return Err(wrong()) };
        let mut at = node;
        for step in steps {
            at = map_at(at, step).ok_or_else(wrong)?;
        }
        if !at.is_map() {
            return Err(wrong());
        }
        if at.get(last).is_none() {
            at.set(last, Node::scalar(""));
        }
        let field = at.get_mut(last).filter(|field| field.is_scalar()).ok_or_else(wrong)?;
        let old = field.text().unwrap_or_default();
        let new = match target.file_path_position {
            position if position > 0 => inserted(old, position as usize - 1, &self.value),
            _ => self.value.clone(),
        };
        overwrite(field, Node { made: true, ..Node::scalar(new) });
        Ok(())
    }
}

/// Inserts `part` into a file path, as the part at index `position`. Appends `part` if the path has fewer parts.
fn inserted(path: &str, position: usize, part: &str) -> String {
    if path.is_empty() {
        return part.to_owned();
    }
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.insert(position.min(parts.len()), part);
    let joined = parts.join("/");
    if is_absolute { ["/", &joined].concat() } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_put_into_a_path() {
        assert_eq!(inserted("a/nice/warm/pie", 3, "X"), "a/nice/warm/X/pie");
        assert_eq!(inserted("/pie", 0, "X"), "/X/pie");
        assert_eq!(inserted("/raw", 7, "X"), "/raw/X");
        assert_eq!(inserted("/", 0, "X"), "/X");
        assert_eq!(inserted("", 0, "X"), "X");
    }
}
