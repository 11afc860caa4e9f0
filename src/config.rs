//! Loads the configuration file of Portcullis, and reports all invalid keys and values.
//!
//! This example shows every key at the top level of the file. A comment above each key explains it:
//!
//! ```yaml
//! # The level of a rule, or of all rules whose ids begin with these letters. The level says what happens if the rule
//! # finds a problem: deny (deny the request), warn (warn the user), audit (only record it) or off (ignore it).
//! rules:
//!   OW: warn
//!   OW006: deny
//!
//! # Levels of rules in some namespaces. If several entries apply, the strictest level is used.
//! namespaces:
//!   - names: [sandbox-*]
//!     rules: {OW006: warn}
//!
//! # Exceptions from rules. For these namespaces and users, the rule does not deny requests, but only records problems.
//! exemptions:
//!   - rule: OW006
//!     namespaces: [team-a]
//!     users: [system:serviceaccount:ci:cleaner]
//!     # The exemption ends after this day in UTC. A time such as 2026-12-31T18:00:00+01:00 is also allowed.
//!     until: 2026-12-31
//!
//! # If true, the label portcullis.dev/skip: "true" exempts an object from changes and denials.
//! honourSkipLabel: false
//!
//! # If true, ServiceAccounts receive warnings, as users do. Controllers and pipelines use ServiceAccounts.
//! warnServiceAccounts: false
//!
//! # What each mutator may write: annotate (only annotations), apply (also other fields), or off (nothing).
//! mutators:
//!   overwrites: annotate
//!
//! # The CompositeResourceDefinitions whose composite resources are checked. The name "*" stands for all.
//! composites:
//!   - xdatabases.example.org
//!
//! # The users that may write DeployItems. See the rule DP010.
//! deployers:
//!   landscaper: {users: [system:serviceaccount:landscaper:landscaper]}
//!   identities:
//!     - users: [system:serviceaccount:landscaper:manifest-deployer]
//!       types: [landscaper.gardener.cloud/kubernetes-manifest]
//!
//! # The types of DeployItems that the dry-run deployer processes. If this section exists, mutators.dry-run is apply
//! # by default.
//! dryRun:
//!   types: [landscaper.gardener.cloud/kubernetes-manifest, landscaper.gardener.cloud/helm]
//!
//! # The maximum level for problems that a changed EnvironmentConfig of Crossplane causes. See the rule EN010.
//! environmentConfigs:
//!   onChange: warn
//!
//! # The maximum level for problems in kustomize files, for each kind of object that contains the files or refers to
//! # them. See docs/delivery.md.
//! deliveries:
//!   flux-trees: warn
//!   flux-sources: off
//!
//! # The users whose deletions are checked. With hold: source, a Flux source keeps its previous revision if the new
//! # revision deletes too much. Without it, only the deletions are denied. See docs/guard.md.
//! guard:
//!   controllers: [system:serviceaccount:flux-system:kustomize-controller]
//!   hold: source
//!
//! # Limits for the number of objects that a Flux Kustomization deletes. Each deletion of a protected kind is reported.
//! # See docs/changes.md.
//! deletions:
//!   protectedKinds: [Namespace, PersistentVolumeClaim, StatefulSet.apps]
//!   maxCount: 9
//!   maxPercent: 50
//!
//! # Information about the repository for the command portcullis check. See docs/configuration.md.
//! check:
//!   # The folder with the files of each Flux source.
//!   sources: {flux-system/apps: .}
//!   # Folders that each contain all objects of one cluster.
//!   complete: [clusters/production]
//!
//! # Hosts from which Portcullis may fetch artifacts of Flux sources. The controllers of Flux in the namespace
//! # flux-system are always allowed.
//! artifactHosts:
//!   - source-controller.gitops.svc.cluster.local
//! ```

mod check;
mod problem;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::admission::Level;
use crate::crossplane::configuration::EnvironmentConfigs;
use crate::gate::{Policy, Registry};
use crate::kustomize::delivery::DeletionLimits;
use crate::kustomize::delivery::guard::Guard;
use crate::landscaper::deployer::configuration::Deployers;
use crate::landscaper::dry_run::configuration::DryRunFile;
use crate::rule::Mode;

use check::Check;

pub use problem::Problem;

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The path of the configuration file, for messages.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The configuration file is not valid YAML, or has unknown or invalid keys, values or names.
    #[error("{}", lines(path, problems))]
    Invalid {
        /// The path of the configuration file, for messages.
        path: String,
        /// All problems that were found, in the order of their lines and columns.
        problems: Vec<Problem>,
    },
}

/// Returns one line for each problem, in the form `path:line:column: text`. Editors and CI systems link such lines to
/// the file.
fn lines(path: &str, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{path}:{problem}")).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    rules: Levels,
    namespaces: Vec<NamespaceFile>,
    exemptions: Vec<ExemptionFile>,
    honour_skip_label: bool,
    warn_service_accounts: bool,
    mutators: BTreeMap<String, Spanned<Mode>>,
    composites: HashSet<String>,
    deliveries: BTreeMap<String, Spanned<Level>>,
    artifact_hosts: Vec<Spanned<String>>,
    deployers: Option<Spanned<Deployers>>,
    dry_run: Option<Spanned<DryRunFile>>,
    environment_configs: Option<EnvironmentConfigs>,
    deletions: Option<Spanned<DeletionLimits>>,
    guard: Option<Guard>,
    check: Option<Spanned<Repository>>,
}

/// The section `check` of the configuration file. It gives `portcullis check` facts that the checked files do not
/// contain. Folders are relative to the configuration file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Repository {
    /// The root folder of each Flux source, by `NAMESPACE/NAME` of the source.
    pub sources: BTreeMap<String, String>,
    /// Folders that contain all objects of a cluster. If all checked paths are in these folders, `portcullis check`
    /// reports references to objects that are not in the checked files.
    pub complete: Vec<String>,
}

impl Repository {
    /// The key of this section in the configuration file.
    const SECTION: &'static str = "check";

    /// Returns the section `check` of a policy. Returns the default section if the policy has none.
    pub fn of(policy: &Policy) -> Self {
        let section = policy.settings.section(Self::SECTION);
        section.and_then(|section| Self::deserialize(section.value()).ok()).unwrap_or_default()
    }

    fn problem(&self) -> Option<String> {
        let source = self.sources.keys().find(|source| !source.contains('/'))?;
        Some(format!("{source:?} is not NAMESPACE/NAME of a source, such as flux-system/apps"))
    }
}

type Levels = BTreeMap<String, Spanned<Level>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceFile {
    names: Vec<String>,
    rules: Levels,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExemptionFile {
    rule: Spanned<String>,
    namespaces: Vec<String>,
    #[serde(default)]
    users: Vec<String>,
    until: Option<Spanned<String>>,
}

/// Loads a configuration file.
///
/// # Errors
/// If the file cannot be read or is not valid YAML, or if it contains an unknown or invalid key, value or name, such as
/// the id of a rule that does not exist.
pub fn load(path: &Path, registry: &Registry) -> Result<Policy, ConfigError> {
    let shown = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: shown.clone(), source })?;
    parse(&text, &shown, registry)
}

/// Parses the text of a configuration file. `path` is used only in messages.
///
/// # Errors
///
/// If the text is not valid YAML, or contains an unknown or invalid key, value or name, such as the id of a rule that
/// does not exist.
pub fn parse(text: &str, path: &str, registry: &Registry) -> Result<Policy, ConfigError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Policy::default());
    }
    let (file, problems) = problem::read(text);
    let mut check = Check { registry, problems };
    let policy = file.map(|file| check.policy(file));
    match policy.filter(|_| check.problems.is_empty()) {
        Some(policy) => Ok(policy),
        None => {
            check.problems.sort_by_key(|problem| (problem.line, problem.column));
            Err(ConfigError::Invalid { path: path.to_owned(), problems: check.problems })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Policy, String> {
        parse(text, "portcullis.yaml", &Registry::standard()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_gives_the_default_policy() {
        assert_eq!(read("# nothing\n"), Ok(Policy::default()));
    }

    #[test]
    fn reads_levels_and_modes() {
        let policy = read("rules:\n  OW: off\n  OW006: audit\nmutators:\n  overwrites: apply\n").unwrap();
        assert_eq!(policy.levels["OW"], Level::Off);
        assert_eq!(policy.levels["OW006"], Level::Audit);
        assert_eq!(policy.modes["overwrites"], Mode::Apply);
    }

    #[test]
    fn reads_deployer_identities() {
        const EXAMPLE: &str = "deployers:\n  identities:\n    - users: [system:serviceaccount:a:b]\n      types: \
                               [landscaper.gardener.cloud/kubernetes-manifest]\n";
        let policy = read(EXAMPLE).unwrap();
        let section = policy.settings.section("deployers").unwrap();
        assert_eq!(section.value()["identities"][0]["types"][0], "landscaper.gardener.cloud/kubernetes-manifest");
        let error = read("deployers:\n  identities:\n    - types: [a]\n").unwrap_err();
        assert!(error.contains("deployers.identities[0]: names neither users nor groups"), "{error}");
        let selector = "{labels: [{key: a, operator: in}]}";
        let error =
            read(&format!("deployers: {{identities: [{{users: [a], types: [b], targetSelectors: [{selector}]}}]}}"));
        assert!(error.unwrap_err().contains("the requirement on \"a\" has 0 values"));
    }

    #[test]
    fn reads_the_level_for_environment_config_changes() {
        let policy = read("environmentConfigs: {onChange: deny}\n").unwrap();
        assert_eq!(policy.settings.section("environmentConfigs").unwrap().value()["onChange"], "deny");
        assert!(read("environmentConfigs: {onDelete: deny}\n").unwrap_err().contains("onDelete"));
    }

    #[test]
    fn reads_deliveries_and_hosts() {
        let policy = read("deliveries:\n  flux-sources: deny\nartifactHosts:\n  - minio.tools:9000\n").unwrap();
        assert_eq!(policy.deliveries["flux-sources"], Level::Deny);
        assert_eq!(policy.artifact_hosts, ["minio.tools:9000"]);
        for text in ["deliveries:\n  fluxx: warn\n", "artifactHosts:\n  - http://a/b\n"] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("portcullis.yaml:2:"), "{error}");
        }
    }

    #[test]
    fn reads_the_limits_of_deletions() {
        let policy = read("deletions: {maxCount: 3, protectedKinds: [Secret]}\n").unwrap();
        let limits = DeletionLimits::of(&policy.settings);
        let expected = DeletionLimits { max_count: 3, protected_kinds: vec!["Secret".to_owned()], max_percent: 50 };
        assert_eq!(limits, expected);
        let policy = read("guard: {controllers: [a]}\n").unwrap();
        assert_eq!(policy.settings.section("guard").unwrap().value()["controllers"][0], "a");
        assert_eq!(policy.deliveries.get("guard-sources"), None);
        assert_eq!(read("guard: {hold: source}\n").unwrap().deliveries["guard-sources"], Level::Deny);
        let reporting = "guard: {hold: source}\ndeliveries: {guard-sources: warn}\n";
        assert_eq!(read(reporting).unwrap().deliveries["guard-sources"], Level::Warn);
        assert!(read("guard: {hold: kustomization}\n").unwrap_err().contains("source"));
        for (text, words) in [
            ("deletions: {protectedKinds: [secrets]}\n", "\"secrets\" is not a kind"),
            ("deletions: {maxPercent: 101}\n", "from 0 to 100"),
            ("deletions: {maxcount: 1}\n", "did you mean \"maxCount\"?"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("portcullis.yaml:1:") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn exemptions_expire_after_their_day_or_at_their_time() {
        let until = |text: &str| {
            let exemption = format!("exemptions:\n  - rule: OW\n    namespaces: [a]\n    until: {text}\n");
            read(&exemption).map(|policy| policy.exemptions[0].until.unwrap().unix_timestamp())
        };
        assert_eq!(until("2026-12-31"), Ok(1_798_761_600));
        assert_eq!(until("2026-12-31T23:59:59Z"), Ok(1_798_761_599));
        assert_eq!(until("'2027-01-01T01:00:00+01:00'"), Ok(1_798_761_600));
        for text in ["2026-02-30", "2026-12-31T18:00:00", "tomorrow", "31.12.2026", "2026", "'2026-12-31 '"] {
            let error = until(text).unwrap_err();
            assert!(error.starts_with("portcullis.yaml:4:12: ") && error.contains("2026-12-31T18:00:00Z"), "{error}");
        }
    }

    #[test]
    fn reports_unknown_names_with_their_line() {
        let error = read("rules:\n  OW: warn\n  OW999: warn\n").unwrap_err();
        assert!(error.starts_with("portcullis.yaml:3:") && error.contains("OW999"), "{error}");
        for (text, line) in [("rulez: {}\n", "1"), ("rules:\n  OW: loud\n", "2"), ("exemptions:\n  - rule: OW\n", "2")]
        {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(&format!("portcullis.yaml:{line}:")), "{error}");
        }
    }

    #[test]
    fn reports_every_unknown_name_with_its_place_and_a_suggestion() {
        let text = "\
rulez: {OW: warn}
rules:
  OW999: warn
  KZ: lod
  EM001: deny
namespaces:
  - name: [a]
    names: [b]
    rules: {0W006: warn, QQQQQ: deny}
exemptions:
  - rule: OW06
    namespaces: [a]
    untill: 2026-12-31
mutators: {overwrite: apply, dry-run: aply}
deployers:
  landscapper: {users: [a]}
deliveries:
  fluxx: warn
";
        let expected = [
            "1:1: unknown key \"rulez\"; did you mean \"rules\"?",
            "3:10: unknown rule or family \"OW999\"; OW has rules from OW001 to OW011; `portcullis rules` lists them",
            "4:7: unknown value \"lod\"; use one of: off, audit, warn, deny",
            "5:10: unknown rule or family \"EM001\"; did you mean \"EN001\"?",
            "7:5: unknown key \"name\"; did you mean \"names\"?",
            "9:20: unknown rule or family \"0W006\"; did you mean \"OW006\"?",
            "9:33: unknown rule or family \"QQQQQ\"; the families are DP, DR, EN, GD, KZ, LS, OW; `portcullis rules` lists the rules",
            "11:11: unknown rule or family \"OW06\"; did you mean \"OW006\"?",
            "13:5: unknown key \"untill\"; did you mean \"until\"?",
            "14:23: unknown mutator \"overwrite\"; did you mean \"overwrites\"?",
            "14:39: unknown value \"aply\"; did you mean \"apply\"?",
            "16:3: unknown key \"landscapper\"; did you mean \"landscaper\"?",
            "18:10: unknown delivery \"fluxx\"; did you mean \"flux\"?",
        ];
        let error = read(text).unwrap_err();
        let lines: Vec<_> = error.lines().map(|line| line.strip_prefix("portcullis.yaml:").unwrap()).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn reports_unknown_keys_before_an_error_of_another_kind() {
        let error = read("ruls: {}\nexemptions:\n  - rule: OW\n").unwrap_err();
        assert!(error.contains("1:1: unknown key") && error.lines().nth(1).unwrap().contains(":3:"), "{error}");
        for text in ["- a\n", "rules: 1\n", "\u{0}", "a: *b\n", "{", "rules: {OW: !x {}}\n", "? [a]\n: b\n"] {
            assert!(read(text).unwrap_err().starts_with("portcullis.yaml:"), "{text:?}");
        }
    }
}
