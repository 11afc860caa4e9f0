//! Parses the URL of an artifact that a Kubernetes Service serves. The result contains the namespace and the name of
//! the Service. With them, the artifact can be downloaded through the service proxy of the API server.

use hyper::Uri;

/// A Service that serves an artifact within the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name and port of the Service, as in service proxy paths and RBAC rules: `source-controller:80`.
    pub name: String,
    /// The path of the artifact below the Service's URL, such as `/gitrepository/…`.
    path: String,
}

impl Service {
    /// Parses the URL of an artifact on a Service, such as
    /// `http://source-controller.flux-system.svc.cluster.local./gitrepository/…`. `None` if the URL is not an
    /// `http` URL of a Service, or if its path could leave the path of the Service, for example with `..`.
    pub fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let labels: Vec<&str> = authority.host().trim_end_matches('.').split('.').collect();
        let [name, namespace, rest @ ..] = &labels[..] else { return None };
        let is_service = rest.first().is_none_or(|zone| *zone == "svc") && [name, namespace].into_iter().all(is_label);
        if uri.scheme_str() != Some("http") || authority.as_str().contains('@') || !is_service {
            return None;
        }
        let port = uri.port_u16().unwrap_or(80);
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        // The request has the rights of the user, so its path must stay below the path of the Service.
        let is_inside = !path.contains('%') && !uri.path().split('/').any(|part| [".", ".."].contains(&part));
        is_inside.then(|| Self { namespace: (*namespace).to_owned(), name: format!("{name}:{port}"), path })
    }

    /// Returns the path of the artifact at the API server's service proxy.
    pub fn proxy_path(&self) -> String {
        let Self { namespace, name, path } = self;
        format!("/api/v1/namespaces/{namespace}/services/{name}/proxy{path}")
    }
}

/// Returns whether a text can be the name of a Service. Such a name is a DNS label that begins with a letter.
fn is_label(text: &&str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    text.starts_with(|letter: char| letter.is_ascii_lowercase()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy_path(url: &str) -> Option<String> {
        Service::of(url).map(|service| service.proxy_path())
    }

    #[test]
    fn names_of_services_are_recognized() {
        let expected = "/api/v1/namespaces/flux-system/services/source-controller:80/proxy/gitrepository/a/b/c.tar.gz";
        for host in ["", ".svc", ".svc.cluster.local", ".svc.cluster.local.", ".svc.corp.example."] {
            let url = format!("http://source-controller.flux-system{host}/gitrepository/a/b/c.tar.gz");
            assert_eq!(proxy_path(&url).as_deref(), Some(expected), "{url}");
        }
        let with_port = proxy_path("http://minio.tools.svc:9000/x").unwrap();
        assert_eq!(with_port, "/api/v1/namespaces/tools/services/minio:9000/proxy/x");
    }

    #[test]
    fn other_hosts_have_no_proxy() {
        for url in [
            "http://127.0.0.1:9090/x",
            "http://localhost/x",
            "http://artifacts.example.org/x",
            "http://user@source-controller.flux-system.svc/x",
            "https://source-controller.flux-system.svc/x",
            "http://[::1]/x",
            "http://source-controller.flux-system.svc/../../../secrets",
            "http://source-controller.flux-system.svc/%2e%2e/secrets",
            "",
        ] {
            assert_eq!(proxy_path(url), None, "{url}");
        }
    }
}
