//! Runs the validators of a kustomization, and checks that they do not change objects.
//!
//! Source: `runValidators` in kustomize's `api/internal/target/kusttarget.go`.

use std::sync::Arc;

use super::accumulator::Accumulator;
use super::finish;
use super::lost::Lost;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Step, Stop};
use super::target::Target;
use super::transformer::Transformer;
use crate::kustomize::node::Node;
use crate::kustomize::rules::kz031;

impl Run<'_> {
    /// Runs the validators of a kustomization on the objects in `acc`. A validator may fail, and it may add the label
    /// `validated-by`. It must not set any other field, even to its current value.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded. In a build that stops at its first error, also if a validator is invalid, fails or
    /// changes an object.
    pub(super) fn validators(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let validators = &target.file.kustomization.validators;
        for validator in self.plugin_transformers(target, "validators", validators)? {
            let mut lost = acc.map.lost;
            let valid = self.validate(&validator, acc);
            self.recover(&mut lost, Lost::Nothing, valid)?;
        }
        Ok(())
    }

    fn validate(&self, validator: &Transformer, acc: &mut Accumulator) -> Step<()> {
        let (original, before) = (acc.map.resources().to_vec(), finish::texts(&acc.map, self));
        validator.run(self, &mut acc.map)?;
        let has_same_texts = finish::texts(&acc.map, self) == before;
        let compared = original.iter().zip(acc.map.resources()).map(|(old, new)| Compared::of(old, new)).max();
        match compared.unwrap_or(Compared::Equal) {
            Compared::Equal if has_same_texts => Ok(()),
            Compared::Unknown if has_same_texts => {
                let message = "kustomize compares the line numbers of objects, and an earlier JSON patch changed them";
                Err(Stop::unknown(validator.site.clone(), message))
            }
            _ => {
                let message = "a validator must not change objects, but this one does";
                Err(Stop::of_content(kz031::found(validator.site.clone(), message)))
            }
        }
    }
}

/// The result of checking whether a validator has changed an object. A validator is a kustomize plugin that must not
/// change objects. It must not even replace a value with an equal one, because kustomize also compares line numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Compared {
    Equal,
    /// It is unknown whether kustomize detects that the validator changed the object. kustomize also compares line
    /// numbers, which Portcullis does not know after a JSON patch. This result occurs if an earlier step and the
    /// validator both applied a JSON patch to the object, and the object may have changed in between.
    Unknown,
    Changed,
}

impl Compared {
    fn of(old: &Resource, new: &Resource) -> Self {
        if old.identities != new.identities || !have_same_origins(&old.node, &new.node) {
            return Self::Changed;
        }
        match (&old.rebuilt, &new.rebuilt) {
            (_, None) => Self::Equal,
            (None, Some(_)) => Self::Changed,
            (Some(first), Some(last)) if Arc::ptr_eq(first, last) || first.shares_content(&old.node) => Self::Equal,
            (Some(_), Some(_)) => Self::Unknown,
        }
    }
}

/// Returns whether the values of an object come from the same files and lines in `old` as in `new`. `old` is the object
/// before a validator ran, and `new` is the object afterwards. kustomize compares the lines of values too. So it
/// detects a validator that replaces a value with an equal one.
fn have_same_origins(old: &Node, new: &Node) -> bool {
    let (values, items) = (old.entries().iter().zip(new.entries()), old.items().iter().zip(new.items()));
    let is_same = if new.made { old.made && old.tag == new.tag } else { old.origin == new.origin };
    is_same
        && values.into_iter().all(|(old, new)| old.key != new.key || have_same_origins(&old.value, &new.value))
        && items.into_iter().all(|(old, new)| have_same_origins(old, new))
}
