//! Performs the steps of kustomize-controller after a build: checks that each document is an object, and substitutes
//! variables.

use std::collections::HashMap;

use super::substitute::{Failure, Template, Variable};
use crate::admission::FieldPath;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::identity::Id;
use crate::kustomize::node::{Kind, Node, Origin};
use crate::kustomize::options::PostBuild;
use crate::kustomize::rules::{kz013, kz018, kz030};

/// A label or annotation of an object. Its value `disabled` excludes the object from the substitution of variables.
const OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/substitute";
/// The field of a Flux Kustomization that contains the variables. Findings about variables refer to this field.
const POST_BUILD: [&str; 2] = ["spec", "postBuild"];

/// An object as the build returns it, before substitution.
#[derive(Clone, Copy)]
pub(in crate::kustomize) struct Object<'b> {
    /// The identity of the object.
    pub(in crate::kustomize) id: Id<'b>,
    /// The content of the object.
    pub(in crate::kustomize) node: &'b Node,
    /// The position where the object was read or generated.
    pub(in crate::kustomize) origin: Origin,
    /// Whether the content of the object is known. False if the build could not apply a change to the object.
    pub(in crate::kustomize) is_known: bool,
}

/// A function that converts an `Origin` to a position for messages. An `Origin` consists of a file number and a line.
/// The position contains the path of the file instead of its number.
type Place<'b> = &'b dyn Fn(Origin) -> Site;

/// The result of checking the steps that kustomize-controller performs after a build, such as the substitution of
/// variables.
#[derive(Debug, Default)]
pub(in crate::kustomize) struct PostBuilt {
    /// The errors that kustomize-controller reports.
    pub(in crate::kustomize) findings: Vec<TreeFinding>,
    /// Positions in files where the result of the build is unknown, each with the reason.
    pub(in crate::kustomize) uncertainties: Vec<(Site, String)>,
}

/// Checks that each object of a build has an API version, and that Flux can substitute the variables in it. `place`
/// converts origins to positions. `post_build` contains the variables. If it is `None`, Flux does not substitute
/// variables.
pub(in crate::kustomize) fn post_build(
    objects: &[Object<'_>],
    place: Place<'_>,
    post_build: Option<&PostBuild>,
) -> PostBuilt {
    let mut built = PostBuilt::default();
    for object in objects {
        built.conforms(object, place);
    }
    let Some(post_build) = post_build else { return built };
    let wants = post_build.is_certain();
    if !wants && post_build.from.is_empty() {
        return built;
    }
    let substitution = Substitution { post_build, place, certain: wants };
    let mut names = HashMap::new();
    for object in objects.iter().filter(|object| object.is_known) {
        built.object(&substitution, object, &mut names);
    }
    if let (Some(first), false) = (objects.first(), post_build.from.is_empty()) {
        let site = substitution.spec(first, &["substituteFrom"]);
        built.uncertainties.push((site, format!("the content of {} is unknown", post_build.from.join(", "))));
    }
    built
}

/// The input for replacing variables in the built objects: the variables of a Flux Kustomization, and a function that
/// returns the position of an object in its file.
struct Substitution<'a> {
    post_build: &'a PostBuild,
    place: Place<'a>,
    /// Whether it is certain that Flux substitutes variables. If not, a failed substitution is recorded as an
    /// uncertainty instead of an error.
    certain: bool,
}

/// Returns the state of a variable of `postBuild`: its value, [`Variable::Unset`] or [`Variable::Unknown`].
fn variable<'p>(post_build: &'p PostBuild, name: &str) -> Variable<'p> {
    match post_build.substitute.get(name) {
        Some(value) => Variable::Known(value),
        None if !post_build.is_unset(name) => Variable::Unknown,
        None if post_build.is_lenient => Variable::Known(""),
        None => Variable::Unset,
    }
}

/// Substitutes the variables of `postBuild` in a text. Returns `None` if the value of a variable is unknown, or if Flux
/// cannot evaluate the text.
pub(in crate::kustomize) fn evaluated(text: &str, post_build: &PostBuild) -> Option<String> {
    Template::read(text).and_then(|template| template.evaluate(&|name| variable(post_build, name))).ok().flatten()
}

impl Substitution<'_> {
    fn variable(&self, name: &str) -> Variable<'_> {
        variable(self.post_build, name)
    }

    fn site(&self, object: &Object<'_>) -> Site {
        (self.place)(object.origin)
    }

    fn spec(&self, object: &Object<'_>, below: &[&str]) -> Site {
        let field = below.iter().fold(FieldPath::of(POST_BUILD), |field, key| field.key(key));
        Site { field, ..Site::of_file(self.site(object).file) }
    }

    fn bad_name(&self) -> Option<&str> {
        let mut names = self.post_build.substitute.keys();
        names.find(|name| !is_name(name)).map(String::as_str)
    }
}

/// Returns whether Flux accepts `text` as the name of a variable: `^[_[:alpha:]][_[:alpha:][:digit:]]*$`.
fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    begins && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The data that is recorded for each identity: the file and line of an object with this identity, and whether the
/// substitution of variables changed the object's identity.
#[derive(Clone)]
struct Named {
    origin: Origin,
    is_changed: bool,
}

impl PostBuilt {
    fn conforms(&mut self, object: &Object<'_>, place: Place<'_>) {
        if object.id.gvk.group.is_empty() && object.id.gvk.version.is_empty() && object.is_known {
            self.findings.push(kz013::no_api_version(place(object.origin), &object.id.words()));
        }
    }

    fn object(&mut self, substitution: &Substitution<'_>, object: &Object<'_>, names: &mut HashMap<Key, Named>) {
        if is_left_alone(object.node) {
            names.insert(key(&object.id), Named { origin: object.origin, is_changed: false });
            return;
        }
        if let Some(name) = substitution.bad_name() {
            let site = substitution.spec(object, &["substitute"]);
            self.findings.push(kz018::invalid_name(Site { field: site.field.key(name), ..site }, name));
            return;
        }
        match self.texts(substitution, object) {
            Err(failure) => self.failed(substitution, object, &failure),
            Ok(()) => self.named(substitution, object, names),
        }
    }

    /// Checks the substitution of variables in every key and string of an object, without changing the object. Returns
    /// an error if Flux fails to substitute the variables. If Portcullis cannot compute the result, adds the reason to
    /// `uncertainties`.
    fn texts(&mut self, substitution: &Substitution<'_>, object: &Object<'_>) -> Result<(), Failure> {
        let mut texts = Vec::new();
        gather(object.node, &mut texts);
        let closes = texts.iter().any(|(text, _)| text.contains('}')) || has_braces(object.node);
        for (text, is_key) in texts.into_iter().filter(|(text, _)| text.contains('$')) {
            let evaluated = Template::read(text).and_then(|read| read.evaluate(&|name| substitution.variable(name)));
            match evaluated {
                Ok(Some(result)) if !stays_yaml(text, &result) || is_key && result.is_empty() => {
                    let why = "may not be valid YAML after the substitution of variables, which is not checked here";
                    self.uncertainty(substitution, object, why);
                }
                Ok(_) => {}
                Err(Failure::Unclosed) if closes => {
                    let why = "has a `${` that is closed in another value, which is not evaluated here";
                    self.uncertainty(substitution, object, why);
                }
                Err(Failure::Unclear(why)) => self.uncertainty(substitution, object, why),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn failed(&mut self, substitution: &Substitution<'_>, object: &Object<'_>, failure: &Failure) {
        if !substitution.certain {
            self.uncertainty(substitution, object, &format!("fails if any variable is set: {failure}"));
            return;
        }
        self.findings.push(kz018::found(substitution.site(object), &object.id.words(), &failure.to_string()));
    }

    /// Records the identity that an object has after substitution. Reports the object if the substitution gives two
    /// objects the same identity.
    fn named(&mut self, substitution: &Substitution<'_>, object: &Object<'_>, names: &mut HashMap<Key, Named>) {
        let value = |text: &str| {
            let read = Template::read(text).ok()?;
            read.evaluate(&|name| substitution.variable(name)).ok().flatten()
        };
        let Id { gvk, name, namespace, .. } = object.id;
        let (Some(kind), Some(name), Some(namespace)) = (value(gvk.kind), value(name), value(namespace)) else {
            return;
        };
        let mut id = Id { name: &name, namespace: &namespace, ..object.id };
        id.gvk.kind = &kind;
        let named = Named { origin: object.origin, is_changed: key(&id) != key(&object.id) };
        let is_changed = named.is_changed;
        let Some(other) = names.insert(key(&id), named) else { return };
        if is_changed || other.is_changed {
            let site = substitution.site(object);
            let other = (substitution.place)(other.origin);
            self.findings.push(kz030::conflict(site.clone(), &id, &site, Some(&other)));
        }
    }

    fn uncertainty(&mut self, substitution: &Substitution<'_>, object: &Object<'_>, why: &str) {
        self.uncertainties.push((substitution.site(object), format!("{} {why}", object.id.words())));
    }
}

/// The parts of an identity that are compared to find objects with the same identity: group, version, kind, name and
/// namespace.
type Key = [String; 5];

fn key(id: &Id<'_>) -> Key {
    [id.gvk.group, id.gvk.version, id.gvk.kind, id.name, id.effective_namespace()].map(str::to_owned)
}

pub(in crate::kustomize) fn is_left_alone(node: &Node) -> bool {
    let opts_out = |of: &str| node.at_path(&["metadata", of, OPT_OUT]).and_then(Node::text) == Some("disabled");
    opts_out("labels") || opts_out("annotations")
}

/// Collects all scalars and keys in an object. The `bool` is `true` for a key.
fn gather<'n>(node: &'n Node, texts: &mut Vec<(&'n str, bool)>) {
    match &node.kind {
        Kind::Scalar(text) => texts.push((text, false)),
        Kind::Seq(items) => items.iter().for_each(|item| gather(item, texts)),
        Kind::Map(entries) => {
            for entry in entries.iter() {
                texts.push((&entry.key, true));
                gather(&entry.value, texts);
            }
        }
    }
}

/// Returns whether a node contains an empty mapping, which kustomize prints as `{}`. Flux substitutes variables in the
/// printed text. So the `}` of the mapping can close a `${` in an earlier value.
fn has_braces(node: &Node) -> bool {
    match &node.kind {
        Kind::Scalar(_) => false,
        Kind::Seq(items) => items.iter().any(has_braces),
        Kind::Map(entries) => entries.is_empty() || entries.iter().any(|entry| has_braces(&entry.value)),
    }
}

/// Returns whether a scalar is still one scalar in the printed YAML after Flux substitutes the variables in it.
/// `before` is the text of the scalar with variables, and `after` is the text with their values. Returns false if the
/// answer is unknown.
fn stays_yaml(before: &str, after: &str) -> bool {
    let count = |text: &str, letter: char| text.matches(letter).count();
    let adds_quotes = ['\'', '"', '\\'].into_iter().any(|letter| count(after, letter) > count(before, letter));
    let is_in_quotes = before.starts_with(INDICATORS) || before.contains(": ") || before.contains(" #");
    before == after || !adds_quotes && (before.contains('\n') || is_in_quotes || is_plain(after))
}

/// Characters that must not begin a plain scalar.
const INDICATORS: [char; 13] = ['{', '[', '&', '*', '!', '|', '>', '%', '@', '`', '#', '"', '\''];

/// Returns whether YAML parses a text without quotes as one plain scalar. This includes the empty text, which is null
/// in YAML.
fn is_plain(text: &str) -> bool {
    let ends_oddly = text.ends_with([' ', ':']) || text.starts_with([' ', '-', '?', ':', ',', ']', '}']);
    let is_split = text.contains(": ") || text.contains(" #") || text.contains(char::is_control);
    !text.starts_with(INDICATORS) && !ends_oddly && !is_split
}
