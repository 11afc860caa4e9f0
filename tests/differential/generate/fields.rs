//! Functions that add random fields to a kustomization file.

use super::folder::Maker;
use super::objects::{Known, NAMESPACES};
use super::yaml::{Yaml, map, raw, text, texts};

pub fn prefix(maker: &mut Maker<'_>) {
    let prefix = maker.dice.pick(&["p-", "dev-", "a."]);
    maker.set("namePrefix", text(prefix));
    renamed(maker, |name| format!("{prefix}{name}"));
}

pub fn suffix(maker: &mut Maker<'_>) {
    let suffix = maker.dice.pick(&["-s", "-v2", "-"]);
    maker.set("nameSuffix", text(suffix));
    renamed(maker, |name| format!("{name}{suffix}"));
}

/// Renames about half of the folder's objects. The others keep their names, because patches can also use the names
/// before a prefix or suffix is added.
fn renamed(maker: &mut Maker<'_>, name: impl Fn(&str) -> String) {
    for known in &mut maker.folder.exports {
        if maker.dice.chance(50) && known.kind != "Namespace" && known.kind != "CustomResourceDefinition" {
            known.name = name(&known.name);
        }
    }
}

pub fn namespace(maker: &mut Maker<'_>) {
    let namespace = maker.dice.pick(NAMESPACES);
    maker.set("namespace", text(namespace));
    for known in &mut maker.folder.exports {
        if maker.dice.chance(80) {
            known.namespace = Some(namespace.to_owned());
        }
    }
}

pub fn labels(maker: &mut Maker<'_>) {
    let key = if maker.dice.chance(5) { maker.dice.pick(&["1", "\"true\"", "yes"]) } else { "team" };
    let mut label = map([("pairs", map([(key, text("a"))]))]);
    match maker.dice.below(5) {
        0 => label = label.with("includeSelectors", raw("true")),
        1 => label = label.with("includeTemplates", raw("true")),
        2 => {
            let path = maker.dice.pick(&["spec/selector", "metadata/more", "spec/list[]/labels"]);
            let field = map([("path", text(path)), ("create", raw(maker.dice.pick(&["true", "false"])))]);
            label = label.with("fields", Yaml::List(vec![field]));
        }
        _ => {}
    }
    maker.folder.list("labels").push(label);
}

pub fn common_labels(maker: &mut Maker<'_>) {
    maker.set("commonLabels", map([("app", text("all")), ("tier", text("b"))]));
}

pub fn annotations(maker: &mut Maker<'_>) {
    maker.set("commonAnnotations", map([("note", text("hello"))]));
}

pub fn images(maker: &mut Maker<'_>) {
    let field = maker.dice.pick(&["images", "images", "imageTags"]);
    let image = map([("name", text(maker.dice.pick(&["nginx", "busybox", "other"])))]);
    let image = match maker.dice.below(3) {
        0 if maker.dice.chance(30) => image.with("tagSuffix", text("-s")),
        0 => image.with("newTag", text("v1")),
        1 => image.with("newName", text("mirror/nginx")),
        _ => image.with("digest", text("sha256:01")),
    };
    maker.folder.list(field).push(image);
}

pub fn replicas(maker: &mut Maker<'_>) {
    let scaled: Vec<Known> = maker.folder.exports.iter().filter(|known| is_scaled(known.kind)).cloned().collect();
    let name = match maker.dice.any(&scaled) {
        Some(known) => known.name.clone(),
        None if maker.dice.chance(85) => return,
        None => "web".to_owned(),
    };
    maker.folder.list("replicas").push(map([("name", text(name)), ("count", raw("3"))]));
}

fn is_scaled(kind: &str) -> bool {
    ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"].contains(&kind)
}

pub fn config_map_generator(maker: &mut Maker<'_>) {
    generator(maker, "configMapGenerator", "ConfigMap");
}

pub fn secret_generator(maker: &mut Maker<'_>) {
    generator(maker, "secretGenerator", "Secret");
}

fn generator(maker: &mut Maker<'_>, list: &str, kind: &'static str) {
    let name = format!("{}{}", maker.dice.pick(&["gen", "conf", "made"]), maker.dice.pick(&["", "-1", "-2", "-3"]));
    let mut known = Known { api: "v1", kind, name, namespace: None };
    if maker.dice.chance(15) {
        known.namespace = Some(maker.dice.pick(NAMESPACES).to_owned());
    }
    let mut generator = contents(maker, &known);
    if maker.dice.chance(10) {
        generator = generator.with("behavior", text(maker.dice.pick(&["create", "unspecified", "", "add"])));
    }
    maker.folder.list(list).push(generator);
    maker.folder.exports.push(known);
}

/// Adds a generator for an existing ConfigMap or Secret, usually with `behavior: merge`.
pub fn merging_generator(maker: &mut Maker<'_>) {
    let kinds = |known: &&Known| known.api == "v1" && (known.kind == "ConfigMap" || known.kind == "Secret");
    let there: Vec<Known> = maker.folder.exports.iter().filter(kinds).cloned().collect();
    let known = match maker.dice.any(&there) {
        Some(known) => known.clone(),
        None if maker.dice.chance(90) => return,
        None => Known { api: "v1", kind: "ConfigMap", name: "gen".to_owned(), namespace: None },
    };
    let list = if known.kind == "Secret" { "secretGenerator" } else { "configMapGenerator" };
    let behavior = maker.dice.pick(&["merge", "merge", "merge", "replace", "create"]);
    let generator = contents(maker, &known).with("behavior", text(behavior));
    maker.folder.list(list).push(generator);
}

fn contents(maker: &mut Maker<'_>, known: &Known) -> Yaml {
    let mut generator = map([("name", text(&known.name))]);
    if let Some(namespace) = &known.namespace {
        generator = generator.with("namespace", text(namespace));
    }
    for _ in 0..maker.dice.below(3) {
        generator = match maker.dice.below(8) {
            0 if maker.dice.chance(20) => generator.with("literals", texts(["nothing"])),
            0..=3 => {
                let literals = if maker.dice.chance(4) {
                    maker.texts(&["1=a", "true=b", "yes=c", "null=d", "1.5=e", "2001-01-01=f", "1e=g"])
                } else {
                    maker.texts(&["a=1", "b=2", "c=x=y", "d=\"q\"", "e=", "f=", "a=3"])
                };
                generator.with("literals", literals)
            }
            4 | 5 => {
                let file = maker.data_file();
                let key = maker.dice.pick(&["", "", "k=", "a.b=", "k l=", "a="]);
                generator.with("files", texts([format!("{key}{file}")]))
            }
            6 => {
                let file = maker.data_file();
                generator.with("envs", texts([file]))
            }
            _ => {
                let file = maker.data_file();
                generator.with("env", text(file))
            }
        };
    }
    if maker.dice.chance(15) {
        let option = maker.dice.pick(&["disableNameSuffixHash", "immutable"]);
        generator = generator.with("options", map([(option, raw("true"))]));
    }
    if known.kind == "Secret" && maker.dice.chance(20) {
        generator = generator.with("type", text(maker.dice.pick(&["Opaque", "kubernetes.io/tls"])));
    }
    generator
}

pub fn generator_options(maker: &mut Maker<'_>) {
    let options = map([("disableNameSuffixHash", raw("true")), ("labels", map([("made", text("here"))]))]);
    maker.set("generatorOptions", options);
}

pub fn replacements(maker: &mut Maker<'_>) {
    let (from, to) = (maker.target(), maker.target());
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
    let path = maker.dice.pick(&paths);
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
    let mut target = map([("select", maker.selector(&to)), ("fieldPaths", maker.texts(&fields))]);
    if maker.dice.chance(70) {
        target = target.with("options", map([("create", raw("true"))]));
    }
    if maker.dice.chance(15) {
        let other = maker.target();
        target = target.with("reject", Yaml::List(vec![maker.selector(&other)]));
    }
    if maker.dice.chance(15) {
        let delimiter = map([("delimiter", text("-")), ("index", raw(maker.dice.pick(&["0", "1", "-1"])))]);
        source = source.with("options", delimiter);
    }
    let source = match maker.dice.below(20) {
        0 => ("sourceValue", text("fixed")),
        _ => ("source", source),
    };
    let replacement = map([source, ("targets", Yaml::List(vec![target]))]);
    let entry = if maker.dice.chance(30) {
        let many = maker.dice.chance(50);
        let content = if many { Yaml::List(vec![replacement]) } else { replacement };
        let content = content.document(maker.dice);
        map([("path", text(maker.file("replacement", content)))])
    } else {
        replacement
    };
    maker.folder.list("replacements").push(entry);
}

pub fn vars(maker: &mut Maker<'_>) {
    let known = maker.target();
    let name = maker.dice.pick(&["V", "V", "W", "X_1"]);
    let object = map([("apiVersion", text(known.api)), ("kind", text(known.kind)), ("name", text(&known.name))]);
    let mut var = map([("name", text(name)), ("objref", object)]);
    if maker.dice.chance(50) {
        var = var.with(
            "fieldref",
            map([(
                "fieldPath",
                text(maker.dice.pick(&[
                    "metadata.name",
                    "data.a",
                    "spec.replicas",
                    "metadata.labels.app",
                    "spec.template.spec.containers[0].image",
                ])),
            )]),
        );
    }
    maker.folder.list("vars").push(var);
}

pub fn crds(maker: &mut Maker<'_>) {
    let content = if maker.dice.chance(70) {
        "{\"example.com/v1.Widget\": {\"Schema\": {}}}\n"
    } else {
        maker.dice.pick(&[
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
    let file = maker.file("crd", content.to_owned());
    maker.folder.list("crds").push(text(file));
}

pub fn openapi(maker: &mut Maker<'_>) {
    let merging = "{\"definitions\": {\"v1.Widget\": {\"type\": \"object\", \"properties\": {\"spec\": {\"properties\": {\"list\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}, \"x-kubernetes-patch-strategy\": \"merge\", \"x-kubernetes-patch-merge-key\": \"name\"}}}}, \"x-kubernetes-group-version-kind\": [{\"group\": \"example.com\", \"version\": \"v1\", \"kind\": \"Widget\"}]}}}\n";
    let schema = "{\"definitions\": {\"v1.Widget\": {\"type\": \"object\", \"x-kubernetes-group-version-kind\": [{\"group\": \"example.com\", \"version\": \"v1\", \"kind\": \"Widget\"}]}}}\n";
    let value = match maker.dice.below(5) {
        0 => map([("version", text("v1.21.2"))]),
        1 if maker.dice.chance(20) => map([("version", text("v1.20.4"))]),
        2 => map([("path", text(maker.file("schema", schema.to_owned())))]),
        3 => map([("path", text(maker.file("schema", two_keys().to_owned())))]),
        _ => map([("path", text(maker.file("schema", merging.to_owned())))]),
    };
    maker.set("openapi", value);
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

/// Adds fields to the kustomization file that repeat a value with an anchor and an alias.
pub fn anchors(maker: &mut Maker<'_>) {
    match maker.dice.below(4) {
        0 => {
            maker.set("commonAnnotations", raw("&notes {note: &note hello, other: *note}"));
            maker.set("commonLabels", raw("*notes"));
        }
        1 => {
            let second = maker.dice.pick(&["{<<: *image, name: busybox}", "*image", "{name: busybox, <<: [*image]}"]);
            maker.set("images", Yaml::List(vec![raw("&image {name: nginx, newTag: \"1\"}"), raw(second)]));
        }
        2 => {
            let generators = [raw("&made {name: made-4, literals: [a=1]}"), raw("{<<: *made, name: made-5}")];
            maker.folder.list("configMapGenerator").extend(generators);
        }
        _ => {
            maker.set("namePrefix", raw("&word w-"));
            maker.set("nameSuffix", raw("*word"));
        }
    }
}

pub fn configurations(maker: &mut Maker<'_>) {
    let content = maker.dice.pick(&[
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
    let file = maker.file("configuration", content.to_owned());
    maker.folder.list("configurations").push(text(file));
}

/// Adds a field that rarely affects whether a tree builds.
pub fn small_things(maker: &mut Maker<'_>) {
    match maker.dice.below(6) {
        0 => maker.set("metadata", map([("name", text("x"))])),
        1 => {
            let order = maker.dice.pick(&["fifo", "legacy"]);
            maker.set("sortOptions", map([("order", text(order))]));
        }
        2 => {
            let order = map([("orderFirst", texts(["Namespace"])), ("orderLast", texts(["ConfigMap"]))]);
            maker.set("sortOptions", map([("order", text("legacy")), ("legacySortOptions", order)]));
        }
        3 => {
            let list = maker.texts(&["originAnnotations", "managedByLabel", "transformerAnnotations"]);
            maker.set("buildMetadata", list);
        }
        4 => maker.set("crds", Yaml::List(Vec::new())),
        5 if maker.dice.chance(20) => {
            let chart = map([("name", text("chart")), ("version", text("1.0.0"))]);
            maker.set("helmCharts", Yaml::List(vec![chart]));
        }
        _ => maker.set("metadata", raw("null")),
    }
}
