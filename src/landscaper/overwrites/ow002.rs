//! OW002: an entry that can never take effect.

use std::collections::HashMap;

use super::WRITES;
use super::substitution::{Entries, Entry};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::landscaper::repository_context::RepositoryContext;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, Outage::Admit)];

/// The row of OW002.
pub(super) static RULE: Rule = Rule {
    id: "OW002",
    name: "shadowed-entry",
    level: Level::Warn,
    summary: "an entry that can never take effect, because earlier ones always take what it needs",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "No attribute is overwritten twice, and an entry is applied whole or not at all. So an entry has no effect \
              on a reference for which an earlier entry has set one of its attributes. Where that is so for *every* \
              reference that the entry could match, it is dead: usually a general entry stands before a special one. \
              The rule says so only when no reference at all would make the entry take effect.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/echo-server
    substitution:
      version: v2.0.0
  - source:
      componentName: example.org/echo-server
      version: v1.0.0
    substitution:
      version: v1.0.1
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/echo-server
      version: v1.0.0
    substitution:
      version: v1.0.1
  - source:
      componentName: example.org/echo-server
    substitution:
      version: v2.0.0
",
        },
        mend: "Put the more special entry before the more general one, or take it out.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    if !entries.problems.is_empty() {
        return Vec::new();
    }
    shadowed(&entries).into_iter().map(|(at, by)| finding(at, &by)).collect()
}

fn finding(at: usize, by: &[usize]) -> Finding {
    let by: Vec<_> = by.iter().map(|by| format!("overwrites[{by}]")).collect();
    let message = format!("never takes effect: {} always sets before it what it would set", by.join(" or "));
    RULE.finding(FieldPath::of(["overwrites"]).index(at), message)
        .help("put it before them if it is more special, or take it out")
}

/// The most references that are tried for one entry; beyond it only the simple test is made.
const MAX_TRIED: usize = 4096;
/// The most turns of entries that are taken for one object, so that a long list costs milliseconds, not seconds.
const MAX_TURNS: usize = 2_000_000;

/// The entries that never take effect, each with the entries that are applied in its place.
///
/// An entry's fate depends on a reference only through which sources match it. For each attribute it is enough to try
/// the values that sources name, and one that none names: that covers every reference there is.
fn shadowed(entries: &[Entry]) -> Vec<(usize, Vec<usize>)> {
    let forms = Forms::of(entries);
    let mut turns = 0;
    let mut found = Vec::new();
    for at in 0..entries.len() {
        if forms.0[at].sets == [false; 3] {
            continue;
        }
        if let Some(by) = forms.simply_shadowed(at) {
            found.push((at, vec![by]));
        } else if let Some(by) = forms.always_shadowed(at, &mut turns) {
            found.push((at, by));
        }
    }
    found
}

/// An entry with its values replaced by numbers; 0 is "unspecified".
struct Form {
    wants: [u32; 3],
    sets: [bool; 3],
}

struct Forms(Vec<Form>);

impl Forms {
    fn of(entries: &[Entry]) -> Self {
        let mut numbers = Numbers::default();
        let form = |entry: &Entry| Form {
            wants: Attribute::ALL.map(|attribute| numbers.number(&entry.source, attribute)),
            sets: Attribute::ALL.map(|attribute| entry.substitution.specifies(attribute)),
        };
        Self(entries.iter().map(form).collect())
    }

    /// An earlier entry that matches whenever this one does and sets nothing that this one does not: if it is applied,
    /// this one is not; if it is rejected, what it lacks is lacking here too.
    fn simply_shadowed(&self, at: usize) -> Option<usize> {
        let this = &self.0[at];
        let shadows = |earlier: &Form| {
            let covers = earlier.wants.iter().zip(this.wants).all(|(wants, has)| *wants == 0 || *wants == has);
            let within = earlier.sets.iter().zip(this.sets).all(|(sets, also)| !*sets || also);
            covers && within && earlier.sets != [false; 3]
        };
        self.0[..at].iter().position(shadows)
    }

    /// Tries every kind of reference that the entry matches; `None` as soon as one makes it take effect, and where there
    /// are too many to try.
    fn always_shadowed(&self, at: usize, turns: &mut usize) -> Option<Vec<usize>> {
        let values: Vec<Vec<u32>> = (0..3).map(|part| self.values(at, part)).collect();
        let tried = values.iter().map(Vec::len).try_fold(1usize, usize::checked_mul)?;
        *turns = turns.saturating_add(tried.saturating_mul(at));
        if tried > MAX_TRIED || *turns > MAX_TURNS {
            return None;
        }
        let mut by = Vec::new();
        for context in &values[0] {
            for name in &values[1] {
                for version in &values[2] {
                    by.extend(self.blockers(at, [*context, *name, *version])?);
                }
            }
        }
        by.sort_unstable();
        by.dedup();
        Some(by)
    }

    /// The values to try for one attribute: the one that the entry names, or all that earlier ones name and another.
    fn values(&self, at: usize, part: usize) -> Vec<u32> {
        if self.0[at].wants[part] != 0 {
            return vec![self.0[at].wants[part]];
        }
        let mut values: Vec<u32> = self.0[..at].iter().map(|form| form.wants[part]).collect();
        values.push(0);
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The entries that set for this reference what the entry at `at` would set; `None` if it takes effect.
    fn blockers(&self, at: usize, reference: [u32; 3]) -> Option<Vec<usize>> {
        let mut set_by: [Option<usize>; 3] = [None; 3];
        for (turn, form) in self.0[..at].iter().enumerate() {
            let matches = form.wants.iter().zip(reference).all(|(wants, is)| *wants == 0 || *wants == is);
            let free = form.sets.iter().zip(set_by).all(|(sets, by)| !*sets || by.is_none());
            if matches && free {
                for (by, _) in set_by.iter_mut().zip(form.sets).filter(|(_, sets)| *sets) {
                    *by = Some(turn);
                }
            }
        }
        let needed = set_by.iter().zip(self.0[at].sets).filter(|(_, sets)| *sets);
        let by: Vec<usize> = needed.filter_map(|(by, _)| *by).collect();
        (!by.is_empty()).then_some(by)
    }
}

/// Numbers for the values of sources: the same for equal values.
#[derive(Default)]
struct Numbers {
    texts: HashMap<(usize, String), u32>,
    contexts: Vec<RepositoryContext>,
}

impl Numbers {
    fn number(&mut self, reference: &ComponentReference, attribute: Attribute) -> u32 {
        let text = match attribute {
            Attribute::RepositoryContext => return self.context(reference.repository_context.as_ref()),
            Attribute::ComponentName => &reference.component_name,
            Attribute::Version => &reference.version,
        };
        if text.is_empty() {
            return 0;
        }
        let next = u32::try_from(self.texts.len()).unwrap_or(u32::MAX).saturating_add(1);
        *self.texts.entry((attribute as usize, text.clone())).or_insert(next)
    }

    fn context(&mut self, context: Option<&RepositoryContext>) -> u32 {
        let Some(context) = context else { return 0 };
        let known = self.contexts.iter().position(|known| known == context);
        let at = known.unwrap_or_else(|| {
            self.contexts.push(context.clone());
            self.contexts.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::substitution::{Outcome, Substitution};
    use super::*;

    fn part() -> impl Strategy<Value = ComponentReference> {
        ("[ab]?", "[ab]?", 0..3usize).prop_map(|(component_name, version, context)| {
            let text = ["null", r#"{"type":"a"}"#, r#"{"type":"b"}"#][context];
            let repository_context = RepositoryContext::parse(text, &FieldPath::root()).unwrap();
            ComponentReference { repository_context, component_name, version }
        })
    }

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let entry = (part(), part()).prop_map(|(source, substitution)| Entry { source, substitution });
        proptest::collection::vec(entry, 1..7)
    }

    /// Every reference over the values that the strategy makes, and one beyond each.
    fn references() -> Vec<ComponentReference> {
        let mut all = Vec::new();
        for component_name in ["a", "b", "z"] {
            for version in ["a", "b", "z"] {
                for context in [r#"{"type":"a"}"#, r#"{"type":"b"}"#, r#"{"type":"z"}"#, "null"] {
                    let repository_context = RepositoryContext::parse(context, &FieldPath::root()).unwrap();
                    let (component_name, version) = (component_name.to_owned(), version.to_owned());
                    all.push(ComponentReference { repository_context, component_name, version });
                }
            }
        }
        all
    }

    proptest! {
        /// Sound and complete: an entry is reported exactly when no reference makes it set something.
        #[test]
        fn says_it_exactly_of_dead_entries(entries in entries()) {
            let reported: Vec<usize> = shadowed(&entries).into_iter().map(|(at, _)| at).collect();
            let runs: Vec<_> = references().into_iter().map(|reference| Substitution::of(&entries, reference)).collect();
            for (at, entry) in entries.iter().enumerate() {
                let takes_effect = runs.iter().any(|run| matches!(&run.trace[at], Outcome::Applied { .. }));
                let sets = entry.substitution.specified().next().is_some();
                prop_assert_eq!(reported.contains(&at), sets && !takes_effect, "entry {}", at);
            }
        }
    }

    #[test]
    fn a_long_list_is_bounded() {
        let reference =
            |text: String| ComponentReference { component_name: text.clone(), version: text, ..Default::default() };
        let entries: Vec<Entry> = (0..3000)
            .map(|n| Entry { source: reference(format!("n{n}")), substitution: reference("x".into()) })
            .collect();
        assert!(shadowed(&entries).is_empty());
    }
}
