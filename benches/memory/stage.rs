//! An API server with the objects of the benchmark.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::io::AsyncBufReadExt as _;
use futures::{StreamExt as _, stream};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Request};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::json;

use crate::cluster::Cluster;
use crate::etcd;
use crate::objects::{Row, namespace, namespaces};
use crate::pod::Pod;
use crate::user::User;

/// Number of concurrent writes. It is high enough that the API server is always busy.
const CONCURRENCY: usize = 24;

/// An API server that stores the objects of the benchmark. `rows` contains the kinds of the objects and their numbers.
pub struct PopulatedCluster {
    cluster: Cluster,
    rows: Vec<Row>,
}

impl PopulatedCluster {
    /// Starts an API server, and creates the objects that `rows` describes.
    pub fn with(rows: &[Row]) -> Self {
        let cluster = Cluster::start(|_| {}).unwrap_or_else(|error| panic!("{error}"));
        let populated = Self { cluster, rows: rows.to_vec() };
        populated.cluster.block_on(populated.create_objects());
        populated
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig(User::Admin)
    }

    /// Returns an environment like that of a pod, in which a benchmark can run a server. It consists of a folder with
    /// credentials, and the address of the API server. `None` if this machine does not permit mount namespaces.
    pub fn pod(&self) -> Option<Pod> {
        Pod::new(&self.kubeconfig(), User::Admin.token())
    }

    pub fn count(&self) -> usize {
        self.rows.iter().map(|row| row.count).sum()
    }

    async fn create_objects(&self) {
        let client = self.cluster.client();
        // Only the API server reads the namespaces, so they need nothing but a name.
        let all: Api<DynamicObject> =
            Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk("", "v1", "Namespace")));
        for name in namespaces() {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            all.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        for row in &self.rows {
            let begun = Instant::now();
            etcd::store(self.cluster.etcd_port(), row);
            create_crd(&client, row).await;
            eprintln!("{} {} stored in {:.0?}", row.count, row.plural, begun.elapsed());
        }
    }

    /// Lists all objects with a client that only receives and counts the bytes. Returns the number of bytes and the
    /// elapsed time.
    pub fn transfer(&self) -> (u64, Duration) {
        let client = self.cluster.client();
        let begun = Instant::now();
        let listed = self.cluster.block_on(async {
            let rows = self.rows.iter().map(|row| list_bytes(&client, row));
            futures::future::join_all(rows).await.into_iter().sum()
        });
        (listed, begun.elapsed())
    }

    /// Changes `rate` objects per second for the time `length`. Every ten seconds, calls `report` with the elapsed time
    /// and the number of changes so far.
    pub fn change(&self, length: Duration, rate: u32, mut report: impl FnMut(Duration, usize)) {
        let (client, changes, begun) = (self.cluster.client(), AtomicUsize::new(0), Instant::now());
        self.cluster.block_on(async {
            let ticks = stream::unfold(tokio::time::interval(Duration::from_secs(1) / rate), |mut every| async {
                every.tick().await;
                Some(((), every))
            });
            let ticks = ticks.take_while(|()| std::future::ready(begun.elapsed() < length)).enumerate();
            let (client, changes) = (&client, &changes);
            let changed = ticks.map(|(at, ())| async move {
                let row = &self.rows[at % self.rows.len()];
                // For some rows, rules read the changed fields; for others, they do not.
                patch(client, row, (at * 7919) % row.count, at).await;
                changes.fetch_add(1, Ordering::Relaxed);
            });
            let mut changed = Box::pin(changed.buffer_unordered(CONCURRENCY));
            let mut reported = begun;
            while changed.next().await.is_some() {
                if reported.elapsed() >= Duration::from_secs(10) {
                    reported = Instant::now();
                    report(begun.elapsed(), changes.load(Ordering::Relaxed));
                }
            }
        });
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::gvk(group, version, kind)
}

fn api(client: &Client, row: &Row, number: usize) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&gvk(row.group, row.version, row.kind), row.plural);
    match row.is_namespaced {
        true => Api::namespaced_with(client.clone(), &namespace(number), &resource),
        false => Api::all_with(client.clone(), &resource),
    }
}

/// Creates the CustomResourceDefinition for the kind that `row` describes, and waits until objects of this kind can be
/// listed. The schema preserves unknown fields, so the objects may have any content.
async fn create_crd(client: &Client, row: &Row) {
    let (plural, kind) = (row.plural, row.kind);
    let name = format!("{plural}.{}", row.group);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": row.group, "scope": if row.is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "kind": kind, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": row.version, "served": true, "storage": true, "schema": schema}],
        },
    });
    let resource = ApiResource::from_gvk(&gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    all.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    while api(client, row, 0).list(&ListParams::default().limit(1)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn patch(client: &Client, row: &Row, number: usize, at: usize) {
    let patch = json!({
        "metadata": {"labels": {"change": at.to_string()}, "annotations": {"landscaper.gardener.cloud/dry-run": at.is_multiple_of(2).to_string()}},
        "data": {"priority": at},
    });
    let (api, name) = (api(client, row, number), row.object_name(number));
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    items: serde::de::IgnoredAny,
}

#[derive(Deserialize)]
struct Metadata {
    r#continue: Option<String>,
}

async fn list_bytes(client: &Client, row: &Row) -> u64 {
    let resource = ApiResource::from_gvk_with_plural(&gvk(row.group, row.version, row.kind), row.plural);
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let (mut token, mut listed) = (None, 0);
    loop {
        let parameters = ListParams { limit: Some(500), continue_token: token, ..ListParams::default() };
        let request = Request::new(all.resource_url()).list(&parameters).unwrap();
        let (mut body, mut text) = (Box::pin(client.request_stream(request).await.unwrap()), Vec::new());
        while body.read_until(0, &mut text).await.unwrap() > 0 {}
        let list: List = serde_json::from_slice(&text).unwrap();
        let List { metadata, items: _ } = list;
        listed += text.len() as u64;
        token = metadata.r#continue.filter(|token| !token.is_empty());
        if token.is_none() {
            return listed;
        }
    }
}
