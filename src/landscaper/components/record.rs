//! The patches of a tree as ConfigMaps: one JSON Patch for each descriptor that becomes another, beside what it was
//! computed from. There is no time in them, so that the same tree is the same record.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::closure::{Closure, Component, Step};
use super::note::Note;
use super::patch;
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::overwrites::effect::Effect;
use crate::oci::digest;

/// What it was computed from, in each ConfigMap.
pub const SOURCE_KEY: &str = "source";
/// What becomes of what, for people, in the first ConfigMap.
pub const SUMMARY_KEY: &str = "summary";
/// Names the Installation, on each ConfigMap.
pub const LABEL: &str = "portcullis.dev/overwrites-of";

/// How much a ConfigMap holds, in bytes: it may have 1 MiB, of which some is kept for metadata.
const LARGEST_PART: usize = 900 << 10;
/// How much the summary holds, in bytes.
const LARGEST_SUMMARY: usize = 100 << 10;
/// How many ConfigMaps an Installation has at most.
pub const MOST_PARTS: usize = 16;
/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// The ConfigMaps of an Installation's tree, and what is noted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The ConfigMaps; none where nothing becomes another.
    pub parts: Vec<Part>,
    /// The note.
    pub note: Note,
    /// What becomes of what, for people.
    pub lines: Vec<String>,
}

/// A ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: BTreeMap<String, String>,
}

/// A descriptor that becomes another.
struct Patched {
    key: String,
    about: Value,
    patch: String,
}

impl Record {
    /// The record of the tree of the Installation `name`.
    pub fn of(name: &str, effect: &Effect, closure: &Closure) -> Self {
        let mut note = Note::of(effect, closure);
        let lines = lines(effect, closure);
        let mut patched = patched(closure);
        let is_too_large = |patched: &Patched| patched.size() > LARGEST_PART / 2;
        note.unknown.extend(patched.extract_if(.., |patched| is_too_large(patched)).map(|patched| {
            format!("the patch of {} is too large for a ConfigMap: {} bytes", patched.key, patched.patch.len())
        }));
        let mut parts = Vec::new();
        // Where nothing in the tree becomes another, there is nothing to keep.
        if !lines.is_empty() {
            let groups = grouped(patched);
            if groups.len() > MOST_PARTS {
                note.unknown.push(format!("the patches need {} ConfigMaps, {MOST_PARTS} are kept", groups.len()));
            }
            let count = groups.len().min(MOST_PARTS);
            parts = groups
                .into_iter()
                .take(MOST_PARTS)
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
        // It holds nothing that JSON could not say.
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

/// Puts as many into a ConfigMap as it holds. There is always a first one, for the Installation's own reference.
fn grouped(patched: Vec<Patched>) -> Vec<Vec<Patched>> {
    let mut groups = vec![Vec::new()];
    let mut size = LARGEST_SUMMARY;
    for one in patched {
        size += one.size();
        if size > LARGEST_PART {
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

/// The name of a ConfigMap of an Installation.
pub fn part_name(installation: &str, at: usize) -> String {
    let end = if at == 0 { "-overwrites".to_owned() } else { format!("-overwrites-{}", at + 1) };
    let mut name = installation.to_owned();
    name.truncate(LONGEST_NAME - end.len());
    name + &end
}

/// What a ConfigMap was computed from: the same as in the annotation, and the descriptors that it holds patches of.
fn source(effect: &Effect, closure: &Closure, group: &[Patched], (at, count): (usize, usize)) -> Value {
    let gaps = closure.gaps().take(100).map(|(step, gap)| {
        json!({"way": closure.way(step), "reference": step.substitution.result.to_json(), "why": gap.to_string()})
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

/// The key of a descriptor: legible, and nobody else's.
fn key(name: &str, version: &str) -> String {
    let legible = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let text: String = format!("{name}_{version}").chars().map(legible).take(180).collect();
    let hash: String = digest::hex(format!("{name}@{version}").as_bytes()).chars().take(8).collect();
    format!("{text}.{hash}.json")
}

fn lines(effect: &Effect, closure: &Closure) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &closure.steps {
        let place = if step.from.is_some() { format!("{}: ", closure.way(step)) } else { String::new() };
        lines.extend(effect.lines_of(&step.substitution).into_iter().map(|line| format!("{place}{line}")));
    }
    lines
}

fn summary(lines: &[String]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if text.len() + line.len() > LARGEST_SUMMARY - 100 {
            return format!("{text}and {} more\n", lines.len() - at);
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// What a change of a record changes, in one sentence for an event.
pub fn difference(before: &str, now: &[String]) -> Option<String> {
    // The last line of a summary that was cut says how many there are.
    let before: Vec<&str> = before.lines().filter(|line| !line.starts_with("and ")).collect();
    let came = now.iter().filter(|line| !before.contains(&line.as_str())).map(|line| format!("now {line}"));
    let went = before.iter().filter(|line| !now.iter().any(|now| now == *line)).map(|line| format!("no longer {line}"));
    let all: Vec<String> = came.chain(went).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
