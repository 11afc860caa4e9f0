//! Where `serve` has its certificates from, and whose calls it takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prometheus_client::registry::Registry;
use time::{Duration, OffsetDateTime};

use super::{Unusable, inputs};
use crate::authority::issue::{self, Leaf};
use crate::authority::{Clock, Keeper, Metrics, Settings, Timing};
use crate::server::{Certificates, Clients, Pair, Readiness};

#[derive(Debug, clap::Args)]
pub(super) struct Serving {
    /// The folder with tls.crt and tls.key, reloaded when they change
    #[arg(long, env = "PORTCULLIS_CERTS", value_name = "DIR", default_value = "/etc/portcullis/certs")]
    certs: PathBuf,
    /// Keep a CA in this Secret, together with the other replicas, and the caBundles of our own webhook configurations;
    /// --certs is not read then. See certs/README.md
    #[arg(
        long,
        env = "PORTCULLIS_SELF_MANAGED",
        value_name = "NAMESPACE/SECRET",
        value_parser = secret,
        requires = "server_names",
        conflicts_with = "manifests"
    )]
    self_managed: Option<(String, String)>,
    /// A name that the API server calls this server by, such as portcullis.portcullis-system.svc; may be said several
    /// times
    #[arg(
        long = "server-name",
        id = "server_names",
        env = "PORTCULLIS_SERVER_NAMES",
        value_name = "NAME",
        value_delimiter = ','
    )]
    server_names: Vec<String>,
    /// How long a CA in the Secret lasts, such as 365d; at two thirds of it another one is made
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "365d")]
    ca_life: Duration,
    /// How long a leaf that is signed by it lasts; at two thirds of it another one is signed
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "7d")]
    leaf_life: Duration,
    /// How long old and new CA are in every caBundle before the new one signs
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "5m")]
    ca_overlap: Duration,
    /// Take only calls with a client certificate that a CA in this file (PEM) has signed; reloaded when it changes
    #[arg(long, env = "PORTCULLIS_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Take only calls whose client certificate has this common name, DNS name or URI; may be said several times
    #[arg(
        long = "client-name",
        env = "PORTCULLIS_CLIENT_NAMES",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "client_ca"
    )]
    client_names: Vec<String>,
}

fn secret(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("a namespace and the name of a Secret are wanted, as in portcullis-system/portcullis-ca".to_owned()),
    }
}

/// A whole number and its unit.
fn span(text: &str) -> Result<Duration, String> {
    let wanted = || format!("{text:?} is no time; write a whole number and s, m, h or d, such as 7d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wanted)?;
    let number: u32 = number.parse().map_err(|_| wanted())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wanted()),
    };
    Ok(Duration::seconds(i64::from(number) * seconds))
}

impl Serving {
    /// What is served at first, and is kept up to date from now on.
    pub(super) async fn open(
        &self,
        kubeconfig: Option<&Path>,
        readiness: &Readiness,
        registry: &mut Registry,
    ) -> Result<Arc<Certificates>, Unusable> {
        let Some((namespace, secret)) = &self.self_managed else {
            let certificates = Certificates::from_folder(&self.certs);
            return certificates.map(Arc::new).map_err(|error| Unusable::because("the serving certificate", error));
        };
        let timing = Timing::new(self.ca_life, self.leaf_life, self.ca_overlap);
        timing.check().map_err(|problem| Unusable::because("--ca-life, --leaf-life, --ca-overlap", problem))?;
        let certificates = Arc::new(Certificates::new(self.untrusted(timing)?));
        let served = Arc::clone(&certificates);
        let keeper = Keeper::new(Settings {
            client: inputs::client(kubeconfig).await?,
            namespace: namespace.clone(),
            secret: secret.clone(),
            names: self.server_names.clone(),
            timing,
            clock: Clock::system(),
            metrics: Metrics::register(registry),
            condition: readiness.condition("certificates", "the Secret was not read yet"),
            serve: Box::new(move |leaf| serve(&served, leaf)),
        });
        tokio::spawn(keeper.run());
        Ok(certificates)
    }

    /// Whose calls are taken; `None` for everybody's.
    pub(super) fn clients(&self) -> Result<Option<Arc<Clients>>, Unusable> {
        let clients = self.client_ca.as_ref().map(|file| Clients::from_file(file, self.client_names.clone()));
        clients
            .transpose()
            .map(|clients| clients.map(Arc::new))
            .map_err(|error| Unusable::because("--client-ca", error))
    }

    /// A leaf that nobody trusts: so that there are probes and metrics while the Secret cannot be read.
    fn untrusted(&self, timing: Timing) -> Result<Pair, Unusable> {
        let now = OffsetDateTime::now_utc();
        let leaf = issue::authority(now, timing.authority)
            .and_then(|authority| issue::leaf(&authority, &self.server_names, now, timing.leaf))
            .map_err(|error| Unusable::because("--server-name", error))?;
        pair(&leaf).map_err(|error| Unusable::because("the serving certificate", error))
    }
}

fn pair(leaf: &Leaf) -> Result<Pair, crate::server::CertificateError> {
    Pair::parse(leaf.certificate.pem().as_bytes(), leaf.key.as_bytes())
}

fn serve(certificates: &Certificates, leaf: &Leaf) {
    match pair(leaf) {
        Ok(pair) => certificates.replace(pair),
        Err(error) => tracing::error!(%error, "a leaf that was signed here cannot be served; the one before stays"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(span("7d"), Ok(Duration::days(7)));
        assert_eq!(span("90s"), Ok(Duration::seconds(90)));
        for wrong in ["", "7", "d", "7w", "-1d", "1.5h", "7é"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_has_a_namespace() {
        assert_eq!(secret("a/b"), Ok(("a".to_owned(), "b".to_owned())));
        for wrong in ["", "a", "/b", "a/", "a/b/c"] {
            assert!(secret(wrong).is_err(), "{wrong}");
        }
    }
}
