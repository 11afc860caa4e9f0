//! The section `deletions` of the configuration file. It sets limits for deletions by Flux and Argo CD. Rules such as
//! GD001 and KZ061 report deletions that exceed these limits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::{Settings, Stored};
use crate::kustomize::identity::ObjectId;

/// The key of the section `deletions` in the configuration file. The section sets limits for deletions by Flux and Argo
/// CD.
pub const SECTION: &str = "deletions";

/// The limits for deletions by Flux and Argo CD, from the section `deletions` of the configuration file. Deletions that
/// exceed these limits are reported.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeletionLimits {
    /// Kinds whose deletion is always reported, such as `Namespace`. A kind can include its API group, such as
    /// `StatefulSet.apps`.
    pub protected_kinds: Vec<String>,
    /// Maximum number of objects that one change may delete. GD001 and GD002 report every change that deletes more
    /// objects. KZ061 reports a change if it exceeds both this number and `max_percent`, or if it deletes all objects
    /// of a Kustomization.
    pub max_count: usize,
    /// The percentage of a Kustomization's objects that a change may delete without a finding of KZ061. KZ061 reports a
    /// change if it exceeds both this percentage and `max_count`, or if it deletes all objects. Other rules, such as
    /// GD001, do not use this percentage.
    pub max_percent: u8,
}

/// The kinds that are protected by default. The second element of each pair describes what else is lost if such an
/// object is deleted, such as `its pods`.
const PROTECTED: [(&str, &str); 7] = [
    ("Namespace", "everything in the namespace"),
    ("CustomResourceDefinition.apiextensions.k8s.io", "all objects of its kind"),
    ("PersistentVolumeClaim", "its data, unless the volume is retained"),
    ("PersistentVolume", "its data, unless it is retained"),
    ("StatefulSet.apps", "its pods"),
    ("Kustomization.kustomize.toolkit.fluxcd.io", "the objects that it applied, if it prunes"),
    ("HelmRelease.helm.toolkit.fluxcd.io", "the release, which is uninstalled"),
];

impl Default for DeletionLimits {
    fn default() -> Self {
        let protected_kinds = PROTECTED.map(|(kind, _)| kind.to_owned()).to_vec();
        Self { protected_kinds, max_count: 9, max_percent: 50 }
    }
}

impl DeletionLimits {
    /// Returns the limits for deletions by Flux and Argo CD that the configuration file sets. Returns the default
    /// limits if the section `deletions` is absent or invalid.
    pub fn of(settings: &Settings) -> Self {
        Self::read(settings.section(SECTION))
    }

    /// Reads the limits from the section `deletions` of the configuration. Returns the defaults if the section is
    /// absent or invalid.
    pub fn read(section: Option<&Stored>) -> Self {
        section.and_then(|section| Self::deserialize(section.value()).ok()).unwrap_or_default()
    }

    /// Returns the limits as JSON, as [`DeletionLimits::read`] expects them.
    pub fn to_value(&self) -> Value {
        // The fields contain only texts and numbers, whose serialization cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns an error message if `protected_kinds` or `max_percent` has an invalid value. Returns `None` if all
    /// values are valid.
    pub fn problem(&self) -> Option<String> {
        let is_kind = |text: &str| text.starts_with(|letter: char| letter.is_ascii_uppercase());
        if let Some(kind) = self.protected_kinds.iter().find(|kind| !is_kind(kind)) {
            return Some(format!(
                "deletions.protectedKinds: {kind:?} is not a kind such as Namespace, or a kind with its group such as StatefulSet.apps"
            ));
        }
        (self.max_percent > 100).then(|| "deletions.maxPercent: write a number from 0 to 100".to_owned())
    }

    /// Returns whether an object is of a protected kind. A protected kind without an API group matches objects of every
    /// API group.
    pub fn protects(&self, id: &ObjectId) -> bool {
        self.protected_kinds.iter().any(|protected| match protected.split_once('.') {
            Some((kind, group)) => kind == id.kind && group == id.group,
            None => *protected == id.kind,
        })
    }

    /// Returns whether KZ061 reports a change that deletes `deleted` of the `applied` objects of a Kustomization. This
    /// is the case if all objects are deleted, or if the change exceeds both `max_count` and `max_percent`.
    pub fn is_exceeded(&self, deleted: usize, applied: usize) -> bool {
        let is_most = deleted * 100 > applied * usize::from(self.max_percent);
        deleted > 0 && (deleted >= applied || deleted > self.max_count && is_most)
    }
}

/// Returns what else is lost if the object is deleted, such as `its pods`. `None` if the kind of the object is not
/// protected by default.
pub(in crate::kustomize) fn takes_along(id: &ObjectId) -> Option<&'static str> {
    let is_kind = |name: &str| name.split_once('.').unwrap_or((name, "")) == (&*id.kind, &*id.group);
    PROTECTED.iter().find(|(kind, _)| is_kind(kind)).map(|(_, consequence)| *consequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(kind: &str, group: &str) -> ObjectId {
        ObjectId { group: group.to_owned(), kind: kind.to_owned(), namespace: String::new(), name: "a".to_owned() }
    }

    #[test]
    fn protects_kinds_with_and_without_group() {
        let limits = DeletionLimits { protected_kinds: vec!["Secret".into(), "Set.b.c".into()], ..Default::default() };
        let protected =
            [("Secret", ""), ("Secret", "x.y"), ("Set", "b.c"), ("Set", "b"), ("Set", ""), ("Namespace", "")];
        assert_eq!(
            protected.map(|(kind, group)| limits.protects(&id(kind, group))),
            [true, true, true, false, false, false]
        );
    }

    #[test]
    fn ordinary_changes_are_within_the_limits() {
        let limits = DeletionLimits::default();
        let exceeded = [(0, 0), (0, 5), (1, 5), (5, 5), (9, 10), (10, 20), (10, 19)];
        let expected = [false, false, false, true, false, false, true];
        assert_eq!(exceeded.map(|(deleted, applied)| limits.is_exceeded(deleted, applied)), expected);
    }

    #[test]
    fn every_default_kind_says_what_its_deletion_takes_along() {
        assert_eq!(takes_along(&id("StatefulSet", "apps")), Some("its pods"));
        assert_eq!(takes_along(&id("StatefulSet", "other")), None);
        assert!(DeletionLimits::default().problem().is_none());
    }
}
