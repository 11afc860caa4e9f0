//! The limits of `portcullis diff`, such as a maximum number of deletions. CI can use them to reject a change.

use std::str::FromStr;

use crate::kustomize::changes::{Action, Counts, Plan, State};

/// Limits for the changes that `portcullis diff` finds. If the changes exceed a limit, the exit code is 2.
#[derive(Debug, clap::Args)]
pub(super) struct Limits {
    /// Fail if the plan contains any of these: create, change, replace, delete, move, protected (an object of a
    /// protected kind is deleted or replaced), failing (a kustomization no longer builds), vanishing (a kustomization
    /// was removed)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…")]
    fail_on: Vec<What>,
    /// Fail if more objects are deleted than this number, or than this percentage of the objects before the change, such
    /// as 10%
    #[arg(long, value_name = "N|P%")]
    max_deletions: Option<Most>,
    /// Fail if an object of these kinds is deleted or replaced, even without `--fail-on protected`
    #[arg(long, value_delimiter = ',', value_name = "KIND,…")]
    protect: Vec<String>,
}

/// Kinds that are protected with `--fail-on protected` if `--protect` names none.
const PROTECTED: [&str; 5] =
    ["CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim", "StatefulSet"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    Create,
    Change,
    Replace,
    Delete,
    Move,
    Protected,
    Failing,
    Vanishing,
}

/// The maximum number of deletions, absolute or in percent of the objects before the change.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Most {
    Objects(usize),
    Percent(f64),
}

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is neither a number such as 10 nor a percentage such as 10%");
        match text.strip_suffix('%') {
            Some(share) => {
                let share: f64 = share.parse().map_err(|_| bad())?;
                if (0.0..=100.0).contains(&share) { Ok(Self::Percent(share)) } else { Err(bad()) }
            }
            None => text.parse().map(Self::Objects).map_err(|_| bad()),
        }
    }
}

impl Limits {
    /// Returns an error message for each limit that `plan` exceeds, such as the maximum number of deletions. `plan`
    /// contains the changes of all Kubernetes objects.
    pub(super) fn broken(&self, plan: &Plan) -> Vec<String> {
        let counts = plan.counts();
        let of_kinds = self.fail_on.iter().filter_map(|what| of_kind(*what, plan, &counts));
        of_kinds.chain(self.deletions(&counts)).chain(self.protected(plan)).collect()
    }

    fn deletions(&self, counts: &Counts) -> Option<String> {
        let (deleted, before) = (counts.delete, counts.before());
        match self.max_deletions? {
            Most::Objects(most) => (deleted > most).then(|| {
                let objects = if deleted == 1 { "object is" } else { "objects are" };
                format!("{deleted} {objects} deleted; the maximum is {most}")
            }),
            Most::Percent(share) => (deleted as f64 * 100.0 > share * before as f64)
                .then(|| format!("{deleted} of {before} objects are deleted; the maximum is {share}%")),
        }
    }

    /// Returns a sentence for each deletion of a protected object. The replacement of an object counts as its deletion.
    fn protected(&self, plan: &Plan) -> Vec<String> {
        let own = !self.protect.is_empty();
        if !own && !self.fail_on.contains(&What::Protected) {
            return Vec::new();
        }
        let is_protected = |kind: &str| match own {
            true => self.protect.iter().any(|protected| protected.eq_ignore_ascii_case(kind)),
            false => PROTECTED.contains(&kind),
        };
        let objects = plan.roots.iter().flat_map(|root| root.objects.iter().map(move |object| (root, object)));
        let deleted = objects.filter_map(|(root, object)| match &object.action {
            Action::Delete => Some((root, &object.id)),
            Action::Replace { old } => Some((root, old)),
            Action::Create | Action::Change | Action::Orphan | Action::Move { .. } => None,
        });
        let deleted = deleted.filter(|(_, id)| is_protected(&id.kind));
        deleted.map(|(root, id)| format!("{id} is protected, and {} deletes it", root.root.shown())).collect()
    }
}

fn of_kind(what: What, plan: &Plan, counts: &Counts) -> Option<String> {
    let roots = |is: fn(&State) -> bool| plan.roots.iter().filter(|root| is(&root.state)).count();
    let (count, singular, plural) = match what {
        What::Create => (counts.create, "object is created", "objects are created"),
        What::Change => (counts.change, "object is changed", "objects are changed"),
        What::Replace => (counts.replace, "object is replaced", "objects are replaced"),
        What::Delete => (counts.delete, "object is deleted", "objects are deleted"),
        What::Move => (counts.moved, "object is moved", "objects are moved"),
        What::Failing => {
            (roots(|state| matches!(state, State::StopsBuilding(_))), "root no longer builds", "roots no longer build")
        }
        What::Vanishing => (roots(|state| *state == State::Vanishes), "root is removed", "roots are removed"),
        What::Protected => return None,
    };
    let words = if count == 1 { singular } else { plural };
    (count > 0).then(|| format!("{count} {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_shares() {
        assert_eq!("3".parse(), Ok(Most::Objects(3)));
        assert_eq!("2.5%".parse(), Ok(Most::Percent(2.5)));
        for text in ["", "-1", "x", "101%", "%"] {
            assert!(text.parse::<Most>().is_err(), "{text}");
        }
    }
}
