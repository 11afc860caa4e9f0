//! Functions that add random fields to a kustomization file.

use super::folder::FolderBuilder;
use super::objects::{NAMESPACES, ObjectId};
use super::yaml::{Yaml, map, raw, text, texts};

pub fn prefix(builder: &mut FolderBuilder<'_>) {
    let prefix = builder.dice.pick(&["p-", "dev-", "a."]);
    builder.set("namePrefix", text(prefix));
    rename_exports(builder, |name| format!("{prefix}{name}"));
}

pub fn suffix(builder: &mut FolderBuilder<'_>) {
    let suffix = builder.dice.pick(&["-s", "-v2", "-"]);
    builder.set("nameSuffix", text(suffix));
    rename_exports(builder, |name| format!("{name}{suffix}"));
}

/// Adds a prefix or suffix to about half of the names in `exports`, the list of possible targets of patches. `name`
/// returns a name with the prefix or suffix of the kustomization file. The other names stay unchanged, because a patch
/// can also refer to an object by its name without the prefix or suffix.
fn rename_exports(builder: &mut FolderBuilder<'_>, name: impl Fn(&str) -> String) {
    for id in &mut builder.folder.exports {
        if builder.dice.chance(50) && id.kind != "Namespace" && id.kind != "CustomResourceDefinition" {
            id.name = name(&id.name);
        }
    }
}

pub fn namespace(builder: &mut FolderBuilder<'_>) {
    let namespace = builder.dice.pick(NAMESPACES);
    builder.set("namespace", text(namespace));
    for id in &mut builder.folder.exports {
        if builder.dice.chance(80) {
            id.namespace = Some(namespace.to_owned());
        }
    }
}

pub fn labels(builder: &mut FolderBuilder<'_>) {
    let key = if builder.dice.chance(5) { builder.dice.pick(&["1", "\"true\"", "yes"]) } else { "team" };
    let mut label = map([("pairs", map([(key, text("a"))]))]);
    match builder.dice.below(5) {
        0 => label = label.with("includeSelectors", raw("true")),
        1 => label = label.with("includeTemplates", raw("true")),
        2 => {
            let path = builder.dice.pick(&["spec/selector", "metadata/more", "spec/list[]/labels"]);
            let field = map([("path", text(path)), ("create", raw(builder.dice.pick(&["true", "false"])))]);
            label = label.with("fields", Yaml::List(vec![field]));
        }
        _ => {}
    }
    builder.folder.list("labels").push(label);
}

pub fn common_labels(builder: &mut FolderBuilder<'_>) {
    builder.set("commonLabels", map([("app", text("all")), ("tier", text("b"))]));
}

pub fn annotations(builder: &mut FolderBuilder<'_>) {
    builder.set("commonAnnotations", map([("note", text("hello"))]));
}

pub fn images(builder: &mut FolderBuilder<'_>) {
    let field = builder.dice.pick(&["images", "images", "imageTags"]);
    let image = map([("name", text(builder.dice.pick(&["nginx", "busybox", "other"])))]);
    let image = match builder.dice.below(3) {
        0 if builder.dice.chance(30) => image.with("tagSuffix", text("-s")),
        0 => image.with("newTag", text("v1")),
        1 => image.with("newName", text("mirror/nginx")),
        _ => image.with("digest", text("sha256:01")),
    };
    builder.folder.list(field).push(image);
}

pub fn replicas(builder: &mut FolderBuilder<'_>) {
    let scaled: Vec<ObjectId> = builder.folder.exports.iter().filter(|id| is_scaled(id.kind)).cloned().collect();
    let name = match builder.dice.any(&scaled) {
        Some(id) => id.name.clone(),
        None if builder.dice.chance(85) => return,
        None => "web".to_owned(),
    };
    builder.folder.list("replicas").push(map([("name", text(name)), ("count", raw("3"))]));
}

fn is_scaled(kind: &str) -> bool {
    ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"].contains(&kind)
}

pub fn config_map_generator(builder: &mut FolderBuilder<'_>) {
    generator(builder, "configMapGenerator", "ConfigMap");
}

pub fn secret_generator(builder: &mut FolderBuilder<'_>) {
    generator(builder, "secretGenerator", "Secret");
}

fn generator(builder: &mut FolderBuilder<'_>, list: &str, kind: &'static str) {
    let name = format!("{}{}", builder.dice.pick(&["gen", "conf", "made"]), builder.dice.pick(&["", "-1", "-2", "-3"]));
    let mut id = ObjectId { api: "v1", kind, name, namespace: None };
    if builder.dice.chance(15) {
        id.namespace = Some(builder.dice.pick(NAMESPACES).to_owned());
    }
    let mut generator = contents(builder, &id);
    if builder.dice.chance(10) {
        generator = generator.with("behavior", text(builder.dice.pick(&["create", "unspecified", "", "add"])));
    }
    builder.folder.list(list).push(generator);
    builder.folder.exports.push(id);
}

/// Adds a generator for an existing ConfigMap or Secret, usually with `behavior: merge`.
pub fn merging_generator(builder: &mut FolderBuilder<'_>) {
    let kinds = |id: &&ObjectId| id.api == "v1" && (id.kind == "ConfigMap" || id.kind == "Secret");
    let existing: Vec<ObjectId> = builder.folder.exports.iter().filter(kinds).cloned().collect();
    let id = match builder.dice.any(&existing) {
        Some(id) => id.clone(),
        None if builder.dice.chance(90) => return,
        None => ObjectId { api: "v1", kind: "ConfigMap", name: "gen".to_owned(), namespace: None },
    };
    let list = if id.kind == "Secret" { "secretGenerator" } else { "configMapGenerator" };
    let behavior = builder.dice.pick(&["merge", "merge", "merge", "replace", "create"]);
    let generator = contents(builder, &id).with("behavior", text(behavior));
    builder.folder.list(list).push(generator);
}

fn contents(builder: &mut FolderBuilder<'_>, id: &ObjectId) -> Yaml {
    let mut generator = map([("name", text(&id.name))]);
    if let Some(namespace) = &id.namespace {
        generator = generator.with("namespace", text(namespace));
    }
    for _ in 0..builder.dice.below(3) {
        generator = match builder.dice.below(8) {
            0 if builder.dice.chance(20) => generator.with("literals", texts(["nothing"])),
            0..=3 => {
                let literals = if builder.dice.chance(4) {
                    builder.texts(&["1=a", "true=b", "yes=c", "null=d", "1.5=e", "2001-01-01=f", "1e=g"])
                } else {
                    builder.texts(&["a=1", "b=2", "c=x=y", "d=\"q\"", "e=", "f=", "a=3"])
                };
                generator.with("literals", literals)
            }
            4 | 5 => {
                let file = builder.data_file();
                let key = builder.dice.pick(&["", "", "k=", "a.b=", "k l=", "a="]);
                generator.with("files", texts([format!("{key}{file}")]))
            }
            6 => {
                let file = builder.data_file();
                generator.with("envs", texts([file]))
            }
            _ => {
                let file = builder.data_file();
                generator.with("env", text(file))
            }
        };
    }
    if builder.dice.chance(15) {
        let option = builder.dice.pick(&["disableNameSuffixHash", "immutable"]);
        generator = generator.with("options", map([(option, raw("true"))]));
    }
    if id.kind == "Secret" && builder.dice.chance(20) {
        generator = generator.with("type", text(builder.dice.pick(&["Opaque", "kubernetes.io/tls"])));
    }
    generator
}

pub fn generator_options(builder: &mut FolderBuilder<'_>) {
    let options = map([("disableNameSuffixHash", raw("true")), ("labels", map([("made", text("here"))]))]);
    builder.set("generatorOptions", options);
}

pub fn replacements(builder: &mut FolderBuilder<'_>) {
    let (from, to) = (builder.target(), builder.target());
    let paths = [
        "metadata.name",
        "metadata.name",
        "metadata.name",
        "",
        "",
        "kind",
        "metadata.namespace",
        "data.a",
        "spec.replicas",
        "spec.size",
        "metadata.labels.app",
        "spec.template.spec.containers.0.image",
        "spec.selector",
        "spec.ports.0.port",
    ];
    let path = builder.dice.pick(&paths);
    let mut source = map([("kind", text(from.kind)), ("name", text(&from.name))]);
    if !path.is_empty() {
        source = source.with("fieldPath", text(path));
    }
    let fields = [
        "metadata.annotations.copied",
        "metadata.labels.[app]",
        "metadata.name",
        "metadata.namespace",
        "data.a",
        "spec.template.spec.containers.[name=main].image",
        "spec.template.spec.containers.*.image",
        "spec.template.spec.containers.0.env.[name=A].value",
        "spec.replicas",
        "spec.ports.[port=80].name",
        "spec.size",
        "spec.list.[name=a].value",
        "data.a.b",
        "data.[a.b/c]",
        "spec.selector.matchLabels.app",
    ];
    let mut target = map([("select", builder.selector(&to)), ("fieldPaths", builder.texts(&fields))]);
    if builder.dice.chance(70) {
        target = target.with("options", map([("create", raw("true"))]));
    }
    if builder.dice.chance(15) {
        let other = builder.target();
        target = target.with("reject", Yaml::List(vec![builder.selector(&other)]));
    }
    if builder.dice.chance(15) {
        let delimiter = map([("delimiter", text("-")), ("index", raw(builder.dice.pick(&["0", "1", "-1"])))]);
        source = source.with("options", delimiter);
    }
    let source = match builder.dice.below(20) {
        0 => ("sourceValue", text("fixed")),
        _ => ("source", source),
    };
    let replacement = map([source, ("targets", Yaml::List(vec![target]))]);
    let entry = if builder.dice.chance(30) {
        let many = builder.dice.chance(50);
        let content = if many { Yaml::List(vec![replacement]) } else { replacement };
        let content = content.document(builder.dice);
        map([("path", text(builder.file("replacement", content)))])
    } else {
        replacement
    };
    builder.folder.list("replacements").push(entry);
}

pub fn vars(builder: &mut FolderBuilder<'_>) {
    let id = builder.target();
    let name = builder.dice.pick(&["V", "V", "W", "X_1"]);
    let object = map([("apiVersion", text(id.api)), ("kind", text(id.kind)), ("name", text(&id.name))]);
    let mut var = map([("name", text(name)), ("objref", object)]);
    if builder.dice.chance(50) {
        var = var.with(
            "fieldref",
            map([(
                "fieldPath",
                text(builder.dice.pick(&[
                    "metadata.name",
                    "data.a",
                    "spec.replicas",
                    "metadata.labels.app",
                    "spec.template.spec.containers[0].image",
                ])),
            )]),
        );
    }
    builder.folder.list("vars").push(var);
}

pub fn crds(builder: &mut FolderBuilder<'_>) {
    let content = if builder.dice.chance(70) {
        "{\"example.com/v1.Widget\": {\"Schema\": {}}}\n"
    } else {
        builder.dice.pick(&[
        "{\"example.com/v1.Widget\": {\"Schema\": {\"properties\": {\"kind\": {\"type\": \"string\"}}}}}\n",
        "{}\n",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n",
        "a: {Schema: {description: none, properties: {}}}\n",
        "a: {Schema: {properties: {b: x}}}\n",
        "[]\n",
        "a: null\n",
        "a: {Schema: {properties: {b: {type: [string, object], items: [{}], maxLength: 1.0}}}}\n",
        "a: {Schema: {properties: {b: {maxLength: 1.5}}}}\n",
        "a: {schema: {required: [a], additionalProperties: true, x-more: [1]}, Dependencies: [1]}\n",
        "a: {Schema: {additionalProperties: 1}}\n",
        "{\"a\": {\"Dependencies\": [1]}}\n",
        "{a: {}}\n",
        "a.Widget: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, spec: {x-kubernetes-identity: ''}}}}\n",
        "example.com/v1.Widget: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, spec: {$ref: b}}}}\nb: {Schema: {properties: {config: {x-kubernetes-object-ref-api-version: v1, x-kubernetes-object-ref-kind: ConfigMap}, a: {x-kubernetes-object-ref-api-version: v1, x-kubernetes-object-ref-kind: Secret, x-kubernetes-object-ref-name-key: name}, labels: {x-kubernetes-label-selector: ''}, b: {x-kubernetes-annotation: ''}}}}\n",
        "a.Widget: {Schema: {properties: {kind: {}, apiVersion: {}, metadata: {}, spec: {$ref: b}}}}\nb: {Schema: {properties: {size: {x-kubernetes-annotation: ''}}}}\n",
    ])
    };
    let file = builder.file("crd", content.to_owned());
    builder.folder.list("crds").push(text(file));
}

pub fn openapi(builder: &mut FolderBuilder<'_>) {
    let merging = "{\"definitions\": {\"v1.Widget\": {\"type\": \"object\", \"properties\": {\"spec\": {\"properties\": {\"list\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}, \"x-kubernetes-patch-strategy\": \"merge\", \"x-kubernetes-patch-merge-key\": \"name\"}}}}, \"x-kubernetes-group-version-kind\": [{\"group\": \"example.com\", \"version\": \"v1\", \"kind\": \"Widget\"}]}}}\n";
    let schema = "{\"definitions\": {\"v1.Widget\": {\"type\": \"object\", \"x-kubernetes-group-version-kind\": [{\"group\": \"example.com\", \"version\": \"v1\", \"kind\": \"Widget\"}]}}}\n";
    let value = match builder.dice.below(5) {
        0 => map([("version", text("v1.21.2"))]),
        1 if builder.dice.chance(20) => map([("version", text("v1.20.4"))]),
        2 => map([("path", text(builder.file("schema", schema.to_owned())))]),
        3 => map([("path", text(builder.file("schema", two_keys().to_owned())))]),
        _ => map([("path", text(builder.file("schema", merging.to_owned())))]),
    };
    builder.set("openapi", value);
}

/// Returns an OpenAPI schema of a custom kind. It contains lists with one and with two merge keys, a list of scalars,
/// and a reference.
fn two_keys() -> &'static str {
    r##"definitions:
  v1.Item:
    properties:
      port: {type: integer}
      protocol: {type: string}
      value: {type: object}
  v1.Widget:
    type: object
    properties:
      spec:
        properties:
          list:
            type: array
            items: {$ref: "#/definitions/v1.Item"}
            x-kubernetes-patch-strategy: merge
            x-kubernetes-list-map-keys: [port, protocol]
          named: {type: array, items: {type: object}, x-kubernetes-patch-strategy: merge, x-kubernetes-patch-merge-key: name}
          words: {type: array, items: {type: string}, x-kubernetes-patch-strategy: merge}
    x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Widget}]
"##
}

/// Adds fields with a YAML anchor and an alias to the kustomization file. The alias repeats the value of the anchor.
pub fn anchors(builder: &mut FolderBuilder<'_>) {
    match builder.dice.below(4) {
        0 => {
            builder.set("commonAnnotations", raw("&notes {note: &note hello, other: *note}"));
            builder.set("commonLabels", raw("*notes"));
        }
        1 => {
            let second = builder.dice.pick(&["{<<: *image, name: busybox}", "*image", "{name: busybox, <<: [*image]}"]);
            builder.set("images", Yaml::List(vec![raw("&image {name: nginx, newTag: \"1\"}"), raw(second)]));
        }
        2 => {
            let generators = [raw("&made {name: made-4, literals: [a=1]}"), raw("{<<: *made, name: made-5}")];
            builder.folder.list("configMapGenerator").extend(generators);
        }
        _ => {
            builder.set("namePrefix", raw("&word w-"));
            builder.set("nameSuffix", raw("*word"));
        }
    }
}

pub fn configurations(builder: &mut FolderBuilder<'_>) {
    let content = builder.dice.pick(&[
        "namePrefix:\n- {kind: ConfigMap, path: metadata/name}\n",
        "commonLabels:\n- {kind: Widget, path: spec/labels, create: true}\n",
        "nameReference:\n- kind: ConfigMap\n  fieldSpecs:\n  - {kind: Widget, path: spec/config}\n",
        "varReference:\n- {kind: Widget, path: spec/size}\n",
        "images:\n- {kind: Widget, path: spec/image}\n",
        "{}\n",
        "namespace:\n- {path: metadata/namespace, create: true}\n",
        "namespace:\n- {kind: Widget, path: spec/a, create: true}\n",
        "commonAnnotations:\n- {kind: Widget, path: spec/b, create: true}\n",
        "replicas:\n- {kind: Widget, path: spec/size, create: true}\n",
        "nameSuffix:\n- {kind: Widget, path: spec/config}\n",
        "labels:\n- {kind: Widget, path: spec/labels, create: true}\n",
        "nameReference:\n- kind: Secret\n  version: v1\n  fieldSpecs:\n  - {kind: Widget, path: spec/list/value}\n  - {kind: Widget, path: spec/config}\n",
        "varReference:\n- {kind: ConfigMap, path: data}\n- {kind: Widget, path: spec}\n",
    ]);
    let file = builder.file("configuration", content.to_owned());
    builder.folder.list("configurations").push(text(file));
}

/// Adds a field that rarely affects whether a tree builds.
pub fn minor_field(builder: &mut FolderBuilder<'_>) {
    match builder.dice.below(6) {
        0 => builder.set("metadata", map([("name", text("x"))])),
        1 => {
            let order = builder.dice.pick(&["fifo", "legacy"]);
            builder.set("sortOptions", map([("order", text(order))]));
        }
        2 => {
            let order = map([("orderFirst", texts(["Namespace"])), ("orderLast", texts(["ConfigMap"]))]);
            builder.set("sortOptions", map([("order", text("legacy")), ("legacySortOptions", order)]));
        }
        3 => {
            let list = builder.texts(&["originAnnotations", "managedByLabel", "transformerAnnotations"]);
            builder.set("buildMetadata", list);
        }
        4 => builder.set("crds", Yaml::List(Vec::new())),
        5 if builder.dice.chance(20) => {
            let chart = map([("name", text("chart")), ("version", text("1.0.0"))]);
            builder.set("helmCharts", Yaml::List(vec![chart]));
        }
        _ => builder.set("metadata", raw("null")),
    }
}
