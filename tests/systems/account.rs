//! Who the controllers are: each has a name of its own, by which the API server's audit log tells whose write it was.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::user::{self, User};

/// A controller's ServiceAccount. It may do everything: what a controller may do is not what is tested here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its namespace, where the system is installed.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// source-controller.
pub const SOURCE_CONTROLLER: Account = Account { namespace: "flux-system", name: "source-controller" };
/// kustomize-controller.
pub const KUSTOMIZE_CONTROLLER: Account = Account { namespace: "flux-system", name: "kustomize-controller" };
/// Landscaper.
pub const LANDSCAPER: Account = Account { namespace: "ls-system", name: "landscaper-controller" };
/// Landscaper's deployer of manifests.
pub const MANIFEST_DEPLOYER: Account = Account { namespace: "ls-system", name: "manifest-deployer" };
/// Landscaper's deployer that deploys nothing.
pub const MOCK_DEPLOYER: Account = Account { namespace: "ls-system", name: "mock-deployer" };
/// Crossplane.
pub const CROSSPLANE: Account = Account { namespace: "crossplane-system", name: "crossplane" };

/// All of them.
pub const ALL: [Account; 6] =
    [SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER, LANDSCAPER, MANIFEST_DEPLOYER, MOCK_DEPLOYER, CROSSPLANE];

impl Account {
    /// Returns the name that audit logs and admission reviews have.
    pub fn user(self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn token(self) -> String {
        format!("{}-token", self.name)
    }

    /// Writes a kubeconfig for it. Returns its path.
    pub fn kubeconfig(self, cluster: &Cluster) -> io::Result<PathBuf> {
        let text = fs::read_to_string(cluster.kubeconfig(User::Admin))?;
        let path = cluster.folder().join(format!("{}.kubeconfig", self.name));
        fs::write(&path, text.replace(User::Admin.token(), &self.token()))?;
        Ok(path)
    }
}

/// Writes the tokens of everybody, and what the API server is to log: every write, without its body.
pub fn prepare(folder: &Path) -> io::Result<()> {
    let line = |account: Account| format!("{},{1},{1},system:masters\n", account.token(), account.user());
    fs::write(folder.join("tokens.csv"), format!("{}{}", user::tokens(), ALL.map(line).concat()))?;
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: None, \
                  resources: [{group: '', resources: [events]}, {group: events.k8s.io}, {group: coordination.k8s.io}]}\n\
                  - {level: Metadata, verbs: [create, update, patch, delete]}\n- {level: None}\n";
    fs::write(folder.join("audit-policy.yaml"), policy)
}
