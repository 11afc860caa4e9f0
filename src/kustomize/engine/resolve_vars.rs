//! The steps of a build that process vars. They collect the vars of a kustomization and its bases, and replace the
//! references to them at the end of the build.
//!
//! Source: kustomize's `api/internal/accumulator/resaccumulator.go`.

use std::collections::BTreeMap;

use super::accumulator::Accumulator;
use super::field_spec::{Create, FieldSpec};
use super::lost::Lost;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Failed, Step, Stop};
use super::target::Target;
use super::vars::{self, Vars};
use crate::kustomize::file::Var;
use crate::kustomize::finding::Site;
use crate::kustomize::node::Node;
use crate::kustomize::rules::kz017;

impl Run<'_> {
    /// Adds the vars of a kustomization to `acc`. Also stores the name of each var in the object to which the var
    /// refers.
    ///
    /// # Errors
    ///
    /// If a var may refer to several objects, or if its name is already in use. A build that stops at its first error
    /// returns this error. Other builds record the error and continue.
    pub(super) fn vars(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let vars = &target.file.kustomization.vars;
        for (index, var) in vars.iter().enumerate() {
            self.check_identities(&mut acc.map)?;
            let pointed = vars::point(var, &mut acc.map);
            let wrong = |why| Stop::of_content(kz017::unresolved_var(target.entry("vars", index), &var.name, why));
            self.recover(&mut acc.map.lost, Lost::Nothing, pointed.map_err(wrong))?;
        }
        for (index, var) in vars.iter().enumerate() {
            self.add_var(acc, var.clone(), target.entry("vars", index))?;
        }
        Ok(())
    }

    /// Adds the vars of a base to `acc`. It is an error if the name of a var is already in use. A build that stops at
    /// its first error returns this error. Other builds record the error and continue.
    pub(super) fn merge_vars(&self, acc: &mut Accumulator, vars: Vars) -> Step<()> {
        vars.by_name.into_values().try_for_each(|(var, site)| self.add_var(acc, var, site))
    }

    fn add_var(&self, acc: &mut Accumulator, var: Var, site: Site) -> Step<()> {
        if let Some((_, before)) = acc.vars.by_name.get(&var.name) {
            let stop = Stop::refused(kz017::duplicate_var(site, &var.name, before));
            return self.recover(&mut acc.map.lost, Lost::Nothing, Err::<(), _>(stop)).map(drop);
        }
        acc.vars.by_name.insert(var.name.clone(), (var, site));
        Ok(())
    }

    /// Replaces references to vars, such as `$(NAME)`, with the values of the vars. Only the fields that `specs` select
    /// are changed.
    ///
    /// # Errors
    ///
    /// - If a limit is exceeded.
    /// - In a build that stops at its first error: if a var has no value, for example because its object does not
    ///   exist, or if its references cannot be replaced. Other builds record these errors and continue.
    pub(super) fn resolve_vars(&self, vars: &Vars, map: &mut ResMap, specs: &[FieldSpec]) -> Step<()> {
        let mut values = BTreeMap::new();
        for (var, site) in vars.by_name.values() {
            let value = vars::value_of(var, map);
            let value = value.map_err(|why| Stop::of_absence(kz017::unresolved_var(site.clone(), &var.name, why)));
            if let Some(value) = self.recover(&mut map.lost, Lost::Nothing, value)? {
                values.insert(var.name.as_str(), value);
            }
        }
        if values.is_empty() {
            return Ok(());
        }
        let mut lost = map.lost;
        for resource in map.resources_mut() {
            let put = |resource: &mut Resource| {
                specs.iter().try_for_each(|spec| {
                    let set = &mut |node: &mut Node| vars::replace(node, &values, &self.budget);
                    spec.apply(resource, Create::No, set)
                })
            };
            let failed = put(resource).map_err(|error| Failed::from(error).at(self.site_of(resource.origin)));
            self.recover_object(resource, &mut lost, failed)?;
            resource.spread();
        }
        map.lost = lost;
        Ok(())
    }
}
