//! Adds mistakes to generated trees, common and uncommon ones.

use super::yaml::{Yaml, map, raw, text};
use super::{Forest, relative};
use crate::case::ROOT;
use crate::dice::Dice;

type Fault = fn(&mut Dice, &mut Forest);

const FAULTS: &[Fault] = &[
    misplaced,
    misplaced,
    misplaced,
    misplaced,
    misplaced,
    misplaced,
    reference,
    reference,
    file_of_another,
    missing_file,
    second_file,
    no_file,
    unknown_field,
    wrong_type,
    duplicate_key,
    other_case,
    head,
    surroundings,
    twice,
    object_file,
    object_file,
    link,
    empty_field,
    nested_unknown,
];
const LISTS: &[&str] = &[
    "resources",
    "components",
    "bases",
    "generators",
    "transformers",
    "validators",
    "crds",
    "configurations",
    "patchesStrategicMerge",
];

/// Adds a random mistake to a tree.
pub fn mistake(dice: &mut Dice, forest: &mut Forest) {
    let fault = FAULTS[dice.below(FAULTS.len())];
    fault(dice, forest);
}

fn some_folder(dice: &mut Dice, forest: &Forest) -> usize {
    // Later folders are more often part of the built root, so this prefers them.
    dice.below(forest.folders.len()).max(dice.below(forest.folders.len()))
}

/// Adds or moves an entry for a folder to a random list. Most lists do not accept the entry.
fn misplaced(dice: &mut Dice, forest: &mut Forest) {
    let (at, to) = (some_folder(dice, forest), some_folder(dice, forest));
    let entry = relative(forest.folders[at].path, forest.folders[to].path);
    let list = dice.pick(LISTS);
    let folder = &mut forest.folders[at];
    let from = if forest_has(folder, "components") { "components" } else { "resources" };
    if dice.chance(50) && forest_has(folder, from) {
        let moved = folder.list(from).pop();
        folder.list(list).extend(moved);
    } else {
        folder.list(list).push(text(entry));
    }
}

fn forest_has(folder: &super::Folder, key: &str) -> bool {
    folder.fields.iter().any(|(name, value)| name == key && matches!(value, Yaml::List(items) if !items.is_empty()))
}

/// Adds an entry with an unusual target, such as a missing file or the folder itself.
fn reference(dice: &mut Dice, forest: &mut Forest) {
    let (at, to) = (some_folder(dice, forest), some_folder(dice, forest));
    let (from, to) = (forest.folders[at].path, &forest.folders[to]);
    let entry = match dice.below(16) {
        0 => "..".to_owned(),
        1 => ".".to_owned(),
        2 => String::new(),
        3 => "../nope".to_owned(),
        4 => "nope.yaml".to_owned(),
        5 => format!("{ROOT}/{}", to.path),
        6 => format!("{ROOT}/{from}/kustomization.yaml"),
        7 => "../../../../../../..".to_owned(),
        8 => "*.yaml".to_owned(),
        9 => format!("{}/{}", relative(from, to.path), to.file_name),
        10 => format!("{} ", relative(from, to.path)),
        11 => relative(from, to.path).replace('/', "\\"),
        12 => format!("./nope/../{}", relative(from, to.path)),
        13 => relative(from, to.path.split('/').next().unwrap_or_default()),
        14 => format!("{}/more", relative(from, to.path)),
        _ => "/etc/hostname".to_owned(),
    };
    let list = dice.pick(&["resources", "resources", "components", "components", "bases", "transformers", "crds"]);
    forest.folders[at].list(list).push(text(entry));
}

/// Adds a reference to an existing file. The file is usually in another folder, so the load restrictor rejects it.
fn file_of_another(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let paths: Vec<String> = forest.files.keys().cloned().collect();
    let Some(path) = dice.any(&paths) else { return };
    let entry = text(relative(forest.folders[at].path, path));
    let folder = &mut forest.folders[at];
    match dice.below(5) {
        0 => folder.list("patches").push(map([("path", entry)])),
        1 => folder.list("configMapGenerator").push(map([("name", text("other")), ("files", Yaml::List(vec![entry]))])),
        2 => folder.list("components").push(entry),
        3 => folder.list("configurations").push(entry),
        _ => folder.list("resources").push(entry),
    }
}

fn missing_file(dice: &mut Dice, forest: &mut Forest) {
    let paths: Vec<String> = forest.files.keys().cloned().collect();
    let Some(path) = dice.any(&paths) else { return };
    if let Some(content) = forest.files.remove(path)
        && dice.chance(30)
    {
        forest.files.insert(path.replace(".yaml", ".yml"), content);
    }
}

fn second_file(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let name = dice.pick(&[
        "kustomization.yml",
        "Kustomization",
        "kustomization.yaml",
        "Kustomization.yaml",
        "kustomize.yaml",
    ]);
    let path = format!("{}/{name}", forest.folders[at].path);
    forest.files.insert(path, "resources: []\n".to_owned());
}

fn no_file(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    forest.folders[at].file_name =
        dice.pick(&["kustomize.yaml", "Kustomization.yaml", "kustomization", "kustomization.yaml/x"]);
}

fn unknown_field(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let key =
        dice.pick(&["resource", "component", "spec", "x-more", "patchesjson", "inventory", "configMapGenerators"]);
    let value = dice.pick(&["[]", "null", "{a: b}", "x"]);
    forest.folders[at].fields.push((key.to_owned(), raw(value)));
}

fn nested_unknown(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    for (_, value) in &mut forest.folders[at].fields {
        if let Yaml::List(items) = value
            && let Some(Yaml::Map(entries)) = items.last_mut()
        {
            let (key, value) = dice
                .any(&[("more", "1"), ("Name", "n"), ("PATH", "p"), ("target", "null"), ("options", "{}")])
                .copied()
                .unwrap_or_default();
            entries.push((key.to_owned(), raw(value)));
        }
    }
}

fn wrong_type(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let fields = [
        "namePrefix",
        "namespace",
        "components",
        "resources",
        "labels",
        "images",
        "commonLabels",
        "patches",
        "crds",
        "replicas",
        "configMapGenerator",
        "generatorOptions",
        "openapi",
        "metadata",
        "kind",
        "apiVersion",
        "sortOptions",
        "buildMetadata",
    ];
    let key = dice.pick(&fields);
    let values = [
        "on",
        "yes",
        "0777",
        "1e3",
        "1:30",
        "2001-01-01",
        "~",
        "null",
        "[]",
        "{}",
        "[on]",
        "[1]",
        "[null]",
        "x",
        "[{a: b}]",
        "{a: on}",
        "{a: 1}",
        "[[a]]",
        "1.0",
        ".inf",
        "0x1F",
        "0o17",
        "+1",
        "!!str 1",
        "\"\"",
        "''",
        "[{name: x, count: 1.0}]",
        "[{name: x, count: '1'}]",
        "1_000",
        "[~]",
        "{<<: {a: b}}",
        "=",
        "!!binary YQ==",
        "y",
    ];
    let value = raw(dice.pick(&values));
    let fields = &mut forest.folders[at].fields;
    fields.retain(|(name, _)| name != key);
    fields.push((key.to_owned(), value));
}

fn duplicate_key(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let fields = &mut forest.folders[at].fields;
    if let Some((key, value)) = dice.any(fields).cloned() {
        let value = if dice.chance(50) { raw("null") } else { value };
        let place = dice.below(fields.len() + 1);
        fields.insert(place, (key, value));
    }
}

fn other_case(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let fields = &mut forest.folders[at].fields;
    let place = dice.below(fields.len().max(1));
    let Some((key, value)) = fields.get(place).cloned() else { return };
    let other = match dice.below(3) {
        0 => key.to_uppercase(),
        1 => key.to_lowercase(),
        _ => format!("{}{}", key[..1].to_uppercase(), &key[1..]),
    };
    if dice.chance(40) {
        fields.push((other, if dice.chance(50) { Yaml::List(Vec::new()) } else { value }));
    } else {
        fields[place].0 = other;
    }
}

fn head(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let fields = &mut forest.folders[at].fields;
    fields.retain(|(name, _)| name != "kind" && name != "apiVersion");
    if let Some(kind) = dice.any(&["Component", "component", "Kustomization", "kustomization", "List", "Component"]) {
        fields.push(("kind".to_owned(), text(*kind)));
    }
    let versions = ["v1alpha1", "v1beta1", "v1"].map(|version| format!("kustomize.config.k8s.io/{version}"));
    if dice.chance(60) {
        fields.push(("apiVersion".to_owned(), text(&versions[dice.below(3)])));
    } else if dice.chance(20) {
        fields.push(("apiVersion".to_owned(), text("kustomize.toolkit.fluxcd.io/v1")));
    }
}

fn surroundings(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let around = [
        ("---\n", ""),
        ("---\n---\n", ""),
        ("# comment\n---\n", "---\nkind: Component\n"),
        ("", "---\nunknown: field\n"),
        ("", "...\nunknown: field\n"),
        ("\u{feff}", ""),
        ("%YAML 1.1\n---\n", ""),
        ("", "\tx: y\n"),
        ("", "]\n"),
        ("", "resources: [\n"),
        ("--- # comment\n", "---\n"),
        ("", "'unterminated\n"),
        ("", "&a a: *b\n"),
    ];
    forest.folders[at].around = around[dice.below(around.len())];
}

fn twice(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let list = dice.pick(&["resources", "components", "patches", "configMapGenerator", "replicas", "vars"]);
    let folder = &mut forest.folders[at];
    if forest_has(folder, list) {
        let items = folder.list(list);
        let again = items[dice.below(items.len())].clone();
        items.push(again);
    }
}

/// Damages the text of a file that a kustomization file refers to.
fn object_file(dice: &mut Dice, forest: &mut Forest) {
    let paths: Vec<String> = forest.files.keys().cloned().collect();
    let Some(content) = dice.any(&paths).and_then(|path| forest.files.get_mut(path)) else { return };
    *content = match dice.below(17) {
        0 => content.replace("name:", "generateName:"),
        1 => content.replacen("kind:", "type:", 1),
        2 => content.replacen("apiVersion:", "api:", 1),
        3 => String::new(),
        4 => "---\n".to_owned(),
        5 => format!("{content}---\n{content}"),
        6 => format!("{content}\tx: y\n"),
        7 => format!("{content}---\n# nothing\n"),
        8 => content.lines().map(|line| format!("{line}\r\n")).collect(),
        9 => "just a text\n".to_owned(),
        10 => "[]\n".to_owned(),
        11 => content.replacen("name:", "name: y #", 1),
        12 => content.replacen("kind:", "kind: Some", 1),
        13 => format!("{content}{content}"),
        14 => content.replacen("metadata:", "metadata: &a", 1),
        15 => content.replacen("namespace:", "namespace: 1 #", 1),
        _ => content.replacen("kind: ", "kind: Any", 1).replacen("AnyConfigMap", "ConfigMapList", 1),
    };
}

fn link(dice: &mut Dice, forest: &mut Forest) {
    let (at, to) = (some_folder(dice, forest), some_folder(dice, forest));
    let (from, target) = (forest.folders[at].path, forest.folders[to].path);
    let paths: Vec<String> = forest.files.keys().cloned().collect();
    let target = match dice.any(&paths) {
        Some(path) if dice.chance(40) => relative(from, path),
        _ => relative(from, target),
    };
    forest.links.insert(format!("{from}/link"), target);
    let list = dice.pick(&["resources", "components", "resources"]);
    forest.folders[at].list(list).push(text(dice.pick(&["link", "link", "link/."])));
}

fn empty_field(dice: &mut Dice, forest: &mut Forest) {
    let at = some_folder(dice, forest);
    let fields = &mut forest.folders[at].fields;
    let keep = dice.below(2);
    fields.truncate(keep);
    if dice.chance(50) {
        let key = dice.pick(&["resources", "components", "metadata", "namePrefix", "patches"]);
        fields.push((key.to_owned(), raw(dice.pick(&["[]", "null", "", "{}", "\"\""]))));
    }
}
