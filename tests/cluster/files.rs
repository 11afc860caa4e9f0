//! Writes the files of the test cluster's only node: certificates, kubeconfigs and configuration.

use std::fs;
use std::io;
use std::path::Path;

use crate::network::{CNI, Network};
use crate::pki::{Authority, Subject};
use crate::{packages, sandbox};

/// The port of the API server.
pub const PORT: u16 = 6443;

const CONTAINERD: &str = r#"version = 2
root = "FOLDER/containerd"
state = "FOLDER/run"
[grpc]
  address = "FOLDER/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "FOLDER/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  # Without CAP_SYS_RESOURCE, no process may lower its oom_score_adj.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "PLUGINS"
    conf_dir = "FOLDER/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"#;
const KUBELET: &str = r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: "LISTEN"
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /CGROUP
containerRuntimeEndpoint: unix://FOLDER/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: FOLDER/ca.crt}}
authorization: {mode: Webhook}
failSwapOn: false
# Without a registry, a removed image does not come back.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
"#;
const PROXY: &str = r"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: PODS
conntrack: {maxPerCore: 0}
clientConnection: {kubeconfig: FOLDER/proxy.kubeconfig}
hostnameOverride: node
";
const KUBECONFIG: &str = r#"apiVersion: v1
kind: Config
clusters: [{name: node, cluster: {server: "https://HOST:PORT", certificate-authority: FOLDER/ca.crt}}]
users: [{name: user, user: {client-certificate: FOLDER/USER.crt, client-key: FOLDER/USER.key}}]
contexts: [{name: node, context: {cluster: node, user: user}}]
current-context: node
"#;
/// The users that get a client certificate and a kubeconfig. Each entry contains the name of the files, the name of the
/// user, and the group of the user. The group is empty if there is none.
const USERS: [(&str, &str, &str); 5] = [
    ("admin", "admin", "system:masters"),
    ("node", "system:node:node", "system:nodes"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("proxy", "system:kube-proxy", ""),
];

/// Writes all files of the node into a folder.
pub fn write(folder: &Path, network: &Network) -> io::Result<()> {
    write_certificates(folder, network)?;
    let plugins = packages::plugin_folder().ok_or_else(|| io::Error::other("there are no CNI plugins"))?;
    let fill_in = |text: &str| {
        text.replace("FOLDER", &folder.display().to_string())
            .replace("PLUGINS", &plugins.display().to_string())
            .replace("CGROUP", &sandbox::cgroup(folder))
            .replace("PODS", network.pods)
            .replace("ANY", network.any)
            .replace("LISTEN", network.listen)
    };
    fs::create_dir_all(folder.join("cni"))?;
    for (name, text) in [
        ("containerd.toml", CONTAINERD),
        ("kubelet.yaml", KUBELET),
        ("proxy.yaml", PROXY),
        ("cni/10-pods.conflist", CNI),
    ] {
        fs::write(folder.join(name), fill_in(text))?;
    }
    for (file, _, _) in USERS {
        let text = KUBECONFIG.replace("USER", file).replace("HOST", network.host).replace("PORT", &PORT.to_string());
        fs::write(folder.join(format!("{file}.kubeconfig")), fill_in(&text))?;
    }
    Ok(())
}

fn write_certificates(folder: &Path, network: &Network) -> io::Result<()> {
    let authority = Authority::create(folder)?;
    let names =
        ["127.0.0.1", network.node, network.api_service, "localhost", "kubernetes.default.svc"].map(str::to_owned);
    authority.issue(folder, &Subject { file: "server", user: "kube-apiserver", group: "", names: names.to_vec() })?;
    for (file, user, group) in USERS {
        authority.issue(folder, &Subject { file, user, group, names: Vec::new() })?;
    }
    Ok(())
}
