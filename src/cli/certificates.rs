//! Loads or issues the serving certificate of `portcullis serve`, and configures the verification of client
//! certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prometheus_client::registry::Registry;
use time::{Duration, OffsetDateTime};

use super::{Unusable, inputs};
use crate::authority::issue::{self, Leaf};
use crate::authority::{Clock, Keeper, Metrics, Settings, Source, Timing};
use crate::server::{Certificates, Clients, Pair, Readiness};

#[derive(Debug, clap::Args)]
pub(super) struct Serving {
    /// The folder with tls.crt and tls.key; the server reloads them when they change
    #[arg(long, env = "PORTCULLIS_CERTS", value_name = "DIR", default_value = "/etc/portcullis/certs")]
    certs: PathBuf,
    /// Manage a CA in this Secret, which the replicas share, and write the CA into the caBundles of the webhook
    /// configurations of portcullis. If set, --certs is not read. See certs/README.md
    #[arg(
        long,
        env = "PORTCULLIS_SELF_MANAGED",
        value_name = "NAMESPACE/SECRET",
        value_parser = secret,
        requires = "server_names",
        conflicts_with = "manifests"
    )]
    self_managed: Option<(String, String)>,
    /// A file (PEM) with the CA of the certificate in --certs. The server ensures that the caBundles of the webhook
    /// configurations of portcullis contain this CA, and reloads the file when it changes. See certs/README.md
    #[arg(
        long,
        env = "PORTCULLIS_PUBLISH_CA",
        value_name = "FILE",
        requires = "ca_state",
        conflicts_with_all = ["manifests", "self_managed"]
    )]
    publish_ca: Option<PathBuf>,
    /// The Secret in which the replicas record which CAs the caBundles contain
    #[arg(
        long,
        env = "PORTCULLIS_CA_STATE",
        value_name = "NAMESPACE/SECRET",
        value_parser = secret,
        requires = "publish_ca"
    )]
    ca_state: Option<(String, String)>,
    /// A name by which the API server calls this server, such as portcullis.portcullis-system.svc; may be repeated
    #[arg(
        long = "server-name",
        id = "server_names",
        env = "PORTCULLIS_SERVER_NAMES",
        value_name = "NAME",
        value_delimiter = ','
    )]
    server_names: Vec<String>,
    /// Validity of a CA in the Secret, such as 365d. Each CA is replaced after two thirds of its validity
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "365d")]
    ca_life: Duration,
    /// Validity of a leaf certificate. Each certificate is replaced after two thirds of its validity
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "7d")]
    leaf_life: Duration,
    /// Time for which every caBundle contains the old and the new CA before the new CA signs certificates
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    ca_overlap: Duration,
    /// Accept only calls with a client certificate signed by a CA in this file (PEM). The server reloads the file when
    /// it changes
    #[arg(long, env = "PORTCULLIS_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Accept only calls whose client certificate has this common name, DNS name or URI; may be repeated
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
        _ => Err("expected NAMESPACE/NAME of a Secret, such as portcullis-system/portcullis-ca".to_owned()),
    }
}

/// Parses a duration that is a whole number with its unit, such as `7d`.
fn duration(text: &str) -> Result<Duration, String> {
    let wanted = || format!("{text:?} is not a duration; write a whole number and s, m, h or d, such as 7d");
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
    /// Loads the serving certificate from the folder `--certs`. With `--self-managed`, creates a temporary certificate
    /// instead.
    ///
    /// With `--self-managed` or `--publish-ca`, also starts a background task. The task writes the CA of the server
    /// into the caBundles of the webhook configurations. With `--self-managed`, it also replaces the temporary
    /// certificate with one that is signed by the CA in a Secret. Adds a condition for the task to `readiness`, and its
    /// metrics to `registry`.
    pub(super) async fn open(
        &self,
        kubeconfig: Option<&Path>,
        readiness: &Readiness,
        registry: &mut Registry,
    ) -> Result<Arc<Certificates>, Unusable> {
        let timing = Timing::new(self.ca_life, self.leaf_life, self.ca_overlap);
        timing.check().map_err(|problem| Unusable::because("--ca-life, --leaf-life, --ca-overlap", problem))?;
        let certificates = match &self.self_managed {
            Some(_) => Certificates::new(self.untrusted(timing)?),
            None => Certificates::from_folder(&self.certs)
                .map_err(|error| Unusable::because("the serving certificate", error))?,
        };
        let certificates = Arc::new(certificates);
        let Some((source, (namespace, secret))) = self.source(&certificates) else { return Ok(certificates) };
        let keeper = Keeper::new(Settings {
            client: inputs::client(kubeconfig).await?,
            namespace,
            secret,
            source,
            timing,
            clock: Clock::system(),
            metrics: Metrics::register(registry),
            condition: readiness.condition("certificates", "the Secret has not been read yet"),
        });
        tokio::spawn(keeper.run());
        Ok(certificates)
    }

    /// Returns the source of the CA that this server writes into the caBundles. Also returns the namespace and name of
    /// the Secret with the state of the CA. `None` if this server does not write caBundles.
    fn source(&self, certificates: &Arc<Certificates>) -> Option<(Source, (String, String))> {
        if let (Some(authority), Some(state)) = (&self.publish_ca, &self.ca_state) {
            return Some((Source::Provided { authority: authority.clone() }, state.clone()));
        }
        let served = Arc::clone(certificates);
        let serve = Box::new(move |leaf: &Leaf| serve(&served, leaf));
        let source = Source::SelfManaged { names: self.server_names.clone(), serve };
        self.self_managed.clone().map(|secret| (source, secret))
    }

    /// Returns the requirements for client certificates: the CA of `--client-ca` and the allowed names. If
    /// `--client-ca` is not set, returns `None`, and the server accepts all clients.
    pub(super) fn clients(&self) -> Result<Option<Arc<Clients>>, Unusable> {
        let clients = self.client_ca.as_ref().map(|file| Clients::from_file(file, self.client_names.clone()));
        clients
            .transpose()
            .map(|clients| clients.map(Arc::new))
            .map_err(|error| Unusable::because("--client-ca", error))
    }

    /// Issues a server certificate from a new CA that no client trusts. With this certificate, the server can serve
    /// probes and metrics while the Secret with the CA cannot be read.
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
        Err(error) => tracing::error!(%error, "a new leaf certificate cannot be served; the previous one stays in use"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_require_a_unit() {
        assert_eq!(duration("7d"), Ok(Duration::days(7)));
        assert_eq!(duration("90s"), Ok(Duration::seconds(90)));
        for wrong in ["", "7", "d", "7w", "-1d", "1.5h", "7é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_require_a_namespace() {
        assert_eq!(secret("a/b"), Ok(("a".to_owned(), "b".to_owned())));
        for wrong in ["", "a", "/b", "a/", "a/b/c"] {
            assert!(secret(wrong).is_err(), "{wrong}");
        }
    }
}
