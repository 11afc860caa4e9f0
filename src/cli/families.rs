//! The families of rules that are on.

use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::gate::Registry;

/// Which families of rules are on.
#[derive(Debug, clap::Args)]
pub(super) struct Families {
    /// The families of rules that are on, as they stand in front of the numbers: OW,DR. All, where nothing is said
    ///
    /// What belongs to the others is not there: no rules and changes, and nothing registered, watched or granted for them.
    #[arg(
        id = "families", long = "families", env = "PORTCULLIS_FAMILIES", value_name = "FAMILY",
        value_delimiter = ',', value_parser = known(), default_values = all(), hide_default_value = true
    )]
    names: Vec<&'static str>,
}

impl Families {
    /// Those that are on, each once, in the order of their names.
    pub(super) fn on(&self) -> Vec<&'static str> {
        all().into_iter().filter(|family| self.names.contains(family)).collect()
    }

    /// Whether all are on.
    pub(super) fn are_all(&self) -> bool {
        self.on().len() == all().len()
    }

    /// The rows of those that are on.
    pub(super) fn registry(&self) -> Registry {
        Registry::standard().only(&self.names)
    }
}

/// Every command that has families asks for them before it is known which command runs.
static ALL: LazyLock<Vec<&'static str>> = LazyLock::new(|| Registry::standard().families());

fn all() -> Vec<&'static str> {
    ALL.clone()
}

fn known() -> impl TypedValueParser<Value = &'static str> {
    let known = |name: String| all().into_iter().find(|family| *family == name).ok_or("there is no such family");
    PossibleValuesParser::new(all()).try_map(known)
}
