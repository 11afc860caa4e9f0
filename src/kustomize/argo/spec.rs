//! Reads the kustomize options of an Argo CD source.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use crate::admission::FieldPath;
use crate::kustomize::file::{Patch, Replica};
use crate::kustomize::options::ArgoSpec;

impl ArgoSpec {
    /// Reads the kustomize options of an Argo CD source. `field` is the path of the options in the Application.
    /// `variables` are the build variables that Argo CD substitutes in images and labels. Argo CD also substitutes them
    /// in annotations if `commonAnnotationsEnvsubst` is set. Strings with unresolved parameters of an ApplicationSet
    /// (`{{…}}`) are omitted.
    pub fn of(options: &Value, field: FieldPath, variables: &BTreeMap<&str, String>) -> Self {
        let known = |text: &str| (!text.contains("{{")).then(|| text.to_owned());
        let text = |key: &str| options.get(key).and_then(Value::as_str).and_then(known).unwrap_or_default();
        let is_set = |key: &str| options.get(key).and_then(Value::as_bool) == Some(true);
        let list = |key: &str| options.get(key).and_then(Value::as_array).into_iter().flatten();
        let texts = |key: &str| list(key).filter_map(|entry| known(entry.as_str()?)).collect::<Vec<_>>();
        let pairs = |key: &str, expands: bool| {
            let pairs = options.get(key).and_then(Value::as_object).into_iter().flatten();
            let pair = |(key, value): (&String, &Value)| {
                let value = known(value.as_str()?)?;
                let value = if expands { expanded(&value, variables) } else { value };
                Some((key.clone(), unquoted(&value).to_owned()))
            };
            pairs.filter_map(pair).collect::<BTreeMap<_, _>>()
        };
        let is_known = |patch: &Patch| !patch.patch.contains("{{");
        let read = Self {
            field: FieldPath::root(),
            name_prefix: text("namePrefix"),
            name_suffix: text("nameSuffix"),
            namespace: text("namespace"),
            images: texts("images").iter().map(|image| expanded(image, variables)).collect(),
            replicas: list("replicas").filter_map(replica).collect(),
            common_labels: pairs("commonLabels", true),
            common_annotations: pairs("commonAnnotations", is_set("commonAnnotationsEnvsubst")),
            force_common_labels: is_set("forceCommonLabels"),
            force_common_annotations: is_set("forceCommonAnnotations"),
            label_without_selector: is_set("labelWithoutSelector"),
            label_include_templates: is_set("labelIncludeTemplates"),
            patches: list("patches").filter_map(|patch| Patch::deserialize(patch).ok()).filter(is_known).collect(),
            components: texts("components"),
            ignore_missing_components: is_set("ignoreMissingComponents"),
        };
        // Without options, `field` stays empty, so that all such sources are equal.
        if read == Self::default() { read } else { Self { field, ..read } }
    }
}

/// Reads an entry of `replicas`, whose count may be a number or a string. Returns `None` if the name is missing, or if
/// the count is missing or not an integer.
fn replica(entry: &Value) -> Option<Replica> {
    let name = entry.get("name").and_then(Value::as_str)?.to_owned();
    let count = entry.get("count")?;
    let count = count.as_i64().or_else(|| count.as_str()?.parse().ok())?;
    Some(Replica { name, count })
}

/// Removes the double quotes around `value`, if it begins and ends with one. `kustomize edit add` does the same.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Expands build variables as Argo CD does with Go's `os.Expand`. An unset variable becomes the empty string. `$$`
/// becomes a dollar sign.
fn expanded(text: &str, variables: &BTreeMap<&str, String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, length) = name(after);
        match name {
            "" if length == 0 => expanded.push('$'),
            "$" => expanded.push('$'),
            name => expanded.push_str(variables.get(name).map(String::as_str).unwrap_or_default()),
        }
        rest = after.get(length..).unwrap_or_default();
    }
    expanded + rest
}

/// Returns the name of a build variable, and the length in bytes of the name and its braces. `text` is the text that
/// follows the `$` of the variable. For example, the result for `{NAME}-x` is `NAME` and 6.
fn name(text: &str) -> (&str, usize) {
    if let Some(inner) = text.strip_prefix('{') {
        // Without a closing brace, only the opening brace is consumed.
        return inner.find('}').map_or(("", 1), |end| (&inner[..end], end + 2));
    }
    let is_special = |byte: u8| b"*#$@!?-0123456789".contains(&byte);
    if text.bytes().next().is_some_and(is_special) {
        return (&text[..1], 1);
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    (&text[..end], end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_variables_as_go_does() {
        let variables = BTreeMap::from([("NAME", "shop".to_owned())]);
        for (text, expected) in [
            ("a-$NAME-b", "a-shop-b"),
            ("${NAME}x$NAMEx", "shopx"),
            ("$$NAME ${UNSET}.", "$NAME ."),
            ("$-$1$ $", "$ $"),
            ("${NAME", "NAME"),
        ] {
            assert_eq!(expanded(text, &variables), expected, "{text}");
        }
    }
}
