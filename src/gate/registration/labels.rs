//! The common labels of the Helm chart. A release sets them on all its objects.

/// Template text for objects that already have labels. It replaces the line `labels:`, and inserts the common labels
/// before the labels of the object.
const MORE: &str =
    "  labels:\n    {{- with $.Values.commonLabels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n";
/// Template text for objects without labels. It is the field `labels` with the common labels.
const ALL: &str = "  {{- with $.Values.commonLabels }}\n  labels:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n";

/// Adds the common labels to every object of a template.
pub(crate) fn with_common_labels(text: &str) -> String {
    let (mut labelled, mut lines) = (String::new(), text.split_inclusive('\n').peekable());
    while let Some(line) = lines.next() {
        labelled.push_str(line);
        if line != "metadata:\n" {
            continue;
        }
        while let Some(line) = lines.next_if(|line| line.starts_with("  name: ") || line.starts_with("  namespace: ")) {
            labelled.push_str(line);
        }
        labelled.push_str(if lines.next_if_eq(&"  labels:\n").is_some() { MORE } else { ALL });
    }
    labelled
}
