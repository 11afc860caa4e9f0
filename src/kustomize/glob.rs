//! Patterns of Go's `path.Match`, in which `*` and `?` do not match a slash.

use regex::Regex;

use super::tree::{Entry, Located, Tree, TreePath};

/// Compiles a glob pattern, such as `base/*`, to a regular expression; `None` if the pattern is invalid.
pub(super) fn pattern(glob: &str) -> Option<Regex> {
    let mut expression = String::from("^");
    let mut is_class = false;
    for letter in glob.trim_end_matches('/').chars() {
        match letter {
            '*' if !is_class => expression.push_str("[^/]*"),
            '?' if !is_class => expression.push_str("[^/]"),
            '[' | ']' => {
                is_class = letter == '[';
                expression.push(letter);
            }
            letter if is_class => expression.push(letter),
            letter => expression.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    Regex::new(&(expression + "$")).ok()
}

/// Returns the existing paths that match the pattern `glob`, sorted. The pattern and the returned paths are relative to
/// the folder `root`. A segment of the pattern without `*`, `?` and `[` matches only the same name. A name that starts
/// with `.` is matched only by a segment that also starts with `.`.
pub(super) fn matching(tree: &Tree, root: &TreePath, glob: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in glob.split('/').filter(|part| !part.is_empty()) {
        let join =
            |before: &String, name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}/{name}") };
        let is_pattern = part.contains(['*', '?', '[']);
        found = match pattern(part).filter(|_| is_pattern) {
            None => found.iter().map(|before| join(before, part)).collect(),
            Some(pattern) => {
                let names = |before: &String| match tree.locate(root, if before.is_empty() { "." } else { before }) {
                    Ok(Located::Folder(folder)) => tree.names(&folder),
                    _ => Vec::new(),
                };
                let matches =
                    |name: &String| pattern.is_match(name) && (!name.starts_with('.') || part.starts_with('.'));
                let below = |before: &String| {
                    names(before).into_iter().filter(&matches).map(|name| join(before, &name)).collect::<Vec<_>>()
                };
                found.iter().flat_map(below).collect()
            }
        };
    }
    found.retain(|path| matches!(tree.locate(root, path), Ok(Located::Folder(_) | Located::File(_))));
    found
}

/// Adds the paths of the folders below `top/folder`, relative to `top`, to the list `folders`. Descends at most `depth`
/// levels, and skips hidden folders.
pub(super) fn folders_below(tree: &Tree, top: &TreePath, folder: &str, depth: usize, folders: &mut Vec<String>) {
    let path = TreePath::from(&*format!("{top}/{folder}"));
    for name in tree.names(&path).iter().filter(|name| !name.starts_with('.')) {
        if depth > 0 && tree.entry(&path.join(name)) == Some(Entry::Folder) {
            let inner = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            folders_below(tree, top, &inner, depth - 1, folders);
            folders.push(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::Memory;

    #[test]
    fn matches_as_go_does() {
        let matches = |glob: &str, folder: &str| pattern(glob).is_some_and(|pattern| pattern.is_match(folder));
        assert!(matches("apps/*", "apps/web") && !matches("apps/*", "apps/web/base") && !matches("apps/*", "apps"));
        assert!(matches("*/[a-c]?", "apps/b1") && !matches("*/[a-c]?", "apps/d1"));
        assert!(matches("a.b/", "a.b") && !matches("a.b", "axb"));
        assert!(pattern("[").is_none());
    }

    #[test]
    fn finds_existing_paths() {
        let paths = ["app/k.yaml", "parts/a/k.yaml", "parts/b/k.yaml", "parts/.hidden/k.yaml"];
        let memory = paths.iter().fold(Memory::new(), |memory, path| memory.file(path, ""));
        let tree = Tree::new(memory, "/");
        let found = |glob: &str| matching(&tree, &"app".into(), glob);
        assert_eq!(found("../parts/*"), ["../parts/a", "../parts/b"]);
        assert_eq!(found("../parts/a"), ["../parts/a"]);
        assert_eq!(found("../parts/[b-z]/*.yaml"), ["../parts/b/k.yaml"]);
        assert!(found("../gone").is_empty() && found("../gone/*").is_empty());
    }
}
