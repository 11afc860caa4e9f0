//! The scope of the built-in kinds of Kubernetes: namespaced or cluster-scoped.
//!
//! Source: `kubectl api-resources` of Kubernetes 1.36. Custom resources are not in these lists.

use super::fragment::Identity;

/// The namespaced built-in kinds of Kubernetes, by API group.
const NAMESPACED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("batch", &["CronJob", "Job"]),
    ("coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("networking.k8s.io", &["Ingress", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding"]),
];

/// The cluster-scoped built-in kinds of Kubernetes, by API group.
const CLUSTER: &[(&str, &[&str])] = &[
    ("", &["Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("certificates.k8s.io", &["CertificateSigningRequest"]),
    ("networking.k8s.io", &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
];

/// Reports whether the kind in `identity` is namespaced; `None` if the kind is not a built-in kind of Kubernetes.
pub(in crate::landscaper) fn is_namespaced(identity: &Identity) -> Option<bool> {
    let group = identity.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let holds = |list: &[(&str, &[&str])]| {
        list.iter().any(|(of, kinds)| *of == group && kinds.contains(&identity.kind.as_str()))
    };
    if holds(NAMESPACED) {
        return Some(true);
    }
    holds(CLUSTER).then_some(false)
}
