//! OW010: reports Installations that use two versions of the same component, because of an entry in a
//! ComponentVersionOverwrites object. The entry replaces only some of the references to this component.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::components::closure::{Closure, Found};
use crate::landscaper::components::inline::Inline;
use crate::landscaper::components::split::splits;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::overwrites::effect::{self, Effect, Evaluation};
use crate::landscaper::overwrites::note::Note;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] =
    [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE)];

/// The definition of rule OW010.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW010",
        name: "different-versions-in-a-tree",
        level: Level::Warn,
        summary: "a tree that contains two versions of a component because an entry matches only some references to it",
        page: include_str!("../../../docs/rules/OW010.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let note = Note::read(request.object());
    let inline = Inline::of(request.object()).and_then(Result::ok);
    if note.is_none() && inline.is_none() {
        return Vec::new();
    }
    let Evaluation::Overwritten(effect) = effect::of(request.object(), &request.namespace, view) else {
        return Vec::new();
    };
    let is_about = |note: &Note| note.is_about(&effect.overwrites.entries, &effect.substitution.original);
    let sentences = match (note.filter(is_about), inline) {
        (Some(note), _) => note.splits,
        (None, Some(inline)) => within(&inline, &effect),
        (None, None) => Vec::new(),
    };
    let field = FieldPath::of(["spec", "componentDescriptor"]);
    sentences.into_iter().map(|sentence| finding(&field, sentence, &effect)).collect()
}

/// Describes the components that have several versions in the inline component descriptors of an Installation. Returns
/// one sentence for each component. Reads no other descriptors, so no request to a registry is needed.
fn within(inline: &Inline, effect: &Effect) -> Vec<String> {
    let find = |reference: &ComponentReference| inline.find(reference).map_or(Found::Pending, Found::Descriptor);
    let closure = Closure::of(effect.substitution.original.clone(), &effect.overwrites.entries, &find);
    splits(&closure).iter().map(|split| split.sentence(&closure)).collect()
}

fn finding(field: &FieldPath, sentence: String, effect: &Effect) -> Finding {
    let help = format!(
        "remove the version from that entry's source in {:?}, or add an entry for the other version",
        effect.overwrites.name
    );
    RULE.finding(field.clone(), sentence).help(help)
}
