//! The network of the node: a bridge with the address of the node, and routes. All addresses have the same IP version.

use std::fs;
use std::io;
use std::process::Command;

/// The addresses of the node, its Services and its pods. All have the same IP version.
pub struct Network {
    pub node: &'static str,
    /// The address of the node in the form for URLs: an IPv6 address is in brackets.
    pub host: &'static str,
    /// The address range of Services.
    pub services: &'static str,
    /// The address of the Service `kubernetes`.
    pub api_service: &'static str,
    /// The address range of pods.
    pub pods: &'static str,
    /// The address range that contains all addresses of the IP version.
    pub any: &'static str,
    /// The unspecified address, on which servers listen.
    pub listen: &'static str,
    /// The option of the command `ip` that selects the IP version.
    version: &'static str,
    /// The address of the node with its prefix length.
    assigned: &'static str,
}

/// The addresses of a node with IPv4 only.
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
/// The addresses of a node with IPv6 only.
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
    // Disables duplicate address detection, so that an IPv6 address can be used at once.
    ("/proc/sys/net/ipv6/conf/all/accept_dad", "0"),
    ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
];

/// The CNI configuration of the pod network, which containerd reads.
pub const CNI: &str = r#"{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "FOLDER/ipam", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "ANY"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
"#;

impl Network {
    /// Sets the kernel parameters in `SYSCTLS`, and creates the bridge `node0`. The bridge gets the address of the node
    /// and a default route.
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
            // The kernel requires a route to the address of a Service, before kube-proxy's rules replace the address.
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
