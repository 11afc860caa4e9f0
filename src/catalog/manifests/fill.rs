//! Filling a catalog from a folder, object by object.

use std::path::Path;

use super::ManifestError;
use super::read::{Object, each};
use crate::catalog::{Catalog, Coverage, Kind, Listing, Projection};

/// The namespace of objects that name none, as kubectl gives it.
const NAMESPACE: &str = "default";

/// Fills a catalog from a folder.
///
/// # Errors
/// Everything in the folder that cannot be read. The catalog stays as it was.
pub fn fill(catalog: &Catalog, folder: &Path) -> Result<(), Vec<ManifestError>> {
    let is_empty = catalog.kinds().all(|kind| catalog.coverage(kind) == Coverage::Pending);
    if !is_empty {
        check(catalog, folder)?;
    }
    let filled = fill_kinds(catalog, catalog.kinds().collect(), folder).and_then(|()| match catalog.declared() {
        // What is declared is known when the others are there.
        declared if declared.is_empty() => Ok(()),
        declared => fill_kinds(catalog, declared, folder),
    });
    if filled.is_err() && is_empty {
        catalog.clear();
    }
    filled
}

/// Reads what would be filled in, and keeps nothing of it: objects are replaced in place, so that what is wrong must be
/// known before.
fn check(catalog: &Catalog, folder: &Path) -> Result<(), Vec<ManifestError>> {
    let kinds: Vec<_> = catalog.kinds().chain(catalog.declared()).collect();
    let errors = each(&[folder], |object| match kinds.iter().find(|kind| is_of(kind, &object)) {
        Some(kind) => decode(catalog, kind, &object).map(drop),
        None => Ok(()),
    });
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn fill_kinds(catalog: &Catalog, kinds: Vec<&'static Kind>, folder: &Path) -> Result<(), Vec<ManifestError>> {
    let mut listings: Vec<Listing<'_>> = kinds.into_iter().map(|kind| catalog.list(kind)).collect();
    let errors = each(&[folder], |object| {
        if let Some(listing) = listings.iter_mut().find(|listing| is_of(listing.kind(), &object)) {
            listing.put(&decode(catalog, listing.kind(), &object)?);
        }
        Ok(())
    });
    if !errors.is_empty() {
        return Err(errors);
    }
    for listing in listings {
        let (kind, objects) = (listing.kind(), listing.count());
        listing.finish(Coverage::Complete);
        if objects > 0 {
            tracing::info!(kind = kind.full_name(), objects, bytes = catalog.size(kind).bytes, "read");
        }
    }
    Ok(())
}

fn is_of(kind: &Kind, object: &Object<'_>) -> bool {
    object.kind == kind.kind && object.group() == kind.group
}

fn decode(catalog: &Catalog, kind: &'static Kind, object: &Object<'_>) -> Result<Projection, String> {
    let mut projection = catalog.decode(kind, object.text).map_err(|undecodable| undecodable.to_string())?;
    if projection.namespace.is_empty() {
        NAMESPACE.clone_into(&mut projection.namespace);
    }
    Ok(projection)
}
