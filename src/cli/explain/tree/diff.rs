//! The command `portcullis explain overwrites --diff OTHER`: shows how the Contexts and ComponentVersionOverwrites in
//! the files `OTHER` would change the components of each Landscaper Installation. An object in `OTHER` replaces the
//! current object of the same kind, namespace and name.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::super::{DENIED, OK, Unusable, inputs, pretty, print};
use super::super::installations::Output;
use super::source::Source;
use super::{Args, Tree};
use crate::catalog::{Catalog, Kind};
use crate::landscaper::kinds::{CONTEXTS, OVERWRITES};

/// An Installation whose components would change with the overwrites and Contexts in the files of `--diff`.
struct Difference {
    name: String,
    gone: Vec<String>,
    came: Vec<String>,
    failure: Option<String>,
}

pub(super) fn run(args: &Args, catalog: &Catalog, source: &Source, other: &Path) -> Result<u8, Unusable> {
    let changed = changed(args, catalog, other)?;
    let installations = args.which.installations(catalog);
    if installations.is_empty() {
        return Err(args.which.none());
    }
    let mut differences = Vec::new();
    for stored in &installations {
        let before = Tree::of(stored, catalog, source)?;
        let after = Tree::of(stored, &changed, source)?;
        differences.extend(Difference::between(&before, &after));
    }
    let all = installations.len();
    print(&match args.which.output {
        Output::Text => text(&differences, all),
        Output::Json => pretty(&json!({
            "installations": all,
            "changed": differences.iter().map(Difference::json).collect::<Vec<_>>(),
        })),
        Output::Dot | Output::Mermaid | Output::Svg => {
            return Err(Unusable::new("--diff supports --output text and json only"));
        }
    });
    Ok(if differences.is_empty() { OK } else { DENIED })
}

/// Returns a copy of `catalog`, a cache of Kubernetes objects, with the ComponentVersionOverwrites and Contexts from
/// the files at `other`. In the copy, an object from these files replaces the object of the same kind, namespace and
/// name.
fn changed(args: &Args, catalog: &Catalog, other: &Path) -> Result<Catalog, Unusable> {
    let kinds: Vec<&'static Kind> = catalog.kinds().collect();
    let mut all: Vec<Value> =
        kinds.iter().flat_map(|kind| catalog.all(kind)).map(|stored| stored.value().clone()).collect();
    let others = inputs::objects(&[PathBuf::from(other)], args.which.namespace())?;
    let wanted: Vec<_> = others
        .into_iter()
        .filter(|object| [&OVERWRITES, &CONTEXTS].iter().any(|kind| kind.is_kind_of(object)))
        .collect();
    if wanted.is_empty() {
        return Err(Unusable::because(other.display(), "contains neither ComponentVersionOverwrites nor Contexts"));
    }
    // Of two objects with the same name, the later one is used.
    all.extend(wanted);
    Ok(Catalog::of(kinds, all))
}

impl Difference {
    fn between(before: &Tree, after: &Tree) -> Option<Self> {
        let (was, is) = (before.lines(), after.lines());
        let gone: Vec<_> = was.iter().filter(|line| !is.contains(line)).cloned().collect();
        let came: Vec<_> = is.iter().filter(|line| !was.contains(line)).cloned().collect();
        let failure = after.closure.failure().filter(|_| before.closure.failure() != after.closure.failure());
        let is_one = !gone.is_empty() || !came.is_empty();
        is_one.then(|| Self { name: after.name.clone(), gone, came, failure })
    }

    fn json(&self) -> Value {
        json!({"installation": self.name, "gone": self.gone, "came": self.came, "landscaperFails": self.failure})
    }
}

fn text(differences: &[Difference], all: usize) -> String {
    let mut text = String::new();
    for Difference { name, gone, came, failure } in differences {
        text.push_str(&format!("Installation {name}\n"));
        gone.iter().for_each(|line| text.push_str(&format!("  - {line}\n")));
        came.iter().for_each(|line| text.push_str(&format!("  + {line}\n")));
        failure.iter().for_each(|failure| text.push_str(&format!("  ✗ Landscaper will fail: {failure}\n")));
        text.push('\n');
    }
    text + &format!("{} of {all} Installations get other components\n", differences.len())
}
