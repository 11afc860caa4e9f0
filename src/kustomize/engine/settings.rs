//! Reads the fields `openapi`, `configurations` and `crds`, which affect how other fields are applied.
//!
//! Source: kustomize's `api/internal/target/kusttarget.go`.

use std::sync::Arc;

use super::accumulator::Accumulator;
use super::config::{Config, Written, merge_shared};
use super::crds;
use super::load::bad_file;
use super::lost::Lost;
use super::run::Run;
use super::stop::{Failed, Step, Stop};
use super::target::Target;
use crate::admission::FieldPath;
use crate::kustomize::file;
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz008, kz017, kz031};
use crate::kustomize::schema::{BadSchema, Schema};

/// The Kubernetes version of kustomize's built-in schema.
const SCHEMA_VERSION: &str = "v1.21.2";

impl Run<'_> {
    /// Sets the schema that the field `openapi` of a kustomization names. `is_root` is true for the kustomization that
    /// the user builds. In a base or component, the field has no effect if another kustomization has already set a
    /// schema. An invalid schema is an error only when it is used.
    ///
    /// # Errors
    ///
    /// - If the file of the schema cannot be read.
    /// - If the field names both a version and a path, or an unknown version.
    pub(super) fn openapi(&mut self, target: &Target<'_>, is_root: bool) -> Step<()> {
        let openapi = &target.file.kustomization.openapi;
        let site = |key: &str| target.site(FieldPath::of(["openapi", key]));
        let schema = match openapi.get("path") {
            Some(path) => Some(self.load(&target.loader, path, &site("path"))?.1),
            None => None,
        };
        if self.has_schema && !is_root {
            return Ok(());
        }
        let version = openapi.get("version");
        match (schema, version) {
            (Some(_), Some(_)) => {
                Err(Stop::refused(kz017::invalid_schema(site("version"), "has both a version and a path")))
            }
            (Some(bytes), None) => {
                match self.custom_schema(&bytes, is_root, &site("path")) {
                    Ok(schema) => (self.schema, self.invalid_schema) = (schema, None),
                    Err(stop) => self.invalid_schema = Some(stop),
                }
                self.has_schema = true;
                Ok(())
            }
            (None, Some(version)) if !version.is_empty() => {
                if version != SCHEMA_VERSION {
                    return Err(Stop::refused(kz017::unknown_schema_version(site("version"), version, SCHEMA_VERSION)));
                }
                self.has_schema = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Parses the custom schema of a kustomization. `bytes` is the content of the file that `openapi.path` names.
    ///
    /// `is_root` is true for the kustomization that the user builds, and false for a base or component. If `is_root` is
    /// false and the build has already used a schema, the result contains the custom schema and the built-in schema.
    /// Otherwise, the result contains only the custom schema.
    fn custom_schema(&self, bytes: &[u8], is_root: bool, site: &Site) -> Step<Arc<Schema>> {
        let wrong = |why: &str| Stop::refused(kz017::invalid_schema(site.clone(), why));
        let text = file::text(bytes).map_err(|_| wrong("contains bytes that YAML does not allow"))?;
        Schema::read_beside(text, self.beside.get().filter(|_| !is_root)).map_err(|error| match error {
            BadSchema::Unknown(_) => Stop::unknown(site.clone(), format!("the schema is not read: {error}")),
            _ => wrong(&format!("cannot be read: {error}")),
        })
    }

    /// Adds field specs to `acc.config`: the built-in ones, and those in the files that the kustomization's field
    /// `configurations` lists.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or decoded, or two specs of the same field have different values of `create`. A build
    /// that stops at its first error returns this error. Other builds record the error and continue.
    pub(super) fn configurations(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        let mut own = Config::built_in();
        let files = &target.file.kustomization.configurations;
        let mut read = Config::empty();
        for (index, entry) in files.iter().enumerate() {
            let site = target.entry("configurations", index);
            let merged = self.configuration(target, entry, &site).and_then(|config| {
                merge_shared(&mut read, &Arc::new(config))
                    .map_err(|conflict| Stop::refused(kz031::found(site.clone(), &conflict.to_string())))
            });
            self.recover(&mut acc.map.lost, Lost::Changes, merged)?;
        }
        let site = || target.site(FieldPath::of(["configurations"]));
        if !files.is_empty() {
            let merged = merge_shared(&mut own, &read);
            let merged = merged.map_err(|conflict| Stop::refused(kz031::found(site(), &conflict.to_string())));
            self.recover(&mut acc.map.lost, Lost::Changes, merged)?;
        }
        let merged = merge_shared(&mut acc.config, &own);
        let merged = merged.map_err(|conflict| Stop::refused(kz031::found(site(), &conflict.to_string())));
        self.recover(&mut acc.map.lost, Lost::Changes, merged).map(drop)
    }

    fn configuration(&self, target: &Target<'_>, entry: &str, site: &Site) -> Step<Config> {
        let (path, bytes) = self.load(&target.loader, entry, site)?;
        let (value, faults, document) =
            file::configuration(&bytes).map_err(|bad| bad_file(Site::of_file(path.clone()), &bad))?;
        let place = |field: &FieldPath| {
            let file = Site::of_file(path.clone());
            document.as_ref().map_or(file.place, |document| document.nearest(field))
        };
        let faults = faults.iter().map(|fault| {
            let site = Site::new(path.clone(), place(&fault.path), fault.path.clone());
            kz008::decoding_error(site, fault).0
        });
        let duplicates = document.iter().flat_map(|document| document.duplicates());
        let duplicates = duplicates.map(|twice| kz008::duplicate_key(Site::new(path.clone(), twice.kept, twice.path)));
        let mut is_valid = true;
        for finding in faults.chain(duplicates) {
            is_valid = false;
            self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(Stop::refused(finding)))?;
        }
        let written: Written = match is_valid {
            true => serde_json::from_value(value)
                .map_err(|error| Stop::refused(kz008::malformed(Site::of_file(path.clone()), &error.to_string())))?,
            false => serde_json::from_value(value).unwrap_or_default(),
        };
        Ok(Config::from(written))
    }

    /// Derives field specs from the files that `crds` names, and adds them to `acc`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or decoded, or two specs of the same field have different values of `create`. Only a
    /// build that stops at its first error returns these errors.
    pub(super) fn crds(&mut self, target: &Target<'_>, acc: &mut Accumulator) -> Step<()> {
        for (index, entry) in target.file.kustomization.crds.iter().enumerate() {
            let site = target.entry("crds", index);
            let merged = self.definitions(target, entry, &site).and_then(|read| {
                merge_shared(&mut acc.config, &Arc::new(read))
                    .map_err(|conflict| Stop::refused(kz031::found(site.clone(), &conflict.to_string())))
            });
            self.recover(&mut acc.map.lost, Lost::Changes, merged)?;
        }
        Ok(())
    }

    fn definitions(&self, target: &Target<'_>, entry: &str, site: &Site) -> Step<Config> {
        let (path, bytes) = self.load(&target.loader, entry, site)?;
        crds::config(&bytes).map_err(|(place, failed)| {
            let at = place.map_or_else(|| site.clone(), |place| Site { place, ..Site::of_file(path) });
            match failed {
                Failed::Refused(why) => Stop::refused(kz017::invalid_crds(at, entry, &why)),
                failed => failed.within(&format!("\"{entry}\"")).at(at),
            }
        })
    }
}
