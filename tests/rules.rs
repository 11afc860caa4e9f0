//! Tests of the rules at admission: the examples of all rule pages, levels, exemptions, and everything that is
//! generated from the rule registry, such as webhook configurations and RBAC permissions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::{BTreeSet, HashMap};

use cases::pages::{Example, FINDINGS, HEADINGS, Page};
use cases::{Case, objects, repository};
use futures::executor::block_on;
use portcullis::admission::{FieldPath, Finding, Level, Operation, Phase, Refusal, Verdict, Version};
use portcullis::gate::registration::{Choice, Registration};
use portcullis::gate::{Exemption, NamespaceLevels, Policy, Registry, pages};
use portcullis::kustomize::Verdict::Accept;
use portcullis::rule::{FailurePolicy, Match, RuleInfo};
use proptest::prelude::*;
use serde_json::{Value, json};
use time::OffsetDateTime;

/// Updates the page of a rule: runs the examples on the page, and writes their current findings below them.
fn update_page(page: &Page) {
    let path = repository().join(format!("docs/rules/{}.md", page.info.id));
    let text = std::fs::read_to_string(&path).unwrap();
    let fence = format!("```{FINDINGS}\n");
    let mut parts = text.split(&fence);
    let mut updated = parts.next().unwrap().to_owned();
    for (part, example) in parts.zip(&page.reported) {
        let (_, after) = part.split_at(part.find("```").unwrap());
        updated += &format!("{fence}{}\n{after}", page.run(example).join("\n"));
    }
    std::fs::write(path, updated).unwrap();
}

/// Checks that each rule page shows the current findings of its examples. After a change of a message, run
/// `UPDATE_PAGES=1 cargo test --test rules pages` to write the new findings into the pages.
#[test]
fn pages_show_what_is_reported_and_what_is_not() {
    let mut wrong = Vec::new();
    for page in Page::all() {
        if std::env::var_os("UPDATE_PAGES").is_some() {
            update_page(&page);
            continue;
        }
        let id = page.info.id;
        assert!(!page.reported.is_empty() && !page.not_reported.is_empty(), "{id}: an example is missing");
        for (name, example) in page.examples() {
            let (found, expected) = (page.run(example).join("\n"), example.findings.unwrap_or_default().trim_end());
            if found != expected {
                wrong.push(format!("{name} expects\n{expected}\nand not\n{found}"));
            }
        }
        let level = if page.info.level == Level::Off { Level::Deny } else { page.info.level };
        let has = |start: &str, example: &Example| page.run(example).iter().any(|finding| finding.starts_with(start));
        assert!(has(&format!("{level} {id} "), &page.reported[0]), "{id}: the first example has another level");
        let of_rule = |example: &Example| {
            [Level::Audit, Level::Warn, Level::Deny].iter().any(|level| has(&format!("{level} {id} "), example))
        };
        assert!(page.reported.iter().all(of_rule), "{id}: an example is not reported");
        let is_accepted = |example: &Example| example.analyse().is_none_or(|report| report.verdict == Accept);
        assert!(page.not_reported.iter().all(is_accepted), "{id}: kustomize would refuse the tree");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn pages_have_title_summary_level_and_headings() {
    for info in Registry::standard().infos() {
        let RuleInfo { id, name, level, summary, page } = *info;
        let mut summary = summary.to_owned();
        summary[..1].make_ascii_uppercase();
        let head = format!("# {id}: {name}\n\n{summary}.\n\nDefault level: `{level}`.\n\n## ");
        assert!(page.starts_with(&head), "docs/rules/{id}.md does not begin with\n{head}");
        let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "docs/rules/{id}.md");
        assert!(HEADINGS.iter().all(|heading| !info.section(heading).is_empty()), "docs/rules/{id}.md is incomplete");
    }
}

/// Returns the rule pages whose first example with findings is a request. Each page comes with the verdict on this
/// request.
fn reported() -> Vec<(Page, Verdict)> {
    let pages = Page::all().into_iter().filter(|page| page.reported[0].object().is_some());
    pages.map(|page| (page.decide(&page.reported[0]), page)).map(|(verdict, page)| (page, verdict)).collect()
}

#[test]
fn ids_and_names_are_unique_and_in_order() {
    let registry = Registry::standard();
    let ids: Vec<_> = registry.rules().iter().map(|rule| rule.info.id).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(ids, sorted);
}

/// Landscaper treats a denial as an outage, and retries forever, if the message contains words such as `connection
/// refused`.
#[test]
fn messages_do_not_read_like_an_outage() {
    for (Page { info, .. }, verdict) in reported() {
        let message = verdict.message() + info.summary + info.section("How to fix");
        for words in ["connection refused", "context deadline exceeded", "failed to call webhook", "proxy error"] {
            assert!(!message.contains(words), "{}: {message}", info.id);
        }
    }
}

/// Reports whether kustomize-controller treats an error message as an error about an immutable field. After such an
/// error, kustomize-controller deletes the object if the Kustomization has `force: true`.
fn flux_would_delete(text: &str) -> bool {
    let begins =
        |after: &str, word: &str| after.strip_prefix(char::is_whitespace).is_some_and(|rest| rest.starts_with(word));
    text.match_indices("is").any(|(at, _)| begins(&text[at + 2..], "immutable"))
        || text.match_indices("immutable").any(|(at, word)| begins(&text[at + word.len()..], "field"))
}

/// Checks that a denial does not cause kustomize-controller to delete objects. Checks only the parts of the denial that
/// clients get.
#[track_caller]
fn assert_flux_deletes_nothing(verdict: &Verdict, case: &Case) {
    let answer = verdict.answer(Version::V1, Phase::Validate, &case.request());
    let answer: Value = serde_json::from_slice(&answer.to_json()).expect("an answer is JSON");
    let status = &answer["response"]["status"];
    let expected = if verdict.refusal.is_some() { (400, "BadRequest") } else { (403, "Forbidden") };
    let is_denied = answer["response"]["allowed"] == false;
    assert!(!is_denied || (status["code"] == expected.0 && status["reason"] == expected.1), "{status}");
    for text in texts(status) {
        assert!(!flux_would_delete(&text), "{text}");
    }
}

/// Returns all strings in a JSON value, at any depth.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Regression test for issue 18 (Flux, item 7): a denial must not cause Flux to delete objects.
#[test]
fn no_denial_makes_flux_delete() {
    for (page, mut verdict) in reported() {
        let case = page.reported[0].case(Policy::default()).expect("the example is a request");
        assert!(!flux_would_delete(&verdict.message()), "{}", page.info.id);
        for finding in &mut verdict.findings {
            finding.level = Level::Deny;
            for text in [&mut finding.found, &mut finding.allowed, &mut finding.help, &mut finding.location] {
                *text = Some("this immutable\tfield is immutable".to_owned());
            }
            finding.message += ": \"spec is\nimmutable field: x\"";
            finding.field = finding.field.key("is immutable");
        }
        assert_flux_deletes_nothing(&verdict, &case);
    }
    for info in Registry::standard().infos() {
        assert!(!flux_would_delete(&[info.summary, info.page].concat()), "{}", info.id);
    }
}

proptest! {
    /// Regression test for issue 18 (Flux, item 7): Flux may delete an object if the message of a denial looks like an
    /// error about an immutable field. So a denial must not look like this, even if it quotes such a text.
    #[test]
    fn no_quoted_text_makes_flux_delete(
        words in prop::collection::vec(prop::sample::select(vec![
            "is", "th", "immutable", " ", "\n", "\t", "field", "Immutable", "ä", "\u{a0}", "İ",
        ]), 0..12),
        refused in any::<bool>(),
    ) {
        let case = Case::new(Operation::Create, json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        let text = words.concat();
        let mut verdict = match refused {
            true => Verdict::refused(Refusal::Unreadable(text.clone())),
            false => Verdict::default(),
        };
        verdict.findings.push(Finding::new("KZ001", Level::Deny, FieldPath::root(), text));
        assert_flux_deletes_nothing(&verdict, &case);
    }
}

#[test]
fn the_index_lists_every_rule() {
    let committed = std::fs::read_to_string(repository().join("docs/rules/README.md")).unwrap_or_default();
    assert!(committed == pages::index(&Registry::standard()), "docs/rules/README.md is out of date: `make generate`");
}

#[test]
fn the_committed_registration_is_up_to_date() {
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

/// Returns all combinations of at least one rule family.
fn family_combinations() -> Vec<Vec<&'static str>> {
    let families = Registry::standard().families();
    let chosen = |bits: usize| families.iter().enumerate().filter(move |(at, _)| bits & (1 << at) != 0);
    (1..1 << families.len()).map(|bits| chosen(bits).map(|(_, family)| *family).collect()).collect()
}

/// Returns the objects in the manifests that Portcullis generates for the rule families `families`, by file name.
fn manifests_of(families: &[&'static str]) -> HashMap<&'static str, Vec<Value>> {
    let registration = Registration { families: Choice::These(families.to_vec()), ..Registration::default() };
    let manifests = registration.manifests(&Registry::standard());
    manifests.into_iter().map(|manifest| (manifest.file, objects(&manifest.text))).collect()
}

fn request_matchers(phase: Phase, registry: &Registry) -> Vec<&'static Match> {
    let request_matchers: Vec<_> = match phase {
        Phase::Mutate => {
            let withholding_sources = registry.deliveries().iter().filter(|delivery| delivery.withhold.is_some());
            let source_matchers = withholding_sources.flat_map(|delivery| delivery.matchers);
            registry.mutators().iter().flat_map(|mutator| mutator.matchers).chain(source_matchers).collect()
        }
        Phase::Validate => {
            let source_matchers = registry.deliveries().iter().flat_map(|delivery| delivery.matchers);
            registry.rules().iter().flat_map(|rule| rule.matchers).chain(source_matchers).collect()
        }
    };
    request_matchers.into_iter().filter(|matcher| !matcher.is_declared()).collect()
}

fn resource(matcher: &Match) -> String {
    match matcher.subresource {
        "" => matcher.plural.to_owned(),
        subresource => format!("{}/{subresource}", matcher.plural),
    }
}

/// For every combination of rule families and each phase (mutating and validating), exactly one webhook receives each
/// request that a request matcher selects. No webhook receives other requests. If no request is selected, there is no
/// webhook configuration.
#[test]
fn the_registration_covers_every_request_matcher_once() {
    for families in family_combinations() {
        let (registry, written) = (Registry::standard().only(&families), manifests_of(&families));
        for (file, phase) in [("validating.yaml", Phase::Validate), ("mutating.yaml", Phase::Mutate)] {
            let (request_matchers, configuration) =
                (request_matchers(phase, &registry), written.get(file).map(|objects| &objects[0]));
            assert_eq!(request_matchers.is_empty(), configuration.is_none(), "{families:?}: {file}");
            let Some(configuration) = configuration else { continue };
            let mut wanted = BTreeSet::new();
            for matcher in &request_matchers {
                for operation in matcher.operations {
                    wanted.insert(format!("{operation} {}/{}", matcher.group, resource(matcher)));
                    assert_is_sent_once(configuration, matcher, *operation, &request_matchers, &families);
                }
            }
            assert_eq!(sent_requests(configuration), wanted, "{families:?}: {file}");
        }
    }
}

fn assert_is_sent_once(
    configuration: &Value,
    matcher: &Match,
    operation: Operation,
    all: &[&Match],
    families: &[&str],
) {
    let sent = receiving_webhooks(configuration, matcher.group, &resource(matcher), operation.as_str());
    let shares: Vec<_> =
        sent.iter().filter_map(|webhook| shared_condition(webhook, &resource(matcher), operation)).collect();
    let has_same_resource = |other: &&&Match| (other.group, resource(other)) == (matcher.group, resource(matcher));
    let same_resource: Vec<_> = all.iter().filter(has_same_resource).collect();
    let is_valid = match &shares[..] {
        [] => sent.len() == 1,
        // Requests that the match conditions exclude need not be sent to any webhook.
        [(false, _)] => {
            sent.len() == 1
                && same_resource.iter().all(|other| matches!(other.failure_policy, FailurePolicy::FailUnless(_)))
        }
        [(true, of), (false, other)] | [(false, other), (true, of)] => of == other && sent.len() == 2,
        _ => false,
    };
    assert!(is_valid, "{families:?}: {operation} {}", resource(matcher));
}

/// Returns the operation and resource of every request that a webhook configuration matches, such as `CREATE
/// landscaper.gardener.cloud/contexts`.
fn sent_requests(configuration: &Value) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut sent = BTreeSet::new();
    for rule in list(&configuration["webhooks"]).iter().flat_map(|webhook| list(&webhook["rules"])) {
        for (group, resource) in list(&rule["apiGroups"])
            .iter()
            .flat_map(|group| list(&rule["resources"]).into_iter().map(move |one| (group.clone(), one)))
        {
            let of = |operation: &Value| format!("{} {}/{}", text(operation), text(&group), text(&resource));
            sent.extend(list(&rule["operations"]).iter().map(of));
        }
    }
    sent
}

/// The ClusterRoles grant access to exactly these kinds: the kinds that the enabled families watch or read in all
/// namespaces, and CustomResourceDefinitions.
#[test]
fn permissions_and_watches_follow_the_families() {
    for families in family_combinations() {
        let (registry, written) = (Registry::standard().only(&families), manifests_of(&families));
        let roles = written["rbac.yaml"].iter().filter(|object| object["kind"] == "ClusterRole");
        let rules: Vec<_> = roles.flat_map(|role| role["rules"].as_array().expect("rules is a list")).collect();
        let resources = |rule: &&Value| {
            let group = rule["apiGroups"][0].as_str().unwrap_or_default().to_owned();
            let plurals = rule["resources"].as_array().expect("resources is a list").clone();
            plurals.into_iter().map(move |plural| format!("{group}/{}", plural.as_str().unwrap_or_default()))
        };
        let granted: BTreeSet<_> = rules.iter().flat_map(resources).collect();
        let watched = registry.kinds().into_iter().filter(|kind| !kind.is_read_by_name() || kind.is_read_everywhere());
        let watched = watched.map(|kind| format!("{}/{}", kind.group, kind.plural));
        let definitions = "apiextensions.k8s.io/customresourcedefinitions".to_owned();
        assert_eq!(granted, watched.chain([definitions]).collect(), "{families:?}");
        let has_dry_runs = written.contains_key("crds/dryrunconfigurations.yaml");
        assert_eq!(has_dry_runs, families.contains(&"DR"), "{families:?}");
    }
}

#[test]
fn disabled_families_are_absent() {
    let only = Registry::standard().only(&["OW", "KZ"]);
    assert_eq!(only.families(), ["KZ", "OW"]);
    assert!(only.mutators().iter().all(|mutator| mutator.family == "OW") && !only.mutators().is_empty());
    assert!(only.info("OW001").is_some() && only.info("KZ001").is_some() && only.info("DR001").is_none());
    assert!(!only.deliveries().is_empty() && Registry::standard().only(&["OW"]).deliveries().is_empty());
}

/// Returns the webhooks that receive a request with this resource and operation.
fn receiving_webhooks<'c>(configuration: &'c Value, group: &str, plural: &str, operation: &str) -> Vec<&'c Value> {
    let holds = |list: &Value, text: &str| list.as_array().is_some_and(|items| items.iter().any(|item| item == text));
    let webhooks = configuration["webhooks"].as_array().expect("webhooks is a list").iter();
    let is_sent = |rule: &Value| {
        holds(&rule["apiGroups"], group) && holds(&rule["resources"], plural) && holds(&rule["operations"], operation)
    };
    webhooks.filter(|webhook| webhook["rules"].as_array().expect("rules is a list").iter().any(is_sent)).collect()
}

/// Returns the match condition that limits which requests for the resource `plural` the webhook receives. Returns
/// `None` if the webhook receives all of these requests. For deletions, ignores a condition that exempts deletions.
///
/// The string is the CEL expression of the condition, without a negation (`!`) at its start. The boolean is false if
/// the expression was negated.
fn shared_condition(webhook: &Value, plural: &str, operation: Operation) -> Option<(bool, String)> {
    const DELETE: &str = "request.operation == 'DELETE' || ";
    let guard = format!("request.resource.resource != '{plural}' || ");
    let conditions = webhook["matchConditions"].as_array().expect("matchConditions is a list").iter();
    let texts = conditions.filter_map(|condition| condition["expression"].as_str());
    let shared = |text: &str| {
        let rest = text.strip_prefix(DELETE).filter(|_| operation != Operation::Delete);
        rest.unwrap_or(text).strip_prefix(&guard).map(str::to_owned)
    };
    texts
        .filter_map(shared)
        .next()
        .map(|expression| (!expression.starts_with('!'), expression.trim_start_matches('!').to_owned()))
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

fn levels<const N: usize>(levels: [(&str, Level); N]) -> HashMap<String, Level> {
    levels.into_iter().map(|(name, level)| (name.to_owned(), level)).collect()
}

#[test]
fn level_precedence_is_namespace_then_rule_then_family() {
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
fn an_exemption_records_unless_the_namespace_denies() {
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

/// Every rule can be set to the level `audit`. The rule then records findings, but neither denies requests nor returns
/// warnings.
#[test]
fn every_rule_can_start_at_audit() {
    for page in Page::all().into_iter().filter(|page| page.reported[0].object().is_some()) {
        let id = page.info.id;
        let policy = Policy { levels: levels([(id, Level::Audit)]), ..page.policy() };
        let verdict = page.decide_under(&page.reported[0], policy);
        let of_rule: Vec<_> = verdict.findings.iter().filter(|finding| finding.rule == id).collect();
        assert!(!of_rule.is_empty(), "{id}: it no longer records");
        assert!(of_rule.iter().all(|finding| finding.level == Level::Audit), "{id}: {of_rule:?}");
    }
}

#[test]
fn the_skip_label_applies_only_if_honoured() {
    let mut case = undecodable();
    case.object["metadata"]["labels"] = json!({"portcullis.dev/skip": "true"});
    assert!(!case.decide(Phase::Validate).is_allowed());
    let honoured = Policy { honour_skip_label: true, ..Policy::default() };
    assert!(case.policy(honoured).decide(Phase::Validate).is_allowed());
}

#[test]
fn updates_of_deleted_objects_are_not_denied() {
    let mut case = undecodable().update(json!({}));
    assert!(!case.decide(Phase::Validate).is_allowed());
    case.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let verdict = case.decide(Phase::Validate);
    assert!(verdict.is_allowed());
    assert_eq!(verdict.warnings().len(), 1);
}

/// Landscaper's context controller retries a denied write of a Context every 40 ms. So if Portcullis does not answer,
/// the API server must admit Contexts without overwrites.
#[test]
fn contexts_without_overwrites_do_not_fail_closed() {
    let read = |file: &str| std::fs::read_to_string(repository().join(file)).unwrap();
    let webhooks = objects(&read("webhook-config/validating.yaml")).remove(0)["webhooks"].clone();
    let webhook =
        |name: &str| webhooks.as_array().unwrap().iter().find(|webhook| webhook["name"] == name).unwrap().clone();
    let condition = |name: &str, condition: &str| {
        let webhook = webhook(name);
        let conditions = webhook["matchConditions"].as_array().unwrap();
        let found = conditions.iter().find(|one| one["name"] == condition).unwrap_or_else(|| panic!("{webhook:#}"));
        found["expression"].as_str().unwrap().to_owned()
    };
    let match_condition = "!has(object.componentVersionOverwrites)";
    let refused = condition("validate.portcullis.dev", "all-but-without-overwrites-of-contexts");
    let admitted = condition("advise.portcullis.dev", "only-without-overwrites-of-contexts");
    assert!(
        refused.contains(&format!("!({match_condition}")) && admitted.contains(&format!("({match_condition}")),
        "{refused}\n{admitted}"
    );
    assert!(admitted.starts_with("request.operation == 'DELETE' || "), "a deletion has no object: {admitted}");
}
