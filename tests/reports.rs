//! Tests of paged lists and policy reports, with a simulated API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use hyper::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::client::Body;
use kube::core::GroupVersionKind;
use portcullis::admission::Level;
use portcullis::audit::reports::{CUT, VERSION};
use portcullis::audit::{Audited, Entry, ReportError, Reports, Subject, Unread};
use portcullis::catalog::cluster::pages::{Item, Pages};
use portcullis::gate::Registry;
use serde_json::{Value, json};

type Answer = (u16, Value);

/// Returns a client for a simulated API server. `answer` gets the method, the path with query, and the body of each
/// request.
fn client(answer: impl Fn(&Method, &str, Value) -> Answer + Send + Sync + 'static) -> Client {
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
            let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
            let (status, body) = answer(&head.method, &path, body);
            let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
            Ok::<_, Infallible>(response.body(Body::from(body.to_string().into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

fn failure(code: u16, reason: &str) -> Answer {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "reason": reason, "code": code}),
    )
}

fn page(names: &[&str], token: &str) -> Answer {
    let item = |name: &&str| json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": name}});
    let items: Vec<_> = names.iter().map(item).collect();
    (200, json!({"kind": "ThingList", "apiVersion": "example.org/v1", "metadata": {"continue": token}, "items": items}))
}

fn things(client: Client) -> Pages {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.org", "v1", "Thing"), "things");
    Pages::of(Api::<DynamicObject>::all_with(client, &resource))
}

#[tokio::test]
async fn restarts_an_expired_list() {
    let remaining_failures = Mutex::new(1);
    let mut pages = things(client(move |_, path, _| {
        let mut remaining_failures = remaining_failures.lock().unwrap();
        match path.contains("continue=next") {
            false => page(&["a", "b"], "next"),
            true if *remaining_failures > 0 => {
                *remaining_failures -= 1;
                failure(410, "Expired")
            }
            true => page(&["c"], ""),
        }
    }));
    let mut seen = Vec::new();
    while let Some(item) = pages.next().await.unwrap() {
        seen.push(match item {
            Item::Beginning => "beginning".to_owned(),
            Item::Object(text) => {
                serde_json::from_str::<Value>(text).unwrap()["metadata"]["name"].as_str().unwrap().to_owned()
            }
        });
    }
    assert_eq!(seen, ["beginning", "a", "b", "beginning", "a", "b", "c"]);
}

#[tokio::test]
async fn fails_if_the_list_expires_every_time() {
    let mut pages = things(client(|_, path, _| match path.contains("continue=next") {
        false => page(&["a"], "next"),
        true => failure(410, "Expired"),
    }));
    let mut first = 0;
    let error = loop {
        match pages.next().await {
            Ok(item) => first += usize::from(item.expect("the list ends without an error") == Item::Beginning),
            Err(error) => break error,
        }
    };
    assert_eq!(first, 3);
    assert!(matches!(error, kube::Error::Api(status) if status.code == 410));
}

/// A simulated API server that stores reports of openreports.io by path, and records the writes.
#[derive(Clone, Default)]
struct Store {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    writes: Arc<Mutex<Vec<String>>>,
}

const API: &str = "/apis/openreports.io/v1alpha1";

impl Store {
    fn client(&self) -> Client {
        let store = self.clone();
        client(move |method, path, body| store.answer(method, path, body))
    }

    fn answer(&self, method: &Method, path: &str, mut body: Value) -> Answer {
        let path = path.split('?').next().unwrap_or_default().to_owned();
        if *method == Method::GET && path == API {
            let resource = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["list"]});
            let resources = [resource("reports", "Report", true), resource("clusterreports", "ClusterReport", false)];
            return (
                200,
                json!({"kind": "APIResourceList", "groupVersion": "openreports.io/v1alpha1", "resources": resources}),
            );
        }
        if !path.starts_with(API) {
            return failure(404, "NotFound");
        }
        let mut objects = self.objects.lock().unwrap();
        if *method == Method::GET {
            let kind = path.rsplit('/').next().unwrap();
            let is_ours =
                |object: &&Value| object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "portcullis";
            let of_kind = objects.iter().filter(|(path, _)| path.contains(&format!("/{kind}/")));
            let items: Vec<_> = of_kind.map(|(_, object)| object).filter(is_ours).collect();
            return (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}));
        }
        self.writes.lock().unwrap().push(format!("{method} {path}"));
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let at = if *method == Method::POST { format!("{path}/{name}") } else { path };
        if *method == Method::DELETE {
            objects.remove(&at);
            return (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}));
        }
        if *method == Method::POST && objects.contains_key(&at) {
            return failure(409, "AlreadyExists");
        }
        body["metadata"]["resourceVersion"] = "1".into();
        objects.insert(at, body.clone());
        (200, body)
    }

    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        self.objects.lock().unwrap().get(&format!("{API}/namespaces/{namespace}/reports/{name}")).cloned()
    }

    async fn write(&self, audited: &Audited) -> Result<(), ReportError> {
        let reports = Reports::read(self.client()).await?;
        reports.write(audited, &Registry::standard(), &[]).await.map(|_| ())
    }
}

fn entry(namespace: &str, name: &str, message: &str) -> Entry {
    let api_version = "landscaper.gardener.cloud/v1alpha1".to_owned();
    let (namespace, kind, name) = (namespace.to_owned(), "Installation".to_owned(), name.to_owned());
    Entry {
        subject: Subject { namespace, kind, name, api_version, uid: String::new() },
        rule: "OW001",
        level: Level::Deny,
        is_exempt: false,
        field: "spec".to_owned(),
        message: message.to_owned(),
        help: None,
        is_new: None,
    }
}

fn audited(entries: Vec<Entry>) -> Audited {
    Audited { entries, ..Audited::default() }
}

#[tokio::test]
async fn splits_reports_and_counts_omitted_results() {
    let store = Store::default();
    let long = "x".repeat(1000);
    let entries = (0..10_000).map(|number| entry("team-a", &format!("server-{number:05}"), &long)).collect();
    store.write(&audited(entries)).await.unwrap();
    let objects = store.objects.lock().unwrap().clone();
    assert_eq!(objects.len(), 16);
    // etcd accepts up to 1.5 MiB.
    assert!(objects.values().all(|report| report.to_string().len() < 800 * 1024));
    let written_results: usize = objects.values().map(|report| report["results"].as_array().unwrap().len()).sum();
    let last = store.get("team-a", "portcullis-audit-16").unwrap();
    let cut = last["metadata"]["annotations"][CUT].as_str().expect("the last report has the number of omitted results");
    assert!(cut.starts_with(&format!("{} more results", 10_000 - written_results)), "{cut}");
    let first = store.get("team-a", "portcullis-audit").unwrap();
    assert_eq!(first["results"][0]["resources"][0]["name"], "server-00000");
    assert_eq!(first["metadata"]["annotations"].get(CUT), None);
    // Fewer findings need fewer reports.
    store.writes();
    store.write(&audited(vec![entry("team-a", "server-00000", &long)])).await.unwrap();
    assert_eq!(store.objects.lock().unwrap().len(), 1);
    assert_eq!(store.writes().len(), 16, "one is changed, and fifteen are deleted");
}

#[tokio::test]
async fn keeps_the_first_version_and_writes_unchanged_reports_once() {
    let store = Store::default();
    store.write(&audited(vec![entry("team-a", "one", "is wrong")])).await.unwrap();
    let path = format!("{API}/namespaces/team-a/reports/portcullis-audit");
    {
        // An older version has written this report some time ago.
        let mut objects = store.objects.lock().unwrap();
        let report = objects.get_mut(&path).unwrap();
        report["metadata"]["annotations"][VERSION] = "0.0.9".into();
        report["results"][0]["properties"]["version"] = "0.0.9".into();
        report["results"][0]["timestamp"]["seconds"] = 1.into();
    }
    store.writes();
    let mut now = audited(vec![entry("team-a", "one", "is wrong"), entry("team-a", "two", "is wrong too")]);
    let reports = Reports::read(store.client()).await.unwrap();
    assert_eq!(reports.version().as_deref(), Some("0.0.9"));
    reports.compare(&mut now);
    let new: Vec<_> = now.entries.iter().map(|entry| entry.is_new).collect();
    assert_eq!(new, [Some(false), Some(true)]);
    store.write(&now).await.unwrap();
    assert_eq!(store.writes(), [format!("PUT {path}")]);
    let report = store.get("team-a", "portcullis-audit").unwrap();
    let of =
        |at: usize| (&report["results"][at]["properties"]["version"], &report["results"][at]["timestamp"]["seconds"]);
    assert_eq!(of(0), (&json!("0.0.9"), &json!(1)));
    assert_eq!(of(1).0, env!("CARGO_PKG_VERSION"));
    store.write(&now).await.unwrap();
    assert_eq!(store.writes(), [""; 0]);
}

#[tokio::test]
async fn keeps_results_of_unread_kinds_and_foreign_reports() {
    let store = Store::default();
    store.write(&audited(vec![entry("team-a", "one", "is wrong")])).await.unwrap();
    let others = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report", "source": "somebody",
        "metadata": {"name": "portcullis-audit", "namespace": "team-b", "resourceVersion": "1"}});
    let theirs = format!("{API}/namespaces/team-b/reports/portcullis-audit");
    store.objects.lock().unwrap().insert(theirs, others.clone());
    let group_kind = ("landscaper.gardener.cloud".to_owned(), "Installation".to_owned());
    let resource = "installations.landscaper.gardener.cloud".to_owned();
    let unread = vec![Unread { resource, group_kind, why: "forbidden".to_owned() }];
    store.writes();
    store.write(&Audited { unread, ..Audited::default() }).await.unwrap();
    assert_eq!(store.writes(), [""; 0]);
    // A report with our name that another program has written is not overwritten. It does not prevent writing other
    // reports.
    let error = store.write(&audited(vec![entry("team-b", "one", "is wrong")])).await.unwrap_err();
    assert!(error.to_string().contains("team-b/portcullis-audit: "), "{error}");
    assert_eq!(store.get("team-b", "portcullis-audit"), Some(others));
    assert_eq!(store.get("team-a", "portcullis-audit"), None, "the report of resolved findings is deleted");
}

#[tokio::test]
async fn reports_the_supported_apis_if_none_is_installed() {
    let client = client(|_, _, _| failure(404, "NotFound"));
    let reports = Reports::read(client).await.unwrap();
    let error = reports.write(&Audited::default(), &Registry::standard(), &[]).await.unwrap_err();
    assert!(error.to_string().contains("wgpolicyk8s.io/v1alpha2"), "{error}");
}
