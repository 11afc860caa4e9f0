//! Adds common and uncommon mistakes to generated trees.

use super::yaml::{Yaml, map, raw, text};
use super::{TreeBuilder, relative};
use crate::case::ROOT;
use crate::dice::Dice;

type Fault = fn(&mut Dice, &mut TreeBuilder);

const FAULTS: &[Fault] = &[
    misplaced_entry,
    misplaced_entry,
    misplaced_entry,
    misplaced_entry,
    misplaced_entry,
    misplaced_entry,
    unusual_reference,
    unusual_reference,
    file_of_another,
    missing_file,
    second_kustomization_file,
    renamed_kustomization_file,
    unknown_field,
    wrong_type,
    duplicate_key,
    other_letter_case,
    random_kind_and_version,
    text_around_document,
    duplicate_entry,
    damaged_file,
    damaged_file,
    symbolic_link,
    few_fields,
    unknown_nested_field,
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
pub fn add_mistake(dice: &mut Dice, tree: &mut TreeBuilder) {
    let fault = FAULTS[dice.below(FAULTS.len())];
    fault(dice, tree);
}

fn some_folder(dice: &mut Dice, tree: &TreeBuilder) -> usize {
    // Later folders are more often part of the built root, so this prefers them.
    dice.below(tree.folders.len()).max(dice.below(tree.folders.len()))
}

/// Adds an entry for a folder to a random list of a kustomization file, or moves an existing entry to this list. Most
/// lists do not accept such an entry.
fn misplaced_entry(dice: &mut Dice, tree: &mut TreeBuilder) {
    let (at, to) = (some_folder(dice, tree), some_folder(dice, tree));
    let entry = relative(tree.folders[at].path, tree.folders[to].path);
    let list = dice.pick(LISTS);
    let folder = &mut tree.folders[at];
    let from = if has_items(folder, "components") { "components" } else { "resources" };
    if dice.chance(50) && has_items(folder, from) {
        let moved = folder.list(from).pop();
        folder.list(list).extend(moved);
    } else {
        folder.list(list).push(text(entry));
    }
}

fn has_items(folder: &super::Folder, key: &str) -> bool {
    folder.fields.iter().any(|(name, value)| name == key && matches!(value, Yaml::List(items) if !items.is_empty()))
}

/// Adds an entry with an unusual target, such as a missing file or the folder itself.
fn unusual_reference(dice: &mut Dice, tree: &mut TreeBuilder) {
    let (at, to) = (some_folder(dice, tree), some_folder(dice, tree));
    let (from, to) = (tree.folders[at].path, &tree.folders[to]);
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
    tree.folders[at].list(list).push(text(entry));
}

/// Adds a reference to an existing file. The file is usually in another folder, so kustomize's load restrictor rejects
/// the reference.
fn file_of_another(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let paths: Vec<String> = tree.files.keys().cloned().collect();
    let Some(path) = dice.any(&paths) else { return };
    let entry = text(relative(tree.folders[at].path, path));
    let folder = &mut tree.folders[at];
    match dice.below(5) {
        0 => folder.list("patches").push(map([("path", entry)])),
        1 => folder.list("configMapGenerator").push(map([("name", text("other")), ("files", Yaml::List(vec![entry]))])),
        2 => folder.list("components").push(entry),
        3 => folder.list("configurations").push(entry),
        _ => folder.list("resources").push(entry),
    }
}

fn missing_file(dice: &mut Dice, tree: &mut TreeBuilder) {
    let paths: Vec<String> = tree.files.keys().cloned().collect();
    let Some(path) = dice.any(&paths) else { return };
    if let Some(content) = tree.files.remove(path)
        && dice.chance(30)
    {
        tree.files.insert(path.replace(".yaml", ".yml"), content);
    }
}

fn second_kustomization_file(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let name = dice.pick(&[
        "kustomization.yml",
        "Kustomization",
        "kustomization.yaml",
        "Kustomization.yaml",
        "kustomize.yaml",
    ]);
    let path = format!("{}/{name}", tree.folders[at].path);
    tree.files.insert(path, "resources: []\n".to_owned());
}

fn renamed_kustomization_file(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    tree.folders[at].file_name =
        dice.pick(&["kustomize.yaml", "Kustomization.yaml", "kustomization", "kustomization.yaml/x"]);
}

fn unknown_field(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let key =
        dice.pick(&["resource", "component", "spec", "x-more", "patchesjson", "inventory", "configMapGenerators"]);
    let value = dice.pick(&["[]", "null", "{a: b}", "x"]);
    tree.folders[at].fields.push((key.to_owned(), raw(value)));
}

fn unknown_nested_field(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    for (_, value) in &mut tree.folders[at].fields {
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

fn wrong_type(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
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
    let fields = &mut tree.folders[at].fields;
    fields.retain(|(name, _)| name != key);
    fields.push((key.to_owned(), value));
}

fn duplicate_key(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let fields = &mut tree.folders[at].fields;
    if let Some((key, value)) = dice.any(fields).cloned() {
        let value = if dice.chance(50) { raw("null") } else { value };
        let place = dice.below(fields.len() + 1);
        fields.insert(place, (key, value));
    }
}

fn other_letter_case(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let fields = &mut tree.folders[at].fields;
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

fn random_kind_and_version(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let fields = &mut tree.folders[at].fields;
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

fn text_around_document(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
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
    tree.folders[at].around = around[dice.below(around.len())];
}

fn duplicate_entry(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let list = dice.pick(&["resources", "components", "patches", "configMapGenerator", "replicas", "vars"]);
    let folder = &mut tree.folders[at];
    if has_items(folder, list) {
        let items = folder.list(list);
        let again = items[dice.below(items.len())].clone();
        items.push(again);
    }
}

/// Damages the text of a file that a kustomization file refers to.
fn damaged_file(dice: &mut Dice, tree: &mut TreeBuilder) {
    let paths: Vec<String> = tree.files.keys().cloned().collect();
    let Some(content) = dice.any(&paths).and_then(|path| tree.files.get_mut(path)) else { return };
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

fn symbolic_link(dice: &mut Dice, tree: &mut TreeBuilder) {
    let (at, to) = (some_folder(dice, tree), some_folder(dice, tree));
    let (from, target) = (tree.folders[at].path, tree.folders[to].path);
    let paths: Vec<String> = tree.files.keys().cloned().collect();
    let target = match dice.any(&paths) {
        Some(path) if dice.chance(40) => relative(from, path),
        _ => relative(from, target),
    };
    tree.links.insert(format!("{from}/link"), target);
    let list = dice.pick(&["resources", "components", "resources"]);
    tree.folders[at].list(list).push(text(dice.pick(&["link", "link", "link/."])));
}

fn few_fields(dice: &mut Dice, tree: &mut TreeBuilder) {
    let at = some_folder(dice, tree);
    let fields = &mut tree.folders[at].fields;
    let keep = dice.below(2);
    fields.truncate(keep);
    if dice.chance(50) {
        let key = dice.pick(&["resources", "components", "metadata", "namePrefix", "patches"]);
        fields.push((key.to_owned(), raw(dice.pick(&["[]", "null", "", "{}", "\"\""]))));
    }
}
