//! Reads patches: `patchesStrategicMerge`, `patches`, `patchesJson6902`. All are read before the first one is applied.
//!
//! Source: `Config` of `PatchStrategicMergeTransformer`, `PatchTransformer` and `PatchJson6902Transformer` in
//! kustomize's `api/internal/builtins`.

use super::patches::{Json, Merge, Prepared};
use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::json_patch;
use crate::kustomize::accumulate::manifests::{self, Manifest};
use crate::kustomize::file::Patch;
use crate::kustomize::finding::Site;
use crate::kustomize::rules::kz014;

impl Walk<'_> {
    /// Reads `patchesStrategicMerge`: texts or paths.
    pub(super) fn prepare_merges(&mut self, layer: &Layer<'_>) -> Vec<Prepared<'static>> {
        let list = &layer.kustomization().patches_strategic_merge;
        let mut prepared = Vec::new();
        let mut whole = true;
        for (index, text) in list.iter().enumerate() {
            let site = layer.site(FieldPath::of(["patchesStrategicMerge"]).index(index));
            let uncertainties = self.uncertainties;
            let objects = match super::resources::inline(text) {
                Some(Ok(objects)) => Some(objects),
                Some(Err(reason)) => {
                    self.uncertainty(&site, format!("the patch is not read: {reason}"));
                    None
                }
                None => self.merges_of_file(layer, &site, text),
            };
            prepared.extend((self.uncertainties > uncertainties).then(|| Prepared::Unread(site.clone())));
            whole &= objects.is_some();
            prepared.extend(objects.unwrap_or_default().into_iter().map(|patch| {
                Prepared::Merge(Merge {
                    patches: vec![patch],
                    target: None,
                    renames: false,
                    rekinds: false,
                    site: site.clone(),
                })
            }));
        }
        if whole && !list.is_empty() && prepared.is_empty() {
            self.report(kz014::nothing(layer.site(FieldPath::of(["patchesStrategicMerge"]))));
        }
        prepared
    }

    fn merges_of_file(&mut self, layer: &Layer<'_>, site: &Site, text: &str) -> Option<Vec<Manifest>> {
        let (path, content) = self.named_text(layer, site, text)?;
        let manifests = manifests::read(&content);
        if let Some((place, reason)) = manifests.uncertainty {
            self.uncertainty(&Site { place, ..Site::of_file(path.clone()) }, reason);
            return None;
        }
        if let Some((place, fault)) = manifests.fault {
            let words = format!("{path}:{} {}", place.line, fault);
            self.report(kz014::unreadable(site.clone(), &words));
            return None;
        }
        Some(manifests.objects)
    }

    /// Reads `patches`: strategic merge or JSON patches, from a file or inline.
    pub(super) fn prepare_patches<'k>(&mut self, layer: &'k Layer<'_>) -> Vec<Prepared<'k>> {
        let patches = layer.kustomization().patches.iter().enumerate();
        let mut prepared = Vec::new();
        for (index, patch) in patches {
            let field = FieldPath::of(["patches"]).index(index);
            let site = layer.site(field.clone());
            let text = match self.patch_text(layer, field, patch.patch.trim(), &patch.path) {
                Ok(text) => text,
                Err(instead) => {
                    prepared.extend(instead);
                    continue;
                }
            };
            prepared.extend(self.prepare(patch, &text, site));
        }
        prepared
    }

    fn prepare<'k>(&mut self, patch: &'k Patch, text: &str, site: Site) -> Option<Prepared<'k>> {
        let manifests = manifests::read(text);
        if let Some((_, reason)) = &manifests.uncertainty {
            self.uncertainty(&site, format!("the patch is not read: {reason}"));
            return Some(Prepared::Unread(site));
        }
        let target = patch.target.as_ref();
        match manifests.fault.map(|(_, fault)| (fault, json_patch::read(text))) {
            Some((fault, None)) => {
                self.report(kz014::unreadable(site, &fault.to_string()));
                None
            }
            Some((_, Some(operations))) if operations.is_empty() => None,
            Some((_, Some(operations))) => Some(Prepared::Json(Json { operations, target, remembers: true, site })),
            None if manifests.objects.is_empty() => None,
            None => {
                let options = patch.options.clone().unwrap_or_default();
                Some(Prepared::Merge(Merge {
                    patches: manifests.objects,
                    target,
                    renames: options.allow_name_change,
                    rekinds: options.allow_kind_change,
                    site,
                }))
            }
        }
    }

    /// Reads `patchesJson6902`.
    pub(super) fn prepare_json_patches<'k>(&mut self, layer: &'k Layer<'_>) -> Vec<Prepared<'k>> {
        let patches = layer.kustomization().patches_json6902.iter().enumerate();
        let mut prepared = Vec::new();
        for (index, patch) in patches {
            let field = FieldPath::of(["patchesJson6902"]).index(index);
            let site = layer.site(field.clone());
            if patch.target.as_ref().is_none_or(|target| target.name.is_empty()) {
                self.report(kz014::nameless_target(site));
                continue;
            }
            let text = match self.patch_text(layer, field, &patch.patch, &patch.path) {
                Ok(text) => text,
                Err(instead) => {
                    prepared.extend(instead);
                    continue;
                }
            };
            match json_patch::read(&text) {
                Some(operations) if !operations.is_empty() => prepared.push(Prepared::Json(Json {
                    operations,
                    target: patch.target.as_ref(),
                    remembers: false,
                    site,
                })),
                Some(_) => self.report(kz014::nothing(site)),
                None => self.report(kz014::unreadable(site, "is not a list of operations")),
            }
        }
        prepared
    }

    /// Returns the inline text of a patch, or that of its file; otherwise the reason, which is empty after a reported
    /// error.
    fn patch_text<'k>(
        &mut self,
        layer: &Layer<'_>,
        field: FieldPath,
        inline: &str,
        path: &str,
    ) -> Result<String, Option<Prepared<'k>>> {
        let site = layer.site(field.clone());
        match (inline.is_empty(), path.is_empty()) {
            (true, true) => self.report(kz014::neither(site)),
            (false, false) => self.report(kz014::both(site)),
            (false, true) => return Ok(inline.to_owned()),
            (true, false) => {
                let uncertainties = self.uncertainties;
                let named = self.named_text(layer, &layer.site(field.key("path")), path);
                let unread = (self.uncertainties > uncertainties).then_some(Prepared::Unread(site));
                return named.map(|(_, text)| text).ok_or(unread);
            }
        }
        Err(None)
    }
}
