//! Generates strategic merge patches and JSON patches, in all fields that accept patches.

use super::content;
use super::folder::Maker;
use super::objects::Known;
use super::yaml::{Yaml, map, raw, text};

/// Unusual values for the labels or annotations of a patch. Most of them are not mappings of strings.
const ODD_METADATA: [&str; 12] = [
    "null",
    "~",
    "{}",
    "{note: null}",
    "{note: 1}",
    "{note: true, z: \"1\"}",
    "{$patch: delete}",
    "{$patch: replace, note: new}",
    "[a, b]",
    "[a]",
    "[]",
    "text",
];

pub fn patches(maker: &mut Maker<'_>) {
    let known = maker.target();
    let json = maker.dice.chance(35);
    let content = if json { operations(maker, &known) } else { merges(maker, &known) };
    let mut patch = by_content(maker, content);
    let targeted = if json { maker.dice.chance(96) } else { maker.dice.chance(40) };
    if targeted {
        patch = patch.with("target", maker.selector(&known));
    }
    if maker.dice.chance(10) {
        let option = maker.dice.pick(&["allowNameChange", "allowKindChange"]);
        patch = patch.with("options", map([(option, raw("true"))]));
    }
    maker.folder.list("patches").push(patch);
}

pub fn strategic_merge(maker: &mut Maker<'_>) {
    let known = maker.target();
    let content = merges(maker, &known);
    let entry = if maker.dice.chance(50) { maker.file("patch", content) } else { content };
    maker.folder.list("patchesStrategicMerge").push(text(entry));
}

pub fn json6902(maker: &mut Maker<'_>) {
    let known = maker.target();
    let content = operations(maker, &known);
    let (group, version) = known.group_version();
    let mut target = map([("version", text(version)), ("kind", text(known.kind)), ("name", text(&known.name))]);
    if !group.is_empty() {
        target = target.with("group", text(group));
    }
    if let Some(namespace) = &known.namespace {
        target = target.with("namespace", text(namespace));
    }
    let patch = by_content(maker, content).with("target", target);
    maker.folder.list("patchesJson6902").push(patch);
}

fn by_content(maker: &mut Maker<'_>, content: String) -> Yaml {
    if maker.dice.chance(35) {
        map([("path", text(maker.file("patch", content)))])
    } else {
        map([("patch", text(content))])
    }
}

/// Returns the text of a strategic merge patch. It usually changes one object, and sometimes two.
fn merges(maker: &mut Maker<'_>, known: &Known) -> String {
    let mut content = merge(maker, known);
    if maker.dice.chance(8) {
        let other = maker.target();
        content = format!("{content}---\n{}", merge(maker, &other));
    }
    content
}

fn merge(maker: &mut Maker<'_>, known: &Known) -> String {
    let mut header = known.clone();
    match maker.dice.below(40) {
        0 => header.namespace = Some("default".to_owned()),
        1 => header.namespace = None,
        2 => header.name.push_str("-new"),
        _ => {}
    }
    let mut header = header.header();
    if maker.dice.chance(8)
        && let Yaml::Map(fields) = &mut header
        && let Some((_, metadata)) = fields.last_mut()
    {
        let field = maker.dice.pick(&["annotations", "annotations", "labels"]);
        *metadata = metadata.clone().with(field, raw(maker.dice.pick(&ODD_METADATA)));
    }
    let header = header.document(maker.dice);
    if maker.dice.chance(6) {
        return format!("{header}{}", content::anchored(maker.dice, known));
    }
    if maker.dice.chance(45)
        && let Some(body) = content::body(maker.dice, known, content::As::Patch)
    {
        return format!("{header}{}", body.document(maker.dice));
    }
    let body = match (known.kind, maker.dice.below(8)) {
        (_, 0) => "$patch: delete\n",
        (_, 1) => "",
        (_, 2) if maker.dice.chance(40) => "$patch: replace\nspec: {new: true}\n",
        ("ConfigMap" | "Secret", 3 | 4) => "data: {a: bmV3, z: bmV3}\n",
        ("ConfigMap" | "Secret", 5) => "data: null\n",
        (_, 7) if maker.dice.chance(15) => maker.dice.pick(&[
            "data: {1: a}\n",
            "data: {\"1\": a}\n",
            "data: {1: null}\n",
            "data: {a: b, a: c}\n",
            "data: {$patch: replace, a: b}\n",
            "more: {true: a}\n",
            "list: [{1: a}]\n",
        ]),
        ("ConfigMap", 6) if maker.dice.chance(20) => "data: [a]\n",
        ("Deployment" | "StatefulSet", 3) => "spec: {replicas: 5}\n",
        ("Deployment" | "StatefulSet", 4) => {
            "spec:\n  template:\n    spec:\n      containers:\n      - {name: main, env: [{name: A, $patch: delete}]}\n      - {name: new, image: x}\n"
        }
        ("Deployment" | "StatefulSet", 5) => {
            "spec:\n  template:\n    spec:\n      $patch: replace\n      containers: [{name: main}]\n"
        }
        ("Service", 3 | 4) => "spec:\n  ports: [{port: 80, protocol: TCP}]\n",
        ("Widget", 3 | 4) => "spec: {list: [{name: c}]}\n",
        _ => "extra: {a: 1}\n",
    };
    format!("{header}{body}")
}

/// Returns the text of a JSON patch.
fn operations(maker: &mut Maker<'_>, known: &Known) -> String {
    let count = 1 + maker.dice.below(2);
    let operations: Vec<&str> = (0..count).map(|_| operation(maker, known)).collect();
    match maker.dice.below(6) {
        0 => format!("[{}]", operations.join(", ")),
        1 if count == 1 => operations[0].to_owned(),
        _ => operations.iter().map(|operation| format!("- {operation}\n")).collect(),
    }
}

fn operation(maker: &mut Maker<'_>, known: &Known) -> &'static str {
    let of_kind: &[&str] = match known.kind {
        "ConfigMap" => &[
            r#"{"op": "add", "path": "/data/new", "value": "1"}"#,
            r#"{"op": "remove", "path": "/data/a"}"#,
            r#"{"op": "test", "path": "/data/a", "value": "1"}"#,
            r#"{"op": "add", "path": "/data", "value": {"n": "1"}}"#,
        ],
        "Deployment" | "StatefulSet" => &[
            r#"{"op": "add", "path": "/spec/replicas", "value": 4}"#,
            r#"{"op": "test", "path": "/spec/replicas", "value": 1}"#,
            r#"{"op": "test", "path": "/spec/replicas", "value": 1.0}"#,
            r#"{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "new"}"#,
            r#"{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "more"}}"#,
        ],
        _ => &[],
    };
    let of_all = [
        r#"{"op": "add", "path": "/metadata/annotations", "value": {"note": "patched"}}"#,
        r#"{"op": "add", "path": "/metadata/labels", "value": {"app": "web"}}"#,
        r#"{"op": "add", "path": "/metadata/labels/more", "value": "x"}"#,
        r#"{"op": "replace", "path": "/metadata/name", "value": "renamed"}"#,
        r#"{"op": "add", "path": "/metadata/namespace", "value": "prod"}"#,
        r#"{"op": "remove", "path": "/metadata/namespace"}"#,
        r#"{"op": "replace", "path": "/kind", "value": "ConfigMap"}"#,
        r#"{"op": "test", "path": "/kind", "value": "ConfigMap"}"#,
        r#"{"op": "copy", "from": "/metadata/name", "path": "/metadata/namespace"}"#,
        r#"{"op": "move", "from": "/metadata/name", "path": "/metadata/generateName"}"#,
        r#"{"op": "add", "path": "/new", "value": y}"#,
        r#"{"op": "add", "path": "new", "value": 1}"#,
        r#"{"op": "test", "path": "/metadata/none"}"#,
        r#"{"op": "test", "path": "/metadata/labels", "value": {"app": "web"}}"#,
        r#"{"op": "copy", "from": "/metadata/none", "path": "/metadata/annotations"}"#,
        r#"{"op": "copy", "from": "/metadata/labels", "path": "/copied"}"#,
    ];
    if maker.dice.chance(60) { maker.dice.any(of_kind).copied().unwrap_or(of_all[0]) } else { maker.dice.pick(&of_all) }
}
