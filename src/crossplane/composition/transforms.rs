//! Checks the transforms of a patch, and determines the types of their results.
//!
//! Reports missing fields that Crossplane (`Validate` in `apis/apiextensions/v1/composition_transforms.go`) or
//! function-patch-and-transform (`validate.go`) requires. If Crossplane itself applies the patch, fields with a default
//! value may be missing, because the API server sets the default value. If a Composition function applies the patch,
//! they must be set, because the API server sets no defaults in the inputs of functions.

use serde_json::Value;

use super::problem::{Problem, Topic};
use super::reader::{Node, Reader};

/// The type of a value before or after a transform, as far as it can be determined without knowing the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A value of any type.
    Any,
    /// A string.
    Text,
    /// A boolean.
    Bool,
    /// A whole number, as Go's int64.
    Integer,
    /// A number, as Go's float64.
    Float,
    /// A number that is an integer or a float.
    Number,
    List,
    Object,
}

const TYPES: &[&str] = &["map", "match", "math", "string", "convert"];
const MATH: &[&str] = &["Multiply", "ClampMin", "ClampMax"];
const STRING: &[&str] = &["Format", "Convert", "TrimPrefix", "TrimSuffix", "Regexp", "Join", "Replace"];
const CONVERSIONS: &[&str] =
    &["ToUpper", "ToLower", "ToBase64", "FromBase64", "ToJson", "ToSha1", "ToSha256", "ToSha512", "ToAdler32"];
const TO: &[&str] = &["string", "int", "int64", "bool", "float64", "object", "array"];

/// Checks the transforms of a patch. `shape` is the type of the input of the first transform; `None` if it is unknown.
pub(super) fn check(reader: &mut Reader, patch: &Node<'_>, shape: Option<Shape>) {
    let mut input = Input { shape: shape.unwrap_or(Shape::Any), origin: "its input" };
    for transform in reader.objects(patch, "transforms") {
        let shape = check_transform(reader, &transform, input);
        input = Input { shape, origin: "the result of the transform before it" };
    }
}

/// The type of a transform's input, and a text for messages. The text says where the input comes from.
#[derive(Clone, Copy)]
struct Input {
    shape: Shape,
    origin: &'static str,
}

/// Checks a transform and returns the type of its result, which is [`Shape::Any`] if the type is unknown.
fn check_transform(reader: &mut Reader, transform: &Node<'_>, input: Input) -> Shape {
    reader.known(transform, &["type", "map", "match", "math", "string", "convert"]);
    let Some(kind) = word(reader, transform, "type", TYPES, "transform type is required") else { return Shape::Any };
    for other in TYPES.iter().filter(|other| **other != kind) {
        if let Some(found) = reader.member(transform, other) {
            let why = format!("ignored: a transform of type {kind} does not use this field");
            reader.report(Problem::ignored(found.at, why).help("leave it out, or correct the type"));
        }
    }
    if reader.member(transform, kind).is_none() {
        let detail = format!("given transform type {kind} requires configuration");
        reader.report(Problem::required(transform.at.key(kind), &detail));
        return Shape::Any;
    }
    let Some(settings) = reader.object(transform, kind) else { return Shape::Any };
    takes(reader, transform, kind, input);
    match kind {
        "map" => check_map(reader, &settings),
        "match" => check_match(reader, &settings),
        "math" => check_math(reader, &settings, input.shape),
        "string" => check_string(reader, &settings, input.shape),
        _ => check_convert(reader, &settings, input.shape),
    }
}

/// Returns the string in the field `key`, which must be one of `words`. If the field has any other value, reports a
/// problem and returns `None`.
///
/// If the field is missing or empty, returns the first of `words` as the default value. Exception: there is no default
/// in the input of a Composition function, and none for the `type` of the transform itself. In these cases, reports the
/// missing field with the message `detail`, and returns `None`.
fn word<'v>(reader: &mut Reader, node: &Node<'v>, key: &str, words: &[&'v str], detail: &str) -> Option<&'v str> {
    let is_missing = reader.member(node, key).is_none_or(|found| found.value == "");
    if is_missing && (!reader.is_native() || key == "type" && words == TYPES) {
        reader.report(Problem::required(node.at.key(key), detail).help(format!("write one of {}", words.join(", "))));
        return None;
    }
    reader.choice(node, key, words)
}

/// Reports a problem if `transform` accepts no value of the type `input.shape`. `kind` is the type of the transform,
/// such as `map`.
fn takes(reader: &mut Reader, transform: &Node<'_>, kind: &str, input: Input) {
    let Input { shape, origin } = input;
    let never = match kind {
        "map" => !matches!(shape, Shape::Any | Shape::Text),
        "math" => matches!(shape, Shape::Text | Shape::Bool | Shape::List | Shape::Object),
        "convert" => matches!(shape, Shape::List | Shape::Object),
        _ => false,
    };
    if never {
        let detail = format!("a {kind} transform cannot take {}, {origin}", shape.name());
        let value = Value::from(kind);
        reader.report(Problem::invalid(Topic::Expression, transform.at.key("type"), &value, detail));
    }
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::Text => "a string",
            Self::Bool => "a boolean",
            Self::Integer | Self::Float | Self::Number => "a number",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

fn check_map(reader: &mut Reader, map: &Node<'_>) -> Shape {
    let pairs = map.value.as_object();
    if pairs.is_some_and(serde_json::Map::is_empty) {
        let detail = "at least one pair must be specified if a map transform is specified";
        reader.report(Problem::required(map.at.key("pairs"), detail));
    }
    for (key, _) in pairs.into_iter().flatten().filter(|(_, value)| value.is_null()) {
        let detail = "null is not valid JSON to Crossplane here, and the transform fails for this key";
        reader.report(Problem::invalid(Topic::Structure, map.at.key(key), &Value::Null, detail).as_warning());
    }
    Shape::Any
}

fn check_match(reader: &mut Reader, settings: &Node<'_>) -> Shape {
    reader.known(settings, &["patterns", "fallbackValue", "fallbackTo"]);
    let to = reader.lenient_choice(settings, "fallbackTo", &["Value", "Input"], "Value");
    if let Some(value) = reader.member(settings, "fallbackValue").filter(|_| to == Some("Input")) {
        let detail = "cannot set both a fallback value and the fallback to input flag";
        reader.report(Problem::invalid(Topic::Structure, value.at, value.value, detail));
    }
    let patterns = reader.member(settings, "patterns");
    if patterns.is_none_or(|list| list.value.as_array().is_some_and(Vec::is_empty)) {
        let detail = "at least one pattern must be specified if a match transform is specified";
        reader.report(Problem::required(settings.at.key("patterns"), detail));
    }
    for pattern in reader.objects(settings, "patterns") {
        reader.known(&pattern, &["type", "literal", "regexp", "result"]);
        if pattern.value.get("result").is_none() {
            // The function treats a missing result as null.
            reader.report_native(Problem::required(pattern.at.key("result"), "result is required"));
        }
        match word(reader, &pattern, "type", &["literal", "regexp"], "pattern type is required") {
            Some("regexp") => {
                reader.required(&pattern, "regexp", "regexp pattern type requires a regexp");
                reader.regexp(&pattern, "regexp");
            }
            Some(_) => {
                reader.required(&pattern, "literal", "literal pattern type requires a literal");
            }
            None => {}
        }
    }
    Shape::Any
}

fn check_math(reader: &mut Reader, math: &Node<'_>, input: Shape) -> Shape {
    reader.known(math, &["type", "multiply", "clampMin", "clampMax"]);
    let Some(kind) = word(reader, math, "type", MATH, "math transform type is required") else { return Shape::Number };
    let (key, name) = match kind {
        "Multiply" => ("multiply", "a multiply"),
        "ClampMin" => ("clampMin", "a clamp min"),
        _ => ("clampMax", "a clamp max"),
    };
    if reader.member(math, key).is_none() {
        let detail = format!("must specify a value if {name} math transform is specified");
        reader.report(Problem::required(math.at.key(key), &detail));
    }
    for key in ["multiply", "clampMin", "clampMax"] {
        reader.integer(math, key);
    }
    match (kind, input) {
        ("Multiply", Shape::Integer | Shape::Float) => input,
        ("Multiply", _) if !reader.has_integers => Shape::Float,
        _ => Shape::Number,
    }
}

fn check_string(reader: &mut Reader, string: &Node<'_>, input: Shape) -> Shape {
    reader.known(string, &["type", "fmt", "convert", "trim", "regexp", "join", "replace"]);
    let kinds = if reader.is_native() { &STRING[..6] } else { STRING };
    let Some(kind) = word(reader, string, "type", kinds, "string transform type is required") else {
        return Shape::Text;
    };
    match kind {
        "Format" => {
            if reader.required(string, "fmt", "format transform requires a format").is_some() {
                reader.format(string, "fmt", &[input]);
            }
        }
        "Convert" => {
            if reader.member(string, "convert").is_none() {
                let detail = "convert transform requires a conversion type";
                reader.report(Problem::required(string.at.key("convert"), detail));
            }
            reader.choice(string, "convert", CONVERSIONS);
        }
        "TrimPrefix" | "TrimSuffix" => {
            reader.required(string, "trim", "trim transform requires a trim value");
        }
        "Regexp" => check_regexp(reader, string),
        "Join" => check_join(reader, string, input),
        _ => check_replace(reader, string),
    }
    Shape::Text
}

fn check_regexp(reader: &mut Reader, string: &Node<'_>) {
    if reader.member(string, "regexp").is_none() {
        reader.report(Problem::required(string.at.key("regexp"), "regexp transform requires a regexp"));
    }
    let Some(regexp) = reader.object(string, "regexp") else { return };
    reader.known(&regexp, &["match", "group"]);
    match reader.required(&regexp, "match", "match must be provided for a regexp transform") {
        Some(("", at)) => reader.report(Problem::required(at, "match must be provided for a regexp transform")),
        Some(_) => {
            let groups = reader.regexp(&regexp, "match");
            check_group(reader, &regexp, groups);
        }
        None => {}
    }
}

/// Checks the field `group` of `regexp`, the number of the capture group that the transform extracts. `groups` is the
/// number of groups in the regular expression, including group 0, the whole match.
fn check_group(reader: &mut Reader, regexp: &Node<'_>, groups: Option<usize>) {
    let Some((value, group)) = reader.integer(regexp, "group") else { return };
    let at = regexp.at.key("group");
    if group < 0 {
        let detail = "must not be negative: Crossplane's controller crashes";
        reader.report(Problem::invalid(Topic::Expression, at, value, detail));
    } else if let Some(groups) = groups.filter(|groups| usize::try_from(group).is_ok_and(|group| group >= *groups)) {
        let detail = format!("the expression has no such capture group; the highest is {}", groups - 1);
        reader.report(Problem::invalid(Topic::Expression, at, value, detail));
    }
}

fn check_join(reader: &mut Reader, string: &Node<'_>, input: Shape) {
    if reader.member(string, "join").is_none() {
        reader.report(Problem::required(string.at.key("join"), "join transform requires a join"));
    }
    if !matches!(input, Shape::Any | Shape::List) {
        let detail = format!("Join takes a list, but its input is {}", input.name());
        reader.report(Problem::invalid(Topic::Expression, string.at.key("type"), &"Join".into(), detail));
    }
    let Some(join) = reader.object(string, "join") else { return };
    reader.known(&join, &["separator"]);
    if reader.member(&join, "separator").is_none() {
        reader.report_native(Problem::required(join.at.key("separator"), "separator is required"));
    }
    let separator = reader.text(&join, "separator");
    if let Some((_, at)) = separator.filter(|(text, _)| text.len() > 1 && !reader.is_native()) {
        let what = "function-patch-and-transform removes only one byte of the last separator, so the text ends with the rest of it";
        let problem = Problem::new(Topic::Expression, at, what).as_warning();
        reader.report(problem.help("use a separator of one byte, or trim the rest with a TrimSuffix transform"));
    }
}

fn check_replace(reader: &mut Reader, string: &Node<'_>) {
    if reader.member(string, "replace").is_none() {
        reader.report(Problem::required(string.at.key("replace"), "replace transform requires a replace"));
    }
    let Some(replace) = reader.object(string, "replace") else { return };
    reader.known(&replace, &["search", "replace"]);
    if reader.required(&replace, "search", "search is required").is_some_and(|(text, _)| text.is_empty()) {
        reader.report(Problem::required(replace.at.key("search"), "search is required"));
    }
    reader.text(&replace, "replace");
}

fn check_convert(reader: &mut Reader, convert: &Node<'_>, input: Shape) -> Shape {
    reader.known(convert, &["toType", "format"]);
    if reader.member(convert, "toType").is_none() {
        let detail = "toType is required";
        reader.report(Problem::required(convert.at.key("toType"), detail));
        return Shape::Any;
    }
    let format = reader.choice(convert, "format", &["none", "quantity", "json"]);
    let Some(to) = reader.choice(convert, "toType", TO) else { return Shape::Any };
    if let Some(format) = format.filter(|format| !is_possible(input, to, format)) {
        let from = input.word();
        let detail = format!("conversion from {from} to {to} is not supported with format {format}");
        reader.report(Problem::invalid(Topic::Expression, convert.at.key("toType"), &to.into(), detail));
    }
    Shape::of(to)
}

/// Returns whether a `convert` transform can convert a value of type `input` to the type `to`. `format` is the format
/// of the transform, such as `quantity` or `json`.
fn is_possible(input: Shape, to: &str, format: &str) -> bool {
    if input == Shape::of(to) {
        return true;
    }
    let from = |shape: Shape| matches!(input, Shape::Any) || input == shape;
    let number = from(Shape::Integer) || from(Shape::Float) || from(Shape::Number);
    match (to, format) {
        ("float64", "quantity") => from(Shape::Text) || number && input != Shape::Integer,
        ("object" | "array", "json") => from(Shape::Text),
        ("object" | "array", _) => false,
        // A value that already has the target type is not changed, for any format.
        (_, "quantity" | "json") => input == Shape::Any,
        _ => true,
    }
}

impl Shape {
    fn of(to: &str) -> Self {
        match to {
            "string" => Self::Text,
            "bool" => Self::Bool,
            "int" | "int64" => Self::Integer,
            "float64" => Self::Float,
            "object" => Self::Object,
            "array" => Self::List,
            _ => Self::Any,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Text => "string",
            Self::Bool => "bool",
            Self::Integer => "int64",
            Self::Float => "float64",
            Self::Number => "number",
            Self::List => "array",
            Self::Object => "object",
        }
    }
}
