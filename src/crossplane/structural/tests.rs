use serde_json::json;

use super::*;

fn structural(spec: Value) -> Structural {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}});
    Structural::of(&definition, "v1").unwrap()
}

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

#[test]
fn prunes_and_defaults_as_the_api_server_does() {
    let schema = structural(json!({"type": "object", "properties": {
        "region": {"type": "string", "default": "eu-1"},
        "size": {"type": "integer"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "additionalProperties": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "nullable": true}}}},
    }}));
    let stored = schema.stored(&json!({"spec": {
        "size": null, "other": 1, "compositionRef": {"name": "x"}, "tags": {"a": "b"}, "any": {"a": {"b": 1}},
        "free": {"x": {"y": 1}, "a": {"b": 1}}, "list": [{"a": null, "b": 1}, null],
    }, "more": true}));
    let expected = json!({"spec": {
        "region": "eu-1", "compositionRef": {"name": "x"}, "tags": {"a": "b"}, "any": {"a": {}},
        "free": {"x": {"y": 1}, "a": {}}, "list": [{"a": null}, null],
    }});
    assert_eq!(stored, expected);
    assert_eq!(schema.stored(&stored), stored);
}

#[test]
fn knows_which_paths_are_pruned() {
    let schema = structural(json!({"type": "object", "properties": {
        "region": {"type": "string"}, "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}));
    for known in ["spec.region", "spec.list[3].a", "spec.free.x.y", "spec.writeConnectionSecretToRef.name"] {
        assert!(!matches!(schema.at(&path(known)), Field::Pruned { .. }), "{known}");
    }
    let has = ["region".to_owned(), "free".to_owned(), "list".to_owned()];
    let Field::Pruned { at, has: found } = schema.at(&path("spec.regio")) else { panic!("it is not pruned") };
    assert_eq!((at.as_str(), found.len(), &found[0]), ("spec", has.len(), &has[0]));
    for pruned in ["spec.list[0].b", "spec.region.x", "spec.region[0]", "spec.free2"] {
        assert!(matches!(schema.at(&path(pruned)), Field::Pruned { .. }), "{pruned}");
    }
}

#[test]
fn reports_values_that_the_api_server_rejects() {
    let schema = structural(json!({"type": "object", "required": ["compositionRef"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9}, "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "mode": {"type": "string", "enum": ["a", "b"]}, "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "either": {"x-kubernetes-int-or-string": true}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {}},
        "one": {"type": "object", "required": ["a"], "properties": {"a": {}}, "maxProperties": 1},
    }}));
    let refused = |spec: Value| {
        let mut spec = spec;
        spec["compositionRef"] = json!({"name": "x"});
        schema.violations(&json!({"spec": spec})).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let fine =
        json!({"size": 3, "name": "abc", "mode": "a", "list": ["x"], "either": "1", "set": [1, 2], "one": {"a": 1}});
    assert_eq!(refused(fine), Vec::<String>::new());
    assert_eq!(refused(json!({"size": "3"})), ["spec.size: must be of type integer: \"3\""]);
    assert_eq!(refused(json!({"list": [null, "a"]})), ["spec.list[0]: must be of type string: null"]);
    for (wrong, count) in [
        (json!({"size": 0}), 1),
        (json!({"size": 1.5}), 1),
        (json!({"name": "ABCD"}), 2),
        (json!({"mode": "c"}), 1),
        (json!({"either": 1.5}), 1),
        (json!({"set": [1, 1]}), 1),
        (json!({"one": {"b": 1, "c": 2}}), 2),
        (json!({"list": ["a", "b", "c"]}), 1),
    ] {
        assert_eq!(refused(wrong.clone()).len(), count, "{wrong}: {:?}", refused(wrong.clone()));
    }
}

#[test]
fn leaves_fields_of_cel_rules_undecided() {
    let rule = |rule: &str| json!([{"rule": rule}]);
    let schema = structural(json!({
        "x-kubernetes-validations": rule("!has(oldSelf.zone) || self.zone == oldSelf.zone"),
        "properties": {
            "region": {"type": "string", "x-kubernetes-validations": rule("self == oldSelf")},
            "zone": {"type": "string"},
            "zones": {"type": "string"},
            "size": {"type": "integer", "x-kubernetes-validations": rule("self >= 3")},
            "network": {"x-kubernetes-validations": rule("self.vpc != ''"), "properties": {"vpc": {}, "name": {}}},
            "list": {"items": {"x-kubernetes-validations": rule("self == oldSelf")}},
            "mail": {"type": "string", "format": "email"},
        },
    }));
    let is_open = |text: &str, operation| schema.undecided(&path(text), operation).is_some();
    for update in
        ["spec.region", "spec.zone", "spec.network", "spec.network.vpc", "spec.network.vpc.id", "spec.list[0]"]
    {
        assert!(is_open(update, Operation::Update), "{update}");
    }
    for both in ["spec.size", "spec.network.vpc", "spec.mail"] {
        assert!(is_open(both, Operation::Create), "{both}");
    }
    for create in ["spec.region", "spec.zone", "spec.list[0]"] {
        assert!(!is_open(create, Operation::Create), "{create}");
    }
    for free in ["spec.zones", "spec.network.name", "spec.other"] {
        assert!(!is_open(free, Operation::Update), "{free}");
    }
}
