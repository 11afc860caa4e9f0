//! Builds the ConfigMaps that record how overwrites change the components of an Installation. The ConfigMaps contain a
//! JSON Patch for each changed component descriptor, and the data from which the patches were computed. They contain no
//! timestamps, so the same component tree always results in the same ConfigMaps.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::note::Note;
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::components::closure::{Closure, Component, Step};
use crate::landscaper::components::patch;
use crate::landscaper::overwrites::effect::Effect;
use crate::oci::digest;

/// Key in each ConfigMap that records overwrites. Its value is a JSON object that explains the JSON Patches in the same
/// ConfigMap. For example, it contains the name of the ComponentVersionOverwrites object.
pub const SOURCE_KEY: &str = "source";
/// Key in a ConfigMap for the summary of changes. Its value lists, for users, the changes that
/// ComponentVersionOverwrites make to an Installation, one per line. If an Installation has several ConfigMaps with
/// JSON Patches, only the first one has this key. A list that is too long is truncated.
pub const SUMMARY_KEY: &str = "summary";
/// Label on each ConfigMap that records overwrites. Its value is the name of the Installation, truncated to 63
/// characters.
pub const LABEL: &str = "portcullis.dev/overwrites-of";

/// Maximum size of the data in a ConfigMap, in bytes. Kubernetes allows 1 MiB; the rest is reserved for metadata.
const MAX_PART_BYTES: usize = 900 << 10;
/// Maximum size, in bytes, of the list of changes that a ComponentVersionOverwrites object makes to the component
/// references of an Installation. The list is stored as text in a ConfigMap, under the key `summary`. The limit leaves
/// room for JSON Patches in the same ConfigMap.
const MAX_SUMMARY_BYTES: usize = 100 << 10;
/// Maximum number of ConfigMaps that contain the patches of an Installation's component descriptors. The limit bounds
/// the storage that one Installation needs. Patches that do not fit into these ConfigMaps are left out.
pub const MAX_PARTS: usize = 16;
/// Maximum length of an object's name in Kubernetes.
const MAX_NAME_LENGTH: usize = 253;

/// The ConfigMaps and the annotation that record how ComponentVersionOverwrites change an Installation's component
/// tree. The ConfigMaps contain a JSON Patch for each changed component descriptor. The annotation of the Installation
/// contains a summary of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The ConfigMaps to store. They contain a JSON Patch for each component descriptor that the overwrites change.
    /// Empty if the overwrites change nothing.
    pub parts: Vec<Part>,
    /// The content of the tree annotation: a summary of the Installation's component tree.
    pub note: Note,
    /// Descriptions of the changes that the overwrites make, for users. Each string describes one change in one line.
    pub lines: Vec<String>,
}

/// A ConfigMap with patches of component descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of the ConfigMap, such as `app-overwrites`.
    pub name: String,
    /// The data of the ConfigMap: JSON Patches of component descriptors, and the key [`SOURCE_KEY`]. The patches of an
    /// Installation may need several ConfigMaps. The first of these also has the key [`SUMMARY_KEY`].
    pub data: BTreeMap<String, String>,
}

/// A component descriptor that the overwrites change, with its JSON Patch.
struct Patched {
    key: String,
    about: Value,
    patch: String,
}

impl Record {
    /// Computes the ConfigMaps and the annotation to write for the Installation `name`. The ConfigMaps contain a JSON
    /// Patch for each changed component descriptor, and the annotation contains a summary of all changes. `closure` is
    /// the component tree of the Installation, and `effect` contains the overwrites.
    pub fn of(name: &str, effect: &Effect, closure: &Closure) -> Self {
        let mut note = Note::of(effect, closure);
        let lines = lines(effect, closure);
        let mut patched = patched(closure);
        let is_too_large = |patched: &Patched| patched.size() > MAX_PART_BYTES / 2;
        note.unknown.extend(patched.extract_if(.., |patched| is_too_large(patched)).map(|patched| {
            format!("the patch of {} is too large for a ConfigMap: {} bytes", patched.key, patched.patch.len())
        }));
        let mut parts = Vec::new();
        // A tree without changes needs no ConfigMap.
        if !lines.is_empty() {
            let groups = grouped(patched);
            if groups.len() > MAX_PARTS {
                note.unknown.push(format!("the patches need {} ConfigMaps; the maximum is {MAX_PARTS}", groups.len()));
            }
            let count = groups.len().min(MAX_PARTS);
            parts = groups
                .into_iter()
                .take(MAX_PARTS)
                .enumerate()
                .map(|(at, group)| {
                    let source = source(effect, closure, &group, (at, count));
                    part(name, at, source, group)
                })
                .collect();
            if let Some(first) = parts.first_mut() {
                first.data.insert(SUMMARY_KEY.to_owned(), summary(&lines));
            }
        }
        note.config_maps = parts.iter().map(|part| part.name.clone()).collect();
        Self { parts, note, lines }
    }
}

impl Patched {
    fn of(component: &Component, steps: &[&Step]) -> Option<Self> {
        let patch = patch::of(&component.descriptor, steps.iter().copied());
        if patch.0.is_empty() {
            return None;
        }
        let (name, version) = (&component.descriptor.name, &component.descriptor.version);
        let key = key(name, version);
        let about = json!({
            "key": key, "componentName": name, "version": version, "digest": component.descriptor.digest,
            "repositoryContext": component.reference.value(Attribute::RepositoryContext),
        });
        // A patch can always be written as JSON.
        Some(Self { key, about, patch: serde_json::to_string(&patch).unwrap_or_default() })
    }

    fn size(&self) -> usize {
        self.key.len() + self.patch.len() + self.about.to_string().len() + 64
    }
}

fn patched(closure: &Closure) -> Vec<Patched> {
    let steps = closure.by_component();
    closure.components.iter().zip(&steps).filter_map(|(component, steps)| Patched::of(component, steps)).collect()
}

/// Divides the JSON Patches into groups that fit into one ConfigMap each. Always returns at least one group, because
/// the first ConfigMap also contains a list of all changes.
fn grouped(patched: Vec<Patched>) -> Vec<Vec<Patched>> {
    let mut groups = vec![Vec::new()];
    let mut size = MAX_SUMMARY_BYTES;
    for one in patched {
        size += one.size();
        if size > MAX_PART_BYTES {
            size = one.size();
            groups.push(Vec::new());
        }
        if let Some(group) = groups.last_mut() {
            group.push(one);
        }
    }
    groups
}

fn part(installation: &str, at: usize, source: Value, group: Vec<Patched>) -> Part {
    let mut data: BTreeMap<String, String> = group.into_iter().map(|patched| (patched.key, patched.patch)).collect();
    data.insert(SOURCE_KEY.to_owned(), source.to_string());
    Part { name: part_name(installation, at), data }
}

/// Returns the name of an Installation's ConfigMap with the index `at`. For the Installation `app`, this is
/// `app-overwrites` for index 0, and `app-overwrites-2` for index 1. A long name of an Installation is truncated.
pub fn part_name(installation: &str, at: usize) -> String {
    let end = if at == 0 { "-overwrites".to_owned() } else { format!("-overwrites-{}", at + 1) };
    let mut name = installation.to_owned();
    name.truncate(MAX_NAME_LENGTH - end.len());
    name + &end
}

/// Returns the JSON value for the key [`SOURCE_KEY`] of a ConfigMap, which explains the JSON Patches in the same
/// ConfigMap. It contains these data:
/// - the names of the Context and the ComponentVersionOverwrites object
/// - the Installation's component reference before and after the overwrites are applied
/// - the component descriptors in `group`, whose patches are in this ConfigMap
/// - component references that could not be followed, with the reasons
/// - the number of this ConfigMap, which is `at` + 1, and the number `count` of all ConfigMaps of the Installation
fn source(effect: &Effect, closure: &Closure, group: &[Patched], (at, count): (usize, usize)) -> Value {
    let gaps = closure.gaps().take(100).map(|(step, gap)| {
        json!({"way": closure.path_to(step), "reference": step.substitution.result.to_json(), "why": gap.to_string()})
    });
    json!({
        "context": effect.context,
        "overwrites": effect.overwrites.name,
        "generation": effect.overwrites.generation,
        "original": effect.substitution.original.to_json(),
        "result": effect.substitution.result.to_json(),
        "descriptors": group.iter().map(|patched| &patched.about).collect::<Vec<_>>(),
        "gaps": gaps.collect::<Vec<_>>(),
        "part": at + 1,
        "parts": count,
    })
}

/// Returns the key in a ConfigMap for the patch of a component descriptor: the name and version of the component, with
/// invalid characters replaced, and a hash that makes the key unique.
fn key(name: &str, version: &str) -> String {
    let replace = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let text: String = format!("{name}_{version}").chars().map(replace).take(180).collect();
    let hash: String = digest::hex(format!("{name}@{version}").as_bytes()).chars().take(8).collect();
    format!("{text}.{hash}.json")
}

fn lines(effect: &Effect, closure: &Closure) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &closure.steps {
        let place = if step.from.is_some() { format!("{}: ", closure.path_to(step)) } else { String::new() };
        lines.extend(effect.lines_of(&step.substitution).into_iter().map(|line| format!("{place}{line}")));
    }
    lines
}

fn summary(lines: &[String]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if text.len() + line.len() > MAX_SUMMARY_BYTES - 100 {
            return format!("{text}and {} more\n", lines.len() - at);
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Describes, for a Kubernetes Event, which changes of component references have been added or removed since the text
/// `before` was written. `before` is the previous value of [`SUMMARY_KEY`], and `now` contains the current changes.
/// Returns `None` if the changes are the same.
pub fn difference(before: &str, now: &[String]) -> Option<String> {
    // The last line of a truncated summary contains the number of omitted changes, and is no change itself.
    let before: Vec<&str> = before.lines().filter(|line| !line.starts_with("and ")).collect();
    let added = now.iter().filter(|line| !before.contains(&line.as_str())).map(|line| format!("now {line}"));
    let removed =
        before.iter().filter(|line| !now.iter().any(|now| now == *line)).map(|line| format!("no longer {line}"));
    let all: Vec<String> = added.chain(removed).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
