//! Complete manifests for an installation without Helm, in numbered folders that are applied in their order.

/// The values for the server's manifests, such as its image and namespace.
pub(super) struct Server {
    /// The container image of Portcullis, with its tag or digest.
    pub(super) image: String,
    /// The namespace in which Portcullis is installed.
    pub(super) namespace: String,
    /// The name of the Deployment, the Service and the ConfigMap of Portcullis.
    pub(super) name: String,
    /// The name of the ServiceAccount of Portcullis.
    pub(super) account: String,
    /// The enabled families of rules, such as `KZ`.
    pub(super) families: Vec<&'static str>,
    /// Whether at least one controller runs by default. If so, the manifests of the controller manager are needed.
    pub(super) has_controllers: bool,
}

const PREREQUISITES: &str = "1-prerequisites";
const PERMISSIONS: &str = "2-permissions";
const SERVER: &str = "3-server";
const WEBHOOKS: &str = "4-webhooks";
const OPTIONAL: &str = "optional";

const CONTAINER: &str = include_str!("container.tmpl");
const POD: &str = include_str!("pod.tmpl");
const CONTROLLERS: &str = include_str!("companion.tmpl");
/// The path of the ConfigMap with the configuration of the server. Users write their configuration into this file.
pub(super) const CONFIGURATION: &str = "3-server/configuration.yaml";

/// The manifest files of every installation without Helm. Each entry has the folder, the name and the template of a
/// file.
const FILES: [(&str, &str, &str); 4] = [
    (PREREQUISITES, "namespace.yaml", include_str!("namespace.tmpl")),
    (PERMISSIONS, "certificates.yaml", include_str!("certificates.tmpl")),
    (SERVER, "configuration.yaml", include_str!("configuration.tmpl")),
    (SERVER, "server.yaml", include_str!("server.tmpl")),
];

/// Returns the manifest files of an installation without Helm, as pairs of path and text. The paths begin with numbered
/// folders, such as `1-prerequisites`, which users apply in this order. The files are those in `derived`, such as CRDs,
/// and the manifests of the server. Files for which `is_optional` returns true go into the folder `optional`.
pub(super) fn numbered(
    derived: Vec<(String, String)>,
    server: &Server,
    is_optional: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let place = |file: &str| match file {
        "companion/rbac.yaml" if !server.has_controllers => OPTIONAL,
        file if is_optional(file) => OPTIONAL,
        file if file.starts_with("crds/") => PREREQUISITES,
        file if file.starts_with("mutating") || file.starts_with("validating") => WEBHOOKS,
        _ => PERMISSIONS,
    };
    let moved = derived.into_iter().map(|(file, text)| {
        let name = file.strip_prefix("crds/").unwrap_or(&file).replace('/', "-");
        (format!("{}/{name}", place(&file)), text)
    });
    let controllers = server.has_controllers.then_some((SERVER, "companion.yaml", CONTROLLERS));
    let added = FILES.into_iter().chain(controllers);
    moved.chain(added.map(|(folder, file, text)| (format!("{folder}/{file}"), server.fill(file, text)))).collect()
}

impl Server {
    /// Replaces the placeholders, such as `{image}`, in `template`, the template of the manifest with the name `file`.
    fn fill(&self, file: &str, template: &str) -> String {
        let component = if file == "companion.yaml" { "portcullis-companion" } else { "portcullis" };
        let text = template.replace("{container}\n", CONTAINER).replace("{pod}\n", POD);
        let values = [
            ("{image}", self.image.as_str()),
            ("{namespace}", &self.namespace),
            ("{name}", &self.name),
            ("{account}", &self.account),
            ("{families}", &self.families.join(",")),
            ("{component}", component),
        ];
        values.iter().fold(text, |text, (placeholder, value)| text.replace(placeholder, value))
    }
}
