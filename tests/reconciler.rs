//! Tests of the controllers of the controller manager, and of the manifests that are generated from them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use hyper::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use portcullis::catalog::{Catalog, Change, Observe};
use portcullis::crossplane::kinds::DEFINITIONS;
use portcullis::gate::Registry;
use portcullis::gate::registration::Choice;
use portcullis::process::telemetry::{Format, Telemetry};
use portcullis::reconciler::registration::Registration;
use portcullis::reconciler::{Events, Next, Settings, Tools, controllers};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;

#[test]
fn the_committed_permissions_are_up_to_date() {
    let all = Choice::These(Registry::standard().default_families());
    let service_account = "portcullis-companion".to_owned();
    let written = Registration { namespace: "portcullis-system".to_owned(), service_account, families: all };
    for (folder, registration) in [("webhook-config", written), ("charts/portcullis/templates", Registration::chart())]
    {
        for (file, text) in registration.manifests(&controllers(&Settings::default())) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file);
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "{} is out of date: run `make generate`", path.display());
        }
    }
}

/// Returns a client for an API server without any objects.
fn empty_api_server() -> Client {
    let service = tower::service_fn(|_: Request<Body>| async {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                            "message": "not found", "code": 404});
        let response = Response::builder().status(StatusCode::NOT_FOUND);
        Ok::<_, Infallible>(response.body(Body::from(status.to_string().into_bytes())).unwrap())
    });
    Client::new(service, "default")
}

/// An observer that collects the changes of a catalog.
#[derive(Default)]
struct Changes(Mutex<Vec<Change>>);

impl Observe for Changes {
    fn changed(&self, change: &Change, _: &Catalog) {
        self.0.lock().unwrap().push(change.clone());
    }
}

/// A writer that collects log records.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Regression test for issue 18 (Crossplane, item 10): `reconcile --composites` logged no warning if the webhook
/// configurations that it maintains do not exist.
#[tokio::test]
async fn warns_if_the_webhook_configurations_of_composites_do_not_exist() {
    let (log, changes, client) = (Log::default(), Arc::new(Changes::default()), empty_api_server());
    let mut catalog = Catalog::new([&DEFINITIONS]);
    catalog.set_observer(changes.clone());
    catalog.insert(&DEFINITIONS, json!({"metadata": {"name": "xdatabases.example.org"}}));
    let events = Events::new(client.clone(), "test", Counter::default());
    let tools = Tools { client, catalog: Arc::new(catalog), events };
    let all = controllers(&Settings::default());
    let composites = all.iter().find(|controller| controller.name() == "composites").unwrap();
    let change = changes.0.lock().unwrap()[0].clone();
    let (telemetry, subscriber) = Telemetry::new(Format::Text, "info", log.clone()).unwrap();
    {
        let _here = tracing::subscriber::set_default(subscriber);
        for object in composites.affected(&change, &tools.catalog) {
            assert_eq!(composites.reconcile(&object, &tools).await.unwrap(), Next::Done);
        }
    }
    drop(telemetry);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let warning = format!("{kind} portcullis-composites does not exist");
        assert!(text.lines().any(|line| line.contains(" WARN ") && line.contains(&warning)), "{text}");
    }
}
