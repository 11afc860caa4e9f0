//! Tests of traces from a client through the API server to portcullis.

use std::collections::BTreeSet;

use hyper::Request;

use crate::Case;
use crate::collector::ReceivedSpan;
use crate::context::Context;
use crate::sentences::eventually;

/// The tests of this file.
pub const CASES: &[Case] = &[("traces::spans_are_children_of_the_api_servers", spans_are_children_of_the_api_servers)];

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";
const INSTALLATION: &str = r#"{
    "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation", "metadata": {"name": "traced"},
    "spec": {
        "componentDescriptor": {
            "ref": {"componentName": "example.org/server", "version": "v1.0.0", "repositoryContext": {"type": "x"}}
        },
        "blueprint": {"ref": {"resourceName": "blueprint"}}
    }
}"#;

/// Checks that the spans of portcullis belong to the trace that the client starts. For each webhook call, the API
/// server adds a span to this trace. The span of portcullis for the call must be a child of the API server's span.
fn spans_are_children_of_the_api_servers(ctx: &Context) {
    let ns = ctx.cluster.namespace("traced");
    let path = format!("/apis/landscaper.gardener.cloud/v1alpha1/namespaces/{ns}/installations?dryRun=All");
    let request = Request::post(path)
        .header("Content-Type", "application/json")
        .header("traceparent", format!("00-{TRACE}-{CLIENT}-01"))
        .body(INSTALLATION.as_bytes().to_vec())
        .expect("the request is valid");
    let client = ctx.cluster.client();
    ctx.cluster.block_on(client.request_text(request)).expect("the API server admits the object");

    let phases = |ours: &[ReceivedSpan]| ours.iter().map(|one| one.span.name.clone()).collect::<BTreeSet<_>>();
    let (ours, theirs) = eventually(|| {
        let spans = ctx.collector.trace(TRACE);
        let (ours, theirs): (Vec<_>, Vec<_>) =
            spans.into_iter().partition(|arrived| arrived.resource["service.name"] == "portcullis");
        let are_complete = phases(&ours).len() == 2 && theirs.iter().any(|one| one.parent() == CLIENT);
        let known: BTreeSet<_> = theirs.iter().map(ReceivedSpan::id).collect();
        (are_complete && ours.iter().all(|one| known.contains(&one.parent()))).then_some((ours, theirs))
    });
    assert_eq!(phases(&ours), ["POST /mutate".to_owned(), "POST /validate".to_owned()].into());
    for span in &ours {
        let parent =
            theirs.iter().find(|one| one.id() == span.parent()).expect("the API server reported the parent span");
        assert_eq!(parent.resource["service.name"], "apiserver", "{parent:#?}");
        assert_eq!(span.attribute("portcullis.resource"), "installations.landscaper.gardener.cloud");
        assert_eq!((span.attribute("portcullis.namespace"), span.attribute("portcullis.dry_run")), (&*ns, "true"));
    }
}
