//! The argument `--families`, which selects the families of rules.

use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::gate::Registry;

/// The argument that selects rule families, such as `KZ`.
#[derive(Debug, clap::Args)]
pub(super) struct Families {
    /// The rule families to enable, such as OW,DR. Default: all but GD
    ///
    /// Portcullis omits the rules, mutators, webhook configurations, watches and permissions of other families.
    #[arg(
        id = "families", long = "families", env = "PORTCULLIS_FAMILIES", value_name = "FAMILY",
        value_delimiter = ',', value_parser = known(), default_values = by_default(), hide_default_value = true
    )]
    names: Vec<&'static str>,
}

impl Families {
    /// Returns the names of the enabled rule families, such as `KZ`, sorted and without duplicates.
    pub(super) fn on(&self) -> Vec<&'static str> {
        all().into_iter().filter(|family| self.names.contains(family)).collect()
    }

    /// Returns whether the default rule families, such as `KZ`, are all enabled. The result does not depend on other
    /// families, such as `GD`.
    pub(super) fn are_default(&self) -> bool {
        by_default().iter().all(|family| self.names.contains(family))
    }

    /// Returns the registry with the rules of the enabled families.
    pub(super) fn registry(&self) -> Registry {
        Registry::standard().only(&self.names)
    }
}

/// The names of all rule families, such as `KZ`. Computed only once, because several commands have the argument
/// `--families` and need these names.
static ALL: LazyLock<Vec<&'static str>> = LazyLock::new(|| Registry::standard().families());

fn all() -> Vec<&'static str> {
    ALL.clone()
}

/// Returns the names of the rule families, such as `KZ`, that are enabled by default.
fn by_default() -> Vec<&'static str> {
    static DEFAULT: LazyLock<Vec<&'static str>> = LazyLock::new(|| Registry::standard().default_families());
    DEFAULT.clone()
}

fn known() -> impl TypedValueParser<Value = &'static str> {
    let known = |name: String| all().into_iter().find(|family| *family == name).ok_or("no such family");
    PossibleValuesParser::new(all()).try_map(known)
}
