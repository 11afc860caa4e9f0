//! The users and programs that call the API server.

use std::path::Path;

/// Somebody the API server knows.
#[derive(Clone, Copy, Debug)]
pub enum User {
    /// May do everything.
    Admin,
    /// The ServiceAccount that portcullis runs as: may do what its RBAC manifests grant.
    Portcullis,
    /// The ServiceAccount that the controller manager runs as.
    ControllerManager,
    /// The ServiceAccount of the hook that checks whether portcullis answers.
    Verify,
    /// The ServiceAccount of the hook that takes the registration away.
    Unregister,
    /// A person without rights, until a test grants some.
    Developer,
}

impl User {
    /// Everybody.
    pub const ALL: [Self; 6] =
        [Self::Admin, Self::Portcullis, Self::ControllerManager, Self::Verify, Self::Unregister, Self::Developer];
    /// The users of a release: each has the rights that the chart grants, and no others.
    pub const OF_RELEASE: [Self; 4] = [Self::Portcullis, Self::ControllerManager, Self::Verify, Self::Unregister];

    /// Returns the name that RBAC and audit logs know.
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

    /// Returns the kubeconfig of the user for an API server on this machine, trusted by the certificate in `authority`.
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

/// Returns the token file of the API server.
pub fn tokens() -> String {
    let line = |user: User| format!("{},{1},{1},\"{2}\"\n", user.token(), user.name(), user.groups());
    User::ALL.map(line).concat()
}

/// Returns the audit policy: every request of the release's users, without its body.
pub fn audit_policy() -> String {
    let users: Vec<_> = User::OF_RELEASE.map(|user| format!("{:?}", user.name())).into();
    format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {{level: Metadata, users: \
         [{}]}}\n- {{level: None}}\n",
        users.join(", ")
    )
}
