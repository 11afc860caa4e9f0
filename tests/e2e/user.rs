//! The users that send requests to the API server in the tests.

use std::path::Path;

/// A user of the API server, with a bearer token.
#[derive(Clone, Copy, Debug)]
pub enum User {
    /// A cluster administrator with all rights.
    Admin,
    /// The ServiceAccount of the portcullis server, with the rights that its RBAC manifests grant.
    Portcullis,
    /// The ServiceAccount of the controller manager, `portcullis reconcile`.
    ControllerManager,
    /// The ServiceAccount of the Helm hook that runs `portcullis verify`.
    Verify,
    /// The ServiceAccount of the Helm hook that runs `portcullis unregister`.
    Unregister,
    /// A user who has no permissions by default. Tests can grant permissions to this user.
    Developer,
}

impl User {
    /// All users.
    pub const ALL: [Self; 6] =
        [Self::Admin, Self::Portcullis, Self::ControllerManager, Self::Verify, Self::Unregister, Self::Developer];
    /// The ServiceAccounts that the Helm chart creates. Each has only the rights that the chart grants.
    pub const OF_RELEASE: [Self; 4] = [Self::Portcullis, Self::ControllerManager, Self::Verify, Self::Unregister];

    /// Returns the user name in RBAC manifests and audit logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Portcullis => "system:serviceaccount:portcullis-system:portcullis",
            Self::ControllerManager => "system:serviceaccount:portcullis-system:portcullis-companion",
            Self::Verify => "system:serviceaccount:portcullis-system:portcullis-verify",
            Self::Unregister => "system:serviceaccount:portcullis-system:portcullis-unregister",
            Self::Developer => "developer",
        }
    }

    /// Returns the user's bearer token.
    pub fn token(self) -> &'static str {
        match self {
            Self::Admin => "admin-token",
            Self::Portcullis => "portcullis-token",
            Self::ControllerManager => "companion-token",
            Self::Verify => "verify-token",
            Self::Unregister => "unregister-token",
            Self::Developer => "developer-token",
        }
    }

    /// Returns the content of a kubeconfig of this user for the API server on the local port `port`. `authority` is the
    /// path of the CA certificate of the API server.
    pub fn kubeconfig(self, port: u16, authority: &Path) -> String {
        let (token, authority) = (self.token(), authority.display());
        format!(
            r#"apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: "{authority}"}}
users:
- name: e2e
  user: {{token: "{token}"}}
contexts:
- name: e2e
  context: {{cluster: e2e, user: e2e}}
current-context: e2e
"#
        )
    }

    fn groups(self) -> &'static str {
        match self {
            Self::Admin => "system:masters",
            Self::Portcullis | Self::ControllerManager | Self::Verify | Self::Unregister => {
                "system:serviceaccounts,system:serviceaccounts:portcullis-system"
            }
            Self::Developer => "developers",
        }
    }
}

/// Returns the content of the API server's token file, which contains all users.
pub fn tokens() -> String {
    let line = |user: User| format!("{},{1},{1},\"{2}\"\n", user.token(), user.name(), user.groups());
    User::ALL.map(line).concat()
}

/// Returns the API server's audit policy. It logs every request of the users in [`User::OF_RELEASE`], without the
/// bodies.
pub fn audit_policy() -> String {
    let users: Vec<_> = User::OF_RELEASE.map(|user| format!("{:?}", user.name())).into();
    format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {{level: Metadata, users: \
         [{}]}}\n- {{level: None}}\n",
        users.join(", ")
    )
}
