//! `replacements`.
//!
//! Source: `ReplacementTransformer` in kustomize's `api/internal/builtins`, `api/filters/replacement`.

use serde_json::Value;

use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::select::{BadSelector, Compiled, Selected, any};
use crate::kustomize::accumulate::{Accumulator, Id, Object};
use crate::kustomize::file::{Replacement, Source, Target};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz014, kz017, kz030};
use crate::yaml::{self, Limits};

/// The default path of a source or target.
const DEFAULT_PATH: &str = "metadata.name";

/// A replacement.
pub(super) struct Prepared {
    /// The replacement; `None` if it could not be read and may change any object.
    replacement: Option<Replacement>,
    site: Site,
}

/// Whether the source of a replacement exists.
#[derive(PartialEq)]
enum Found {
    Yes,
    No,
    Perhaps,
}

/// The known content of a field.
#[derive(PartialEq)]
enum Known {
    Present(String),
    Absent,
    Unsure,
}

impl Walk<'_> {
    /// Reads `replacements`, including those in files.
    pub(super) fn prepare_replacements(&mut self, layer: &Layer<'_>) -> Vec<Prepared> {
        let mut prepared = Vec::new();
        for (index, replacement) in layer.kustomization().replacements.iter().enumerate() {
            let field = FieldPath::of(["replacements"]).index(index);
            let site = layer.site(field.clone());
            let inline = replacement.source.is_some() || replacement.targets.as_ref().is_some_and(|t| !t.is_empty());
            if replacement.path.is_empty() {
                prepared.push(Prepared { replacement: Some(replacement.clone()), site });
            } else if inline {
                self.report(kz017::replacement(site, "has both a path and a source or targets"));
            } else {
                let site = layer.site(field.key("path"));
                let uncertainties = self.uncertainties;
                prepared.extend(self.replacements_of_file(layer, &site, &replacement.path));
                prepared.extend(
                    (self.uncertainties > uncertainties).then(|| Prepared { replacement: None, site: site.clone() }),
                );
            }
        }
        prepared
    }

    fn replacements_of_file(&mut self, layer: &Layer<'_>, site: &Site, text: &str) -> Vec<Prepared> {
        let Some((path, content)) = self.named_text(layer, site, text) else { return Vec::new() };
        let value = match yaml::first(&content, &Limits::default()) {
            Ok(document) => document.map(|document| document.value),
            Err(error) => {
                let at = Site { place: error.place, ..Site::of_file(path) };
                if error.problem.is_open() {
                    self.uncertainty(&at, error.problem.to_string());
                    return vec![Prepared { replacement: None, site: at }];
                }
                self.report(kz017::replacement(at, &format!("is not YAML: {}", error.problem)));
                return Vec::new();
            }
        };
        let items = match value {
            Some(Value::Array(items)) => items,
            Some(item @ Value::Object(_)) => vec![item],
            _ => {
                self.report(kz017::replacement(site.clone(), "is neither a replacement nor a list of them"));
                return Vec::new();
            }
        };
        let mut prepared = Vec::new();
        for item in items {
            match serde_json::from_value(item) {
                Ok(replacement) => prepared.push(Prepared { replacement: Some(replacement), site: site.clone() }),
                Err(error) => self.uncertainty(site, format!("{path}: {error}")),
            }
        }
        prepared
    }

    /// Applies the replacements as far as they are known.
    pub(super) fn replace_all(&mut self, prepared: &[Prepared], acc: &mut Accumulator) {
        for Prepared { replacement, site } in prepared {
            self.adds(format!("replacement {}", site.field));
            let Some(replacement) = replacement else {
                Self::unread(acc);
                continue;
            };
            let targets = replacement.targets.as_deref();
            match (&replacement.source, &replacement.source_value, targets) {
                (None, None, _) | (_, _, None) => {
                    self.report(kz017::replacement(site.clone(), "needs a source and at least one target"));
                }
                (Some(_), Some(_), _) => {
                    self.report(kz017::replacement(site.clone(), "has both a source and a sourceValue"));
                }
                (source, _, Some(targets)) => {
                    let found = source.as_ref().map_or(Found::Yes, |source| self.source(site, source, acc));
                    for target in targets {
                        match found {
                            Found::Yes => self.put_into(site, target, acc),
                            Found::Perhaps => blur_all(acc, target),
                            Found::No => {}
                        }
                    }
                }
            }
        }
    }

    /// Returns whether the source of a replacement exists.
    fn source(&mut self, site: &Site, source: &Source, acc: &Accumulator) -> Found {
        let is_source = |object: &&Object| object.ids().any(|id| names(source, &id));
        let found: Vec<_> = acc.objects().iter().filter(is_source).collect();
        let sure: Vec<_> = found.iter().filter(|object| object.sure).collect();
        let words = source_words(source);
        match sure.as_slice() {
            [object] if found.len() == 1 => {
                let path = if source.field_path.is_empty() { DEFAULT_PATH } else { &source.field_path };
                match known(object, path) {
                    Known::Present(_) if source.options.is_none() => return Found::Yes,
                    Known::Absent => self.report(kz017::replacement(
                        site.clone(),
                        &format!("takes {path} of {}, which has no such field", object.id.words()),
                    )),
                    _ => {
                        self.uncertainty(
                            site,
                            format!("what is at {path} of {} is not worked out here", object.id.words()),
                        );
                        return Found::Yes;
                    }
                }
            }
            [_, _, ..] => self.report(kz030::several_sources(site.clone(), &words)),
            _ if !acc.complete => return Found::Perhaps,
            [] if acc.is_certain() => self.report(kz030::no_source(site.clone(), &words)),
            _ => {
                self.uncertainty(site, format!("whether {words} is there is not certain"));
                return Found::Perhaps;
            }
        }
        Found::No
    }

    fn put_into(&mut self, site: &Site, target: &Target, acc: &mut Accumulator) {
        let Some(select) = &target.select else {
            self.report(kz017::replacement(site.clone(), "has a target that selects nothing: `select` is missing"));
            return;
        };
        let rejects: Result<Vec<_>, _> = target.reject.iter().map(Compiled::new).collect();
        let (select, rejects) = match (Compiled::new(select), rejects) {
            (Ok(select), Ok(rejects)) => (select, rejects),
            (Err(BadSelector::Invalid(text)), _) | (_, Err(BadSelector::Invalid(text))) => {
                self.report(kz014::expression(site.clone(), &text));
                return;
            }
            _ => {
                self.uncertainty(site, "an expression in a selector is not supported by this analysis");
                blur_all(acc, target);
                return;
            }
        };
        for at in 0..acc.objects().len() {
            let Some(object) = acc.objects().get(at) else { continue };
            match (select.selects_any(object), any(rejects.iter().map(|reject| reject.rejects(object)))) {
                (Selected::No, _) | (_, Selected::Yes) => {}
                (Selected::Yes, Selected::No) => self.set(site, target, at, acc),
                _ => {
                    self.uncertainty(site, "whether a target is selected is not worked out here");
                    acc.objects_mut().get_mut(at).into_iter().for_each(|object| invalidate(object, target));
                }
            }
        }
    }

    fn set(&mut self, site: &Site, target: &Target, at: usize, acc: &mut Accumulator) {
        let default = [DEFAULT_PATH.to_owned()];
        let paths = if target.field_paths.is_empty() { &default[..] } else { &target.field_paths };
        for path in paths {
            let Some(object) = acc.objects_mut().get_mut(at) else { return };
            let words = object.id.words();
            match known(object, path) {
                Known::Present(_) if rewrites_identity(path) => {
                    object.sure = false;
                    self.uncertainty(site, format!("the replacement gives {words} another identity"));
                }
                Known::Present(pointer) if target.options.is_none() && is_text(object, &pointer) => {
                    object.invalidate(&pointer)
                }
                Known::Absent if target.options.is_none() => self.report(kz017::replacement(
                    site.clone(),
                    &format!("sets {path} of {words}, which has no such field"),
                )),
                _ => {
                    invalidate(object, target);
                    self.uncertainty(site, format!("whether {path} of {words} can be set is not worked out here"));
                }
            }
        }
    }
}

fn names(source: &Source, id: &Id) -> bool {
    let same = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
    let namespace = if id.namespace.is_empty() { "default" } else { &id.namespace };
    same(&source.name, &id.name)
        && same(&source.namespace, namespace)
        && same(&source.group, &id.group)
        && same(&source.version, &id.version)
        && same(&source.kind, &id.kind)
}

fn source_words(source: &Source) -> String {
    let parts = [&source.kind, &source.name, &source.namespace];
    let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    said.join(" ")
}

/// Returns the content at a field path of mappings only.
fn known(object: &Object, path: &str) -> Known {
    // kustomize takes `.metadata.name` for `metadata.name`
    let is_plain = !path.contains(['[', ']', '*', '\\', '"', '\'', '/', '~']) && !path.contains("..");
    let path = path.strip_prefix('.').unwrap_or(path);
    if !is_plain || path.is_empty() || path.ends_with('.') {
        return Known::Unsure;
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    if !object.is_clear(&pointer) {
        return Known::Unsure;
    }
    let content = object.content();
    let mut at = &content;
    for step in path.split('.') {
        match at {
            Value::Object(members) => match members.get(step) {
                Some(next) => at = next,
                None => return Known::Absent,
            },
            _ => return Known::Unsure,
        }
    }
    match at {
        Value::Null => Known::Unsure,
        Value::String(text) if text.is_empty() => Known::Unsure,
        Value::Array(_) | Value::Object(_) => Known::Unsure,
        _ => Known::Present(pointer),
    }
}

/// Returns whether the value at a pointer is certainly a string, which any scalar may replace.
fn is_text(object: &Object, pointer: &str) -> bool {
    let content = object.content();
    let text = content.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text.parse::<f64>().is_err() && !["true", "false"].contains(&text)
}

/// Makes an object one of which nothing is known that the target may change.
fn invalidate(object: &mut Object, target: &Target) {
    object.invalidate("");
    let may_rename = |path: &String| rewrites_identity(path) || path.contains(['[', '*', '\\', '/']);
    object.sure &= !target.field_paths.is_empty() && !target.field_paths.iter().any(may_rename);
}

/// Makes all objects such.
fn blur_all(acc: &mut Accumulator, target: &Target) {
    acc.objects_mut().iter_mut().for_each(|object| invalidate(object, target));
}

fn rewrites_identity(path: &str) -> bool {
    let path = path.strip_prefix('.').unwrap_or(path);
    ["metadata.name", "metadata.namespace", "kind", "apiVersion", "metadata"].contains(&path)
}
