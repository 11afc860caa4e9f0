//! The section `deployers` of the configuration file: the identities of Landscaper and the deployers, and the
//! DeployItems that each deployer serves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::selector::TargetSelector;
use crate::admission::User;
use crate::catalog::View;

/// The key of the section `deployers` in the configuration file.
pub const SECTION: &str = "deployers";

/// The section `deployers` of the configuration file: the identities that may write DeployItems. Without this section,
/// rules do not check identities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deployers {
    /// The users and groups of Landscaper's own controllers.
    pub landscaper: Identities,
    /// The users and groups that may restore the status of DeployItems from a backup.
    pub restorers: Identities,
    /// The deployers. Each entry lists the users of a deployer and describes which DeployItems it serves.
    pub identities: Vec<Deployer>,
}

/// Identities of clients of the API server: names of users and groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identities {
    /// Names of Kubernetes users, such as `system:serviceaccount:landscaper:landscaper`. A request matches these
    /// identities if one of these users sends it.
    pub users: Vec<String>,
    /// Names of user groups in Kubernetes, such as `system:serviceaccounts:landscaper`. All users in these groups are
    /// included.
    pub groups: Vec<String>,
}

/// A deployer: its users and groups, and the DeployItems that it serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deployer {
    /// Names of Kubernetes users. The deployer sends its requests to the API server as one of these users.
    pub users: Vec<String>,
    /// Names of groups. Each user in one of these groups also counts as the deployer.
    pub groups: Vec<String>,
    /// The types of DeployItems that the deployer serves.
    pub types: Vec<String>,
    /// Names of DeployerRegistrations. The deployer also serves the DeployItem types that these registrations list.
    pub registrations: Vec<String>,
    /// Selectors of the Targets that the deployer serves. If the list is empty, the deployer serves all Targets.
    pub target_selectors: Vec<TargetSelector>,
    /// Whether the deployer honors the dry-run annotation, so that it deploys nothing in a dry run. Landscaper's own
    /// deployers ignore the annotation.
    #[serde(rename = "honoursDryRun", alias = "honorsDryRun")]
    pub honours_dry_run: bool,
}

impl Deployers {
    /// Returns the configured section `deployers`; `None` if the configuration has none.
    pub fn of(view: &View<'_>) -> Option<Arc<Self>> {
        let section = view.setting(SECTION)?;
        section.view(|value| Self::deserialize(value).ok().map(Arc::new))
    }

    /// Serializes the section `deployers` for the catalog, where rules look it up.
    pub fn to_value(&self) -> Value {
        // Strings, lists and Booleans: serializing them cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns a description of the first error in the section `deployers`, with its field; `None` if the section is
    /// valid.
    pub fn problem(&self) -> Option<String> {
        self.identities.iter().enumerate().find_map(|(at, deployer)| {
            deployer.problem().map(|problem| format!("deployers.identities[{at}]: {problem}"))
        })
    }
}

impl Identities {
    /// Reports whether `user` is one of `users`, or is in one of `groups`.
    pub fn has(&self, user: &User<'_>) -> bool {
        is_one(user, &self.users, &self.groups)
    }
}

impl Deployer {
    /// Reports whether a user is one of the deployer's users or is in one of its groups.
    pub fn is(&self, user: &User<'_>) -> bool {
        is_one(user, &self.users, &self.groups)
    }

    /// Returns a name of the deployer for messages: its first user, or its first group if it has no users.
    pub fn display_name(&self) -> &str {
        self.users.iter().chain(&self.groups).next().map_or("", String::as_str)
    }

    fn problem(&self) -> Option<String> {
        if self.users.is_empty() && self.groups.is_empty() {
            return Some("names neither users nor groups, so no request matches this deployer".to_owned());
        }
        if self.types.is_empty() && self.registrations.is_empty() {
            return Some("names neither types nor registrations, so this deployer may write no DeployItem".to_owned());
        }
        self.target_selectors.iter().find_map(TargetSelector::problem)
    }
}

fn is_one(user: &User<'_>, users: &[String], groups: &[String]) -> bool {
    users.iter().any(|name| *name == user.name) || groups.iter().any(|group| user.groups.iter().any(|own| own == group))
}
