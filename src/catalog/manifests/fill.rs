//! Fills a catalog from files, object by object.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ManifestError;
use super::parallel::{Processed, are_small, each_in_order};
use super::read::{Object, each, files_in};
use crate::catalog::freed::on_own_thread;
use crate::catalog::prepared::Batch;
use crate::catalog::{Catalog, Coverage, Kind, Listing};

/// Fills a catalog from files and folders. Objects without a namespace get `namespace`, as in kubectl. Returns the
/// number of objects that were read, including objects of kinds that the catalog does not store. Objects that are read
/// twice count twice ([`each`] describes which files are read again).
///
/// # Errors
///
/// If files or objects cannot be read. Returns one error for each unreadable file or object, and leaves the catalog
/// unchanged.
pub fn fill<P: AsRef<Path> + Sync>(
    catalog: &Catalog,
    paths: &[P],
    namespace: &str,
) -> Result<usize, Vec<ManifestError>> {
    if are_small(&files_in(paths)) {
        return fill_here(catalog, paths, namespace);
    }
    on_own_thread(|| fill_here(catalog, paths, namespace))
}

/// Fills a catalog from files and folders, as [`fill`] describes, on the calling thread.
fn fill_here<P: AsRef<Path> + Sync>(
    catalog: &Catalog,
    paths: &[P],
    namespace: &str,
) -> Result<usize, Vec<ManifestError>> {
    let is_empty = catalog.kinds().all(|kind| catalog.coverage(kind) == Coverage::Pending);
    if !is_empty {
        check(catalog, paths)?;
    }
    let filling = Filling { catalog, paths, namespace };
    let filled = filling.kinds(catalog.kinds().collect()).and_then(|count| match catalog.declared() {
        // Kinds of composites are known only after the CompositeResourceDefinitions that declare them are stored.
        declared if declared.is_empty() => Ok(count),
        declared => filling.kinds(declared),
    });
    if filled.is_err() && is_empty {
        catalog.clear();
    }
    filled
}

/// Decodes all objects, but does not store them. So all errors are known before an object in the catalog is replaced.
fn check<P: AsRef<Path>>(catalog: &Catalog, paths: &[P]) -> Result<(), Vec<ManifestError>> {
    let kinds: Vec<_> = catalog.kinds().chain(catalog.declared()).collect();
    let errors = each(paths, |object| match kinds.iter().find(|kind| is_of(kind, &object)) {
        Some(kind) => catalog.decode(kind, object.text).map(drop).map_err(|undecodable| undecodable.to_string()),
        None => Ok(()),
    });
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

struct Filling<'f, P> {
    catalog: &'f Catalog,
    paths: &'f [P],
    namespace: &'f str,
}

impl<P: AsRef<Path> + Sync> Filling<'_, P> {
    fn kinds(&self, kinds: Vec<&'static Kind>) -> Result<usize, Vec<ManifestError>> {
        let mut listings: Vec<Listing<'_>> = kinds.iter().map(|kind| self.catalog.list(kind)).collect();
        let count = AtomicUsize::new(0);
        let make = |object: Object<'_>, batch: &mut Batch| {
            batch.reserve();
            let length = self.prepare(&kinds, &object, batch)?;
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Processed { length, is_full: batch.is_full() })
        };
        let errors = each_in_order(self.paths, make, |batch: Batch| {
            for (at, object) in batch.objects() {
                if let Some(listing) = listings.get_mut(at) {
                    listing.add_prepared(&object);
                }
            }
        });
        if !errors.is_empty() {
            return Err(errors);
        }
        listings.into_iter().for_each(|listing| finish(self.catalog, listing));
        Ok(count.into_inner())
    }

    /// Decodes and compresses an object, and adds it to `batch` with the index of its kind in `kinds`. An object
    /// without a namespace gets the default namespace. Skips an object whose kind is not in `kinds`. Returns the length
    /// of the object in bytes, or a message if the object cannot be decoded.
    fn prepare(&self, kinds: &[&'static Kind], object: &Object<'_>, batch: &mut Batch) -> Result<usize, String> {
        let prepared = match kinds.iter().enumerate().find(|(_, kind)| is_of(kind, object)) {
            Some((at, kind)) => self.catalog.prepare(at, kind, object.text, self.namespace, batch),
            None => Ok(None),
        };
        match prepared.map_err(|undecodable| undecodable.to_string())? {
            Some(length) => Ok(length),
            None => object.alone().map(|object| object.text.len()),
        }
    }
}

fn finish(catalog: &Catalog, listing: Listing<'_>) {
    let kind = listing.kind();
    listing.finish(Coverage::Complete);
    let size = catalog.size(kind);
    if size.objects > 0 {
        tracing::info!(kind = kind.full_name(), objects = size.objects, bytes = size.bytes, "read");
    }
}

fn is_of(kind: &Kind, object: &Object<'_>) -> bool {
    object.kind == kind.kind && object.group() == kind.group
}
