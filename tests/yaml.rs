//! Tests of positions and limits of the YAML parser, and property tests with arbitrary text.
#![allow(missing_docs, clippy::unwrap_used)]

use portcullis::admission::field::FieldPath;
use portcullis::yaml::{self, Document, Limits, Problem};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parse_one(text: &str) -> Document {
    yaml::read(text, &Limits::default()).unwrap().remove(0)
}

fn problem(text: &str) -> Problem {
    yaml::read(text, &Limits::default()).unwrap_err().problem
}

fn path(keys: &[&str]) -> FieldPath {
    keys.iter().fold(FieldPath::root(), |path, key| match key.parse() {
        Ok(index) => path.index(index),
        Err(_) => path.key(key),
    })
}

/// Returns line, column and text of the value at the path `keys`.
fn value_at<'t>(text: &'t str, keys: &[&str]) -> (u32, u32, &'t str) {
    let place = parse_one(text).place(&path(keys)).unwrap();
    (place.line, place.column, &text[place.start..place.end])
}

const TEXT: &str = "# a ConfigMap\nkind: ConfigMap\nmétadata: {name: 'a b', labels: [x, \"ü\"]}\ndata:\n  script: |\n    one\n    two\n\n  list:\n  - a: 1\n    b:\n  - last\n";

/// Like kubectl, our parser rejects a number that is out of range, such as `1e999`, in JSON. In YAML, it reads the same
/// number as a string, also like kubectl.
#[test]
fn rejects_out_of_range_numbers_in_json_only() {
    assert_eq!(problem("{\"a\": 1,\n \"n\": 1e999}"), Problem::OutOfRange);
    let error = yaml::read("{\"a\": 1,\n \"n\": 1e999}", &Limits::default()).unwrap_err();
    assert_eq!(error.place.line, 2);
    assert_eq!(parse_one("{m: 1e999}").value, json!({"m": "1e999"}));
}

#[test]
fn values_have_positions() {
    assert_eq!(value_at(TEXT, &["kind"]), (2, 7, "ConfigMap"));
    assert_eq!(value_at(TEXT, &["métadata"]), (3, 11, "{name: 'a b', labels: [x, \"ü\"]}"));
    assert_eq!(value_at(TEXT, &["métadata", "name"]), (3, 18, "'a b'"));
    assert_eq!(value_at(TEXT, &["métadata", "labels", "1"]), (3, 37, "\"ü\""));
    assert_eq!(value_at(TEXT, &["data", "script"]), (6, 5, "one\n    two"));
    assert_eq!(value_at(TEXT, &["data", "list"]), (10, 3, "- a: 1\n    b:\n  - last"));
    assert_eq!(value_at(TEXT, &["data", "list", "0"]), (10, 5, "a: 1\n    b"));
    assert_eq!(value_at(TEXT, &["data", "list", "0", "b"]), (11, 6, ""));
    assert_eq!(value_at(TEXT, &[]).1, 1);
}

#[test]
fn keys_have_positions_and_paths_end_at_the_nearest_value() {
    let document = parse_one(TEXT);
    let key = document.key_place(&path(&["métadata", "labels"])).unwrap();
    assert_eq!((key.line, &TEXT[key.start..key.end]), (3, "labels"));
    assert_eq!(document.key_place(&path(&["data", "list", "0"])), None);
    assert_eq!(document.place(&path(&["data", "nothing"])), None);
    let nearest = document.nearest(&path(&["data", "list", "7", "x"]));
    assert_eq!(Some(nearest), document.place(&path(&["data", "list"])));
    assert_eq!(document.start(), document.nearest(&FieldPath::root()));
}

#[test]
fn positions_continue_in_later_documents() {
    let text = "\u{feff}a: 1\r\n---\r\n# nothing\r\n--- # two\r\nb: é\r\nc: 2\r\n";
    let documents = yaml::read(text, &Limits::default()).unwrap();
    assert_eq!(documents.len(), 2);
    let first = documents[0].place(&path(&["a"])).unwrap();
    assert_eq!((first.line, first.column, first.start), (1, 4, 6));
    let last = documents[1].place(&path(&["c"])).unwrap();
    assert_eq!((last.line, last.column, &text[last.start..last.end]), (6, 4, "2"));
}

#[test]
fn json_values_have_positions() {
    let text = "{\n\t\"a\": [1.0, {\"b\\u0041\": \"é\\\"\" , \"c\":-2e3}],\n\t\"d\": {}\n}\n{\"e\":null}";
    assert_eq!(value_at(text, &["a", "1", "bA"]), (2, 25, "\"é\\\"\""));
    assert_eq!(value_at(text, &["a", "1", "c"]), (2, 37, "-2e3"));
    assert_eq!(value_at(text, &["d"]), (3, 7, "{}"));
    let documents = yaml::read(text, &Limits::default()).unwrap();
    assert_eq!(documents[1].place(&path(&["e"])).map(|place| place.line), Some(5));
    assert_eq!(documents[0].value["a"][0], json!(1.0));
}

/// An alias of a long text counts as several values. If it counted as one value, many copies of the text would be
/// within the limit, and could take gigabytes of memory.
#[test]
fn an_alias_of_a_long_text_counts_as_several_values() {
    let text = |length: usize| format!("a: &a {}\nb: [{}]\n", "x".repeat(length), ["*a"; 1000].join(","));
    assert_eq!(yaml::read(&text(10), &Limits::default()).unwrap()[0].aliased, 1001);
    let error = yaml::read(&text(100_000), &Limits::default()).unwrap_err();
    assert_eq!(error.problem, Problem::TooManyAliased(100_000));
    let keys = format!("a: &a {{{}: 1}}\nb: [{}]\n", "x".repeat(900), ["*a"; 20_000].join(","));
    assert!(yaml::read(&keys, &Limits::default()).is_err());
}

#[test]
fn aliases_and_merged_entries_have_positions_of_their_use() {
    let text = "a: &x {p: {q: 1}}\nb: *x\nc:\n  <<: *x\n  r: 2\n";
    assert_eq!(value_at(text, &["b"]), (2, 4, "*x"));
    assert_eq!(value_at(text, &["b", "p", "q"]), (2, 4, "*x"));
    assert_eq!(value_at(text, &["c", "p"]), (4, 7, "*x"));
    assert_eq!(value_at(text, &["c", "r"]), (5, 6, "2"));
    assert_eq!(parse_one(text).value["c"], json!({"p": {"q": 1}, "r": 2}));
}

#[test]
fn reports_duplicate_keys() {
    let text = "a: &x {k: 1}\nb: [{m: 1, n: 2, m: 3}]\nc: {<<: *x, k: 2}\na: {k: 2, k: 3}\n";
    let document = parse_one(text);
    let reported: Vec<_> =
        document.duplicates().into_iter().map(|it| (it.path.to_string(), it.lost.line, it.kept.column)).collect();
    let expected = [("a", 1, 1), ("a.k", 4, 11), ("b[0].m", 2, 18)];
    assert_eq!(reported, expected.map(|(path, line, column)| (path.to_owned(), line, column)));
    assert_eq!(document.value["a"], json!({"k": 3}));
    assert_eq!(document.place(&path(&["b", "0", "m"])).map(|place| place.column), Some(21));
}

#[test]
fn continues_after_an_invalid_document() {
    let text = "a: 1\n---\nb: 2\n---\nc: [\n---\nd: 4\n";
    let (good, bad) = yaml::read_all(text, &Limits::default());
    assert_eq!(good.len(), 2);
    assert_eq!(bad.map(|error| error.place.line), Some(5));
    let limits = Limits::default();
    let kinds: Vec<_> = yaml::documents(text, &limits).map(|document| document.is_ok()).collect();
    assert_eq!(kinds, [true, true, false, true]);
}

/// kubectl reads JSON objects one after the other. It does not read text after several objects as YAML.
#[test]
fn text_after_several_json_objects_is_an_error() {
    let places = |text: &str| {
        let (limits, first) = (Limits::default(), |document: yaml::Document| document.value["a"].clone());
        let place = |error: yaml::YamlError| (error.place.line, error.place.column, error.to_string());
        yaml::documents(text, &limits).map(|document| document.map(first).map_err(place)).collect::<Vec<_>>()
    };
    let error = |line, column, found| Err((line, column, format!("invalid JSON after other JSON objects: {found}")));
    let (one, two) = (Ok(json!(1)), Ok(json!(2)));
    let cut_off = error(2, 12, "EOF while parsing a value");
    assert_eq!(places("{\"a\":1}\n{\"a\":2}{\"a\":"), [one.clone(), two.clone(), cut_off]);
    let separator = error(3, 1, "found the separator `---`");
    assert_eq!(places("{\"a\":1}\n{\"a\":2}\n---\na: 3\n"), [one.clone(), two.clone(), separator, Ok(json!(3))]);
    assert_eq!(places("{\"a\":1}\n{a: 2}\n---\na: 3\n"), [one, two, Ok(json!(3))]);
}

#[test]
fn every_json_object_has_its_own_limit() {
    let limits = Limits { depth: 3, ..Limits::default() };
    let read: Vec<_> = yaml::documents("{\"a\":[]} {\"b\":[[[[]]]]} {\"c\":[]}", &limits).collect();
    let problems: Vec<_> = read.into_iter().map(|document| document.err().map(|error| error.problem)).collect();
    assert_eq!(problems, [None, Some(Problem::TooDeep(3)), None]);
}

#[test]
fn reads_the_first_document_like_kustomize() {
    let first = |text| yaml::first(text, &Limits::default()).unwrap().map(|document| document.value);
    assert_eq!(first("# c\n---\na: 1\n---\nb: [\n"), Some(json!({"a": 1})));
    assert_eq!(first("--- {a: 1}\n"), Some(json!({"a": 1})));
    assert_eq!(first("---\n---\na: 1\n"), None);
    assert_eq!(first(""), None);
}

#[test]
fn errors_have_position_and_message() {
    let error = yaml::read("a: 1\nb:\n- !!int x\n", &Limits::default()).unwrap_err();
    assert_eq!((error.place.line, error.place.column), (3, 9));
    assert_eq!(error.to_string(), "`x` is not a valid `!!int`");
    let error = yaml::read("a: 'x'\n\t\nb: 1\n", &Limits::default()).unwrap_err();
    assert_eq!((error.place.line, error.place.column), (2, 1));
    assert_eq!(problem("a: .inf\n"), Problem::NotFinite);
    assert_eq!(problem("~: 1\n"), Problem::Key("null"));
    assert_eq!(problem("<<: 1\n"), Problem::Merge);
    assert_eq!(problem("a: &x [*x]\n"), Problem::Recursion);
    assert!(matches!(problem("--- a\n"), Problem::Separator(_)));
}

#[test]
fn rejects_alias_bombs() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    // The aliases expand to three billion values, but the parser stops at the limit.
    assert!(matches!(problem(&bomb), Problem::TooManyAliased(_)));
    assert!(matches!(problem(&"[".repeat(100_000)), Problem::TooDeep(_) | Problem::Syntax(_)));
    assert!(matches!(problem(&format!("a: {}{}", "[".repeat(200), "]".repeat(200))), Problem::TooDeep(_)));
    assert!(matches!(problem(&"- ".repeat(200)), Problem::TooDeep(_)));
    assert!(matches!(problem(&format!("{}{}", "[".repeat(200), "]".repeat(200))), Problem::TooDeep(_)));
    let few = Limits { nodes: 10, ..Limits::default() };
    assert_eq!(yaml::read(&"- a\n".repeat(20), &few).unwrap_err().problem, Problem::TooManyNodes(10));
    assert_eq!(yaml::read(&format!("[{}1]", "1,".repeat(20)), &few).unwrap_err().problem, Problem::TooManyNodes(10));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Generates text that is similar to YAML.
fn nearly_yaml() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a", "b", ": ", "- ", "\n", "  ", " ", "[", "]", "{", "}", ",", "'", "\"", "|", ">", "#", " #c", "&x ", "*x",
        "!!int ", "!", "<<", "?", "---", "...", "\t", "\r\n", "1", "0x", "é", "\u{feff}", "\\", "%", "~", "\u{85}",
        "|2-", "<<: *x\n", "\n  ",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn check_places(text: &str, value: &Value, document: &Document, path: &FieldPath) {
    let place = document.place(path).unwrap();
    assert!(text.get(place.start..place.end).is_some(), "{path} {place:?}");
    let line = text[..place.start].bytes().filter(|byte| *byte == b'\n').count() as u32 + 1;
    assert!(text.contains('\r') || place.line == line, "{path} {place:?}");
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| check_places(text, item, document, &path.index(index)));
        }
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            let path = path.key(key);
            assert!(document.key_place(&path).is_some());
            check_places(text, member, document, &path);
        }),
        _ => {}
    }
}

proptest! {
    #[test]
    fn never_panics_on_any_text(text in prop_oneof![nearly_yaml(), ".*", "[ -~\n\t]*"]) {
        for document in yaml::read_all(&text, &Limits::default()).0 {
            check_places(&text, &document.value, &document, &FieldPath::root());
        }
        let _ = yaml::first(&text, &Limits::default());
    }

    #[test]
    fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = yaml::read_all(&String::from_utf8_lossy(&bytes), &Limits::default());
    }

    #[test]
    fn json_is_read_as_json(value in any_json(), pretty: bool) {
        let value = json!({ "value": value });
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let document = parse_one(&text);
        check_places(&text, &value, &document, &FieldPath::root());
        prop_assert_eq!(document.value, value);
    }

    #[test]
    fn a_plain_scalar_has_the_position_of_its_text(words in prop::collection::vec("[a-m][a-z0-9/._é-]{1,8}", 1..6)) {
        let text: String = words.iter().enumerate().map(|(index, word)| format!("k{index}:  {word}z # {word}\n")).collect();
        let document = parse_one(&text);
        for (index, word) in words.iter().enumerate() {
            let place = document.place(&path(&[&format!("k{index}")])).unwrap();
            prop_assert_eq!(&text[place.start..place.end], format!("{word}z"));
        }
    }
}
