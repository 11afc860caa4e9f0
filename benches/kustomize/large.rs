//! Generates one large tree, as in kustomize's issue 5084: objects that refer to each other, and three levels of
//! overlays with prefixes, labels and patches. The tree builds without errors.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Number of objects in one file.
const OBJECTS_PER_FILE: usize = 100;
/// Number of kinds of objects in the tree. The function `group` returns one object of each kind.
const KINDS: usize = 4;
const PATCHES: usize = 50;

/// Name of the folder that is built: the last of the three overlays.
pub const ROOT: &str = "third";

/// Writes a tree with `objects` objects into a folder.
pub fn write(folder: &Path, objects: usize) -> io::Result<()> {
    let groups = objects / KINDS;
    let base = folder.join("base");
    fs::create_dir_all(&base)?;
    let mut kustomization = String::from("resources:\n");
    for (file, first) in (0..groups).step_by(OBJECTS_PER_FILE / KINDS).enumerate() {
        let last = groups.min(first + OBJECTS_PER_FILE / KINDS);
        writeln!(kustomization, "- objects-{file}.yaml").expect("writing to a String cannot fail");
        fs::write(base.join(format!("objects-{file}.yaml")), (first..last).map(group).collect::<String>())?;
    }
    fs::write(base.join("kustomization.yaml"), kustomization)?;
    write_overlay(folder, ("base", "first"), "namePrefix: first-\n", 0..0)?;
    write_overlay(folder, ("first", "second"), "namePrefix: second-\n", 0..PATCHES / 2)?;
    write_overlay(folder, ("second", ROOT), "nameSuffix: -third\nnamespace: third\n", PATCHES / 2..PATCHES)
}

/// Writes the overlay `name`, whose base is the folder `below`. The overlay patches each Deployment whose number is in
/// the range `patches`.
fn write_overlay(
    folder: &Path,
    (below, name): (&str, &str),
    fields: &str,
    patches: std::ops::Range<usize>,
) -> io::Result<()> {
    let mut text =
        format!("resources: [../{below}]\n{fields}labels:\n- {{pairs: {{{name}: level}}, includeSelectors: true}}\n");
    if !patches.is_empty() {
        text.push_str("patches:\n");
    }
    for number in patches {
        write!(
            text,
            "- target: {{kind: Deployment, name: .*app-{number}}}\n  patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    \
             metadata: {{name: any}}\n    spec:\n      replicas: {number}\n      template:\n        spec:\n          containers:\n          \
             - {{name: app, env: [{{name: NUMBER, value: \"{number}\"}}]}}\n"
        )
        .expect("writing to a String cannot fail");
    }
    fs::create_dir_all(folder.join(name))?;
    fs::write(folder.join(name).join("kustomization.yaml"), text)
}

/// Returns the YAML of a Deployment and of the objects that belong to it. The name of each object contains `number`.
fn group(number: usize) -> String {
    format!(
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
      serviceAccountName: app-{number}
      containers:
      - name: app
        image: registry.example/app:v1
        ports: [{{containerPort: 8080}}]
        env:
        - {{name: LEVEL, value: info}}
        envFrom:
        - configMapRef: {{name: app-{number}}}
---
apiVersion: v1
kind: Service
metadata:
  name: app-{number}
spec:
  selector: {{app: app-{number}}}
  ports: [{{port: 80, targetPort: 8080}}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-{number}
data:
  number: \"{number}\"
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app-{number}
---
"
    )
}
