//! Writes the seeds of the fuzz targets: the recorded cases of `tests/vectors`, in the input format of each target. Run
//! it with `cargo run --example fuzz_seeds -- fuzz/corpus`.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use portcullis::catalog::manifests::{DEFAULT_NAMESPACE, Manifests};
use serde_json::{Value, json};

const DEPLOYERS: &str = "\
deployers:
  landscaper:
    users: [\"system:serviceaccount:landscaper:landscaper\"]
  identities:
    - users: [\"system:serviceaccount:landscaper:manifest-deployer\"]
      types: [landscaper.gardener.cloud/kubernetes-manifest]
";

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let corpus = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_owned());
    let corpus = Path::new(&corpus);
    let targets = [
        "configuration",
        "review",
        "yaml",
        "kustomization",
        "tree",
        "analysis",
        "generated",
        "export_path",
        "manifests",
    ];
    let environment_targets = ["field_path", "transform", "environment"];
    targets.iter().chain(&environment_targets).try_for_each(|target| fs::create_dir_all(corpus.join(target)))?;
    reviews(corpus)?;
    texts(corpus)?;
    configurations(corpus)?;
    manifests(corpus)?;
    paths(corpus)?;
    environments(corpus)?;
    trees(corpus)
}

fn vectors(file: &str) -> Result<Value, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn enumerate_items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

fn reviews(corpus: &Path) -> Outcome {
    let vectors = vectors("landscaper/overwrites.json")?;
    for (number, case) in enumerate_items(&vectors["cases"]) {
        let object = json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
            "metadata": {"name": "n", "namespace": "ns"}, "overwrites": case["input"]["overwrites"],
        });
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": {"group": "landscaper.gardener.cloud", "version": "v1alpha1", "kind": object["kind"]},
            "resource": {"group": "landscaper.gardener.cloud", "version": "v1alpha1", "resource": "componentversionoverwrites"},
            "name": "n", "namespace": "ns", "operation": "CREATE", "userInfo": {"username": "u"}, "object": object,
            "oldObject": null, "dryRun": false,
        }});
        fs::write(corpus.join(format!("review/{number}")), review.to_string())?;
    }
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reviews"))? {
        let path = entry?.path();
        fs::copy(&path, corpus.join("review").join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

fn texts(corpus: &Path) -> Outcome {
    for (number, case) in enumerate_items(&vectors("yaml/cases.json")?["cases"]) {
        fs::write(corpus.join(format!("yaml/{number}")), case["text"].as_str().unwrap_or_default())?;
    }
    Ok(())
}

/// Writes the seeds of the fuzz target `manifests`: the objects of the examples, as Lists and one after the other. The
/// first two bytes of a seed say where the text is split.
fn manifests(corpus: &Path) -> Outcome {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let objects = Manifests::load(&[examples], DEFAULT_NAMESPACE).objects();
    for (number, some) in objects.chunks(3).enumerate() {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": some}).to_string();
        let sequence: String = some.iter().map(|object| format!("{object}\n")).collect();
        for (text, form) in [(list, "list"), (sequence, "sequence")] {
            fs::write(corpus.join(format!("manifests/{form}-{number}")), format!("\0\x01{text}"))?;
        }
    }
    Ok(())
}

/// Writes the seeds of the fuzz target `configuration`: the configurations in the documentation, and the configuration
/// of the end-to-end tests.
fn configurations(corpus: &Path) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manual = fs::read_to_string(root.join("docs/configuration.md"))?;
    let examples = manual.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for (number, text) in examples.enumerate() {
        fs::write(corpus.join(format!("configuration/{number}")), text)?;
    }
    fs::write(corpus.join("configuration/deployers"), DEPLOYERS)?;
    fs::copy(root.join("tests/e2e/config.yaml"), corpus.join("configuration/e2e"))?;
    Ok(())
}

/// Writes the seeds of the fuzz target `export_path`. The first line of a seed is the path or key of an export, the
/// rest is a JSON value.
fn paths(corpus: &Path) -> Outcome {
    let found = vectors("landscaper/jsonpath.json")?;
    for (number, case) in enumerate_items(&found["cases"]) {
        let object = case["objectRef"].as_str().map_or(&case["object"], |name| &found["objects"][name]);
        let path = case["path"].as_str().unwrap_or_default();
        fs::write(corpus.join(format!("export_path/find-{number}")), format!("{path}\n{object}"))?;
    }
    for (number, case) in enumerate_items(&vectors("landscaper/construct.json")?["construct"]) {
        let key = case["key"].as_str().unwrap_or_default();
        fs::write(corpus.join(format!("export_path/construct-{number}")), format!("{key}\n{}", case["value"]))?;
    }
    Ok(())
}

/// Writes the seeds of the fuzz targets `field_path`, `transform` and `environment`. Also writes the seeds of the
/// target `review` that contain Compositions.
fn environments(corpus: &Path) -> Outcome {
    for (number, case) in enumerate_items(&vectors("crossplane/named_fieldpath.json")?) {
        let text = format!("{}\n{}\n{}", case["path"].as_str().unwrap_or_default(), case["value"], case["doc"]);
        fs::write(corpus.join(format!("field_path/{number}")), text)?;
    }
    for (number, case) in enumerate_items(&vectors("crossplane/transforms.json")?) {
        fs::write(corpus.join(format!("transform/{number}")), format!("{}\n{}", case["transform"], case["input"]))?;
    }
    for (number, case) in enumerate_items(&vectors("crossplane/env_patches.json")?) {
        let environment = json!({"defaultData": case["environmentData"], "patches": case["patches"]});
        let composition = json!({"spec": {"environment": environment, "resources": []}});
        fs::write(corpus.join(format!("review/composition-{number}")), review_of(&composition).to_string())?;
        fs::write(corpus.join(format!("environment/{number}")), format!("{composition}\n---\n{}\n", case["xr"]))?;
    }
    for name in ["native", "functions"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/environment");
        let [declared, configs] = [format!("{name}.yaml"), "configs.yaml".to_owned()].map(|file| folder.join(file));
        let text = format!("{}---\n{}", fs::read_to_string(declared)?, fs::read_to_string(configs)?);
        fs::write(corpus.join("environment").join(name), text)?;
    }
    Ok(())
}

/// Returns an AdmissionReview of a Composition, for the rules that read Compositions.
fn review_of(composition: &Value) -> Value {
    let group = "apiextensions.crossplane.io";
    let mut object = composition.clone();
    object["apiVersion"] = json!(format!("{group}/v1"));
    object["kind"] = json!("Composition");
    object["metadata"] =
        json!({"name": "n", "annotations": {"portcullis.dev/environment-schema": "{\"type\": \"object\"}"}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": "v1", "kind": "Composition"},
        "resource": {"group": group, "version": "v1", "resource": "compositions"},
        "name": "n", "operation": "CREATE", "userInfo": {"username": "u"}, "object": object, "oldObject": null, "dryRun": false,
    }})
}

fn trees(corpus: &Path) -> Outcome {
    for file in ["trees", "flux"] {
        for (number, case) in enumerate_items(&vectors(&format!("kustomize/{file}.json"))?) {
            let name = format!("{file}-{number}");
            fs::write(corpus.join("analysis").join(&name), as_text(case))?;
            fs::write(corpus.join("tree").join(&name), as_archive(case)?)?;
            for (path, text) in case["files"].as_object().into_iter().flatten() {
                let name = format!("{name}-{}", path.replace('/', "-"));
                fs::write(corpus.join("kustomization").join(&name), text.as_str().unwrap_or_default())?;
            }
        }
    }
    Ok(())
}

/// Returns the kustomize tree of the recorded case `case`, in the input format of the fuzz target `analysis`.
fn as_text(case: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace("$ROOT", "/base");
    let profile = if case["flux_kustomization"].is_null() { "kubectl" } else { "flux" };
    let mut tree = format!("{} {profile} {} 5.8.1\n", text(&case["build"]), text(&case["load_restrictor"]));
    for (path, content) in case["files"].as_object().into_iter().flatten() {
        tree.push_str(&format!("=== {path}\n{}", text(content)));
    }
    for (path, target) in case["symlinks"].as_object().into_iter().flatten() {
        tree.push_str(&format!("=== {path} -> {}\n", text(target)));
    }
    tree
}

/// Returns the kustomize tree of the recorded case `case`, in the input format of the fuzz target `tree`. The first
/// byte means "not compressed". A tar archive follows.
fn as_archive(case: &Value) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = vec![1];
    let mut builder = tar::Builder::new(&mut bytes);
    for (path, content) in case["files"].as_object().into_iter().flatten() {
        let content = content.as_str().unwrap_or_default().as_bytes();
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, content)?;
    }
    for (path, target) in case["symlinks"].as_object().into_iter().flatten() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, path, target.as_str().unwrap_or_default())?;
    }
    builder.into_inner()?.flush()?;
    Ok(bytes)
}
