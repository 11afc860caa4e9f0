//! The steps of kustomize-controller after a build: each document must be an object, and variables are substituted.

use std::collections::HashMap;

use serde_json::Value;

use super::substitute::{Failure, Template, Variable};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::{Id, Object};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::PostBuild;
use crate::kustomize::rules::{kz013, kz018, kz030};

/// The label or annotation that excludes objects from substitution with the value `disabled`.
const OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/substitute";
/// The field that findings about variables are about.
const POST_BUILD: [&str; 2] = ["spec", "postBuild"];

/// The objects after a build.
#[derive(Debug, Default)]
pub(in crate::kustomize) struct PostBuilt {
    /// The errors that kustomize-controller reports.
    pub(in crate::kustomize) findings: Vec<TreeFinding>,
    /// What cannot be judged.
    pub(in crate::kustomize) uncertainties: Vec<(Site, String)>,
}

/// Judges the objects of a build; `complete` tells whether all objects are known.
pub(in crate::kustomize) fn post_build(
    objects: &[&Object],
    complete: bool,
    post_build: Option<&PostBuild>,
) -> PostBuilt {
    let mut built = PostBuilt::default();
    for object in objects {
        built.conforms(object);
    }
    let Some(post_build) = post_build else { return built };
    let wants = post_build.always || !post_build.substitute.is_empty();
    if !wants && post_build.from.is_empty() {
        return built;
    }
    let substitution = Substitution { post_build, certain: wants };
    let mut names = HashMap::new();
    for object in objects {
        built.object(&substitution, object, &mut names);
    }
    if !complete && built.findings.is_empty() {
        return built;
    }
    if !objects.is_empty() && !post_build.from.is_empty() {
        let site = site(objects[0], &["substituteFrom"]);
        built.uncertainties.push((site, format!("what {} holds is not known here", post_build.from.join(", "))));
    }
    built
}

/// Putting variables into objects.
struct Substitution<'a> {
    post_build: &'a PostBuild,
    /// Whether substitution certainly happens; without any variable it does not.
    certain: bool,
}

impl Substitution<'_> {
    fn variable(&self, name: &str) -> Variable<'_> {
        match self.post_build.substitute.get(name) {
            Some(value) => Variable::Known(value),
            None if self.post_build.from.is_empty() => Variable::Unset,
            None => Variable::Unknown,
        }
    }

    fn bad_name(&self) -> Option<&str> {
        let mut names = self.post_build.substitute.keys();
        names.find(|name| !is_name(name)).map(String::as_str)
    }
}

/// Returns whether Flux takes a text for the name of a variable: `^[_[:alpha:]][_[:alpha:][:digit:]]*$`.
fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    begins && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// An object with its name after substitution.
#[derive(Clone)]
struct Named {
    site: Site,
    is_changed: bool,
    is_certain: bool,
}

/// Returns whether the name of an object is known. Hash suffixes are not computed here.
fn is_certain(object: &Object) -> bool {
    object.sure && !object.hashed
}

impl PostBuilt {
    fn conforms(&mut self, object: &Object) {
        // A patch does not change the apiVersion of its object.
        if !object.id.api_version().is_empty() {
            return;
        }
        if !object.sure {
            self.uncertainty(object, "may have no apiVersion");
        } else {
            self.findings.push(kz013::no_api_version(Site::clone(&object.site), &object.id.words()));
        }
    }

    fn object(&mut self, substitution: &Substitution<'_>, object: &Object, names: &mut HashMap<Id, Named>) {
        if !object.is_clear("/metadata/labels") || !object.is_clear("/metadata/annotations") {
            self.uncertainty(object, "is not known well enough to say what variables do to it");
            return;
        }
        let id = object.id.effective();
        if is_left_alone(object.raw()) {
            let (site, is_certain) = (Site::clone(&object.site), is_certain(object));
            names.insert(id, Named { site, is_changed: false, is_certain });
            return;
        }
        if let Some(name) = substitution.bad_name() {
            let site = site(object, &["substitute"]);
            self.findings.push(kz018::bad_name(Site { field: site.field.key(name), ..site }, name));
            return;
        }
        let content = object.content();
        let failure = self.texts(substitution, object, &content);
        match failure {
            Err(failure) => self.failed(substitution, object, &failure),
            Ok(()) => self.named(substitution, object, names),
        }
        if !object.is_clear("") {
            self.uncertainty(object, "is not known well enough to say what variables do to it");
        }
    }

    /// Evaluates every text of an object.
    fn texts(&mut self, substitution: &Substitution<'_>, object: &Object, content: &Value) -> Result<(), Failure> {
        let mut texts = Vec::new();
        gather(content, &mut texts);
        let closes = texts.iter().any(|(text, _)| text.contains('}')) || has_braces(content);
        for (text, is_key) in texts.into_iter().filter(|(text, _)| text.contains('$')) {
            let evaluated = Template::read(text).and_then(|read| read.evaluate(&|name| substitution.variable(name)));
            match evaluated {
                Ok(Some(result)) if !stays_yaml(text, &result) || is_key && result.is_empty() => {
                    self.uncertainty(
                        object,
                        "may no longer be YAML once variables are put in, which is not worked out here",
                    );
                }
                Ok(_) => {}
                Err(Failure::Unclosed) if closes => {
                    self.uncertainty(object, "has a `${` that is closed somewhere else, which is not worked out here");
                }
                Err(Failure::Unclear(why)) => self.uncertainty(object, why),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn failed(&mut self, substitution: &Substitution<'_>, object: &Object, failure: &Failure) {
        if !substitution.certain {
            self.uncertainty(object, &format!("fails if any variable is set: {failure}"));
            return;
        }
        let site = Site::clone(&object.site);
        self.findings.push(kz018::found(site, &object.id.words(), &failure.to_string()));
    }

    /// Looks for objects that variables make the same.
    fn named(&mut self, substitution: &Substitution<'_>, object: &Object, names: &mut HashMap<Id, Named>) {
        let value = |text: &str| {
            let read = Template::read(text).ok()?;
            read.evaluate(&|name| substitution.variable(name)).ok().flatten()
        };
        let Id { kind, name, namespace, .. } = &object.id;
        let (Some(kind), Some(name), Some(namespace)) = (value(kind), value(name), value(namespace)) else { return };
        let id = Id { kind, name, namespace, ..object.id.clone() };
        let named =
            Named { site: Site::clone(&object.site), is_changed: id != object.id, is_certain: is_certain(object) };
        let Some(other) = names.insert(id.effective(), named.clone()) else { return };
        if (named.is_changed || other.is_changed) && named.is_certain && other.is_certain {
            self.findings.push(kz030::conflict(named.site, &id, &object.site, Some(&other.site)));
        }
    }

    fn uncertainty(&mut self, object: &Object, why: &str) {
        self.uncertainties.push((Site::clone(&object.site), format!("{} {why}", object.id.words())));
    }
}

fn site(object: &Object, below: &[&str]) -> Site {
    let field = below.iter().fold(FieldPath::of(POST_BUILD), |field, key| field.key(key));
    Site { field, ..Site::of_file(object.site.file.clone()) }
}

fn is_left_alone(content: &Value) -> bool {
    let metadata = content.get("metadata");
    let says =
        |of: &str| metadata.and_then(|metadata| metadata.get(of)?.get(OPT_OUT)) == Some(&Value::from("disabled"));
    says("labels") || says("annotations")
}

/// Gathers every text in an object, and whether it is a key.
fn gather<'v>(value: &'v Value, texts: &mut Vec<(&'v str, bool)>) {
    match value {
        Value::String(text) => texts.push((text, false)),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(members) => {
            for (key, member) in members {
                texts.push((key, true));
                gather(member, texts);
            }
        }
        _ => {}
    }
}

/// Returns whether a value is written as `{}`, which closes an open brace before it.
fn has_braces(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_braces),
        Value::Object(members) => members.is_empty() || members.values().any(has_braces),
        _ => false,
    }
}

/// Returns whether a text is certainly still one scalar of YAML: in the quotes it had, or without any.
fn stays_yaml(before: &str, after: &str) -> bool {
    let count = |text: &str, letter: char| text.matches(letter).count();
    let adds_quotes = ['\'', '"', '\\'].into_iter().any(|letter| count(after, letter) > count(before, letter));
    let is_in_quotes = before.starts_with(INDICATORS) || before.contains(": ") || before.contains(" #");
    before == after || !adds_quotes && (before.contains('\n') || is_in_quotes || is_plain(after))
}

/// Characters that must not begin a plain scalar.
const INDICATORS: [char; 13] = ['{', '[', '&', '*', '!', '|', '>', '%', '@', '`', '#', '"', '\''];

/// Returns whether a text needs no quotes in YAML; nothing at all is null.
fn is_plain(text: &str) -> bool {
    let ends_oddly = text.ends_with([' ', ':']) || text.starts_with([' ', '-', '?', ':', ',', ']', '}']);
    let is_split = text.contains(": ") || text.contains(" #") || text.contains(char::is_control);
    !text.starts_with(INDICATORS) && !ends_oddly && !is_split
}
