//! Compares our YAML parser with kubectl. The recorded answers of kubectl are in `tests/vectors/yaml/cases.json`;
//! `examples/record_yaml_vectors.rs` records them.
#![allow(missing_docs)]

use portcullis::yaml::{self, Limits};
use serde::Deserialize;
use serde_json::{Number, Value};

const VECTORS: &str = include_str!("vectors/yaml/cases.json");
/// Beginnings of kubectl's error messages about texts that it cannot parse, and about numbers that it cannot represent.
/// All other errors of kubectl are about objects in valid YAML.
const REFUSED: [&str; 2] =
    ["error: error parsing STDIN:", "error: unable to decode \"STDIN\": json: cannot unmarshal number"];

/// Names of the cases in which our parser differs from kubectl, each with the cause of the difference.
const DIFFERENCES: &[(&str, &str)] = &[
    // Our parser is stricter than kubectl.
    ("quotes '\"a\"#c'", "a comment without a space before it"),
    ("block |# c", "a comment without a space before it"),
    ("flow '[#c\\n1]'", "a comment without a space before it"),
    ("quotes '\"a\\nb\"'", "a quoted scalar that goes on at the first column"),
    ("quotes \"'a\\nb'\"", "a quoted scalar that goes on at the first column"),
    ("bom inside", "a byte order mark within a document"),
    ("stream flow root and bracket", "a bracket after the document, which kubectl never looks at"),
    ("stream json surrogate alone", "half a character, which is no text in Rust"),
    ("flow plain 'v: [-]\\n'", "a dash alone in brackets"),
    ("flow '[?a]'", "an explicit key without a space in brackets"),
    ("flow plain 'v: {?a: 1}\\n'", "an explicit key without a space in brackets"),
    // YAML 1.1 treats U+0085, U+2028 and U+2029 as line breaks.
    ("quotes '\"\\x85\"'", "U+0085"),
    ("nel", "U+0085"),
    ("line separator", "U+2028"),
    // YAML 1.2 allows a colon before a bracket.
    ("flow plain 'v: [a:]\\n'", "a colon before a bracket"),
];

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    text: String,
    documents: Vec<Value>,
    #[serde(default)]
    error: String,
}

impl Case {
    /// Describes how our result differs from that of kubectl. Returns `None` if they agree.
    fn difference(&self) -> Option<String> {
        let read = yaml::read(&self.text, &Limits::default());
        match (read, REFUSED.iter().any(|words| self.error.starts_with(words))) {
            (Err(_), true) => None,
            (Err(error), false) => Some(format!("we say {error}")),
            (Ok(_), true) => Some(format!("kubectl says {}", self.error)),
            (Ok(_), false) if !self.error.is_empty() => None,
            (Ok(documents), false) => {
                let values: Vec<_> = documents.into_iter().map(|document| document.value).collect();
                let alike = values.len() == self.documents.len()
                    && values.iter().zip(&self.documents).all(|(ours, theirs)| is_equal(ours, theirs));
                (!alike).then(|| format!("we read {}", Value::from(values)))
            }
        }
    }
}

/// Reports whether our value equals kubectl's. kubectl prints a float without a fraction as an integer, and an integer
/// beyond 63 bits as a float.
fn is_equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours == theirs || float(ours) == float(theirs),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_equal(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| ours.0 == theirs.0 && is_equal(ours.1, theirs.1))
        }
        _ => ours == theirs,
    }
}

fn float(number: &Number) -> Option<f64> {
    let small = number.as_i64().is_some_and(|int| int.unsigned_abs() < 1 << 53);
    if small || !number.is_i64() { number.as_f64() } else { None }
}

#[test]
fn reads_as_kubectl_does() {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.cases.len() > 500, "the vectors are not complete");
    let mut wrong = Vec::new();
    for case in &vectors.cases {
        let known = DIFFERENCES.iter().any(|(name, _)| *name == case.name);
        match case.difference() {
            Some(difference) if !known => {
                wrong.push(format!(
                    "{}: {:?}\n    {difference}\n    they: {} {}",
                    case.name,
                    case.text,
                    Value::from(case.documents.clone()),
                    case.error
                ));
            }
            None if known => wrong.push(format!("{} is not different any more", case.name)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), vectors.cases.len(), wrong.join("\n"));
}
