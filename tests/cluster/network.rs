//! The network of the node: a bridge with its address, and routes.

use std::fs;
use std::io;
use std::process::Command;

/// The address of the node.
pub const NODE: &str = "172.30.0.1";
/// The addresses of Services.
pub const SERVICES: &str = "10.96.0.0/16";
/// The address of the Service `kubernetes`.
pub const API_SERVICE: &str = "10.96.0.1";
/// The addresses of pods.
pub const PODS: &str = "10.244.0.0/24";

const COMMANDS: [&str; 5] = [
    "link set lo up",
    "link add node0 type bridge",
    "addr add 172.30.0.1/24 dev node0",
    "link set node0 up",
    // Service addresses need a route before kube-proxy replaces them.
    "route add default dev node0",
];
const SYSCTLS: [&str; 2] = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/bridge/bridge-nf-call-iptables"];

/// The network of pods, for containerd.
pub const CNI: &str = r#"{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "FOLDER/ipam", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
"#;

/// Creates the network.
pub fn create() -> io::Result<()> {
    for arguments in COMMANDS {
        let output = Command::new("ip").args(arguments.split(' ')).output()?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("ip {arguments}: {message}")));
        }
    }
    SYSCTLS.iter().filter(|file| fs::exists(file).unwrap_or(false)).try_for_each(|file| fs::write(file, "1"))
}
