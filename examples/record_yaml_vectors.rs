//! Records how kubectl parses every text in `tests/vectors/yaml/cases.json`, and writes the results to the same file:
//!
//! ```sh
//! KUBECTL=/path/to/kubectl cargo run --example record_yaml_vectors
//! ```
//!
//! To add a case, add an entry with `name` and `text` to the file. The text must be an object that kubectl accepts as a
//! resource. `kubectl annotate --local` adds an annotation, and prints the parsed object without a cluster. This
//! program removes the annotation from the printed object.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/yaml/cases.json");
const ANNOTATION: &str = "recorded";

fn main() -> Result<(), Box<dyn Error>> {
    let kubectl = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(FILE)?)?;
    let version = std::env::var("KUBECTL_VERSION").map_or_else(|_| version(&kubectl), Ok)?;
    let mut lines = Vec::new();
    for case in vectors["cases"].as_array().into_iter().flatten() {
        let text = case["text"].as_str().ok_or("a case without a text")?;
        let (documents, error) = parse_with_kubectl(&kubectl, text)?;
        let mut answer = json!({"name": case["name"], "text": text, "documents": documents});
        if !error.is_empty() {
            answer["error"] = Value::from(error);
        }
        lines.push(answer.to_string());
    }
    let mut file = String::new();
    write!(file, "{{\"kubectl\": {}, \"cases\": [\n{}\n]}}\n", Value::from(version), lines.join(",\n"))?;
    Ok(std::fs::write(FILE, file)?)
}

fn version(kubectl: &str) -> Result<String, Box<dyn Error>> {
    let output = Command::new(kubectl).args(["version", "--client", "-o", "json"]).output()?;
    let version: Value = serde_json::from_slice(&output.stdout)?;
    Ok(version["clientVersion"]["gitVersion"].as_str().unwrap_or_default().to_owned())
}

/// Returns the objects that kubectl prints for a text, and its error output.
fn parse_with_kubectl(kubectl: &str, text: &str) -> Result<(Vec<Value>, String), Box<dyn Error>> {
    let annotation = format!("{ANNOTATION}=yes");
    let mut child = Command::new(kubectl)
        .args(["annotate", "--local", "-f", "-", &annotation, "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let printed = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let mut documents = printed.collect::<Result<Vec<_>, _>>()?;
    documents.iter_mut().for_each(remove_annotations);
    Ok((documents, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

fn remove_annotations(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("annotations");
    }
}
