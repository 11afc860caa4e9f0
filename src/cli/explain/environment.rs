//! `portcullis explain environment`: shows how a Composition computes the environment of a composite, step by step.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{DENIED, OK, Unusable, inputs, pretty, print};
use crate::admission::Metadata;
use crate::catalog::{Catalog, LiveReads, Scope, Stored, View, cluster};
use crate::crossplane::composite::composition::{Choice, Chosen, choose};
use crate::crossplane::explain::Explanation;
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS};
use crate::crossplane::{composition, declarations};

/// The output format.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
    /// An SVG drawing of the merged EnvironmentConfigs, for one composite
    Svg,
}

/// Show how a Composition computes the environment of a composite, step by step.
///
/// Shows which EnvironmentConfigs are selected and why others are not, the origin of every key of the merged
/// environment, every patch, and the result. Exit code 1: Crossplane cannot compute the environment.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Show only the composite with this name
    composite: Option<String>,
    /// Show only cluster-scoped composites and those in this namespace. Objects in files that set no namespace get this
    /// namespace
    #[arg(long, short)]
    namespace: Option<String>,
    /// The Composition to use, instead of the one that the composites refer to
    #[arg(long, value_name = "NAME")]
    composition: Option<String>,
    /// A file with an example composite to explain. The composite does not need to exist in the cluster or in
    /// --manifests
    #[arg(long, value_name = "FILE")]
    example: Option<PathBuf>,
    /// Files or folders with the objects; default: the cluster
    #[arg(long, value_name = "PATH", conflicts_with = "kubeconfig")]
    manifests: Vec<PathBuf>,
    /// The kubeconfig of the cluster; default: kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

/// The composites to explain, and the objects from which their environments are computed.
struct Objects {
    catalog: Catalog,
    configs: Vec<Arc<Stored>>,
    composites: Vec<Value>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let objects = args.objects()?;
    let explained = objects
        .composites
        .iter()
        .map(|composite| objects.explain(composite, args.composition.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    let [first, ..] = explained.as_slice() else {
        let name = args.composite.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        return Err(Unusable::new(format!("no composite{name} with a Composition for its kind found")));
    };
    match args.output {
        Output::Text => print(&explained.iter().map(Explanation::to_text).collect::<Vec<_>>().join("\n")),
        Output::Json => print(&pretty(&json!(explained.iter().map(Explanation::to_json).collect::<Vec<_>>()))),
        Output::Svg if explained.len() > 1 => {
            return Err(Unusable::new("an SVG drawing shows only one composite; add its name to the command"));
        }
        Output::Svg => print(&first.to_svg()),
    }
    let fails = explained.iter().any(|explanation| explanation.computation().failure.is_some());
    Ok(if fails { DENIED } else { OK })
}

impl Args {
    fn objects(&self) -> Result<Objects, Unusable> {
        // Without `--namespace`, no namespace is added to objects, because composites of Crossplane 1 are
        // cluster-scoped.
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let (catalog, mut composites) = match self.manifests.as_slice() {
            [] => (self.cluster()?, Vec::new()),
            paths => {
                let objects = inputs::objects(paths, namespace)?;
                let catalog = catalog();
                catalog.replace_all(objects.clone());
                (catalog, objects)
            }
        };
        composites.extend(
            catalog.declared().into_iter().flat_map(|kind| catalog.all(kind)).map(|stored| stored.value().clone()),
        );
        match &self.example {
            Some(path) => composites = inputs::objects(std::slice::from_ref(path), namespace)?,
            None => composites.retain(|object| self.is_asked_for(object)),
        }
        let types: HashSet<(String, String)> =
            catalog.all(&COMPOSITIONS).iter().map(|composition| type_of(composition.value())).collect();
        composites.retain(|object| types.contains(&(text(object, "/apiVersion"), text(object, "/kind"))));
        let clustered = catalog.declared().into_iter().filter(|kind| kind.scope == Scope::Cluster).collect::<Vec<_>>();
        for composite in composites.iter_mut().filter(|object| clustered.iter().any(|kind| kind.is_kind_of(object))) {
            if let Some(metadata) = composite.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("namespace");
            }
        }
        let identity = |object: &Value| {
            let metadata = Metadata::of(object);
            [text(object, "/kind"), metadata.namespace().to_owned(), metadata.name().to_owned()]
        };
        composites.sort_by_cached_key(identity);
        composites.dedup_by_key(|object| identity(object));
        let kinds = [&ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS];
        let mut configs: Vec<_> = kinds.into_iter().flat_map(|kind| catalog.all(kind)).collect();
        configs.sort_by(|a, b| a.name().cmp(b.name()));
        configs.dedup_by(|a, b| a.name() == b.name());
        Ok(Objects { catalog, configs, composites })
    }

    fn is_asked_for(&self, object: &Value) -> bool {
        let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| wanted == text);
        let (namespace, name) = (Metadata::of(object).namespace(), Metadata::of(object).name());
        is(&self.composite, name) && (namespace.is_empty() || is(&self.namespace, namespace))
    }

    fn cluster(&self) -> Result<Catalog, Unusable> {
        inputs::runtime()?.block_on(async {
            let catalog = Arc::new(catalog());
            let client = inputs::client(self.kubeconfig.as_deref()).await?;
            cluster::load(client, &catalog).await.map_err(|error| Unusable::because("the cluster", error))?;
            Arc::into_inner(catalog).ok_or_else(|| Unusable::new("the cluster is still being read"))
        })
    }
}

/// Creates an empty cache for Crossplane objects such as Compositions, and for the composites of every
/// CompositeResourceDefinition.
fn catalog() -> Catalog {
    let kinds = [&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS];
    let catalog = Catalog::new(kinds).declaring(declarations());
    catalog.choose(HashSet::from(["*".to_owned()]));
    catalog
}

impl Objects {
    fn explain(&self, composite: &Value, composition: Option<&str>) -> Result<Explanation, Unusable> {
        let live_reads = LiveReads::new();
        let view = View::new(&self.catalog, &live_reads);
        let name = Metadata::of(composite).name().to_owned();
        let choice = match composition {
            Some(name) => {
                let found = view.find(&COMPOSITIONS, "", name).map(Chosen::current);
                found.map_or(Choice::Missing(name.to_owned()), Choice::One)
            }
            None => self.choice(composite, &view),
        };
        let chosen = match choice {
            Choice::One(chosen) => chosen,
            Choice::Missing(missing) => {
                return Err(Unusable::new(format!("{name} uses Composition {missing:?}, which does not exist")));
            }
            Choice::MissingRevision(missing) => {
                return Err(Unusable::new(format!(
                    "{name} uses CompositionRevision {missing:?}, which does not exist"
                )));
            }
            Choice::NoRevision(of) => {
                let why = format!("no CompositionRevision of {of:?} matches the label selector of {name}");
                return Err(Unusable::new(why));
            }
            Choice::Open(none) if none.is_empty() => {
                return Err(Unusable::new(format!("no Composition matches the label selector of {name}")));
            }
            Choice::Open(several) => {
                let several = several.join(", ");
                return Err(Unusable::new(format!(
                    "{name} may use any of these Compositions: {several}; set --composition"
                )));
            }
        };
        let declaration = composition::declaration(chosen.value())
            .ok_or_else(|| Unusable::new(format!("the environment of {} cannot be read", chosen.shown())))?;
        let text =
            if chosen.is_revision { format!("{} (revision {})", chosen.name, chosen.text.name()) } else { chosen.name };
        Ok(Explanation::of(composite, &text, declaration, &self.configs))
    }

    fn choice(&self, composite: &Value, view: &View<'_>) -> Choice {
        let api_version = text(composite, "/apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = text(composite, "/kind");
        let plural = self.catalog.declared().into_iter().find(|known| known.group == group && known.kind == kind);
        choose(composite, group, plural.map_or("", |known| known.plural), view)
    }
}

fn type_of(composition: &Value) -> (String, String) {
    (text(composition, "/spec/compositeTypeRef/apiVersion"), text(composition, "/spec/compositeTypeRef/kind"))
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
