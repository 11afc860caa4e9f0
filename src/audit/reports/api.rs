//! The two APIs of policy reports: `wgpolicyk8s.io/v1alpha2`, of the Kubernetes policy working group, and its successor
//! `openreports.io/v1alpha1`. Apart from group, version and kind, reports of the two APIs differ only in the field
//! `source`, which only `openreports.io` has.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

/// An API of policy reports, with a namespaced and a cluster-scoped kind.
#[derive(Debug)]
pub(super) struct ReportApi {
    group: &'static str,
    version: &'static str,
    /// Kind and plural name of namespaced reports.
    namespaced: (&'static str, &'static str),
    /// Kind and plural name of cluster-scoped reports.
    cluster: (&'static str, &'static str),
    /// Whether a report has the field `source`.
    pub(super) has_source: bool,
}

/// Both APIs of policy reports. The preferred API comes first.
pub(super) static APIS: [ReportApi; 2] = [
    ReportApi {
        group: "openreports.io",
        version: "v1alpha1",
        namespaced: ("Report", "reports"),
        cluster: ("ClusterReport", "clusterreports"),
        has_source: true,
    },
    ReportApi {
        group: "wgpolicyk8s.io",
        version: "v1alpha2",
        namespaced: ("PolicyReport", "policyreports"),
        cluster: ("ClusterPolicyReport", "clusterpolicyreports"),
        has_source: false,
    },
];

impl ReportApi {
    /// Returns whether the cluster serves this API.
    pub(super) async fn is_installed(&self, client: &Client) -> Result<bool, kube::Error> {
        match client.list_api_group_resources(&self.api_version()).await {
            Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == self.namespaced.1)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns the kind of the reports in a namespace. If `namespace` is empty, returns the cluster-scoped kind.
    pub(super) fn kind(&self, namespace: &str) -> &'static str {
        if namespace.is_empty() { self.cluster.0 } else { self.namespaced.0 }
    }

    fn resource(&self, (kind, plural): (&str, &str)) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(self.group, self.version, kind), plural)
    }

    /// Returns the client for reports in a namespace. If `namespace` is empty, the client is for cluster-scoped
    /// reports.
    pub(super) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(client.clone(), &self.resource(self.cluster)),
            namespace => Api::namespaced_with(client.clone(), namespace, &self.resource(self.namespaced)),
        }
    }

    /// Returns two clients. The first is for reports in all namespaces. The second is for cluster-scoped reports.
    pub(super) fn everywhere(&self, client: &Client) -> [Api<DynamicObject>; 2] {
        [self.namespaced, self.cluster].map(|names| Api::all_with(client.clone(), &self.resource(names)))
    }
}
