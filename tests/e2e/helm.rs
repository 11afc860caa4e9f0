//! Renders the chart with Helm, and parses the rendered objects.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Output};

use portcullis::yaml;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assets::{self, AssetsError};
pub use crate::controller_manager::NAMESPACE;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/portcullis");
/// The name of the Helm release. The objects that `portcullis manifests` prints have the same names as the objects of a
/// release with this name.
pub const RELEASE: &str = "portcullis";

/// A Helm binary, and a temporary folder for the files of Helm.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

/// An error that occurred while rendering the chart.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// Helm was not found, and could not be built.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    #[error("running Helm: {0}")]
    Io(#[from] io::Error),
    /// `helm template` failed.
    #[error("helm template with {values}:\n{stderr}")]
    Template {
        /// The chart values in JSON.
        values: String,
        stderr: String,
    },
    /// The output of `helm template` is not valid YAML.
    #[error("parsing the output of Helm: {0}")]
    Yaml(String),
}

/// The rendered objects of a release.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The objects that are not hooks.
    pub objects: Vec<Value>,
    /// The objects with the annotation `helm.sh/hook`.
    pub hooks: Vec<Value>,
}

impl Helm {
    /// Finds Helm, or builds it.
    pub fn find() -> Result<Self, HelmError> {
        Ok(Self { program: assets::helm()?, home: TempDir::new()? })
    }

    /// Runs `helm lint --strict`.
    pub fn lint(&self, values: &Value) -> io::Result<Output> {
        self.run(&["lint", "--strict", CHART], values)
    }

    /// Runs `helm template`.
    pub fn template(&self, values: &Value) -> io::Result<Output> {
        self.run(&["template", RELEASE, CHART, "--namespace", NAMESPACE], values)
    }

    /// Renders the chart with these values, and returns its objects.
    pub fn render(&self, values: &Value) -> Result<Rendered, HelmError> {
        let output = self.template(values)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(HelmError::Template { values: values.to_string(), stderr });
        }
        Rendered::read(&String::from_utf8_lossy(&output.stdout))
    }

    fn run(&self, arguments: &[&str], values: &Value) -> io::Result<Output> {
        let file = tempfile::NamedTempFile::new_in(self.home.path())?;
        fs::write(file.path(), values.to_string())?;
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--values").arg(file.path()).env_remove("KUBECONFIG").env("HOME", self.home.path());
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(folder, self.home.path());
        }
        command.output()
    }
}

impl Rendered {
    fn read(text: &str) -> Result<Self, HelmError> {
        let documents = yaml::read(text, &yaml::Limits::default());
        let documents = documents.map_err(|error| HelmError::Yaml(error.to_string()))?;
        let objects = documents.into_iter().map(|document| document.value).filter(|value| !value.is_null());
        let is_hook = |object: &Value| object["metadata"]["annotations"]["helm.sh/hook"].is_string();
        let (hooks, objects) = objects.partition(is_hook);
        Ok(Self { objects, hooks })
    }

    /// Returns the object with this kind and name. Hooks are not searched. Panics if there is no such object.
    #[track_caller]
    pub fn find(&self, kind: &str, name: &str) -> &Value {
        let is_match = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is_match).unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// Returns the arguments of the first container in a Deployment.
    #[track_caller]
    pub fn arguments(&self, deployment: &str) -> Vec<String> {
        let arguments = &self.find("Deployment", deployment)["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = arguments.as_array().expect("a container has arguments").iter();
        arguments.map(|argument| argument.as_str().expect("an argument is a text").to_owned()).collect()
    }
}

/// Returns a `List` of the objects in JSON, as input for `kubectl apply`.
pub fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}
