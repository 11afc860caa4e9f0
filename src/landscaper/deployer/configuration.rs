//! The section `deployers` of the configuration file: who Landscaper is, who the deployers are, and what each serves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::selector::TargetSelector;
use crate::admission::User;
use crate::catalog::View;
use crate::rule::Section;

/// The section, for the registry.
pub static SECTION: Section = Section {
    name: "deployers",
    rules: &["DP010"],
    example: "\
deployers:
  landscaper:
    users: [\"system:serviceaccount:landscaper:landscaper\"]
  identities:
    - users: [\"system:serviceaccount:landscaper:manifest-deployer\"]
      types: [landscaper.gardener.cloud/kubernetes-manifest]
",
    user: "system:serviceaccount:landscaper:manifest-deployer",
};

/// Who may write DeployItems. Without this section nobody's identity is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deployers {
    /// Landscaper itself.
    pub landscaper: Identities,
    /// Those that restore the status of DeployItems from a backup.
    pub restorers: Identities,
    /// The deployers.
    pub identities: Vec<Deployer>,
}

/// Users and groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identities {
    /// Names of users, such as `system:serviceaccount:landscaper:landscaper`.
    pub users: Vec<String>,
    /// Names of groups.
    pub groups: Vec<String>,
}

/// A deployer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Deployer {
    /// Names of users that it acts as.
    pub users: Vec<String>,
    /// Names of groups of them.
    pub groups: Vec<String>,
    /// The types of DeployItems that it serves.
    pub types: Vec<String>,
    /// The DeployerRegistrations whose types it serves too.
    pub registrations: Vec<String>,
    /// The Targets that it serves; all where there is none.
    pub target_selectors: Vec<TargetSelector>,
    /// Whether it deploys nothing of an item in dry run. Landscaper's own deployers do not know dry runs.
    #[serde(rename = "honoursDryRun", alias = "honorsDryRun")]
    pub honours_dry_run: bool,
}

impl Deployers {
    /// What the configuration says; `None` where it says nothing.
    pub fn of(view: &View<'_>) -> Option<Arc<Self>> {
        let section = view.setting(SECTION.name)?;
        section.view(|value| Self::deserialize(value).ok().map(Arc::new))
    }

    /// The section as rules look it up.
    pub fn to_value(&self) -> Value {
        // Texts and lists of them: there is nothing that cannot be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What is wrong with it, with its place in the section.
    pub fn problem(&self) -> Option<String> {
        self.identities.iter().enumerate().find_map(|(at, deployer)| {
            deployer.problem().map(|problem| format!("deployers.identities[{at}]: {problem}"))
        })
    }
}

impl Identities {
    /// Whether a user is one of these.
    pub fn has(&self, user: &User<'_>) -> bool {
        is_one(user, &self.users, &self.groups)
    }
}

impl Deployer {
    /// Whether a user is this deployer.
    pub fn is(&self, user: &User<'_>) -> bool {
        is_one(user, &self.users, &self.groups)
    }

    /// Its first user or group, for messages.
    pub fn display_name(&self) -> &str {
        self.users.iter().chain(&self.groups).next().map_or("", String::as_str)
    }

    fn problem(&self) -> Option<String> {
        if self.users.is_empty() && self.groups.is_empty() {
            return Some("names neither users nor groups, so that nobody is this deployer".to_owned());
        }
        if self.types.is_empty() && self.registrations.is_empty() {
            return Some("names neither types nor registrations, so that it may write nothing".to_owned());
        }
        self.target_selectors.iter().find_map(TargetSelector::problem)
    }
}

fn is_one(user: &User<'_>, users: &[String], groups: &[String]) -> bool {
    users.iter().any(|name| *name == user.name) || groups.iter().any(|group| user.groups.iter().any(|own| own == group))
}
