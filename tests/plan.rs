//! Tests of `portcullis plan` with a simulated API server that contains objects of Flux. The end-to-end tests and the
//! tests with real controllers contain more tests of this command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod artifacts;
mod flux_api;

use artifacts::{ArtifactServer, digest_of, packed};
use flux_api::{Api, PROXIED, REVISION, SOURCE, api_with_proxy, archive, inventory_ids, source, status_error};
use serde_json::json;

const PLAN: &str = "Kustomization flux-system/shop, revision main@sha1:3f2c9a1b04de5d6e7f8091a2b3c4d5e6f7081920
  - delete   ConfigMap shop/old
  = keep     ConfigMap shop/data  (kustomize.toolkit.fluxcd.io/prune: disabled)
  + create   ConfigMap shop/new

Plan: 1 to create, 0 to take over, 0 to replace, 1 to delete, 0 possibly, 0 moved, 1 kept, 0 gone already, 0 skipped, 1 applied as before
";

#[test]
fn the_current_artifact_comes_through_the_service_proxy() {
    let (code, text, notes) = api_with_proxy().plan(&[]);
    assert_eq!((code, &*notes, &*text), (Some(0), "", PLAN));
}

#[test]
fn a_missing_permission_is_named() {
    let api = api_with_proxy();
    let message =
        "services \"source-controller:80\" is forbidden: User \"jane\" cannot get resource \"services/proxy\"";
    api.set_json(PROXIED, 403, &status_error(403, message));
    let (code, text, error) = api.plan(&[]);
    assert_eq!((code, &*text), (Some(2), ""), "{error}");
    let right = "grant the verb get for services/proxy, with the resource name source-controller:80, in the namespace flux-system";
    for part in [message, right, "fetching it directly from http://source-controller", "--source DIR"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn an_error_of_the_service_is_not_one_of_the_api_server() {
    let api = api_with_proxy();
    api.set_bytes(PROXIED, 404, b"404 page not found\n");
    let (code, _, error) = api.plan(&[]);
    let words = "source-controller:80 in the namespace flux-system answered 404 Not Found through the service proxy";
    assert!(code == Some(2) && error.contains(words), "{error}");
    api.set_json(PROXIED, 503, &status_error(503, "no endpoints available for service \"source-controller:80\""));
    let (code, _, error) = api.plan(&[]);
    let words = "the service proxy of the API server answered 503 Service Unavailable: no endpoints available";
    assert!(code == Some(2) && error.contains(words), "{error}");
}

#[test]
fn a_url_that_names_no_service_is_fetched_directly() {
    let server = ArtifactServer::start();
    let artifact = server.artifact(&archive(), REVISION);
    let api = Api::with_inventory(&inventory_ids(&["web", "new"]), &artifact.url, &archive());
    ["web", "new"].iter().for_each(|name| api.add_owned_config_map(name, &json!({})));
    let (code, text, notes) = api.plan(&[]);
    assert!(code == Some(0) && text.contains("2 applied as before"), "{text}{notes}");
    let note =
        format!("note: the artifact was fetched directly from {}: its URL does not refer to a Service", artifact.url);
    assert!(notes.starts_with(&note), "{notes}");
    assert_eq!(server.requests(&artifact), 1);
}

/// Regression test for an error that a comparison with the real kustomize-controller found. The inventory can list an
/// object that does not exist, because it also contains objects that kustomize-controller skipped. The plan must report
/// that Flux creates such an object.
#[test]
fn an_object_that_only_the_inventory_has_is_created() {
    let api = api_with_proxy();
    api.set_json("/api/v1/namespaces/shop/configmaps/web", 404, &status_error(404, "configmaps \"web\" not found"));
    let (code, text, notes) = api.plan(&[]);
    assert_eq!((code, &*notes), (Some(0), ""));
    assert!(
        text.contains("  + create   ConfigMap shop/web  (the inventory lists it, but it does not exist)\n"),
        "{text}"
    );
    assert!(text.contains("Plan: 2 to create") && text.ends_with(" 0 applied as before\n"), "{text}");
}

#[test]
fn another_archive_than_that_of_the_status_is_refused() {
    let api = api_with_proxy();
    api.set_bytes(PROXIED, 200, &packed([("shop/evil.yaml", "a: b")]));
    let (code, text, error) = api.plan(&[]);
    assert!(code == Some(2) && text.is_empty(), "{text}");
    assert!(error.contains(&format!("not {}", digest_of(&archive()))), "{error}");
}

#[test]
fn an_archive_beyond_the_limit_is_not_read_further() {
    let api = api_with_proxy();
    api.set_bytes(PROXIED, 200, &vec![0; (50 << 20) + 1]);
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("it is larger than 52428800 bytes"), "{error}");
}

#[test]
fn only_the_current_revision_can_be_fetched() {
    for revision in [REVISION, "3f2c9a1b04de"] {
        assert_eq!(api_with_proxy().plan(&["--revision", revision]).0, Some(0), "{revision}");
    }
    let (code, _, error) = api_with_proxy().plan(&["--revision", "v1.2.3"]);
    let words = format!(
        "GitRepository flux-system/fleet: only the current artifact can be fetched, with the revision {REVISION}, not v1.2.3"
    );
    assert!(code == Some(2) && error.contains(&words), "{error}");
}

#[test]
fn a_source_without_an_artifact_has_no_plan() {
    let api = api_with_proxy();
    api.set_json(SOURCE, 200, &source(&json!({})));
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("GitRepository flux-system/fleet: it has no artifact yet"), "{error}");
    api.set_json(
        SOURCE,
        403,
        &status_error(403, "gitrepositories \"fleet\" is forbidden: User \"jane\" cannot get it"),
    );
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("User \"jane\" cannot get it"), "{error}");
}

#[test]
fn drawings_are_deterministic_and_say_why_an_object_stays() {
    for (format, parts) in [
        ("svg", [">delete 1</text>", ">ConfigMap shop/data: kustomize.toolkit.fluxcd.io/prune: disabled</text>"]),
        (
            "html",
            [
                "<b class=\"delete\">delete</b> ConfigMap shop/old",
                "<p class=\"reason\">kustomize.toolkit.fluxcd.io/prune: disabled</p>",
            ],
        ),
    ] {
        let (code, text, notes) = api_with_proxy().plan(&["--output", format]);
        assert_eq!((code, &*notes), (Some(0), ""), "{format}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part} is not in {text}"));
        assert_eq!(api_with_proxy().plan(&["--output", format]).1, text, "{format}");
    }
}

#[test]
fn the_drawing_in_the_documentation_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/plan.svg");
    let (_, drawn, notes) = api_with_proxy().plan(&["--output", "svg"]);
    assert!(
        std::fs::read_to_string(file).unwrap_or_default() == drawn,
        "{file} is out of date; expected\n{drawn}\n{notes}"
    );
}
