//! The network of the node: a bridge with its address, and routes. It has addresses of one IP version.

use std::fs;
use std::io;
use std::process::Command;

/// The addresses of one IP version.
pub struct Network {
    /// The address of the node.
    pub node: &'static str,
    /// The address of the node in a URL.
    pub host: &'static str,
    /// The addresses of Services.
    pub services: &'static str,
    /// The address of the Service `kubernetes`.
    pub api_service: &'static str,
    /// The addresses of pods.
    pub pods: &'static str,
    /// All addresses.
    pub any: &'static str,
    /// The address on which a server listens.
    pub listen: &'static str,
    /// The option of `ip` that selects the version.
    version: &'static str,
    /// The node's address, with its prefix.
    assigned: &'static str,
}

/// IPv4 only.
pub static IPV4: Network = Network {
    node: "172.30.0.1",
    host: "172.30.0.1",
    services: "10.96.0.0/16",
    api_service: "10.96.0.1",
    pods: "10.244.0.0/24",
    any: "0.0.0.0/0",
    listen: "0.0.0.0",
    version: "-4",
    assigned: "172.30.0.1/24",
};
/// IPv6 only.
pub static IPV6: Network = Network {
    node: "fd00:30::1",
    host: "[fd00:30::1]",
    services: "fd00:96::/112",
    api_service: "fd00:96::1",
    pods: "fd00:10::/64",
    any: "::/0",
    listen: "::",
    version: "-6",
    assigned: "fd00:30::1/64",
};

const SYSCTLS: [(&str, &str); 6] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/bridge/bridge-nf-call-iptables", "1"),
    ("/proc/sys/net/bridge/bridge-nf-call-ip6tables", "1"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    // An address is used at once, not after a search for duplicates.
    ("/proc/sys/net/ipv6/conf/all/accept_dad", "0"),
    ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
];

/// The network of pods, for containerd.
pub const CNI: &str = r#"{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "FOLDER/ipam", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "ANY"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
"#;

impl Network {
    /// Creates the network.
    pub fn create(&self) -> io::Result<()> {
        SYSCTLS
            .iter()
            .filter(|(file, _)| fs::exists(file).unwrap_or(false))
            .try_for_each(|(file, value)| fs::write(file, value))?;
        let Self { version, assigned, .. } = self;
        for arguments in [
            "link set lo up".to_owned(),
            "link add node0 type bridge".to_owned(),
            format!("{version} addr add {assigned} dev node0"),
            "link set node0 up".to_owned(),
            // Service addresses need a route before kube-proxy replaces them.
            format!("{version} route add default dev node0"),
        ] {
            let output = Command::new("ip").args(arguments.split(' ')).output()?;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(io::Error::other(format!("ip {arguments}: {message}")));
            }
        }
        Ok(())
    }
}
