//! Generates the content of objects and patches: unusual scalars, lists with merge keys, anchors, and references to
//! other objects.

use super::objects::{NAMES, ObjectId};
use super::yaml::{Yaml, map, raw, text};
use crate::dice::Dice;

/// Scalars in YAML notation. Many have an unexpected type, or kustomize prints them in another notation.
const SCALARS: &[&str] = &[
    "a",
    "yes",
    "\"yes\"",
    "on",
    "~",
    "null",
    "\"\"",
    "0644",
    "\"0644\"",
    "0o17",
    "0x1F",
    "1_000",
    "1e3",
    "1.0",
    "-0.0",
    "\"1.0\"",
    "1.5e300",
    "9223372036854775807",
    "18446744073709551615",
    "12345678901234567890123",
    "12e03",
    "+1",
    "0.1",
    ".5",
    "916787552133074.2",
    "2001-01-01",
    "\"2001-01-01\"",
    "2001-01-01T00:00:00Z",
    "1:30",
    "'1:30'",
    "!!str 123",
    "!!float 3",
    "!!binary aGk=",
    "!!int 3",
    "true",
    "\"true\"",
    "True",
    "y",
    "n",
    "'it''s'",
    "\"a\\tb\"",
    "\"a\\nb\"",
    "\"a\\nb\\n\"",
    "\" a\"",
    "\"a \"",
    "\"a: b\"",
    "\"# a\"",
    "\"é\"",
    "\"😀\"",
    "\"\\u2028\"",
    "\"- a\"",
    "\"---\"",
    "\"@a\"",
    "\"a #b\"",
    "\"{{ x }}\"",
    "$(V)",
    "\"$(V)-$(W)\"",
    "a=b",
    "=",
    "<<",
    "\"<<\"",
    "!x a",
];
const LONG_SCALARS: &[&str] = &[
    "the quick brown fox jumps over the lazy dog and runs along the river until the night falls over the hills",
    "\"the quick brown fox  jumps over the lazy dog: and runs along the river until the night falls over # the hills\"",
    "--a-very-long-flag-without-any-space=0123456789012345678901234567890123456789012345678901234567890123456789",
    "'  the quick brown fox jumps over the lazy dog and runs along the river until the night falls over the hills'",
];
const IMAGES: &[&str] =
    &["nginx", "nginx:1.25", "\"busybox:1\"", "reg.io:5000/nginx:v1", "other@sha256:01", "1.5", "null"];

/// Returns a random scalar.
pub fn scalar(dice: &mut Dice) -> Yaml {
    raw(if dice.chance(8) { dice.pick(LONG_SCALARS) } else { dice.pick(SCALARS) })
}

fn value(dice: &mut Dice, depth: usize) -> Yaml {
    match dice.below(if depth == 0 { 1 } else { 5 }) {
        3 => Yaml::List((0..dice.below(4)).map(|_| value(dice, depth - 1)).collect()),
        4 => random_map(dice, &["a", "b", "name", "data10", "data9", "a-b"], depth - 1),
        _ => scalar(dice),
    }
}

/// Returns a mapping with some of these keys and random values.
fn random_map(dice: &mut Dice, keys: &[&str], depth: usize) -> Yaml {
    let kept = keys.iter().filter(|_| dice.chance(45)).collect::<Vec<_>>();
    Yaml::Map(kept.into_iter().map(|key| ((*key).to_owned(), value(dice, depth))).collect())
}

fn with_optional(
    mut map: Yaml,
    dice: &mut Dice,
    percent: usize,
    key: &str,
    value: impl FnOnce(&mut Dice) -> Yaml,
) -> Yaml {
    if dice.chance(percent) {
        let value = value(dice);
        map = map.with(key, value);
    }
    map
}

fn name(dice: &mut Dice) -> Yaml {
    text(dice.pick(NAMES))
}

/// The use of the generated content: in an object, or in a patch. Only a patch can contain the directive `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    Object,
    Patch,
}

/// Returns a list whose elements have merge keys of strategic merge patches, such as containers with names. `keys`
/// contains the merge keys and their possible values. Most elements have the first key, and many lack the others.
/// `rest` adds the other fields of an element.
fn keyed_list(dice: &mut Dice, usage: Usage, keys: &[(&str, &[&str])], rest: impl Fn(&mut Dice, Yaml) -> Yaml) -> Yaml {
    let mut items = Vec::new();
    for _ in 0..dice.below(4) {
        let mut item = Yaml::Map(Vec::new());
        for (at, (key, values)) in keys.iter().enumerate() {
            let percent = if at == 0 { 97 } else { 60 };
            item = with_optional(item, dice, percent, key, |dice| raw(dice.pick(values)));
        }
        item = rest(dice, item);
        if usage == Usage::Patch && dice.chance(8) {
            item = item.with("$patch", raw(dice.pick(&["delete", "delete", "replace", "merge"])));
        }
        items.push(item);
    }
    if usage == Usage::Patch && dice.chance(6) {
        items.push(map([("$patch", raw(dice.pick(&["replace", "delete", "merge"])))]));
    }
    Yaml::List(items)
}

fn ports(dice: &mut Dice, usage: Usage, key: &str) -> Yaml {
    let keys: [(&str, &[&str]); 2] = [(key, &["80", "443", "\"80\"", "53"]), ("protocol", &["TCP", "UDP", "TCP"])];
    keyed_list(dice, usage, &keys, |dice, item| {
        with_optional(item, dice, 50, "name", |dice| raw(dice.pick(&["http", "dns", "null"])))
    })
}

fn environment(dice: &mut Dice, usage: Usage) -> Yaml {
    keyed_list(dice, usage, &[("name", &["A", "B", "C"])], |dice, item| match dice.below(5) {
        0 => {
            let from = dice.pick(&["configMapKeyRef", "secretKeyRef"]);
            let reference = map([("name", name(dice)), ("key", text("a"))]);
            item.with("valueFrom", Yaml::Map(vec![(from.to_owned(), reference)]))
        }
        _ => item.with("value", scalar(dice)),
    })
}

fn containers(dice: &mut Dice, usage: Usage) -> Yaml {
    keyed_list(dice, usage, &[("name", &["main", "side", "x"])], |dice, item| {
        let item = with_optional(item, dice, 70, "image", |dice| raw(dice.pick(IMAGES)));
        let item = with_optional(item, dice, 40, "ports", |dice| ports(dice, usage, "containerPort"));
        let item = with_optional(item, dice, 40, "env", |dice| environment(dice, usage));
        let item = with_optional(item, dice, 15, "envFrom", |dice| {
            let from = dice.pick(&["configMapRef", "secretRef"]);
            Yaml::List(vec![Yaml::Map(vec![(from.to_owned(), map([("name", name(dice))]))])])
        });
        let item = with_optional(item, dice, 20, "args", |dice| {
            Yaml::List((0..dice.below(3)).map(|_| scalar(dice)).collect())
        });
        with_optional(item, dice, 15, "volumeMounts", |dice| {
            keyed_list(dice, usage, &[("mountPath", &["/a", "/b", "/c"])], |dice, item| item.with("name", name(dice)))
        })
    })
}

fn volumes(dice: &mut Dice, usage: Usage) -> Yaml {
    keyed_list(dice, usage, &[("name", &["v", "w", "z"])], |dice, item| match dice.below(6) {
        0 => item.with("emptyDir", raw("{}")),
        1 => item.with("configMap", map([("name", name(dice))])),
        2 => item.with("secret", map([("secretName", name(dice))])),
        3 => item.with("persistentVolumeClaim", map([("claimName", name(dice))])),
        4 => item
            .with("projected", map([("sources", Yaml::List(vec![map([("configMap", map([("name", name(dice))]))])]))])),
        _ => item.with("hostPath", map([("path", scalar(dice))])),
    })
}

fn labels(dice: &mut Dice) -> Yaml {
    let label = raw(dice.pick(&["web", "db", "\"1\"", "on", "null", "\"\""]));
    let labels = map([("app", label)]);
    with_optional(labels, dice, 30, "tier", |dice| raw(dice.pick(&["a", "\"true\"", "b"])))
}

fn pod(dice: &mut Dice, usage: Usage) -> Yaml {
    let pod = with_optional(Yaml::Map(Vec::new()), dice, 85, "containers", |dice| containers(dice, usage));
    let pod = with_optional(pod, dice, 20, "initContainers", |dice| containers(dice, usage));
    let pod = with_optional(pod, dice, 35, "volumes", |dice| volumes(dice, usage));
    let pod = with_optional(pod, dice, 25, "serviceAccountName", name);
    let pod = with_optional(pod, dice, 10, "priorityClassName", name);
    let pod = with_optional(pod, dice, 10, "imagePullSecrets", |dice| Yaml::List(vec![map([("name", name(dice))])]));
    let pod = with_optional(pod, dice, 15, "tolerations", |dice| {
        keyed_list(dice, usage, &[("key", &["a", "b"])], |dice, item| item.with("effect", scalar(dice)))
    });
    let pod = with_optional(pod, dice, 15, "topologySpreadConstraints", |dice| {
        let keys: [(&str, &[&str]); 2] =
            [("topologyKey", &["zone", "host"]), ("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"])];
        keyed_list(dice, usage, &keys, |dice, item| {
            let item = item.with("maxSkew", raw(dice.pick(&["1", "2"])));
            with_optional(item, dice, 50, "labelSelector", |dice| map([("matchLabels", labels(dice))]))
        })
    });
    let pod = with_optional(pod, dice, 10, "affinity", |dice| {
        let term = map([("labelSelector", map([("matchLabels", labels(dice))])), ("topologyKey", text("zone"))]);
        map([("podAffinity", map([("requiredDuringSchedulingIgnoredDuringExecution", Yaml::List(vec![term]))]))])
    });
    directive(pod, dice, usage)
}

fn directive(map: Yaml, dice: &mut Dice, usage: Usage) -> Yaml {
    if usage == Usage::Patch && dice.chance(3) {
        map.with("$patch", raw(dice.pick(&["replace", "merge", "delete"])))
    } else {
        map
    }
}

fn template(dice: &mut Dice, usage: Usage) -> Yaml {
    let template = with_optional(Yaml::Map(Vec::new()), dice, 60, "metadata", |dice| {
        let metadata = with_optional(Yaml::Map(Vec::new()), dice, 80, "labels", labels);
        with_optional(metadata, dice, 20, "annotations", |dice| map([("note", scalar(dice))]))
    });
    with_optional(template, dice, 95, "spec", |dice| pod(dice, usage))
}

fn workload(dice: &mut Dice, usage: Usage) -> Yaml {
    let spec = with_optional(Yaml::Map(Vec::new()), dice, 40, "replicas", |dice| {
        raw(dice.pick(&["1", "\"2\"", "null", "0x3"]))
    });
    let spec = with_optional(spec, dice, 50, "selector", |dice| map([("matchLabels", labels(dice))]));
    let spec = with_optional(spec, dice, 10, "strategy", |dice| random_map(dice, &["type", "rollingUpdate"], 1));
    let spec = with_optional(spec, dice, 95, "template", |dice| template(dice, usage));
    map([("spec", directive(spec, dice, usage))])
}

fn widget(dice: &mut Dice, usage: Usage) -> Yaml {
    let spec = random_map(dice, &["size", "config", "image", "a", "b", "labels"], 3);
    let spec = with_optional(spec, dice, 40, "list", |dice| match dice.chance(60) {
        true => keyed_list(dice, usage, &[("name", &["a", "b", "c"])], |dice, item| item.with("value", value(dice, 2))),
        false => ports(dice, usage, "port"),
    });
    let spec = with_optional(spec, dice, 15, "named", |dice| {
        keyed_list(dice, usage, &[("name", &["a", "b", "\"1\"", "1"])], |dice, item| item.with("value", value(dice, 1)))
    });
    let spec = with_optional(spec, dice, 10, "words", |dice| {
        Yaml::List((0..dice.below(4)).map(|_| raw(dice.pick(&["a", "b", "\"a\"", "1", "\"1\"", "null"]))).collect())
    });
    let spec = with_optional(spec, dice, 10, "embedded", |dice| {
        map([("apiVersion", text("v1")), ("kind", text("Pod")), ("spec", pod(dice, usage))])
    });
    map([("spec", directive(spec, dice, usage))])
}

fn data(dice: &mut Dice) -> Yaml {
    let keys = ["a", "c", "data10", "data9", "\"1\"", "a.b/c", "z"];
    let kept = keys.iter().filter(|_| dice.chance(35)).collect::<Vec<_>>();
    Yaml::Map(kept.into_iter().map(|key| ((*key).to_owned(), data_value(dice))).collect())
}

fn data_value(dice: &mut Dice) -> Yaml {
    match dice.below(8) {
        0 => text(dice.pick(&[
            "a\nb\n",
            "a\n\nb",
            "#!/bin/sh\necho hi\n",
            "{\"a\": 1}\n",
            "a:\n  b: 1\n",
            "x\n\n",
            "tab\there\n",
        ])),
        1 => raw(dice.pick(&["'{\"a\": {\"b\": 1}}'", "\"a: {b: c}\"", "\"[1, 2]\""])),
        _ => scalar(dice),
    }
}

/// Returns the fields after `metadata` for an object or a patch with the identity `id`. `usage` says which of the two.
/// Returns `None` for kinds without generated content.
pub fn body(dice: &mut Dice, id: &ObjectId, usage: Usage) -> Option<Yaml> {
    let body = match id.kind {
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController" => workload(dice, usage),
        "CronJob" => map([("spec", map([("jobTemplate", workload(dice, usage))]))]),
        "ConfigMap" => map([("data", data(dice))]),
        "Secret" => map([(dice.pick(&["data", "stringData"]), data(dice))]),
        "Service" => {
            let spec = map([("ports", ports(dice, usage, "port"))]);
            map([("spec", with_optional(spec, dice, 60, "selector", labels))])
        }
        "Widget" => widget(dice, usage),
        "ServiceAccount" => map([("imagePullSecrets", Yaml::List(vec![map([("name", name(dice))])]))]),
        _ => return None,
    };
    Some(body)
}

/// Returns the YAML text of the fields after `metadata` for an object with the identity `id`. The text contains anchors
/// and aliases.
pub fn anchored(dice: &mut Dice, id: &ObjectId) -> String {
    let plain = match id.kind {
        "Deployment" | "StatefulSet" => {
            "spec:\n  selector: {matchLabels: &l {app: web, tier: a}}\n  template:\n    metadata: {labels: *l}\n    spec:\n      containers:\n      - &c {name: main, image: nginx, env: [{name: A, value: &v \"1\"}]}\n      - {<<: *c, name: side}\n      - {name: x, env: [{name: B, value: *v}], <<: [{image: busybox}, *c]}\n"
        }
        "ConfigMap" => "data: &d\n  a: &a yes\n  c: *a\nbinaryData:\n  <<: *d\n  z: *a\n",
        _ => dice.pick(&[
            "spec: &s {a: &n {b: [1, &x 2]}, c: *n, d: *x}\nmore: {<<: *s, a: 3}\n",
            "spec:\n  list:\n  - &l {port: 80, protocol: TCP}\n  - {<<: *l, protocol: UDP}\n  named: [&n {name: a, value: 1}, {<<: *n, name: b}]\n",
            "spec: &s\n  a: 1\n  <<: &t {b: 2, a: 3}\nmore: {<<: [*t, *s], c: 4}\n",
        ]),
    };
    match dice.below(4) {
        0 => plain.replace("yes", "1.0"),
        _ => plain.to_owned(),
    }
}
