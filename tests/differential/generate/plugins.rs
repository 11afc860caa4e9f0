//! Generates entries of the fields `generators`, `transformers` and `validators`: configurations of built-in plugins,
//! and of plugins that kustomize does not support.

use super::folder::FolderBuilder;
use super::objects::ObjectId;
use super::yaml::text;

/// Configurations of built-in generators, each with the kind of the object that it generates.
const GENERATED: &[(&str, &str)] = &[
    (
        "ConfigMap",
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: plugged}\nname: plugged\nliterals: [a=b]\n",
    ),
    (
        "Secret",
        "apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: plugged}\nname: plugged\nliterals: [a=b]\n",
    ),
    (
        "ServiceAccount",
        "apiVersion: builtin\nkind: IAMPolicyGenerator\nmetadata: {name: plugged}\ncloud: gke\nkubernetesService: {name: plugged}\nserviceAccount: {name: gsa, projectId: p}\n",
    ),
];
const TRANSFORMERS: &[&str] = &[
    "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: t}\nprefix: pt-\nfieldSpecs: [{path: metadata/name}]\n",
    "apiVersion: builtin\nkind: SuffixTransformer\nmetadata: {name: t}\nsuffix: -st\nfieldSpecs: [{kind: ConfigMap, path: metadata/name}]\n",
    "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: t}\nlabels: {plugged: in}\nfieldSpecs: [{path: metadata/labels, create: true}]\n",
    "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: t}\nannotations: {plugged: in}\nfieldSpecs: [{path: metadata/annotations, create: true}]\n",
    "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t, namespace: plugged}\nfieldSpecs: [{path: metadata/namespace, create: true}]\n",
    "apiVersion: builtin\nkind: ReplicaCountTransformer\nmetadata: {name: t}\nreplica: {name: web, count: 2}\nfieldSpecs: [{path: spec/replicas, kind: Deployment, create: true}]\n",
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npatch: '[{op: add, path: /metadata/annotations, value: {a: b}}]'\ntarget: {kind: ConfigMap}\n",
    "apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: t}\npatches: '{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {q: r}}'\n",
    "apiVersion: builtin\nkind: ImageTagTransformer\nmetadata: {name: t}\nimageTag: {name: nginx, newTag: '2'}\n",
    "apiVersion: builtin\nkind: PrefixSuffixTransformer\nmetadata: {name: t}\nprefix: ps-\nsuffix: -ps\nfieldSpecs: [{path: metadata/name}]\n",
    "apiVersion: builtin\nkind: PatchJson6902Transformer\nmetadata: {name: t}\ntarget: {version: v1, kind: ConfigMap, name: x}\njsonOp: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {\"j\": \"k\"}}]'\n",
    "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: t}\nreplacements:\n- source: {kind: ConfigMap}\n  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.from], options: {create: true}}]\n",
    "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: t}\nvalue: added\ntargets: [{selector: {kind: ConfigMap}, fieldPath: metadata/namespace}]\n",
    "apiVersion: builtin\nkind: HashTransformer\nmetadata: {name: t}\n",
    "apiVersion: builtin\nkind: NoSuchTransformer\nmetadata: {name: t}\n",
    "apiVersion: example.com/v1\nkind: Custom\nmetadata: {name: t}\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fn\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: example/fn}\n",
];

pub fn generators(builder: &mut FolderBuilder<'_>) {
    if builder.dice.chance(80) {
        let (kind, config) = GENERATED[builder.dice.below(GENERATED.len())];
        builder.folder.exports.push(ObjectId { api: "v1", kind, name: "plugged".to_owned(), namespace: None });
        add_plugin(builder, "generators", config);
    } else {
        let other = builder.dice.pick(TRANSFORMERS);
        add_plugin(builder, "generators", other);
    }
}

pub fn transformers(builder: &mut FolderBuilder<'_>) {
    let other = builder.dice.pick(TRANSFORMERS);
    add_plugin(builder, "transformers", other);
}

pub fn validators(builder: &mut FolderBuilder<'_>) {
    if builder.dice.chance(30) {
        let other = builder.dice.pick(TRANSFORMERS);
        add_plugin(builder, "validators", other);
    }
}

fn add_plugin(builder: &mut FolderBuilder<'_>, list: &str, config: &str) {
    let entry = if builder.dice.chance(50) { config.to_owned() } else { builder.file("plugin", config.to_owned()) };
    builder.folder.list(list).push(text(entry));
}
