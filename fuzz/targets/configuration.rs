//! Parses a configuration file. The result must be a policy that the gate can use, or an error with a position in the
//! file.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis::admission::Level;
use portcullis::catalog::Settings;
use portcullis::config::{self, ConfigError};
use portcullis::crossplane::configuration::{EnvironmentConfigs, NAME as ENVIRONMENT_CONFIGS};
use portcullis::gate::{Policy, Registry};
use portcullis::landscaper::deployer::configuration::{Deployers, SECTION as DEPLOYERS};
use serde::Deserialize;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);

fuzz_target!(|text: &str| {
    match config::parse(text, "fuzzed", &REGISTRY) {
        Ok(policy) => {
            assert_names_exist(&policy);
            assert_may_report_covers_namespaces(&policy);
            assert_sections_can_be_parsed(&policy.settings);
        }
        Err(error) => assert_positions_are_in_text(&error, text),
    }
});

fn assert_names_exist(policy: &Policy) {
    let families = REGISTRY.families();
    let is_known = |name: &String| REGISTRY.info(name).is_some() || families.contains(&name.as_str());
    let namespace_level_names = policy.namespaces.iter().flat_map(|namespace| namespace.levels.keys());
    assert!(policy.levels.keys().chain(namespace_level_names).all(is_known));
    assert!(policy.exemptions.iter().all(|exemption| is_known(&exemption.rule)));
    assert!(policy.modes.keys().all(|name| REGISTRY.mutators().iter().any(|mutator| mutator.name == name)));
    assert!(policy.deliveries.keys().all(|name| REGISTRY.deliveries().iter().any(|delivery| delivery.name == name)));
}

/// Checks that `may_report` is true for every rule that is enabled in at least one namespace.
fn assert_may_report_covers_namespaces(policy: &Policy) {
    let patterns = policy.namespaces.iter().flat_map(|namespace| &namespace.namespaces);
    let namespaces: Vec<&str> = patterns.map(|pattern| pattern.trim_end_matches('*')).chain([""]).take(8).collect();
    for info in REGISTRY.infos() {
        let (id, family, default) = (info.id, info.family(), info.level);
        let is_enabled = |namespace: &&str| policy.level_of(id, family, default, namespace) > Level::Off;
        assert!(policy.may_report(id, family, default) || !namespaces.iter().any(is_enabled), "{id}");
    }
}

/// Checks that the rules can parse their sections of the configuration. Otherwise, the problem would go unnoticed:
/// rules ignore a section that they cannot parse.
fn assert_sections_can_be_parsed(settings: &Settings) {
    if let Some(section) = settings.section(DEPLOYERS) {
        let deployers = Deployers::deserialize(section.value());
        assert!(
            deployers.is_ok_and(|deployers| deployers.problem().is_none() && deployers.to_value() == *section.value())
        );
    }
    if let Some(section) = settings.section(ENVIRONMENT_CONFIGS) {
        let configs = EnvironmentConfigs::deserialize(section.value());
        assert!(configs.is_ok_and(|configs| configs.to_value() == *section.value()));
    }
}

fn assert_positions_are_in_text(error: &ConfigError, text: &str) {
    assert!(error.to_string().starts_with("fuzzed:"), "{error}");
    let ConfigError::Invalid { problems, .. } = error else { return };
    // CR LF, CR and LF each end a line.
    let text = text.replace("\r\n", "\n");
    for problem in problems {
        assert!(!problem.text.is_empty() && problem.line >= 1 && problem.column >= 1, "{error}");
        let line = usize::try_from(problem.line - 1).ok().and_then(|at| text.split(['\n', '\r']).nth(at));
        assert!(line.is_some_and(|line| problem.column as usize <= line.chars().count() + 1), "{error}");
    }
}
