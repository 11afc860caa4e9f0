//! `portcullis manifests`: writes the webhook configurations, permissions and CRDs for the rules.

mod complete;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use complete::Server;

use super::families::Families;
use super::{DENIED, OK, Unusable, inputs, say};
use crate::catalog::{Declaration, Kind};
use crate::gate::Registry;
use crate::gate::registration::{Choice, Endpoint, Registration};
use crate::reconciler::{self, Controller};
use crate::yaml;

/// Write the webhook configurations, permissions and CRDs for the rules.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output folder
    #[arg(long, short, value_name = "DIR", default_value = "webhook-config")]
    out: PathBuf,
    /// Write nothing; print the differences, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
    /// Write the templates of the Helm chart instead of plain manifests
    #[arg(long, conflicts_with_all = ["url", "ca_bundle", "namespace", "service", "service_account", "families"])]
    chart: bool,
    /// Also write a Deployment of the server with this image. The output is in numbered folders; apply them in order
    #[arg(long, value_name = "REGISTRY/NAME:TAG", conflicts_with_all = ["chart", "url", "ca_bundle"])]
    image: Option<String>,
    /// The URL at which the API server calls the webhooks, instead of the Service of the server
    #[arg(long, value_name = "https://HOST:PORT", conflicts_with = "service")]
    url: Option<String>,
    /// The CA of the serving certificate (PEM). If omitted, the server or another tool must write the caBundles
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// The namespace of portcullis
    #[arg(long, default_value = "portcullis-system")]
    namespace: String,
    /// Files or folders with CompositeResourceDefinitions. Webhooks are registered for the composites of the definitions
    /// that a label or --config selects
    #[arg(long, value_name = "PATH", conflicts_with = "chart")]
    definitions: Vec<PathBuf>,
    /// The configuration file, in which `composites` selects CompositeResourceDefinitions
    #[arg(long, value_name = "FILE", requires = "definitions")]
    config: Option<PathBuf>,
    /// The name of the Service of portcullis
    #[arg(long, default_value = "portcullis")]
    service: String,
    /// The name of the ServiceAccount of portcullis
    #[arg(long, default_value = "portcullis")]
    service_account: String,
    #[command(flatten)]
    families: Families,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let manifests = args.manifests()?;
    if args.check {
        return differences(&args.out, &manifests);
    }
    let mut written = Vec::new();
    for (file, text) in manifests {
        let path = args.out.join(&file);
        if is_configured(&file, &path, &text)? {
            let kept = "kept, because it differs from the default configuration. To get the default, delete this file";
            say(&format!("{}: {kept}\n", path.display()));
        } else {
            written.push((path, text));
        }
    }
    for (path, text) in written {
        write(&path, &text).map_err(|error| Unusable::because(path.display(), error))?;
    }
    Ok(OK)
}

/// Returns whether the file at `path` contains the configuration of the server, and differs from the default in `text`.
/// It must not be overwritten, because users write their configuration into it.
///
/// # Errors
/// If the ConfigMap in the file has another name or namespace than that in `text`. The server would not find it.
fn is_configured(file: &str, path: &Path, text: &str) -> Result<bool, Unusable> {
    let known = std::fs::read_to_string(path).ok().filter(|known| file == complete::CONFIGURATION && known != text);
    let Some(known) = known else { return Ok(false) };
    let config_map = |text: &str| {
        let document = yaml::first(text, &yaml::Limits::default()).ok().flatten()?;
        let field = |name| document.value["metadata"][name].as_str().map(str::to_owned);
        Some((field("namespace")?, field("name")?))
    };
    match (config_map(&known), config_map(text)) {
        (known, Some((namespace, name))) if known != Some((namespace.clone(), name.clone())) => {
            let problem =
                format!("this is not the ConfigMap {name} in the namespace {namespace}: correct or delete the file");
            Err(Unusable::because(path.display(), problem))
        }
        _ => Ok(true),
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}

fn differences(folder: &Path, manifests: &[(String, String)]) -> Result<u8, Unusable> {
    let mut code = OK;
    for (file, text) in manifests {
        let path = folder.join(file);
        let differs = std::fs::read_to_string(&path).ok().as_ref() != Some(text);
        if differs && !is_configured(file, &path, text)? {
            say(&format!("{}: differs from the output of `portcullis manifests`\n", path.display()));
            code = DENIED;
        }
    }
    Ok(code)
}

impl Args {
    /// Returns the manifests as pairs of file name and text.
    fn manifests(&self) -> Result<Vec<(String, String)>, Unusable> {
        let registration = self.registration()?;
        let manager = match self.chart {
            true => reconciler::registration::Registration::chart(),
            false => reconciler::registration::Registration {
                namespace: registration.namespace.clone(),
                service_account: format!("{}-companion", registration.service_account),
                families: registration.families.clone(),
            },
        };
        let of_server = registration.manifests(&Registry::standard()).into_iter();
        let mut manifests: Vec<_> = of_server.map(|manifest| (manifest.file.to_owned(), manifest.text)).collect();
        let controllers = reconciler::controllers(&reconciler::Settings::default());
        manifests.extend(manager.manifests(&controllers));
        Ok(match &self.image {
            Some(image) => complete::numbered(manifests, &self.server(image, &controllers), is_optional(&controllers)),
            None => manifests,
        })
    }

    /// Returns the values for the server's manifests, such as its image and namespace.
    fn server(&self, image: &str, controllers: &[Box<dyn Controller>]) -> Server {
        let families = self.families.on();
        let has_controllers = controllers
            .iter()
            .any(|one| !one.is_optional() && one.family().is_none_or(|family| families.contains(&family)));
        Server {
            image: image.to_owned(),
            namespace: self.namespace.clone(),
            name: self.service.clone(),
            account: self.service_account.clone(),
            has_controllers,
            families,
        }
    }

    fn registration(&self) -> Result<Registration, Unusable> {
        if self.chart {
            return Ok(Registration::chart());
        }
        let endpoint = match &self.url {
            Some(url) if !url.starts_with("https://") => {
                return Err(Unusable::new(format!("--url {url}: the API server calls webhooks by https:// only")));
            }
            Some(url) => Endpoint::Url(url.clone()),
            None => Endpoint::Service { namespace: self.namespace.clone(), name: self.service.clone() },
        };
        let ca_bundle = self.ca_bundle.as_ref().map(|path| ca_bundle(path)).transpose()?;
        let (namespace, service_account) = (self.namespace.clone(), self.service_account.clone());
        let (declared, families) = (self.declared()?, Choice::These(self.families.on()));
        Ok(Registration { endpoint, ca_bundle, namespace, service_account, declared, families })
    }

    /// Returns the kinds of composites that the CompositeResourceDefinitions in `--definitions` declare. Includes only
    /// definitions that have the label `portcullis.dev/composites: "true"`, or that the configuration file selects.
    fn declared(&self) -> Result<Vec<(&'static Declaration, &'static Kind)>, Unusable> {
        let registry = Registry::standard();
        let policy = inputs::policy(self.config.as_deref(), &registry)?;
        let catalog = registry.catalog_of(inputs::objects(&self.definitions, "")?);
        catalog.choose(policy.composites);
        Ok(catalog.declarations())
    }
}

/// Returns a function that takes the path of a manifest file and says whether the file is optional. Optional files are
/// the permissions of controllers that are off by default, and CRDs that only some clusters need.
fn is_optional(controllers: &[Box<dyn Controller>]) -> impl Fn(&str) -> bool {
    move |file| {
        let mut optional = controllers.iter().filter(|one| one.is_optional());
        file.starts_with("crds/kustomize/") || optional.any(|one| file == format!("companion/{}.yaml", one.name()))
    }
}

fn ca_bundle(path: &Path) -> Result<String, Unusable> {
    let pem = std::fs::read(path).map_err(|error| Unusable::because(path.display(), error))?;
    if !pem.starts_with(b"-----BEGIN CERTIFICATE-----") {
        return Err(Unusable::because(path.display(), "this is not a PEM certificate"));
    }
    Ok(STANDARD.encode(pem))
}
