//! Random kustomize trees that mix every construct, the same ones for the same seed.

use std::collections::BTreeMap;

/// A tree and the folder that is built.
#[derive(Debug, Clone, Default)]
pub struct RandomTree {
    pub files: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
    pub root: String,
}

/// Numbers that look random: splitmix64.
struct Dice {
    state: u64,
    /// How much rarer than usual what mostly goes wrong is.
    calm: usize,
    /// The objects so far: apiVersion, kind, name.
    objects: Vec<(&'static str, &'static str, String)>,
}

impl Dice {
    fn new(seed: u64) -> Self {
        let mut dice = Self { state: seed, calm: 1, objects: Vec::new() };
        dice.calm = [1, 8, 50][dice.below(3)];
        dice
    }

    /// One time in so many, and less in a calm tree: something that mostly goes wrong.
    fn slip(&mut self, times: usize) -> bool {
        let times = times * self.calm;
        self.once_in(times)
    }

    fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    /// One time in so many.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

const FOLDERS: [(&str, bool); 7] = [
    ("base", false),
    ("mid", false),
    ("app/sub", false),
    ("parts/one", true),
    ("parts/two", true),
    ("parts/three", true),
    ("app", false),
];
const NAMES: [&str; 4] = ["a", "b", "c", "p-a"];
const KINDS: [(&str, &str); 8] = [
    ("v1", "ConfigMap"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("apps/v1", "Deployment"),
    ("v1", "Namespace"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("example.org/v1", "Widget"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
];

/// The tree of a seed.
pub fn tree(seed: u64) -> RandomTree {
    let mut dice = Dice::new(seed);
    let mut tree = RandomTree { root: "app".to_owned(), ..RandomTree::default() };
    for (folder, is_component) in FOLDERS {
        kustomization(&mut dice, &mut tree, folder, is_component);
    }
    if dice.once_in(6) {
        let (folder, _) = FOLDERS[dice.below(FOLDERS.len())];
        tree.links.insert("app/link".to_owned(), format!("../{folder}"));
    }
    if dice.slip(5) {
        mutate(&mut dice, &mut tree);
    }
    tree
}

/// A name that is mostly new.
fn name(dice: &mut Dice) -> String {
    if dice.slip(2) { dice.pick(&NAMES).to_owned() } else { format!("n{}", dice.below(1000)) }
}

fn object(dice: &mut Dice) -> String {
    let (version, kind) = KINDS[dice.below(KINDS.len())];
    let name = name(dice);
    let mut text = format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n");
    dice.objects.push((version, kind, name));
    if dice.once_in(4) {
        text += &format!("  namespace: {}\n", dice.pick(&["x", "default", "z"]));
    }
    if dice.once_in(4) {
        text += "  labels: {app: web}\n";
    }
    match kind {
        "ConfigMap" | "Secret" => text += "data:\n  k: v\n",
        "Deployment" => {
            text +=
                "spec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n      - name: c\n        image: i:1\n"
        }
        _ => {}
    }
    text
}

fn manifest(dice: &mut Dice) -> String {
    if !dice.slip(2) {
        return match dice.below(8) {
            0 => format!("{}---\n{}", object(dice), object(dice)),
            _ => object(dice),
        };
    }
    match dice.below(20) {
        0 => "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n".to_owned(),
        1 => "apiVersion: v1\nmetadata:\n  name: a\n".to_owned(),
        2 => "a: [b\n".to_owned(),
        3 => String::new(),
        4 => "# nothing\n---\n".to_owned(),
        5 => format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", indented(&object(dice), "  ").trim_start()),
        6 => format!("{}---\n{}", object(dice), object(dice)),
        7 => format!("---\n{}...\n", object(dice)),
        8 => format!("{}--- # next\n{}", object(dice), object(dice)),
        9 => "kind: ConfigMap\nmetadata:\n  name: yes\n".to_owned(),
        10 => "just text\n".to_owned(),
        _ => object(dice),
    }
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
}

fn kustomization(dice: &mut Dice, tree: &mut RandomTree, folder: &str, is_component: bool) {
    let mut text = String::new();
    let odd = if dice.slip(20) { dice.below(3) } else { 3 + dice.below(57) };
    match (is_component, odd) {
        (_, 0) => text += "kind: Other\n",
        (_, 1) => text += "apiVersion: kustomize.config.k8s.io/v1\n",
        (true, 2) => text += "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Component\n",
        (true, _) => text += "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        (false, n) if n < 30 => text += "kind: Kustomization\n",
        _ => {}
    }
    resources(dice, tree, folder, is_component, &mut text);
    if !is_component || dice.once_in(5) {
        components(dice, folder, &mut text);
    }
    for _ in 0..dice.below(4) {
        let field = field(dice, tree, folder);
        // a field twice is a field with the later value: the oracle knows, and so must we
        text += &field;
    }
    let says_something = text.lines().any(|line| !line.starts_with("kind") && !line.starts_with("apiVersion"));
    if !says_something && !dice.slip(9) {
        text += "resources: []\n";
    }
    tree.files.insert(format!("{folder}/kustomization.yaml"), text);
}

fn up(folder: &str) -> String {
    "../".repeat(folder.split('/').count())
}

fn resources(dice: &mut Dice, tree: &mut RandomTree, folder: &str, is_component: bool, text: &mut String) {
    let mut entries = Vec::new();
    for number in 0..dice.below(3) {
        let name = format!("r{number}.yaml");
        let content = manifest(dice);
        tree.files.insert(format!("{folder}/{name}"), content);
        entries.push(name);
    }
    let bases: &[&str] = match folder {
        "app" => &["base", "mid", "app/sub"],
        "mid" => &["base"],
        _ if is_component && dice.slip(12) => &["base"],
        _ => &[],
    };
    for base in bases {
        let doubled = folder == "app" && *base == "base" && text.contains("mid");
        if dice.once_in(2) && (!doubled || dice.slip(2)) {
            entries.push(format!("{}{base}", up(folder)));
        }
    }
    match if dice.slip(8) { dice.below(9) } else { 9 } {
        0 => entries.push("nope".to_owned()),
        1 => entries.push(format!("{}parts/one", up(folder))),
        2 => entries.push("..".to_owned()),
        3 => entries.push(String::new()),
        4 => entries.push(format!("{}base/r0.yaml", up(folder))),
        5 => entries.push("*.yaml".to_owned()),
        6 => entries.push("link".to_owned()),
        7 => entries.push(format!("{}base/kustomization.yaml", up(folder))),
        8 => entries.push(format!("{}base/../base", up(folder))),
        _ => {}
    }
    list(text, if dice.once_in(25) { "bases" } else { "resources" }, &entries);
}

fn components(dice: &mut Dice, folder: &str, text: &mut String) {
    let mut entries = Vec::new();
    for part in ["parts/one", "parts/two", "parts/three"] {
        if dice.once_in(3) && !folder.starts_with(part) {
            entries.push(format!("{}{part}", up(folder)));
        }
    }
    match if dice.slip(8) { dice.below(7) } else { 7 } {
        0 => entries.push(format!("{}base", up(folder))),
        1 => entries.push("r0.yaml".to_owned()),
        2 => entries.push("nope".to_owned()),
        3 => entries.push("link".to_owned()),
        4 => entries.push(".".to_owned()),
        5 => entries.push(format!("{}parts/one", up(folder))),
        6 => entries.push(format!("{}parts", up(folder))),
        _ => {}
    }
    list(text, "components", &entries);
}

fn list(text: &mut String, field: &str, entries: &[String]) {
    if !entries.is_empty() {
        let lines: String = entries.iter().map(|entry| format!("- \"{entry}\"\n")).collect();
        *text += &format!("{field}:\n{lines}");
    }
}

fn target(dice: &mut Dice) -> String {
    let mut target = String::from("target: {");
    let kind = dice.pick(&["ConfigMap", "Deployment", "Secret|ConfigMap", "Nope", ".*"]);
    target += &format!("kind: \"{kind}\"");
    if dice.once_in(2) {
        target +=
            &format!(", name: \"{}\"", if dice.slip(9) { "(" } else { dice.pick(&["a", "b", "p-.*", "[a-c]", "n.*"]) });
    }
    if dice.once_in(5) {
        target += &format!(", namespace: {}", dice.pick(&["x", "default", "z"]));
    }
    if dice.once_in(6) {
        target += &format!(", labelSelector: \"app={}\"", dice.pick(&["web", "db"]));
    }
    target + "}\n"
}

fn operations(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "- op: add\n  path: /data/z\n  value: z\n",
        "- op: remove\n  path: /data/k\n",
        "- op: remove\n  path: /data/nope\n",
        "- op: replace\n  path: /metadata/name\n  value: b\n",
        "- op: replace\n  path: /metadata/name\n  value: y\n",
        "- op: add\n  path: /metadata/labels/x\n  value: y\n",
        "- op: add\n  path: /metadata/annotations/x\n  value: y\n",
        "- op: add\n  path: /spec/template/spec/containers/-\n  value: {name: d, image: e}\n",
        "- op: replace\n  path: /data/nope\n  value: q\n",
        "- op: add\n  path: /metadata/namespace\n  value: x\n",
        "- op: copy\n  from: /data/k\n  path: /data/l\n",
        "- op: move\n  from: /data/k\n  path: /data/l\n",
        "- op: test\n  path: /data/k\n  value: v\n",
        "[]",
        "- op: bogus\n  path: /data/k\n",
    ])
}

fn merge(dice: &mut Dice) -> String {
    let (mut version, mut kind) = KINDS[dice.below(4)];
    let mut name = dice.pick(&NAMES).to_owned();
    if !dice.objects.is_empty() && !dice.slip(3) {
        let at = dice.below(dice.objects.len());
        (version, kind, name) = dice.objects[at].clone();
    }
    let mut text = format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n");
    if dice.slip(3) {
        text += &format!("  namespace: {}\n", dice.pick(&["x", "default"]));
    }
    match dice.below(6) {
        0 => text += "$patch: delete\n",
        1 if kind == "Deployment" => text += "spec:\n  replicas: 3\n",
        2 => text += "data: {y: z}\n",
        _ => {}
    }
    text
}

fn patch(dice: &mut Dice) -> String {
    let is_json = dice.once_in(2);
    let body = if is_json { operations(dice).to_owned() } else { merge(dice) };
    let mut entry = format!("- patch: |-\n{}", indented(body.trim_end(), "    "));
    if if is_json { !dice.slip(6) } else { dice.once_in(2) } {
        entry += &format!("  {}", target(dice));
    }
    if dice.once_in(12) {
        entry += "  options: {allowNameChange: true}\n";
    }
    entry
}

fn generator(dice: &mut Dice) -> String {
    let new = name(dice);
    let known = dice.objects.iter().filter(|(_, kind, _)| *kind == "ConfigMap").map(|(_, _, name)| name.clone());
    let known: Vec<_> = known.collect();
    let merges = !known.is_empty() && dice.once_in(4);
    let chosen = if merges { known[dice.below(known.len())].clone() } else { new };
    let mut entry = format!("- name: {chosen}\n");
    let behavior = if merges { 0 } else { 2 };
    match if dice.slip(4) { dice.below(5) } else { behavior } {
        0 => entry += "  behavior: merge\n",
        1 => entry += "  behavior: replace\n",
        2 => entry += "  behavior: create\n",
        _ => {}
    }
    if dice.once_in(5) {
        entry += &format!("  namespace: {}\n", dice.pick(&["x", "default"]));
    }
    entry += match if dice.slip(4) { dice.below(12) } else { 12 } {
        0 => "  literals: [k=v, k=w]\n",
        1 => "  files: [nope.txt]\n",
        2 => "  literals: [novalue]\n",
        3 => "  files: [kustomization.yaml]\n",
        4 => "  envs: [kustomization.yaml]\n",
        _ => "  literals: [k=v]\n",
    };
    entry
}

fn replacement(dice: &mut Dice) -> String {
    let source =
        dice.pick(&["{kind: ConfigMap, name: a}", "{kind: Secret}", "{kind: ConfigMap, name: a, fieldPath: data.k}"]);
    let field = dice.pick(&["metadata.annotations.x", "data.k", "metadata.name", "spec.replicas"]);
    let create = if dice.once_in(3) { "\n    options: {create: true}" } else { "" };
    let select = dice.pick(&["{kind: ConfigMap, name: b}", "{kind: Deployment}", "{kind: Nope}"]);
    format!("- source: {source}\n  targets:\n  - select: {select}\n    fieldPaths: [{field}]{create}\n")
}

fn field(dice: &mut Dice, tree: &mut RandomTree, folder: &str) -> String {
    match dice.below(30) {
        0 | 1 => format!("namePrefix: {}\n", dice.pick(&["p-", "q-"])),
        2 => format!("nameSuffix: {}\n", dice.pick(&["-s", "-t"])),
        3 | 4 => format!("namespace: {}\n", dice.pick(&["x", "z", "default"])),
        5..=10 => format!("patches:\n{}", patch(dice)),
        11 => format!("patchesStrategicMerge:\n- |-\n{}", indented(merge(dice).trim_end(), "  ")),
        12 if dice.slip(3) => format!("patchesJson6902:\n{}", patch(dice)),
        12 => {
            let body = indented(operations(dice).trim_end(), "    ");
            format!("patchesJson6902:\n- patch: |-\n{body}  target: {{kind: ConfigMap, name: n.*}}\n")
        }
        13..=15 => format!("configMapGenerator:\n{}", generator(dice)),
        16 => format!("secretGenerator:\n{}", generator(dice)),
        17 if dice.slip(2) => format!("replicas:\n- name: {}\n  count: 2\n", dice.pick(&NAMES)),
        17 => {
            let scaled = dice.objects.iter().find(|(_, kind, _)| *kind == "Deployment");
            scaled.map(|(_, _, name)| format!("replicas:\n- name: {name}\n  count: 2\n")).unwrap_or_default()
        }
        18 if dice.slip(2) => format!("replacements:\n{}", replacement(dice)),
        19 => "commonLabels: {l: m}\n".to_owned(),
        20 => "labels:\n- pairs: {l: m}\n".to_owned(),
        21 => "images:\n- name: i\n  newTag: \"2\"\n".to_owned(),
        22 if dice.slip(2) => rare(dice, tree, folder),
        23 => "commonAnnotations: {l: m}\n".to_owned(),
        24 => "generatorOptions: {disableNameSuffixHash: true}\n".to_owned(),
        25 => {
            let content = if dice.once_in(2) { merge(dice) } else { operations(dice).to_owned() };
            tree.files.insert(format!("{folder}/patch.yaml"), content);
            format!("patches:\n- path: patch.yaml\n  {}", target(dice))
        }
        _ => String::new(),
    }
}

fn rare(dice: &mut Dice, tree: &mut RandomTree, folder: &str) -> String {
    let plugin = "apiVersion: builtin\nkind: LabelTransformer\nmetadata:\n  name: l\nlabels: {q: r}\nfieldSpecs:\n- path: metadata/labels\n  create: true\n";
    match dice.below(22) {
        0 => "nmePrefix: x\n".to_owned(),
        1 => "NamePrefix: x-\n".to_owned(),
        2 => "namePrefix: on\n".to_owned(),
        3 => "sortOptions: {order: bogus}\n".to_owned(),
        4 => "sortOptions: {order: fifo}\n".to_owned(),
        5 => "buildMetadata: [originAnnotations]\n".to_owned(),
        6 => "crds: [nope.yaml]\n".to_owned(),
        7 => "configurations: [nope.yaml]\n".to_owned(),
        8 => "vars:\n- name: V\n  objref: {kind: ConfigMap, name: a, apiVersion: v1}\n".to_owned(),
        9 => "helmCharts:\n- name: c\n".to_owned(),
        10 => "generators: [r0.yaml]\n".to_owned(),
        11 => "transformers: [r0.yaml]\n".to_owned(),
        12 => "validators: [nope.yaml]\n".to_owned(),
        13 => "metadata: {name: x}\n".to_owned(),
        14 => "openapi: {version: v1.21.2}\n".to_owned(),
        15 => "replicas:\n- name: a\n  count: two\n".to_owned(),
        16 => "patches:\n- target: {kind: ConfigMap}\n".to_owned(),
        17 => {
            tree.files.insert(format!("{folder}/kustomization.yml"), "resources: []\n".to_owned());
            String::new()
        }
        18 => {
            tree.files.insert(format!("{folder}/plugin.yaml"), plugin.to_owned());
            "transformers: [plugin.yaml]\n".to_owned()
        }
        19 => {
            tree.files.insert(format!("{folder}/conf.yaml"), "images:\n- path: spec/image\n".to_owned());
            "configurations: [conf.yaml]\n".to_owned()
        }
        20 => "---\nkind: Component\n".to_owned(),
        _ => "resources:\n".to_owned(),
    }
}

/// What slips into a file.
const SLIPS: [&str; 34] = [
    "resources",
    "components",
    "../base",
    "../comp",
    "[",
    "]",
    "{",
    "}",
    ":",
    "\n",
    "- ",
    "  ",
    "kind: ",
    "Component",
    "yes",
    "null",
    "~",
    "&a ",
    "*a",
    "---\n",
    "'",
    "\"",
    "#",
    "!!str ",
    "? ",
    "|",
    "1",
    "0x1",
    "\t",
    "<<: ",
    "namePrefix: p-\n",
    "é",
    ", ",
    "...",
];

/// A tree with one or two slips in it.
pub fn with_slips(tree: &RandomTree, seed: u64) -> RandomTree {
    let mut dice = Dice::new(seed);
    let mut tree = tree.clone();
    let paths: Vec<_> = tree.files.keys().cloned().collect();
    for _ in 0..1 + dice.below(2) {
        if let Some(text) = paths.get(dice.below(paths.len().max(1))).and_then(|path| tree.files.get_mut(path)) {
            slip(&mut dice, text);
        }
    }
    tree
}

fn slip(dice: &mut Dice, text: &mut String) {
    let places: Vec<_> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = places[dice.below(places.len())];
    let lines: Vec<_> = text.lines().map(|line| format!("{line}\n")).collect();
    match dice.below(4) {
        0 => {
            let end = places.iter().copied().find(|end| *end > at + dice.below(12)).unwrap_or(text.len());
            text.replace_range(at..end.max(at), "");
        }
        1 if !lines.is_empty() => {
            let (from, to) = (dice.below(lines.len()), dice.below(lines.len()));
            let again = lines[from].clone();
            *text = lines[..to].concat() + &again + &lines[to..].concat();
        }
        _ => text.insert_str(at, dice.pick(&SLIPS)),
    }
}

fn mutate(dice: &mut Dice, tree: &mut RandomTree) {
    let paths: Vec<_> = tree.files.keys().cloned().collect();
    let path = &paths[dice.below(paths.len())];
    let Some(text) = tree.files.remove(path) else { return };
    let changed = match dice.below(6) {
        0 => return,
        1 => text.replacen("kind: Component", "kind: Kustomization", 1),
        2 => text.replace("../", "../../"),
        3 => text.lines().rev().skip(1).collect::<Vec<_>>().into_iter().rev().map(|line| format!("{line}\n")).collect(),
        4 => text.to_uppercase(),
        _ => format!("{text}{}", text.lines().next().unwrap_or_default()),
    };
    tree.files.insert(path.clone(), changed);
}
