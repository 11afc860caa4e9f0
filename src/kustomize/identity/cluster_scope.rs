//! The scope of Kubernetes kinds: namespaced or cluster-scoped.
//!
//! Source: the table `precomputedIsNamespaceScoped` in kyaml's `openapi` package, which contains the kinds of
//! Kubernetes 1.21. Without a custom schema, kustomize treats all kinds that are not in this table as namespaced,
//! including custom resources.

use super::gvk::Gvk;

/// All cluster-scoped kinds in kustomize's schema, as sorted pairs of apiVersion and kind.
static CLUSTER_SCOPED: [(&str, &str); 36] = [
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration"),
    ("networking.k8s.io/v1", "IngressClass"),
    ("networking.k8s.io/v1beta1", "IngressClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
    ("policy/v1beta1", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("storage.k8s.io/v1beta1", "CSIDriver"),
    ("storage.k8s.io/v1beta1", "CSINode"),
    ("storage.k8s.io/v1beta1", "StorageClass"),
    ("storage.k8s.io/v1beta1", "VolumeAttachment"),
    ("v1", "ComponentStatus"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "NodeProxyOptions"),
    ("v1", "PersistentVolume"),
];

/// All namespaced kinds in kustomize's schema, as sorted pairs of apiVersion and kind.
static NAMESPACED: [(&str, &str); 46] = [
    ("apps/v1", "ControllerRevision"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ("autoscaling/v1", "Scale"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("batch/v1beta1", "CronJob"),
    ("coordination.k8s.io/v1", "Lease"),
    ("coordination.k8s.io/v1beta1", "Lease"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice"),
    ("events.k8s.io/v1", "Event"),
    ("events.k8s.io/v1beta1", "Event"),
    ("extensions/v1beta1", "Ingress"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1beta1", "Ingress"),
    ("policy/v1", "PodDisruptionBudget"),
    ("policy/v1beta1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1beta1", "Role"),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding"),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity"),
    ("v1", "ConfigMap"),
    ("v1", "Endpoints"),
    ("v1", "Event"),
    ("v1", "LimitRange"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "PodAttachOptions"),
    ("v1", "PodExecOptions"),
    ("v1", "PodPortForwardOptions"),
    ("v1", "PodProxyOptions"),
    ("v1", "PodTemplate"),
    ("v1", "ReplicationController"),
    ("v1", "ResourceQuota"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "ServiceProxyOptions"),
];

/// Returns the apiVersions in which a kind is cluster-scoped. For most kinds the result is empty.
pub(in crate::kustomize) fn cluster_scoped(kind: &str) -> impl Iterator<Item = &'static str> {
    CLUSTER_SCOPED.iter().filter(move |(_, known)| *known == kind).map(|(api_version, _)| *api_version)
}

/// Returns whether kustomize's precomputed table contains the scope of a kind. If it does, kustomize needs no schema to
/// determine the scope.
pub(in crate::kustomize) fn is_known(gvk: &Gvk<'_>) -> bool {
    let is_own = |(api_version, kind): &(&str, &str)| *kind == gvk.kind && Gvk::new(api_version, kind) == *gvk;
    NAMESPACED.iter().any(is_own) || CLUSTER_SCOPED.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_its_readers() {
        assert!(CLUSTER_SCOPED.is_sorted() && NAMESPACED.is_sorted());
        assert_eq!(cluster_scoped("Namespace").collect::<Vec<_>>(), ["v1"]);
        assert_eq!(cluster_scoped("Deployment").count(), 0);
        assert!(is_known(&Gvk::new("apps/v1", "Deployment")) && is_known(&Gvk::new("v1", "Namespace")));
        assert!(!is_known(&Gvk::new("v1", "Widget")) && !is_known(&Gvk::new("", "ConfigMap")));
    }
}
