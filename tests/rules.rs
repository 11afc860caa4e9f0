//! The rules, through the gate: every page's examples, levels, exemptions, and what is derived from the registry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, objects, repository};
use futures::executor::block_on;
use portcullis::admission::{Level, Operation, Phase, Verdict};
use portcullis::config;
use portcullis::gate::registration::Registration;
use portcullis::gate::{Exemption, NamespaceLevels, Policy, Registry, pages};
use portcullis::rule::{Example, Rule};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// The example as the page tells it: under the configuration that it shows, and with the rule itself switched on.
fn judged(rule: &Rule, example: &Example) -> Verdict {
    let mut policy = Policy::default();
    if rule.level == Level::Off {
        policy.levels.insert(rule.id.to_owned(), Level::Deny);
    }
    judged_under(rule, example, policy)
}

/// The example under `policy`, with the section of the configuration that the page shows.
fn judged_under(rule: &Rule, example: &Example, mut policy: Policy) -> Verdict {
    let registry = Registry::standard();
    let section = registry.section_of(rule.id);
    if let Some(section) = section {
        let shown = config::parse(section.example, "the page", &registry).expect("the example is a configuration");
        policy.settings = shown.settings;
    }
    let (object, stored) = (objects(example.object).remove(0), objects(example.stored));
    let is_same =
        |old: &&Value| ["/kind", "/metadata/name"].iter().all(|part| old.pointer(part) == object.pointer(part));
    let old = stored.iter().find(is_same).filter(|_| example.operation == Operation::Update).cloned();
    let case = Case { old, ..Case::new(example.operation, object) };
    let subresource = rule.scope.first().expect("it looks at something").subresource;
    let user = section.map_or("somebody", |section| section.user);
    case.stored(stored).policy(policy).of(subresource).user(user).decide(Phase::Validate)
}

#[test]
fn every_page_shows_what_is_found_and_what_is_not() {
    for rule in Registry::standard().rules() {
        let wrong = judged(rule, &rule.page.wrong);
        let found: Vec<_> = wrong.findings.iter().filter(|finding| finding.rule == rule.id).collect();
        assert!(!found.is_empty(), "{}: nothing is found in the wrong example", rule.id);
        let level = if rule.level == Level::Off { Level::Deny } else { rule.level };
        assert!(found.iter().all(|finding| finding.level == level), "{}: {found:?}", rule.id);
        let right = judged(rule, &rule.page.right);
        assert_eq!(right.findings, [], "{}: something is found in the right example", rule.id);
    }
}

#[test]
fn ids_and_names_are_unique_and_in_order() {
    let registry = Registry::standard();
    let ids: Vec<_> = registry.rules().iter().map(|rule| rule.id).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(ids, sorted);
}

/// Landscaper takes these words for an outage and tries again for ever.
#[test]
fn no_message_reads_like_an_outage() {
    for rule in Registry::standard().rules() {
        let message = judged(rule, &rule.page.wrong).message() + rule.summary + rule.page.mend;
        for words in ["connection refused", "context deadline exceeded", "failed to call webhook", "proxy error"] {
            assert!(!message.contains(words), "{}: {message}", rule.id);
        }
    }
}

#[test]
fn the_committed_pages_are_the_ones_that_would_be_written() {
    let folder = repository().join("docs/rules");
    for (file, text) in pages::all(&Registry::standard()) {
        let committed = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert!(committed == text, "docs/rules/{file} is out of date: run `make generate`");
    }
}

#[test]
fn the_committed_registration_is_the_one_that_would_be_written() {
    for (folder, registration) in
        [("webhook-config", Registration::default()), ("charts/portcullis/templates", Registration::chart())]
    {
        for manifest in registration.manifests(&Registry::standard()) {
            let path = repository().join(folder).join(manifest.file);
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == manifest.text, "{} is out of date: run `make generate`", path.display());
        }
    }
}

/// Every request that a row looks at is sent by exactly one webhook of its phase.
#[test]
fn the_registration_covers_every_scope_once() {
    let registry = Registry::standard();
    let manifests = Registration::default().manifests(&registry);
    let text = |file| &manifests.iter().find(|manifest| manifest.file == file).expect("it is written").text;
    for (file, scopes) in [
        (
            "validating.yaml",
            registry
                .rules()
                .iter()
                .flat_map(|rule| rule.scope)
                .chain(registry.deliveries().iter().flat_map(|delivery| delivery.scope))
                .collect::<Vec<_>>(),
        ),
        ("mutating.yaml", registry.mutators().iter().flat_map(|mutator| mutator.scope).collect()),
    ] {
        let configuration = objects(text(file)).remove(0);
        for scope in scopes.into_iter().filter(|scope| !scope.is_declared()) {
            for operation in scope.operations {
                let resource = match scope.subresource {
                    "" => scope.plural.to_owned(),
                    subresource => format!("{}/{subresource}", scope.plural),
                };
                let sent = senders(&configuration, scope.group, &resource, operation.as_str());
                let shares: Vec<_> = sent.iter().filter_map(|webhook| share(webhook, &resource)).collect();
                let is_shared = matches!(&shares[..], [(true, of), (false, other)] if of == other) && sent.len() == 2;
                assert!(is_shared || sent.len() == 1 && shares.is_empty(), "{file}: {operation} {resource}");
            }
        }
    }
}

/// The webhooks that are sent such a request.
fn senders<'c>(configuration: &'c Value, group: &str, plural: &str, operation: &str) -> Vec<&'c Value> {
    let holds = |list: &Value, text: &str| list.as_array().is_some_and(|items| items.iter().any(|item| item == text));
    let webhooks = configuration["webhooks"].as_array().expect("webhooks is a list").iter();
    let is_sent = |rule: &Value| {
        holds(&rule["apiGroups"], group) && holds(&rule["resources"], plural) && holds(&rule["operations"], operation)
    };
    webhooks.filter(|webhook| webhook["rules"].as_array().expect("rules is a list").iter().any(is_sent)).collect()
}

/// Which of the requests of a resource a webhook is sent, if it shares them with another: those that a condition holds
/// for, or all others; and the condition.
fn share(webhook: &Value, plural: &str) -> Option<(bool, String)> {
    let guard = format!("request.resource.resource != '{plural}' || ");
    let conditions = webhook["matchConditions"].as_array().expect("matchConditions is a list").iter();
    let mut expressions = conditions.filter_map(|condition| condition["expression"].as_str()?.strip_prefix(&guard));
    expressions.next().map(|expression| (!expression.starts_with('!'), expression.trim_start_matches('!').to_owned()))
}

fn undecodable() -> Case {
    let object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
        "metadata": {"name": "my-overwrites", "namespace": "team-a"},
        "overwrites": [{"source": {"componentName": "a"}, "substitution": {"repositoryContext": "x", "version": "b"}}],
    });
    Case::new(Operation::Create, object)
}

fn level(policy: Policy) -> Level {
    let verdict = undecodable().policy(policy).decide(Phase::Validate);
    verdict.findings.first().map_or(Level::Off, |finding| finding.level)
}

fn levels<const N: usize>(levels: [(&str, Level); N]) -> std::collections::HashMap<String, Level> {
    levels.into_iter().map(|(name, level)| (name.to_owned(), level)).collect()
}

#[test]
fn a_rule_goes_before_its_family_and_a_namespace_before_both() {
    assert_eq!(level(Policy::default()), Level::Deny);
    let family = Policy { levels: levels([("OW", Level::Warn)]), ..Policy::default() };
    assert_eq!(level(family.clone()), Level::Warn);
    let rule = Policy { levels: levels([("OW", Level::Off), ("OW001", Level::Audit)]), ..Policy::default() };
    assert_eq!(level(rule), Level::Audit);
    let namespace = NamespaceLevels { namespaces: vec!["team-*".into()], levels: levels([("OW001", Level::Off)]) };
    assert_eq!(level(Policy { namespaces: vec![namespace.clone()], ..family }), Level::Off);
    let strict = NamespaceLevels { namespaces: vec!["team-a".into()], levels: levels([("OW", Level::Deny)]) };
    assert_eq!(level(Policy { namespaces: vec![namespace, strict], ..Policy::default() }), Level::Deny);
}

#[test]
fn an_exemption_records_and_a_deny_for_the_namespace_goes_before_it() {
    let exemption = Exemption { rule: "OW001".into(), namespaces: vec!["team-a".into()], users: vec![], until: None };
    let exempt = Policy { exemptions: vec![exemption.clone()], ..Policy::default() };
    assert_eq!(level(exempt.clone()), Level::Audit);
    let other = Exemption { namespaces: vec!["team-b".into()], ..exemption.clone() };
    assert_eq!(level(Policy { exemptions: vec![other], ..Policy::default() }), Level::Deny);
    let user = Exemption { users: vec!["somebody-else".into()], ..exemption };
    assert_eq!(level(Policy { exemptions: vec![user], ..Policy::default() }), Level::Deny);
    let strict = NamespaceLevels { namespaces: vec!["team-a".into()], levels: levels([("OW001", Level::Deny)]) };
    assert_eq!(level(Policy { namespaces: vec![strict], ..exempt }), Level::Deny);
}

#[test]
fn an_exemption_expires() {
    let until = Some(OffsetDateTime::UNIX_EPOCH + time::Duration::days(1));
    let exemption = Exemption { rule: "OW".into(), namespaces: vec!["team-a".into()], users: vec![], until };
    let case = undecodable().policy(Policy { exemptions: vec![exemption], ..Policy::default() });
    let level_at = |clock: fn() -> OffsetDateTime| {
        let verdict = block_on(case.gate().with_clock(clock).decide(Phase::Validate, &case.request()));
        let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
        (finding.level, finding.is_exempt)
    };
    let almost = || OffsetDateTime::UNIX_EPOCH + time::Duration::days(1) - time::Duration::NANOSECOND;
    assert_eq!(level_at(almost), (Level::Audit, true));
    assert_eq!(level_at(|| OffsetDateTime::UNIX_EPOCH + time::Duration::days(1)), (Level::Deny, false));
}

/// Whatever a rule's own level is, it can be tried out first: it records, and neither refuses nor warns.
#[test]
fn every_rule_can_start_at_audit() {
    for rule in Registry::standard().rules() {
        let policy = Policy { levels: levels([(rule.id, Level::Audit)]), ..Policy::default() };
        let verdict = judged_under(rule, &rule.page.wrong, policy);
        let of_rule: Vec<_> = verdict.findings.iter().filter(|finding| finding.rule == rule.id).collect();
        assert!(!of_rule.is_empty(), "{}: it no longer records", rule.id);
        assert!(of_rule.iter().all(|finding| finding.level == Level::Audit), "{}: {of_rule:?}", rule.id);
    }
}

#[test]
fn the_skip_label_counts_only_where_it_is_honoured() {
    let mut case = undecodable();
    case.object["metadata"]["labels"] = json!({"portcullis.dev/skip": "true"});
    assert!(!case.decide(Phase::Validate).is_allowed());
    let honoured = Policy { honour_skip_label: true, ..Policy::default() };
    assert!(case.policy(honoured).decide(Phase::Validate).is_allowed());
}

#[test]
fn an_object_on_its_way_out_is_not_refused() {
    let mut case = undecodable().update(json!({}));
    assert!(!case.decide(Phase::Validate).is_allowed());
    case.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let verdict = case.decide(Phase::Validate);
    assert!(verdict.is_allowed());
    assert_eq!(verdict.warnings().len(), 1);
}
