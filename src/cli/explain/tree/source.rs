//! The sources of component descriptors for component trees: Installations, a folder, or OCI registries.

use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::super::super::{Unusable, inputs, walk};
use super::Args;
use crate::cryptography;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::components::cache::ComponentCache;
use crate::landscaper::components::closure::{Closure, Found};
use crate::landscaper::components::folder::Folder;
use crate::landscaper::components::inline::Inline;
use crate::landscaper::substitution::Entry;
use crate::oci::Keyring;

/// Timeout for resolving the component tree of one Installation from registries.
const WITHIN: Duration = Duration::from_secs(60);

/// A source of component descriptors.
pub(super) enum Source {
    /// Only the component descriptors that Installations contain inline. Other components are not looked up.
    Inline,
    /// Component descriptors in files.
    Folder(Folder),
    /// Component descriptors in OCI registries.
    Registries { runtime: Runtime, component_cache: Box<ComponentCache>, keyring: Keyring },
}

impl Source {
    pub(super) fn of(args: &Args) -> Result<Self, Unusable> {
        if !args.tree {
            return Ok(Self::Inline);
        }
        if !args.components.is_empty() {
            return folder(args).map(Self::Folder);
        }
        cryptography::install();
        let mut keyring = Keyring::default();
        if let Some(path) = &args.registry_config {
            let unusable = |why: String| Unusable::because(path.display(), why);
            let config = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
            keyring.add(&config).map_err(|error| unusable(error.to_string()))?;
        }
        Ok(Self::Registries {
            runtime: inputs::runtime()?,
            component_cache: Box::new(args.registries.component_cache()?),
            keyring,
        })
    }

    /// Resolves the component tree of an Installation, with the overwrites `entries` applied to each component
    /// reference. `original` is the component reference of the Installation.
    pub(super) fn closure(
        &self,
        installation: &Value,
        original: &ComponentReference,
        entries: &[Entry],
    ) -> Result<Closure, Unusable> {
        let inline = Inline::of(installation).transpose();
        let inline = inline.map_err(|error| Unusable::because("spec.componentDescriptor.inline", error))?;
        let inside = |reference: &ComponentReference| inline.as_ref().and_then(|inline| inline.find(reference));
        let beside = |reference: &ComponentReference, find: &dyn Fn(&ComponentReference) -> Found| {
            inside(reference).map_or_else(|| find(reference), Found::Descriptor)
        };
        Ok(match self {
            Self::Inline => {
                let pending = |_: &ComponentReference| Found::Pending;
                Closure::of(original.clone(), entries, &|reference: &_| beside(reference, &pending))
            }
            Self::Folder(folder) => {
                let find = |reference: &ComponentReference| folder.find(reference);
                Closure::of(original.clone(), entries, &|reference: &_| beside(reference, &find))
            }
            Self::Registries { runtime, component_cache, keyring } => runtime.block_on(async {
                component_cache.closure(original, entries, keyring, inside, Instant::now() + WITHIN).await
            }),
        })
    }
}

fn folder(args: &Args) -> Result<Folder, Unusable> {
    let mut folder = Folder::default();
    for path in &args.components {
        for file in walk::manifests(path).map_err(|error| Unusable::because(path.display(), error))? {
            let unusable = |why: String| Unusable::because(file.display(), why);
            let text = std::fs::read_to_string(&file).map_err(|error| unusable(error.to_string()))?;
            folder.add(&text).map_err(unusable)?;
        }
    }
    if folder.is_empty() {
        return Err(Unusable::new("no component descriptor found in the files of --components"));
    }
    Ok(folder)
}
