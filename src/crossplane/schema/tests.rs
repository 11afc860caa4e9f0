use serde_json::json;

use super::*;

fn schema(value: Value) -> Arc<Schema> {
    Schema::read(&value.to_string()).unwrap()
}

fn at(schema: &Schema, path: &str) -> Found {
    schema.at(&Path::parse(path).unwrap())
}

fn types(schema: &Schema, path: &str) -> String {
    match at(schema, path) {
        Found::Something { types, is_required } => format!("{types}{}", if is_required { "!" } else { "" }),
        Found::Anything => "anything".to_owned(),
        Found::Nothing { at, has } => format!("nothing; {at} has {}", has.join(", ")),
    }
}

#[test]
fn follows_paths_through_properties_items_and_combined_schemas() {
    let schema = schema(json!({
        "type": "object",
        "required": ["region", "network"],
        "$defs": {"subnet": {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": false}},
        "properties": {
            "region": {"enum": ["eu", "us"]},
            "size": {"type": ["integer", "null"]},
            "network": {"allOf": [
                {"required": ["vpc"], "properties": {"vpc": {"type": "string"}}},
                {"properties": {"subnets": {"type": "array", "items": {"$ref": "#/$defs/subnet"}}}},
            ]},
            "tags": {"additionalProperties": {"type": "string"}},
            "free": {"type": "object"},
            "kept": {"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": true},
            "either": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "pair": {"prefixItems": [{"type": "string"}], "items": false},
            "named": {"patternProperties": {"^x-": {"type": "boolean"}}},
        },
    }));
    for (path, expected) in [
        ("region", "string!"),
        ("size", "null or integer"),
        ("network.vpc", "string!"),
        ("network.subnets[3].id", "string"),
        ("network.subnet[0]", "nothing; network has subnets, vpc"),
        ("network.subnets[0].name", "nothing; network.subnets[0] has id"),
        ("network.subnets.id", "nothing; network.subnets has "),
        ("region.name", "nothing; region has "),
        ("tags.any", "string"),
        ("free.any.thing", "anything"),
        ("kept.b", "anything"),
        ("either", "number or string"),
        ("pair[0]", "string"),
        ("pair[1]", "nothing; pair has "),
        ("named.x-a", "boolean"),
        ("named.y", "nothing; named has "),
        ("regoin", "nothing;  has region, free, kept, network, pair, tags, either, named"),
    ] {
        assert_eq!(types(&schema, path), expected, "{path}");
    }
}

#[test]
fn allows_values_without_constraints() {
    for open in
        [json!({}), json!({"type": "object"}), json!({"not": {}}), json!({"$ref": "https://example.org/a.json"})]
    {
        assert_eq!(at(&schema(open), "a.b[0]"), Found::Anything);
    }
    let looping =
        schema(json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}));
    assert_eq!(at(&looping, "a"), Found::Anything);
    let deep = schema(json!({"properties": {"next": {"$ref": "#"}, "end": {"type": "string"}}}));
    assert_eq!(types(&deep, "next.next.next.end"), "string");
    assert_eq!(types(&deep, "next.next.last"), "nothing; next.next has next, end");
}

#[test]
fn reports_invalid_schemas_with_their_place() {
    let error = |text: &str| Schema::read(text).unwrap_err().to_string();
    assert!(error("[1]").contains("/: must be an object"), "{}", error("[1]"));
    assert!(error("{").contains("neither JSON nor YAML"));
    assert!(error("{}\n---\n{}").contains("one document"));
    let typed = error("properties: {a: {type: text}}");
    assert!(typed.contains("/properties/a/type: must be null, boolean"), "{typed}");
    assert!(error("properties: []").contains("/properties: must be an object"));
    assert!(error("properties: {a: string}").contains("/properties/a: must be an object"));
    assert!(error("$ref: '#/$defs/a'").contains("/$ref: #/$defs/a does not exist"));
    assert!(error("required: a").contains("/required: must be a list of names"));
    assert!(error("patternProperties: {'(': {}}").contains("is not an RE2 regular expression"));
    assert!(error(&format!("{{}}{}", " ".repeat(MAX_BYTES))).contains("bytes"));
    let many: Vec<_> = (0..=MAX_PARTS).map(|_| json!({})).collect();
    assert!(error(&json!({"anyOf": many}).to_string()).contains("parts"));
}

#[test]
fn bounds_the_work_for_exponentially_growing_schemas() {
    let mut defs = serde_json::Map::new();
    for level in 0..200 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(
            format!("l{level}"),
            json!({"anyOf": [{"properties": {"a": next}}, {"properties": {"a": next}}, next, next]}),
        );
    }
    defs.insert("l200".to_owned(), json!({"type": "string"}));
    let schema = schema(json!({"$defs": defs, "$ref": "#/$defs/l0"}));
    assert_eq!(at(&schema, &["a"; 100].join(".")), Found::Anything, "it is given up");
}
