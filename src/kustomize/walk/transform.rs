//! What transformers do, in the order of `configureBuiltinTransformers`: all are configured before the first one runs.

use super::patches::Prepared;
use super::{Layer, Walk};
use crate::kustomize::accumulate::Accumulator;

impl Walk<'_> {
    /// Runs all transformers.
    pub(super) fn transformers(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let merges = self.prepare_merges(layer);
        let patches = self.prepare_patches(layer);
        let late = self.prepare_json_patches(layer);
        let replacements = self.prepare_replacements(layer);
        let plugged = self.plugin_transformers(layer);

        for prepared in merges.iter().chain(&patches) {
            self.patch(prepared, acc);
        }
        self.namespace(layer, acc);
        self.affix(layer, acc);
        self.labels(layer, acc);
        for prepared in &late {
            self.patch(prepared, acc);
        }
        self.replicas(layer, acc);
        self.replace_all(&replacements, acc);
        plugged.run(acc);
    }

    fn patch(&mut self, prepared: &Prepared<'_>, acc: &mut Accumulator) {
        match prepared {
            Prepared::Merge(merge) => self.merge(merge, acc),
            Prepared::Json(json) => self.json(json, acc),
            Prepared::Unread(_) => Self::unread(acc),
        }
        self.adds(prepared.words());
    }
}
