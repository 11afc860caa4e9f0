//! Generates a repository like that of a large organization. Its kustomize roots share bases and components. All roots
//! build without errors.

use std::fs;
use std::io;
use std::path::Path;

/// The size of a repository.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Number of roots.
    pub roots: usize,
    /// Number of bases and components together; half of them are components.
    pub parts: usize,
}

/// Writes a repository of the size `size` into `folder`. Each root has a folder in `roots`, each base has a folder in
/// `bases`, and each component has a folder in `components`.
pub fn write(folder: &Path, size: Size) -> io::Result<()> {
    let half = size.parts / 2;
    (0..half).try_for_each(|number| write_all(&folder.join(base(number)), &base_files(number)))?;
    (0..half).try_for_each(|number| write_all(&folder.join(component(number)), &component_files(number)))?;
    (0..size.roots).try_for_each(|number| write_all(&folder.join(root(number)), &[root_file(number, half)]))
}

/// Returns the path of the folder of the root with the number `number`, relative to the repository.
pub fn root(number: usize) -> String {
    format!("roots/r{number:04}")
}

fn base(number: usize) -> String {
    format!("bases/b{number:04}")
}

fn component(number: usize) -> String {
    format!("components/c{number:04}")
}

type File = (&'static str, String);

fn write_all(folder: &Path, files: &[File]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

/// Returns the kustomization file of the root with the number `number`. The root has two bases and up to three
/// components. Roots with consecutive numbers share some of them. `half` is the number of bases in the repository, and
/// also the number of components.
fn root_file(number: usize, half: usize) -> File {
    let (first, next) = (number * 3 / 2 % half, (number * 3 / 2 + 1) % half);
    let (one, two, three) = (first, next, (number * 7 + 5) % half);
    let third = if three == one || three == two { String::new() } else { format!("- ../../{}\n", component(three)) };
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: team-{}
resources:
- ../../{}
- ../../{}
components:
- ../../{}
- ../../{}
{third}images:
- name: registry.example/app
  newTag: v{number}
labels:
- pairs: {{team: t{number}}}
patches:
- patch: |-
    - op: replace
      path: /spec/replicas
      value: 3
  target: {{kind: Deployment}}
",
        number % 20,
        base(first),
        base(next),
        component(one),
        component(two),
    );
    ("kustomization.yaml", text)
}

fn base_files(number: usize) -> [File; 3] {
    let kustomization = "resources:\n- deployment.yaml\n- service.yaml\n".to_owned();
    let deployment = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: app-{number}}}}}
  template:
    metadata:
      labels: {{app: app-{number}}}
    spec:
      containers:
      - name: app
        image: registry.example/app:v1
        ports: [{{containerPort: 8080}}]
        env:
        - {{name: LEVEL, value: info}}
        resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}
"
    );
    let service = format!(
        "apiVersion: v1
kind: Service
metadata:
  name: app-{number}
spec:
  selector: {{app: app-{number}}}
  ports: [{{port: 80, targetPort: 8080}}]
"
    );
    [("kustomization.yaml", kustomization), ("deployment.yaml", deployment), ("service.yaml", service)]
}

/// Returns the files of the component with the number `number`. A component with an even number adds a ConfigMap with
/// settings. A component with an odd number adds a sidecar to every Deployment.
fn component_files(number: usize) -> [File; 2] {
    let head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    if number.is_multiple_of(2) {
        let generator = format!("{head}configMapGenerator:\n- name: settings-{number}\n  envs: [settings.env]\n");
        return [("kustomization.yaml", generator), ("settings.env", format!("NUMBER={number}\nLEVEL=info\n"))];
    }
    let patch = format!("{head}patches:\n- path: sidecar.yaml\n  target: {{kind: Deployment}}\n");
    let sidecar = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: any}}
spec:
  template:
    spec:
      containers:
      - {{name: sidecar-{number}, image: registry.example/sidecar:v1}}
"
    );
    [("kustomization.yaml", patch), ("sidecar.yaml", sidecar)]
}
