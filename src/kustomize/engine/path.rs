//! Dot-separated field paths such as `metadata.name`, which are used in vars and replacements.
//!
//! Source: kyaml's `utils.SmarterPathSplitter` and `PathGetter`.

use crate::kustomize::node::Node;

/// Splits the path of a field into steps at each `delimiter`. A delimiter in brackets or after a backslash does not end
/// a step. Brackets that select an element of a sequence, such as `[name=web]`, are kept. Other brackets around a
/// delimiter are removed: `[a.b/c]` becomes `a.b/c`.
pub(super) fn split(path: &str, delimiter: char) -> Vec<String> {
    let parts = escaped(path, delimiter);
    let mut steps = Vec::new();
    let mut rest = parts.into_iter();
    while let Some(part) = rest.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            steps.push(part);
            continue;
        }
        let mut whole = part;
        for next in rest.by_ref() {
            whole.push(delimiter);
            whole.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        let selects = whole.contains('=');
        steps.push(if selects { whole } else { whole.trim_matches(['[', ']']).to_owned() });
    }
    steps
}

fn escaped(path: &str, delimiter: char) -> Vec<String> {
    let path = path.strip_prefix(delimiter).unwrap_or(path);
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(delimiter) {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Splits the field path of a var into steps. `containers[0]` means the same as `containers.0`.
pub(super) fn of_var(path: &str) -> Vec<String> {
    split(path, '.').into_iter().flat_map(|step| indexed(&step)).collect()
}

fn indexed(step: &str) -> Vec<String> {
    let parts = step.strip_suffix(']').and_then(|step| step.rsplit_once('['));
    match parts {
        Some((field, index)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
            [field, index].into_iter().filter(|part| !part.is_empty()).map(str::to_owned).collect()
        }
        _ => vec![step.to_owned()],
    }
}

/// Returns the node at a path; `None` if there is none. A step is a field, an index, `-` for the last element, or
/// `[key=value]` for the first element whose field `key` has the value `value`.
pub(super) fn lookup<'n>(node: &'n Node, steps: &[String]) -> Option<&'n Node> {
    steps.iter().filter(|step| !step.is_empty()).try_fold(node, |node, step| child(node, step))
}

fn child<'n>(node: &'n Node, step: &str) -> Option<&'n Node> {
    if let Ok(index) = step.parse::<usize>() {
        return node.items().get(index);
    }
    if step == "-" {
        return node.items().last();
    }
    match step.strip_prefix('[').and_then(|step| step.strip_suffix(']')) {
        None => node.get(step),
        Some(selector) => {
            let (key, value) = selector.split_once('=')?;
            let is_such = |item: &&Node| {
                let field = if key.is_empty() { Some(*item) } else { item.get(key) };
                field.and_then(Node::text) == Some(value)
            };
            node.items().iter().find(is_such)
        }
    }
}

/// Converts a field path that starts at `node` to indexes. An index is the position of an entry in a mapping, or of an
/// element in a list. `None` if the path leads to no node.
pub(super) fn place(node: &Node, steps: &[String]) -> Option<Vec<usize>> {
    let mut place = Vec::new();
    let mut node = node;
    for step in steps.iter().filter(|step| !step.is_empty()) {
        let next = child(node, step)?;
        let at_same = |other: &Node| std::ptr::eq(other, next);
        let index = match node.is_map() {
            true => node.entries().iter().position(|entry| at_same(&entry.value))?,
            false => node.items().iter().position(at_same)?,
        };
        place.push(index);
        node = next;
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_backslashes_protect_the_delimiter() {
        assert_eq!(split("metadata.annotations.[a.b/c]", '.'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split("spec.[name=a.b].image", '.'), ["spec", "[name=a.b]", "image"]);
        assert_eq!(split("data.a\\.b", '.'), ["data", "a.b"]);
        assert_eq!(of_var("spec.containers[0].image"), ["spec", "containers", "0", "image"]);
    }
}
