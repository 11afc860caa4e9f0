//! Updates the stored objects of a kind from a new list of all objects of this kind. Replaces the stored objects one by
//! one, so they stay available. At the end, removes the objects that no longer exist. So no object is stored twice, and
//! readers find all objects during a listing.

use super::prepared::Prepared;
use super::store::Store;
use super::{Catalog, Coverage, Kind};

/// A listing in progress. It replaces all stored objects of a kind. If it is dropped before [`Listing::finish`], no
/// object is removed.
pub struct Listing<'c> {
    catalog: &'c Catalog,
    kind: &'static Kind,
    count: usize,
    /// Whether [`Listing::expect`] has reserved memory for the objects that are not listed yet.
    has_reserved: bool,
}

impl<'c> Listing<'c> {
    pub(super) fn begin(catalog: &'c Catalog, kind: &'static Kind) -> Self {
        catalog.write(kind, Store::begin_listing);
        Self { catalog, kind, count: 0, has_reserved: false }
    }

    /// Returns the kind that is listed.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the number of objects listed so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Reserves memory for `left` objects that are not listed yet, so that the tables of the store need not grow step
    /// by step. Only the first call with a number above 0 has an effect.
    pub fn expect(&mut self, left: u64) {
        if left > 0 && !self.has_reserved {
            self.has_reserved = true;
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            self.catalog.write(self.kind, |store| store.reserve(self.count.saturating_add(left)));
        }
    }

    /// Stores an object from its JSON text. Logs and counts an object that cannot be stored.
    pub fn add(&mut self, text: &str) {
        match self.catalog.decode(self.kind, text) {
            Ok(object) => {
                self.count += 1;
                self.catalog.put(self.kind, object);
            }
            Err(undecodable) => self.catalog.reject(self.kind, &undecodable),
        }
    }

    /// Stores an object that is already decoded and compressed.
    pub(super) fn add_prepared(&mut self, object: &Prepared<'_>) {
        self.count += 1;
        self.catalog.store_prepared(self.kind, object);
    }

    /// Ends the listing. Removes the stored objects that were not listed. Then sets the coverage of the kind, which
    /// says how completely the catalog knows the objects of the kind.
    pub fn finish(self, coverage: Coverage) {
        let is_new = self.catalog.coverage(self.kind) != coverage;
        let gone = self.catalog.write(self.kind, |store| store.finish_listing(coverage)).unwrap_or_default();
        gone.into_iter().for_each(|gone| self.catalog.notify(self.kind, gone));
        if is_new {
            self.catalog.cover(self.kind, coverage);
        }
    }
}
