//! Generates strategic merge patches and JSON patches, in all fields that accept patches.

use super::content;
use super::folder::FolderBuilder;
use super::objects::ObjectId;
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

pub fn patches(builder: &mut FolderBuilder<'_>) {
    let id = builder.target();
    let json = builder.dice.chance(35);
    let content = if json { json_patch(builder, &id) } else { merge_patch(builder, &id) };
    let mut patch = patch_entry(builder, content);
    let targeted = if json { builder.dice.chance(96) } else { builder.dice.chance(40) };
    if targeted {
        patch = patch.with("target", builder.selector(&id));
    }
    if builder.dice.chance(10) {
        let option = builder.dice.pick(&["allowNameChange", "allowKindChange"]);
        patch = patch.with("options", map([(option, raw("true"))]));
    }
    builder.folder.list("patches").push(patch);
}

pub fn strategic_merge(builder: &mut FolderBuilder<'_>) {
    let id = builder.target();
    let content = merge_patch(builder, &id);
    let entry = if builder.dice.chance(50) { builder.file("patch", content) } else { content };
    builder.folder.list("patchesStrategicMerge").push(text(entry));
}

pub fn json6902(builder: &mut FolderBuilder<'_>) {
    let id = builder.target();
    let content = json_patch(builder, &id);
    let (group, version) = id.group_version();
    let mut target = map([("version", text(version)), ("kind", text(id.kind)), ("name", text(&id.name))]);
    if !group.is_empty() {
        target = target.with("group", text(group));
    }
    if let Some(namespace) = &id.namespace {
        target = target.with("namespace", text(namespace));
    }
    let patch = patch_entry(builder, content).with("target", target);
    builder.folder.list("patchesJson6902").push(patch);
}

fn patch_entry(builder: &mut FolderBuilder<'_>, content: String) -> Yaml {
    if builder.dice.chance(35) {
        map([("path", text(builder.file("patch", content)))])
    } else {
        map([("patch", text(content))])
    }
}

/// Returns the text of a strategic merge patch. It usually changes one object, and sometimes two.
fn merge_patch(builder: &mut FolderBuilder<'_>, id: &ObjectId) -> String {
    let mut content = merge_document(builder, id);
    if builder.dice.chance(8) {
        let other = builder.target();
        content = format!("{content}---\n{}", merge_document(builder, &other));
    }
    content
}

fn merge_document(builder: &mut FolderBuilder<'_>, id: &ObjectId) -> String {
    let mut header = id.clone();
    match builder.dice.below(40) {
        0 => header.namespace = Some("default".to_owned()),
        1 => header.namespace = None,
        2 => header.name.push_str("-new"),
        _ => {}
    }
    let mut header = header.header();
    if builder.dice.chance(8)
        && let Yaml::Map(fields) = &mut header
        && let Some((_, metadata)) = fields.last_mut()
    {
        let field = builder.dice.pick(&["annotations", "annotations", "labels"]);
        *metadata = metadata.clone().with(field, raw(builder.dice.pick(&ODD_METADATA)));
    }
    let header = header.document(builder.dice);
    if builder.dice.chance(6) {
        return format!("{header}{}", content::anchored(builder.dice, id));
    }
    if builder.dice.chance(45)
        && let Some(body) = content::body(builder.dice, id, content::Usage::Patch)
    {
        return format!("{header}{}", body.document(builder.dice));
    }
    let body = match (id.kind, builder.dice.below(8)) {
        (_, 0) => "$patch: delete\n",
        (_, 1) => "",
        (_, 2) if builder.dice.chance(40) => "$patch: replace\nspec: {new: true}\n",
        ("ConfigMap" | "Secret", 3 | 4) => "data: {a: bmV3, z: bmV3}\n",
        ("ConfigMap" | "Secret", 5) => "data: null\n",
        (_, 7) if builder.dice.chance(15) => builder.dice.pick(&[
            "data: {1: a}\n",
            "data: {\"1\": a}\n",
            "data: {1: null}\n",
            "data: {a: b, a: c}\n",
            "data: {$patch: replace, a: b}\n",
            "more: {true: a}\n",
            "list: [{1: a}]\n",
        ]),
        ("ConfigMap", 6) if builder.dice.chance(20) => "data: [a]\n",
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
fn json_patch(builder: &mut FolderBuilder<'_>, id: &ObjectId) -> String {
    let count = 1 + builder.dice.below(2);
    let operations: Vec<&str> = (0..count).map(|_| operation(builder, id)).collect();
    match builder.dice.below(6) {
        0 => format!("[{}]", operations.join(", ")),
        1 if count == 1 => operations[0].to_owned(),
        _ => operations.iter().map(|operation| format!("- {operation}\n")).collect(),
    }
}

fn operation(builder: &mut FolderBuilder<'_>, id: &ObjectId) -> &'static str {
    let of_kind: &[&str] = match id.kind {
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
    if builder.dice.chance(60) {
        builder.dice.any(of_kind).copied().unwrap_or(of_all[0])
    } else {
        builder.dice.pick(&of_all)
    }
}
