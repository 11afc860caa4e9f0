//! The ServiceAccounts of the controllers. Each controller has its own, so that the API server's audit log shows which
//! controller wrote an object.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::user::{self, User};

/// The ServiceAccount of a controller. It has all permissions, because the tests do not cover the RBAC rules of the
/// controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The namespace of the ServiceAccount, such as `flux-system`.
    pub namespace: &'static str,
    pub name: &'static str,
}

pub const SOURCE_CONTROLLER: Account = Account { namespace: "flux-system", name: "source-controller" };
pub const KUSTOMIZE_CONTROLLER: Account = Account { namespace: "flux-system", name: "kustomize-controller" };
pub const LANDSCAPER: Account = Account { namespace: "ls-system", name: "landscaper-controller" };
/// The deployer of Landscaper that applies Kubernetes manifests.
pub const MANIFEST_DEPLOYER: Account = Account { namespace: "ls-system", name: "manifest-deployer" };
/// The ServiceAccount of Landscaper's mock deployer. This deployer is for tests, and deploys nothing.
pub const MOCK_DEPLOYER: Account = Account { namespace: "ls-system", name: "mock-deployer" };
pub const CROSSPLANE: Account = Account { namespace: "crossplane-system", name: "crossplane" };

/// The ServiceAccounts of all controllers.
pub const ALL: [Account; 6] =
    [SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER, LANDSCAPER, MANIFEST_DEPLOYER, MOCK_DEPLOYER, CROSSPLANE];

impl Account {
    /// Returns the user name of the ServiceAccount, as in audit logs and admission requests.
    pub fn user(self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    fn token(self) -> String {
        format!("{}-token", self.name)
    }

    /// Writes a kubeconfig for the ServiceAccount. Returns the path of the file.
    pub fn kubeconfig(self, cluster: &Cluster) -> io::Result<PathBuf> {
        let text = fs::read_to_string(cluster.kubeconfig(User::Admin))?;
        let path = cluster.folder().join(format!("{}.kubeconfig", self.name));
        fs::write(&path, text.replace(User::Admin.token(), &self.token()))?;
        Ok(path)
    }
}

/// Writes the bearer tokens of all users and the audit policy of the API server into `folder`. The policy logs the
/// metadata of all writes, except those of Events and Leases.
pub fn prepare(folder: &Path) -> io::Result<()> {
    let line = |account: Account| format!("{},{1},{1},system:masters\n", account.token(), account.user());
    fs::write(folder.join("tokens.csv"), format!("{}{}", user::tokens(), ALL.map(line).concat()))?;
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: None, \
                  resources: [{group: '', resources: [events]}, {group: events.k8s.io}, {group: coordination.k8s.io}]}\n\
                  - {level: Metadata, verbs: [create, update, patch, delete]}\n- {level: None}\n";
    fs::write(folder.join("audit-policy.yaml"), policy)
}
