//! Generates a folder with a kustomization file.

use super::objects::{ObjectId, manifests};
use super::yaml::{Yaml, map, raw, text, texts};
use super::{TreeBuilder, fields, patches, plugins, relative};
use crate::dice::Dice;

const COMPONENT: &str = "kustomize.config.k8s.io/v1alpha1";
const KUSTOMIZATION: &str = "kustomize.config.k8s.io/v1beta1";

/// A folder with a kustomization file.
pub struct Folder {
    pub path: &'static str,
    pub file_name: &'static str,
    pub component: bool,
    pub fields: Vec<(String, Yaml)>,
    /// The text before and after the YAML document in the kustomization file.
    pub around: (&'static str, &'static str),
    /// The objects that a build of the folder can contain. They are possible targets of patches.
    pub exports: Vec<ObjectId>,
}

/// A folder under construction, the tree that contains it, and the source of random choices.
pub struct FolderBuilder<'a> {
    pub dice: &'a mut Dice,
    pub tree: &'a mut TreeBuilder,
    pub folder: Folder,
}

type Step = fn(&mut FolderBuilder<'_>);

/// Functions that add random fields to a kustomization. They do not add the lists of manifests and folders, such as
/// `resources`. A function that occurs several times in this list is chosen more often.
const STEPS: &[Step] = &[
    fields::prefix,
    fields::suffix,
    fields::namespace,
    fields::labels,
    fields::common_labels,
    fields::annotations,
    fields::images,
    fields::replicas,
    fields::config_map_generator,
    fields::config_map_generator,
    fields::secret_generator,
    fields::merging_generator,
    fields::merging_generator,
    fields::generator_options,
    fields::replacements,
    fields::vars,
    fields::crds,
    fields::openapi,
    fields::configurations,
    fields::minor_field,
    fields::anchors,
    patches::patches,
    patches::patches,
    patches::patches,
    patches::strategic_merge,
    patches::json6902,
    plugins::generators,
    plugins::transformers,
    plugins::validators,
];

impl Folder {
    /// Creates a random folder, which can refer to the existing folders of the tree.
    pub fn random(dice: &mut Dice, tree: &mut TreeBuilder, path: &'static str) -> Self {
        let component = if path.starts_with("comp") { dice.chance(85) } else { dice.chance(10) };
        let file_name = dice.pick(&[
            "kustomization.yaml",
            "kustomization.yaml",
            "kustomization.yaml",
            "kustomization.yml",
            "Kustomization",
        ]);
        let folder = Self { path, file_name, component, fields: Vec::new(), around: ("", ""), exports: Vec::new() };
        let mut builder = FolderBuilder { dice, tree, folder };
        builder.head();
        builder.manifests();
        builder.references();
        for _ in 0..builder.dice.below(5) {
            let step = STEPS[builder.dice.below(STEPS.len())];
            step(&mut builder);
        }
        if builder.folder.fields.iter().all(|(key, _)| key == "kind" || key == "apiVersion") {
            fields::prefix(&mut builder);
        }
        builder.folder
    }

    /// Returns the text of the kustomization file.
    pub fn text(&self, dice: &mut Dice) -> String {
        let (before, after) = self.around;
        format!("{before}{}{after}", Yaml::Map(self.fields.clone()).document(dice))
    }

    /// Returns the items of a list field. Adds an empty list if the field does not exist.
    pub fn list(&mut self, key: &str) -> &mut Vec<Yaml> {
        let at = self.fields.iter().position(|(name, value)| name == key && matches!(value, Yaml::List(_)));
        let at = at.unwrap_or_else(|| {
            self.fields.push((key.to_owned(), Yaml::List(Vec::new())));
            self.fields.len() - 1
        });
        match &mut self.fields[at].1 {
            Yaml::List(items) => items,
            _ => unreachable!("it was looked for, or just made"),
        }
    }
}

impl FolderBuilder<'_> {
    /// Adds a field, unless the field already exists.
    pub fn set(&mut self, key: &str, value: Yaml) {
        if self.folder.fields.iter().all(|(name, _)| name != key) {
            self.folder.fields.push((key.to_owned(), value));
        }
    }

    /// Writes a file whose name begins with `stem` into the folder. Returns the entry that refers to the file, which
    /// can be added to a list such as `resources`.
    pub fn file(&mut self, stem: &str, content: String) -> String {
        let number = self.tree.files.len();
        let below = if self.dice.chance(10) { "files/" } else { "" };
        let name = format!("{below}{stem}-{number}.yaml");
        self.tree.files.insert(format!("{}/{name}", self.folder.path), content);
        if self.dice.chance(8) { format!("./{name}") } else { name }
    }

    /// Returns a target for a patch, usually an object that the build of the folder can contain.
    pub fn target(&mut self) -> ObjectId {
        let id = self.dice.any(&self.folder.exports).cloned();
        match id {
            Some(id) if self.dice.chance(97) => id,
            _ => ObjectId::random(self.dice),
        }
    }

    fn head(&mut self) {
        let (kind, version) =
            if self.folder.component { ("Component", COMPONENT) } else { ("Kustomization", KUSTOMIZATION) };
        let variant = self.dice.below(4);
        if variant != 0 {
            self.set("apiVersion", text(version));
        }
        if self.folder.component || variant > 1 {
            self.set("kind", text(kind));
        }
        if !self.folder.component && variant == 1 && self.dice.chance(5) {
            self.set("kind", raw("\"\""));
        }
    }

    fn manifests(&mut self) {
        let files = [1, 1, 1, 2, 0, 0][self.dice.below(6)];
        for _ in 0..files {
            let count = 1 + self.dice.below(2);
            let objects: Vec<ObjectId> = (0..count).filter_map(|_| self.new_object()).collect();
            let content = manifests(self.dice, &objects);
            let name = self.file("objects", content);
            self.folder.list("resources").push(text(name));
        }
    }

    /// Generates the id of a new object, and adds it to the exports of this folder. The folder does not export this
    /// object yet, and usually no other folder exports it either. Returns `None` if several random ids do not meet
    /// these conditions.
    fn new_object(&mut self) -> Option<ObjectId> {
        let must_be_unique = self.dice.chance(85);
        for _ in 0..4 {
            let object = ObjectId::random(self.dice);
            let is_in_another_folder = self.tree.folders.iter().any(|folder| folder.exports.contains(&object));
            if !(self.folder.exports.contains(&object) || must_be_unique && is_in_another_folder) {
                self.folder.exports.push(object.clone());
                return Some(object);
            }
        }
        None
    }

    fn references(&mut self) {
        for (component, most) in [(false, 3), (true, 4)] {
            let mut candidates: Vec<usize> = (0..self.tree.folders.len()).collect();
            candidates.retain(|&at| self.tree.folders[at].component == component);
            for _ in 0..self.dice.below(most).min(candidates.len()) {
                let at = candidates.swap_remove(self.dice.below(candidates.len()));
                self.add_reference(at, component);
            }
        }
    }

    fn add_reference(&mut self, at: usize, component: bool) {
        let (path, exports) = (self.tree.folders[at].path, self.tree.folders[at].exports.clone());
        let has_duplicates = exports.iter().any(|export| self.folder.exports.contains(export));
        if has_duplicates && self.dice.chance(60) {
            return;
        }
        let slash = if self.dice.chance(5) { "/" } else { "" };
        let entry = text(format!("{}{slash}", relative(self.folder.path, path)));
        let list =
            if component { "components" } else { self.dice.pick(&["resources", "resources", "resources", "bases"]) };
        self.folder.list(list).push(entry);
        self.folder.exports.extend(exports);
    }

    /// Returns a selector that contains the kind and some other properties of the object `of`.
    pub fn selector(&mut self, of: &ObjectId) -> Yaml {
        let (group, version) = of.group_version();
        let mut selector = map([("kind", text(of.kind))]);
        if self.dice.chance(60) {
            let name = match self.dice.below(6) {
                0 => format!("{}.*", &of.name[..1]),
                1 => ".*".to_owned(),
                _ => of.name.clone(),
            };
            selector = selector.with("name", text(name));
        }
        if self.dice.chance(25) {
            selector = selector.with("version", text(version));
        }
        if self.dice.chance(20) && !group.is_empty() {
            selector = selector.with("group", text(group));
        }
        match (&of.namespace, self.dice.below(5)) {
            (Some(namespace), 0..=2) => selector.with("namespace", text(namespace)),
            (_, 3) => selector.with(
                "labelSelector",
                text(self.dice.pick(&[
                    "app=web",
                    "app",
                    "!app",
                    "tier in (a,b)",
                    "app=web,tier!=a",
                    "app notin (web)",
                    "app in (web, db)",
                    "app>1",
                ])),
            ),
            (_, 4) if self.dice.chance(20) => selector.with("annotationSelector", text("note=hello")),
            _ => selector,
        }
    }

    /// Writes a file with environment variables (lines of `KEY=value`, possibly invalid), and returns the entry that
    /// refers to the file.
    pub fn data_file(&mut self) -> String {
        let content = self.dice.pick(&["A=1\nB=2\n", "a: b\n", "# nothing\n\nC=\n", "", "D\n", "A=1\nA=2\n", "=x\n"]);
        self.file("data", content.to_owned())
    }

    /// Returns a list with one or two random elements of `of`.
    pub fn texts(&mut self, of: &[&str]) -> Yaml {
        let count = 1 + self.dice.below(2);
        texts((0..count).map(|_| self.dice.pick(of)).collect::<Vec<_>>())
    }
}
