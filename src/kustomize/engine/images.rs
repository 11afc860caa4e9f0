//! The transformer for the field `images` of a kustomization, which sets the name, tag and digest of container images.
//!
//! Source: kustomize's `ImageTagTransformer`, `api/filters/imagetag` and `api/internal/image`.

use std::sync::Arc;

use regex::Regex;

use super::budget::Budget;
use super::field_spec::{Create, FieldError, FieldSpec, Text, kind_of};
use super::resource::Resource;
use super::setters::overwrite;
use crate::go::regexp::{self, SyntaxError};
use crate::kustomize::file::Image;
use crate::kustomize::node::{Kind, Node, Origin};

const CRD: &str = "CustomResourceDefinition";
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// A transformer for an entry of `images`, which changes the names, tags and digests of container images.
#[derive(Debug)]
pub(super) struct Images<'s> {
    image: &'s Image,
    pattern: Pattern<'s>,
    specs: &'s [FieldSpec],
    origin: Origin,
    budget: &'s Budget,
}

impl<'s> Images<'s> {
    /// Creates a transformer for an entry of `images`.
    ///
    /// # Errors
    ///
    /// If the name of the image is not a valid regular expression.
    pub(super) fn new(
        image: &'s Image,
        specs: &'s [FieldSpec],
        origin: Origin,
        budget: &'s Budget,
    ) -> Result<Self, SyntaxError> {
        Ok(Self { image, pattern: Pattern::new(&image.name)?, specs, origin, budget })
    }

    /// Changes the names, tags and digests of the matching container images in an object.
    ///
    /// # Errors
    ///
    /// - If an image is not a scalar, or a container is not a mapping.
    /// - If the path of a field spec leads through a scalar.
    /// - If the memory limit of the build is exceeded.
    pub(super) fn apply(&self, resource: &mut Resource) -> Result<(), FieldError> {
        if resource.kind() == CRD {
            return Ok(());
        }
        if self.is_in(&resource.node) {
            self.everywhere(&mut resource.node)?;
        }
        for spec in self.specs {
            spec.apply(resource, Create::No, &mut |node| self.set(node, &spec.path))?;
        }
        Ok(())
    }

    /// Returns whether a node contains, at any depth, a list of containers in which an image would change or is
    /// invalid.
    fn is_in(&self, node: &Node) -> bool {
        let changes = |item: &Node| match item.get("image") {
            Some(image) => image.is_null() || image.text().is_none_or(|text| self.pattern.is_match(text)),
            None => item.is_scalar() || item.is_seq(),
        };
        match &node.kind {
            Kind::Map(entries) => entries.iter().any(|entry| {
                let is_list = LISTS.contains(&&*entry.key);
                (is_list && entry.value.items().iter().any(changes)) || self.is_in(&entry.value)
            }),
            Kind::Seq(items) => items.iter().any(|item| self.is_in(item)),
            Kind::Scalar(_) => false,
        }
    }

    fn everywhere(&self, node: &mut Node) -> Result<(), FieldError> {
        if !self.is_in(node) {
            return Ok(());
        }
        if let Some(items) = node.items_mut() {
            return items.iter_mut().try_for_each(|item| self.everywhere(item));
        }
        for entry in node.entries_mut().into_iter().flatten() {
            self.everywhere(&mut entry.value)?;
            if LISTS.contains(&&*entry.key) {
                self.containers(&mut entry.value)?;
            }
        }
        Ok(())
    }

    fn containers(&self, list: &mut Node) -> Result<(), FieldError> {
        for item in list.items_mut().into_iter().flatten() {
            if !item.is_map() && !item.is_null() {
                return Err(FieldError::Kind {
                    path: "containers".into(),
                    found: kind_of(item),
                    expected: "a mapping",
                });
            }
            if let Some(image) = item.get_mut("image") {
                self.set(image, &"containers/image".into())?;
            }
        }
        Ok(())
    }

    fn set(&self, node: &mut Node, path: &Text) -> Result<(), FieldError> {
        if node.is_null() {
            return Ok(());
        }
        let Some(text) = node.text() else {
            return Err(FieldError::Kind { path: path.clone(), found: kind_of(node), expected: "a scalar" });
        };
        if self.pattern.is_match(text) {
            let text = self.changed(text);
            self.budget.text(&text)?;
            overwrite(node, Node::scalar(text).made_at(self.origin));
        }
        Ok(())
    }

    fn changed(&self, text: &str) -> String {
        let Image { new_name, new_tag, tag_suffix, digest: new_digest, .. } = self.image;
        let (name, tag, digest) = parts(text);
        let name = if new_name.is_empty() { name } else { new_name };
        let (tag, digest) = match (new_tag.is_empty(), new_digest.is_empty()) {
            (false, false) => (new_tag.clone(), new_digest.as_str()),
            (false, true) => (new_tag.clone(), ""),
            (true, false) => (String::new(), new_digest.as_str()),
            (true, true) if !tag_suffix.is_empty() => ([tag, tag_suffix].concat(), ""),
            (true, true) => (tag.to_owned(), digest),
        };
        let part = |mark: &str, text: &str| if text.is_empty() { String::new() } else { [mark, text].concat() };
        [name, &part(":", &tag), &part("@", digest)].concat()
    }
}

/// A pattern that matches images by name, with any tag and digest. The name is a regular expression.
#[derive(Debug)]
enum Pattern<'s> {
    /// A name without special characters other than dots. It is compared without a regular expression.
    Plain(&'s str),
    Expression(Arc<Regex>),
}

impl<'s> Pattern<'s> {
    fn new(name: &'s str) -> Result<Self, SyntaxError> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-_:@".contains(&byte));
        if is_plain { Ok(Self::Plain(name)) } else { Self::expression(name) }
    }

    fn expression(name: &str) -> Result<Self, SyntaxError> {
        let pattern = format!("^{name}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$");
        regexp::compile(&pattern).map(Self::Expression)
    }

    fn is_match(&self, image: &str) -> bool {
        match self {
            Self::Plain(name) => without_name(image, name).is_some_and(is_version),
            Self::Expression(pattern) => pattern.is_match(image),
        }
    }
}

/// Returns the part of an image after `name`; `None` if the image does not begin with `name`. A dot in `name` matches
/// any character except a line break.
fn without_name<'i>(image: &'i str, name: &str) -> Option<&'i str> {
    let mut rest = image.chars();
    let is_equal = name.chars().all(|own| rest.next().is_some_and(|c| c == own || own == '.' && c != '\n'));
    is_equal.then_some(rest.as_str())
}

/// Returns whether a text is a tag such as `:1.0`, a digest, both, or empty.
fn is_version(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.{}-".contains(c);
    let text = text.strip_prefix(':').map_or(text, |tag| tag.trim_start_matches(is_part));
    text.is_empty() || text.strip_prefix("@sha256:").is_some_and(|digest| digest.chars().all(is_part))
}

/// Splits an image into name, tag and digest. A part that is missing is empty.
fn parts(image: &str) -> (&str, &str, &str) {
    let from = image.find('/').filter(|at| *at > 0).unwrap_or(0);
    let find = |mark: char| image[from..].find(mark).map(|at| from + at);
    match (find('@'), find(':')) {
        (None, None) => (image, "", ""),
        (Some(at), colon) if colon.is_none_or(|colon| at < colon) => (&image[..at], "", &image[at + 1..]),
        (Some(at), Some(colon)) => (&image[..colon], &image[colon + 1..at], &image[at + 1..]),
        (_, Some(colon)) => (&image[..colon], &image[colon + 1..], ""),
        (Some(at), None) => (&image[..at], "", &image[at + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_match_as_expressions_do() {
        let tails =
            ["", ":", ":1.0_{x}-a", "@sha256:", "@sha256:ab", ":1@sha256:ab", ":1:2", "@sha512:a", ":1@", "x", "\n"];
        let names =
            ["nginx", "nginxx", "ghcr.io/a/b", "ghcr-io/a/b", "ghcr\nio/a/b", "r:5000/a", "a@sha256", "ghcräio/a/b"];
        for name in ["nginx", "ghcr.io/a/b", "r:5000/a", "a@sha256", "a", "."] {
            let (plain, expression) = (Pattern::new(name).unwrap(), Pattern::expression(name).unwrap());
            assert!(matches!(plain, Pattern::Plain(_)), "{name}");
            for image in names.iter().flat_map(|name| tails.map(|tail| format!("{name}{tail}"))) {
                assert_eq!(plain.is_match(&image), expression.is_match(&image), "{name} {image}");
            }
        }
        assert!(matches!(Pattern::new("ngi[n]x").unwrap(), Pattern::Expression(_)));
        assert!(Pattern::new("ngi[x").is_err());
    }

    #[test]
    fn an_image_has_a_name_a_tag_and_a_digest() {
        assert_eq!(parts("nginx"), ("nginx", "", ""));
        assert_eq!(parts("r:5000/nginx:1"), ("r:5000/nginx", "1", ""));
        assert_eq!(parts("nginx:1@sha256:a"), ("nginx", "1", "sha256:a"));
        assert_eq!(parts("nginx@sha256:a"), ("nginx", "", "sha256:a"));
    }
}
