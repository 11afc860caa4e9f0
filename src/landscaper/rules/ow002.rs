//! OW002: reports a ComponentVersionOverwrites entry that can never take effect.

use std::collections::HashMap;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::landscaper::repository_context::RepositoryContext;
use crate::landscaper::substitution::{Entries, Entry};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore)];

/// The definition of rule OW002.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW002",
        name: "shadowed-entry",
        level: Level::Warn,
        summary: "an entry that can never take effect, because earlier entries always set its attributes first",
        page: include_str!("../../../docs/rules/OW002.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    if !entries.problems.is_empty() {
        return Vec::new();
    }
    shadowed(&entries).into_iter().map(|(at, by)| finding(at, &by)).collect()
}

fn finding(at: usize, by: &[usize]) -> Finding {
    let by: Vec<_> = by.iter().map(|index| format!("overwrites[{index}]")).collect();
    let message = format!("never takes effect: {} always sets the same attributes first", by.join(" or "));
    RULE.finding(FieldPath::of(["overwrites"]).index(at), message)
        .help("move it before them if it is more specific, or remove it")
}

/// Maximum number of component references that are tried for one entry of the list `overwrites`, to find out whether
/// the entry ever takes effect. If more references must be tried, the entry is only compared with each earlier entry
/// separately.
const MAX_TRIED: usize = 4096;
/// Maximum number of comparisons between `overwrites` entries and component references in one check of an object. The
/// limit keeps the time for a long list at a few milliseconds.
const MAX_MATCHES: usize = 2_000_000;

/// Finds entries of the list `overwrites` that never take effect, because earlier entries already set the same
/// attributes. Returns the index of each entry without effect, and the indexes of the earlier entries that prevent its
/// effect.
///
/// The function tries component references with different attribute values. For each attribute, it tries all values
/// that a `source` specifies, and one value that no `source` specifies. One such value is enough, because all of them
/// have the same effect.
fn shadowed(entries: &[Entry]) -> Vec<(usize, Vec<usize>)> {
    let forms = Forms::of(entries);
    let mut matches_made = 0;
    let mut found = Vec::new();
    for at in 0..entries.len() {
        if forms.0[at].sets == [false; 3] {
            continue;
        }
        if let Some(by) = forms.simply_shadowed(at) {
            found.push((at, vec![by]));
        } else if let Some(by) = forms.always_shadowed(at, &mut matches_made) {
            found.push((at, by));
        }
    }
    found
}

/// A compact form of an `overwrites` entry, for fast comparisons. Both arrays have one element for each attribute: the
/// repository context, the component name and the version.
///
/// An element of `wants` is a number that represents the value in the entry's `source`, or 0 if the `source` does not
/// specify the attribute. An element of `sets` says whether the entry sets the attribute.
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

    /// Returns the index of an earlier `overwrites` entry that alone prevents the entry at index `at` from ever taking
    /// effect. `None` if there is no such entry. Landscaper skips an entry for a component reference if an earlier
    /// entry has already set one of the same attributes of this reference. So the earlier entry must meet these
    /// conditions:
    ///
    /// - It matches every component reference that the entry at `at` matches.
    /// - The entry at `at` sets all attributes that the earlier entry sets. If a third entry prevents the earlier entry
    ///   from taking effect, it then also prevents the entry at `at`.
    fn simply_shadowed(&self, at: usize) -> Option<usize> {
        let this = &self.0[at];
        let shadows = |earlier: &Form| {
            let covers = earlier.wants.iter().zip(this.wants).all(|(wants, has)| *wants == 0 || *wants == has);
            let within = earlier.sets.iter().zip(this.sets).all(|(sets, also)| !*sets || also);
            covers && within && earlier.sets != [false; 3]
        };
        self.0[..at].iter().position(shadows)
    }

    /// Returns the indexes of the earlier `overwrites` entries that prevent the entry at index `at` from ever taking
    /// effect. Landscaper skips an entry for a component reference if an earlier entry has already set one of the same
    /// attributes of this reference.
    ///
    /// Returns `None` if the entry takes effect for some component reference, or if too many references must be tried.
    /// `matches_made` counts the comparisons for all entries of the list.
    fn always_shadowed(&self, at: usize, matches_made: &mut usize) -> Option<Vec<usize>> {
        let values: Vec<Vec<u32>> = (0..3).map(|part| self.values(at, part)).collect();
        let tried = values.iter().map(Vec::len).try_fold(1usize, usize::checked_mul)?;
        *matches_made = matches_made.saturating_add(tried.saturating_mul(at));
        if tried > MAX_TRIED || *matches_made > MAX_MATCHES {
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

    /// Returns the values of an attribute of component references that [`Self::always_shadowed`] tries for the entry at
    /// index `at`. `part` selects the attribute: 0 is the repository context, 1 the component name, and 2 the version.
    ///
    /// Each value is a number from the table [`Numbers`]. If the `source` of the entry specifies the attribute, the
    /// entry matches only this value, so only this value is returned. Otherwise, returns the values that the earlier
    /// entries specify, and 0. The number 0 represents all other values.
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

    /// Returns the indexes of the earlier `overwrites` entries that prevent the entry at index `at` from changing a
    /// component reference. Each of these entries has already set an attribute that the entry at `at` would also set.
    /// Returns `None` if the entry takes effect. `reference` contains the attributes of the component reference, as
    /// numbers from the table [`Numbers`].
    fn blockers(&self, at: usize, reference: [u32; 3]) -> Option<Vec<usize>> {
        let mut set_by: [Option<usize>; 3] = [None; 3];
        for (index, form) in self.0[..at].iter().enumerate() {
            let matches = form.wants.iter().zip(reference).all(|(wants, is)| *wants == 0 || *wants == is);
            let free = form.sets.iter().zip(set_by).all(|(sets, by)| !*sets || by.is_none());
            if matches && free {
                for (by, _) in set_by.iter_mut().zip(form.sets).filter(|(_, sets)| *sets) {
                    *by = Some(index);
                }
            }
        }
        let needed = set_by.iter().zip(self.0[at].sets).filter(|(_, sets)| *sets);
        let by: Vec<usize> = needed.filter_map(|(by, _)| *by).collect();
        (!by.is_empty()).then_some(by)
    }
}

/// A table that assigns a number to each attribute value in the `source` of `overwrites` entries (interning). Comparing
/// these numbers is faster than comparing the values, such as component names. The number 0 represents a missing value.
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

    use super::*;
    use crate::landscaper::substitution::{Outcome, Substitution};

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

    /// Returns component references with all combinations of the names, versions and repository contexts `a`, `b` and
    /// `z`. Some have no repository context. The test generates `overwrites` entries with `a` and `b` only, so `z` is a
    /// value that no entry specifies.
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
        /// Generates lists of `overwrites` entries. Checks that rule OW002 reports all useless entries, and no others.
        /// An entry is useless if it would set an attribute, but Landscaper applies it to no component reference.
        #[test]
        fn reports_exactly_the_entries_that_never_apply(entries in entries()) {
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
    fn bounds_the_work_for_a_long_list() {
        let reference =
            |text: String| ComponentReference { component_name: text.clone(), version: text, ..Default::default() };
        let entries: Vec<Entry> = (0..3000)
            .map(|n| Entry { source: reference(format!("n{n}")), substitution: reference("x".into()) })
            .collect();
        assert!(shadowed(&entries).is_empty());
    }
}
