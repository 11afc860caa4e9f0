//! Checks of field paths, regular expressions and formats. Crossplane itself parses them only at run time.

use super::formats;
use super::problem::{Problem, Topic};
use super::reader::{Node, Reader};
use super::transforms::Shape;
use crate::admission::FieldPath;
use crate::crossplane::field_path::{MAX_INDEX, Path};
use crate::go::regexp;

impl Reader {
    /// Checks the optional field `key`, such as `fromFieldPath`. Its value is the path from which a patch or selector
    /// reads. Returns this value, and the location of the field `key` in the Composition. `None` if the field `key` is
    /// missing or not a string.
    pub(super) fn path_to_read<'v>(&mut self, node: &Node<'v>, key: &str) -> Option<(&'v str, FieldPath)> {
        let (text, at) = self.text(node, key)?;
        if let Some(path) = self.parsed(text, &at)
            && path.has_wildcard()
        {
            let what = format!(
                "Invalid value: {text:?}: a wildcard is not expanded in a path that is read: it names a field called *"
            );
            let problem = Problem::new(Topic::Path, at.clone(), what).as_warning();
            self.report(
                problem.help("name the element, such as [0], or read the whole list and patch it with transforms"),
            );
        }
        Some((text, at))
    }

    /// Checks the optional field `key`, such as `toFieldPath`. It contains the path of a field to which a value is
    /// written.
    pub(super) fn path_to_write(&mut self, node: &Node<'_>, key: &str) {
        let Some((text, at)) = self.text(node, key) else { return };
        let Some(path) = self.parsed(text, &at) else { return };
        if let Some(index) = path.highest_index().filter(|index| *index > MAX_INDEX) {
            let detail = format!("index {index} is greater than max allowed index {MAX_INDEX}");
            self.report(Problem::invalid(Topic::Path, at.clone(), &text.into(), detail));
        }
        if path.has_wildcard() && !text.contains("[*]") {
            let what = format!("Invalid value: {text:?}: only [*] is a wildcard: this writes a field called *");
            self.report(Problem::new(Topic::Path, at, what).help("write [*]").as_warning());
        }
    }

    /// Reports a wildcard `[*]` in the path in the field `key`. A patch writes a combined value to this path, and
    /// Crossplane does not expand wildcards in such a path.
    pub(super) fn no_wildcard(&mut self, node: &Node<'_>, key: &str) {
        let Some((text, at)) = self.text(node, key).filter(|(text, _)| text.contains("[*]")) else { return };
        let what = format!(
            "Invalid value: {text:?}: a combined value is not written to every element: it goes to a field called *"
        );
        self.report(Problem::new(Topic::Path, at, what).help("write one patch for each element").as_warning());
    }

    /// Checks the regular expression in the field `key`. Returns the number of its capture groups, including the whole
    /// match. Reports an invalid expression. Returns `None` if the expression is missing or invalid.
    pub(super) fn regexp(&mut self, node: &Node<'_>, key: &str) -> Option<usize> {
        let (text, at) = self.text(node, key)?;
        match regexp::compile(text) {
            Ok(compiled) => Some(compiled.captures_len()),
            Err(error) => {
                let problem = Problem::invalid(Topic::Expression, at, &text.into(), format!("invalid regexp: {error}"));
                self.report(problem.help("use the syntax of Go's package regexp: no look-around, no backreferences"));
                None
            }
        }
    }

    /// Checks the format string in the field `key`, for Go's `fmt.Sprintf`. `shapes` contains the known types of its
    /// arguments.
    pub(super) fn format(&mut self, node: &Node<'_>, key: &str, shapes: &[Shape]) {
        let Some((text, at)) = self.text(node, key) else { return };
        for problem in formats::problems(text, shapes, self.has_integers) {
            let problem = Problem::invalid(Topic::Expression, at.clone(), &text.into(), problem);
            let help = match shapes {
                [_] => "use %v, which takes a value of any type, or convert the value first with a convert transform",
                _ => "write one verb for each value; %v takes a value of any type",
            };
            self.report(problem.help(help));
        }
    }

    fn parsed(&mut self, text: &str, at: &FieldPath) -> Option<Path> {
        match Path::parse(text) {
            Ok(path) => Some(path),
            Err(error) => {
                self.problems.retain(|known| known.topic != Topic::Path || known.field != *at);
                self.report(Problem::invalid(Topic::Path, at.clone(), &text.into(), error.to_string()));
                None
            }
        }
    }
}
