//! Compares how Portcullis and the command line of kustomize build Argo CD sources with kustomize options. Portcullis
//! must apply the options as Argo CD does.
//!
//! Argo CD runs `kustomize edit` for each option, in the order of [`apply_options`]. It adds patches to the
//! kustomization file without `kustomize edit`, and then runs `kustomize build`. This test runs the same commands,
//! because it cannot run the code of Argo CD. The Go module of Argo CD cannot be built from the module proxy: its
//! `go.mod` replaces a module with a local folder. Trees and options are random. The outputs must be equal byte by
//! byte, or both builds must fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use portcullis::admission::FieldPath;
use portcullis::kustomize::Files;
use portcullis::kustomize::engine::{self, Settings};
use portcullis::kustomize::options::{ArgoSpec, Options, Profile};
use portcullis::kustomize::tree::{Tree, TreePath};
use portcullis::yaml::{self, Limits};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::engine::Built;
use crate::oracle;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/render/argo");
const FILES: [&str; 3] = [include_str!("argo/main.go"), include_str!("argo/go.mod"), include_str!("argo/go.sum")];

const OBJECTS: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {tier: front}}\nspec:\n  replicas: 1\n  \
                       selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
                       containers:\n      - {name: web, image: 'nginx:1.0', envFrom: [{configMapRef: {name: settings}}]}\n      \
                       - {name: side, image: 'host:5000/side@sha256:aa'}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n\
                       spec: {selector: {app: web}}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: \
                       {spec: {containers: [{name: a, image: busybox}]}}}\n";

/// Compares the builds of `count` random sources. `seed` determines the random sources.
pub fn run(count: u64, seed: u64) -> ExitCode {
    let program = oracle::program("argo", SOURCE, &FILES, &[]);
    let (mut equal, mut refused, mut differences) = (0, 0, Vec::new());
    for number in 0..count {
        let mut dice = Dice::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let (files, options) = (tree(&mut dice), options(&mut dice));
        let (ours, theirs) = (build_with_engine(&files, &options), build_with_kustomize(&program, &files, &options));
        match (&ours, &theirs) {
            (Built::Text(ours), Ok(theirs)) if ours == theirs => equal += 1,
            (Built::Refused(_), Err(_)) => refused += 1,
            _ => differences.push(format!("{files:#?}\n{options:#}\nours: {ours:#?}\nkustomize: {theirs:#?}")),
        }
    }
    println!(
        "{count} sources, seed {seed}: {equal} with equal bytes, {refused} refused by both, {} differences",
        differences.len()
    );
    differences.iter().take(3).for_each(|difference| println!("\n{difference}"));
    if differences.is_empty() && equal > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a random tree of files: the content of each file by its path. The test builds the folder `app` of this tree.
fn tree(dice: &mut Dice) -> BTreeMap<&'static str, String> {
    let mut file = json!({"resources": ["objects.yaml"]});
    let fields = [
        ("namePrefix", json!("own-")),
        ("nameSuffix", json!("-own")),
        ("namespace", json!("own")),
        ("commonLabels", json!({"team": "own"})),
        ("commonAnnotations", json!({"note": "own"})),
        ("labels", json!([{"pairs": {"zone": "own"}}])),
        (
            "images",
            json!([{"name": "nginx", "newName": "own/nginx", "newTag": "2"}, {"name": "busybox", "newTag": "own"}]),
        ),
        ("replicas", json!([{"name": "web", "count": 2}])),
        ("patches", json!([{"target": {"kind": "Job"}, "patch": "- {op: add, path: /spec/suspend, value: true}"}])),
        ("configMapGenerator", json!([{"name": "settings", "literals": ["a=b"]}])),
        ("components", json!(["../parts/b"])),
    ];
    for (field, value) in fields {
        if dice.chance(35) {
            file[field] = value;
        }
    }
    if dice.chance(20) {
        file["labels"] = json!([{"pairs": {"zone": "own"}, "includeTemplates": true}, {"pairs": {"other": "own"}}]);
    }
    let part = |name: &str| {
        let patch = "- {op: add, path: /metadata/annotations, value: {part: NAME}}".replace("NAME", name);
        let patches = json!([{"target": {"kind": "Service"}, "patch": patch}]);
        json!({"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches}).to_string()
    };
    BTreeMap::from([
        ("app/kustomization.yaml", file.to_string()),
        ("app/objects.yaml", OBJECTS.to_owned()),
        ("parts/a/kustomization.yaml", part("a")),
        ("parts/b/kustomization.yaml", part("b")),
    ])
}

/// Returns random kustomize options, as in `spec.source.kustomize` of an Application.
fn options(dice: &mut Dice) -> Value {
    let mut options = json!({});
    let patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}\n";
    let fields = [
        ("namePrefix", json!("app-")),
        ("nameSuffix", json!("-app")),
        ("namespace", json!("app")),
        ("commonLabels", json!({"team": "app", "name": "$ARGOCD_APP_NAME-${ARGOCD_APP_PROJECT_NAME}$$${UNSET}"})),
        ("commonLabels", json!({"zone": "app", "fresh": "a:b"})),
        ("forceCommonLabels", json!(true)),
        ("labelWithoutSelector", json!(true)),
        ("labelIncludeTemplates", json!(true)),
        ("commonAnnotations", json!({"note": "$ARGOCD_APP_NAME"})),
        ("commonAnnotations", json!({"more": "\"quoted\""})),
        ("forceCommonAnnotations", json!(true)),
        ("commonAnnotationsEnvsubst", json!(true)),
        ("images", json!(["nginx:$ARGOCD_APP_NAME", "host:5000/side=other/side"])),
        ("images", json!(["nginx=*:9", "busybox=b@sha256:bb"])),
        ("replicas", json!([{"name": "web", "count": 5}])),
        ("replicas", json!([{"name": "web", "count": "7"}, {"name": "other", "count": 1}])),
        (
            "patches",
            json!([{"target": {"kind": "Deployment", "name": "web"}, "patch": "- {op: remove, path: /spec/replicas}"}]),
        ),
        ("patches", json!([{"patch": patch}])),
        ("components", json!(["../parts/a"])),
        ("components", json!(["../parts/*"])),
        ("components", json!(["../parts/gone", "../parts/b"])),
        ("ignoreMissingComponents", json!(true)),
    ];
    for (field, value) in fields {
        if dice.chance(22) {
            options[field] = value;
        }
    }
    if dice.chance(3) {
        options["images"] = json!(["nothing"]);
    }
    options
}

fn variables() -> BTreeMap<&'static str, String> {
    [("ARGOCD_APP_NAME", "shop"), ("ARGOCD_APP_PROJECT_NAME", "sales")]
        .map(|(name, value)| (name, value.to_owned()))
        .into()
}

fn write(files: &BTreeMap<&str, String>) -> tempfile::TempDir {
    let folder =
        tempfile::Builder::new().prefix("portcullis-argo-").tempdir().expect("a temporary folder can be created");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("the path has a parent folder")).expect("the folder can be written to");
        fs::write(path, text).expect("the folder can be written to");
    }
    folder
}

fn build_with_engine(files: &BTreeMap<&str, String>, options: &Value) -> Built {
    let folder = write(files);
    let tree = Tree::folder(Path::new("/")).expect("the root of the file system can be read");
    let argo = ArgoSpec::of(options, FieldPath::of(["spec", "source", "kustomize"]), &variables());
    let options = Options { argo, ..Options::of(Profile::ArgoCd) };
    let root = fs::canonicalize(folder.path()).expect("the folder exists").join("app");
    let root = TreePath::from(root.to_str().expect("a path is UTF-8").trim_start_matches('/'));
    let (settings, files) = (Settings::default(), Files::default());
    let built = engine::build(&tree, &root, &options, &settings, &files);
    built.and_then(|built| built.text()).into()
}

fn build_with_kustomize(program: &Path, files: &BTreeMap<&str, String>, options: &Value) -> Result<String, String> {
    let folder = write(files);
    let root = fs::canonicalize(folder.path()).expect("the folder exists").join("app");
    apply_options(program, &root, options)?;
    run_kustomize(program, &root, &["build".to_owned(), root.display().to_string()])
}

/// Changes the kustomization file in the folder `root` as Argo CD does for the kustomize options `options`. `program`
/// is the path of the kustomize executable.
fn apply_options(program: &Path, root: &Path, options: &Value) -> Result<(), String> {
    let edit = |arguments: Vec<String>| {
        let all: Vec<_> = [vec!["edit".to_owned()], arguments].concat();
        run_kustomize(program, root, &all).map(drop)
    };
    let text = |key: &str| options[key].as_str().filter(|text| !text.is_empty());
    let is_set = |key: &str| options[key] == true;
    let strings = |strings: &[&str]| strings.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let list = |key: &str| options[key].as_array().cloned().unwrap_or_default();
    let pairs = |key: &str, expands: bool| {
        let pairs = options[key].as_object().cloned().unwrap_or_default();
        let value =
            |value: &Value| value.as_str().map(|text| if expands { expand_variables(text) } else { text.to_owned() });
        pairs.iter().map(|(key, own)| format!("{key}:{}", value(own).unwrap_or_default())).collect::<Vec<_>>()
    };
    for (option, command) in [("namePrefix", "nameprefix"), ("nameSuffix", "namesuffix")] {
        text(option).map_or(Ok(()), |value| edit(strings(&["set", command, "--", value])))?;
    }
    let images: Vec<_> = list("images").iter().filter_map(|image| image.as_str().map(expand_variables)).collect();
    if !images.is_empty() {
        edit([strings(&["set", "image"]), images].concat())?;
    }
    let count = |replica: &Value| replica["count"].as_str().map_or_else(|| replica["count"].to_string(), str::to_owned);
    let replica = |replica: &Value| format!("{}={}", replica["name"].as_str().unwrap_or_default(), count(replica));
    let replicas: Vec<_> = list("replicas").iter().map(replica).collect();
    if !replicas.is_empty() {
        edit([strings(&["set", "replicas"]), replicas].concat())?;
    }
    let labels = pairs("commonLabels", true);
    if !labels.is_empty() {
        let flags = [
            ("forceCommonLabels", "--force"),
            ("labelWithoutSelector", "--without-selector"),
            ("labelIncludeTemplates", "--include-templates"),
        ];
        let flags = flags.into_iter().filter(|(key, _)| is_set(key)).map(|(_, flag)| flag.to_owned());
        edit([strings(&["add", "label"]), flags.collect(), labels].concat())?;
    }
    let annotations = pairs("commonAnnotations", is_set("commonAnnotationsEnvsubst"));
    if !annotations.is_empty() {
        let force = if is_set("forceCommonAnnotations") { strings(&["--force"]) } else { Vec::new() };
        edit([strings(&["add", "annotation"]), force, annotations].concat())?;
    }
    text("namespace").map_or(Ok(()), |value| edit(strings(&["set", "namespace", "--", value])))?;
    append_patches(&root.join("kustomization.yaml"), list("patches"));
    let is_there = |component: &Value| root.join(component.as_str().unwrap_or_default()).exists();
    let mut components = list("components");
    components.retain(|component| !is_set("ignoreMissingComponents") || is_there(component));
    let components: Vec<_> = components.iter().filter_map(|component| component.as_str().map(str::to_owned)).collect();
    if components.is_empty() { Ok(()) } else { edit([strings(&["add", "component"]), components].concat()) }
}

fn append_patches(file: &Path, patches: Vec<Value>) {
    if patches.is_empty() {
        return;
    }
    let text = fs::read_to_string(file).expect("the file can be read");
    let limits = Limits::default();
    let document = yaml::documents(&text, &limits).next().expect("the file has a document");
    let mut kustomization = document.expect("the file is YAML").value;
    match kustomization.get_mut("patches").and_then(Value::as_array_mut) {
        Some(own) => own.extend(patches),
        None => kustomization["patches"] = patches.into(),
    }
    fs::write(file, kustomization.to_string()).expect("the file can be written");
}

/// Replaces variables such as `$NAME` in a text, as Go's `os.Expand` does.
fn expand_variables(text: &str) -> String {
    let variables = variables();
    let mut expanded = text.replace("${UNSET}", "").replace("$$", "\0");
    for (name, value) in &variables {
        expanded = expanded.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    expanded.replace('\0', "$")
}

fn run_kustomize(program: &Path, folder: &Path, arguments: &[String]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env_clear().env("PATH", "/nonexistent");
    let output = command.output().expect("kustomize runs");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
