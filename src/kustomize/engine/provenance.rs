//! Prints objects, with the file and line of every value as a comment at the end of its line.

use super::resmap::ResMap;
use super::run::Run;
use super::stop::Step;
use crate::kustomize::emit::{self, Value};
use crate::kustomize::node::Node;
use crate::kustomize::tree::TreePath;

/// Prints all objects, with the file and line of each value as a comment. `shown` formats the path of a file.
///
/// # Errors
///
/// If an object cannot be converted to YAML.
pub(super) fn print(map: &ResMap, run: &Run<'_>, shown: &dyn Fn(&TreePath) -> String) -> Step<String> {
    let mut out = String::new();
    for resource in map.resources() {
        if !out.is_empty() {
            out.push_str(emit::SEPARATOR);
        }
        let (mut text, mut values) = (String::new(), Vec::new());
        let ends = super::finish::with_value(resource, run, |value| {
            flatten(value, &resource.node, &mut values);
            emit::document_with_ends(value, &mut text)
        })?;
        let comments = values.into_iter().map(|node| comment(node?, run, shown));
        append(&text, ends.into_iter().zip(comments), &mut out);
    }
    Ok(out)
}

/// Copies the YAML document `text` to the end of `out`, and inserts comments. Each item of `comments` contains a
/// position in `text`, and the comment to insert there. If the comment is `None`, nothing is inserted.
fn append(text: &str, comments: impl Iterator<Item = (usize, Option<String>)>, out: &mut String) {
    let mut copied = 0;
    for (end, comment) in comments {
        let Some(comment) = comment else { continue };
        out.push_str(text.get(copied..end).unwrap_or_default());
        out.push_str(" # ");
        out.push_str(&comment);
        copied = end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
}

/// Returns the comment with the file and line of a value; `None` if the value does not come from a file.
fn comment(node: &Node, run: &Run<'_>, shown: &dyn Fn(&TreePath) -> String) -> Option<String> {
    let file = run.sources.path(node.origin.source).filter(|_| node.origin.line > 0)?;
    Some(format!("{}:{}", shown(&file).replace(char::is_control, "?"), node.origin.line))
}

/// Appends to `into` the node of each scalar, empty list and empty mapping in `value`, in the order in which they are
/// printed. `value` is the printable form of `node`.
fn flatten<'n>(value: &Value<'_>, node: &'n Node, into: &mut Vec<Option<&'n Node>>) {
    match value {
        Value::List(values) if !values.is_empty() && values.len() == node.items().len() => {
            values.iter().zip(node.items()).for_each(|(value, node)| flatten(value, node, into));
        }
        Value::Map(entries) if !entries.is_empty() && entries.len() == node.entries().len() => {
            // `entries` and `nodes` have the same order, but the text is sorted by key
            let nodes = node.entries();
            let mut order: Vec<(&str, usize)> = entries.iter().enumerate().map(|(at, (key, _))| (&**key, at)).collect();
            order.sort_unstable();
            for (key, value) in emit::sorted(entries) {
                let at = order.binary_search_by(|(own, _)| (*own).cmp(key)).map_or(0, |found| order[found].1);
                flatten(value, &nodes[at].value, into);
            }
        }
        _ => into.push(Some(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{self, Limits};

    #[test]
    fn comments_follow_scalars_and_the_headers_of_literals() {
        let text = "a: |\n  x\n  y\nlong: {b10: [], b9: 1}\nlist:\n- - x\n  - {}\n- 'it''s'\n";
        let node = yaml::node(text, 1, &Limits::default()).unwrap().unwrap();
        let value = crate::kustomize::node::printed(&node).unwrap();
        let (mut plain, mut values, mut out) = (String::new(), Vec::new(), String::new());
        flatten(&value, &node, &mut values);
        let ends = emit::document_with_ends(&value, &mut plain).unwrap();
        let lines = values.into_iter().map(|node| node.map(|node| node.origin.line.to_string()));
        append(&plain, ends.into_iter().zip(lines), &mut out);
        assert_eq!(
            out,
            "a: | # 2\n  x\n  y\nlist:\n- - x # 6\n  - {} # 7\n- it's # 8\nlong:\n  b9: 1 # 4\n  b10: [] # 4\n"
        );
        let again = |text: &str| yaml::read(text, &Limits::default()).unwrap().remove(0).value;
        assert_eq!(again(&out), again(&plain), "comments change no value");
    }
}
