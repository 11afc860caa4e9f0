//! The people and programs that talk to the API server.

use std::path::Path;

/// Somebody the API server knows.
#[derive(Clone, Copy, Debug)]
pub enum User {
    /// May do everything.
    Admin,
    /// The ServiceAccount that portcullis runs as: may do what its RBAC manifests grant.
    Portcullis,
    /// The ServiceAccount that the companion runs as.
    Companion,
    /// The ServiceAccount of the hook that asks whether portcullis answers.
    Verify,
    /// The ServiceAccount of the hook that takes the registration away.
    Unregister,
    /// A person without rights, until a trial grants some.
    Developer,
}

impl User {
    /// Everybody.
    pub const ALL: [Self; 6] =
        [Self::Admin, Self::Portcullis, Self::Companion, Self::Verify, Self::Unregister, Self::Developer];
    /// Those that a release makes: each may do what the chart grants, and no more.
    pub const OF_RELEASE: [Self; 4] = [Self::Portcullis, Self::Companion, Self::Verify, Self::Unregister];

    /// The name that RBAC and audit logs know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Portcullis => "system:serviceaccount:portcullis-system:portcullis",
            Self::Companion => "system:serviceaccount:portcullis-system:portcullis-companion",
            Self::Verify => "system:serviceaccount:portcullis-system:portcullis-verify",
            Self::Unregister => "system:serviceaccount:portcullis-system:portcullis-unregister",
            Self::Developer => "developer",
        }
    }

    /// What the user shows to the API server.
    pub fn token(self) -> &'static str {
        match self {
            Self::Admin => "admin-token",
            Self::Portcullis => "portcullis-token",
            Self::Companion => "companion-token",
            Self::Verify => "verify-token",
            Self::Unregister => "unregister-token",
            Self::Developer => "developer-token",
        }
    }

    /// The kubeconfig of the user for an API server on this machine, trusted by the certificate in `authority`.
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
            Self::Portcullis | Self::Companion | Self::Verify | Self::Unregister => {
                "system:serviceaccounts,system:serviceaccounts:portcullis-system"
            }
            Self::Developer => "developers",
        }
    }
}

/// The file that tells the API server who has which token.
pub fn tokens() -> String {
    let line = |user: User| format!("{},{1},{1},\"{2}\"\n", user.token(), user.name(), user.groups());
    User::ALL.map(line).concat()
}

/// What the API server is to write down: every request of those that a release makes, without its body.
pub fn audit_policy() -> String {
    let users: Vec<_> = User::OF_RELEASE.map(|user| format!("{:?}", user.name())).into();
    format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {{level: Metadata, users: \
         [{}]}}\n- {{level: None}}\n",
        users.join(", ")
    )
}
