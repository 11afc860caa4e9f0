//! Generates pairs of revisions of a git repository from a seed. Flux applies both revisions in the test, one after the
//! other.

use super::kinds::TEMPLATES;
use super::model::{Edit, Folder, Generator, Kustomization, Layout, Object, Pair, State};
use crate::dice::Dice;

/// Labels and annotations that exclude an object from pruning or from updates, and some that look similar but have no
/// effect.
const OPT_OUTS: [(&str, &str); 5] = [
    ("annotations", "kustomize.toolkit.fluxcd.io/prune: disabled"),
    ("labels", "kustomize.toolkit.fluxcd.io/prune: Disabled"),
    ("annotations", "kustomize.toolkit.fluxcd.io/reconcile: disabled"),
    ("annotations", "kustomize.toolkit.fluxcd.io/ssa: IfNotPresent"),
    ("annotations", "kustomize.toolkit.fluxcd.io/prune: enabled"),
];
/// The possible changes of live objects between two revisions.
const EDITS: [Edit; 9] = [
    Edit::Set("annotations", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
    Edit::Set("labels", "kustomize.toolkit.fluxcd.io/prune", "DISABLED"),
    Edit::Set("annotations", "kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    Edit::Set("annotations", "kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
    Edit::Set("annotations", "kustomize.toolkit.fluxcd.io/prune", "no"),
    Edit::Set("labels", "kustomize.toolkit.fluxcd.io/name", "somebody"),
    Edit::Set("labels", "kustomize.toolkit.fluxcd.io/namespace", "elsewhere"),
    Edit::RemoveOwner,
    Edit::Delete,
];
/// Maximum number of random changes between the first and the second revision.
const MAX_MUTATIONS: usize = 6;

/// State that is needed while a pair of revisions is generated.
struct PairBuilder<'d> {
    dice: &'d mut Dice,
    name: String,
    /// Whether names of objects may contain variables, which Flux substitutes.
    substitutes: bool,
    /// Whether the dependencies of a Kustomization come after the Kustomization in the list of Kustomizations, instead
    /// of before.
    is_backward: bool,
    /// Whether all Kustomizations use the same namespace, and no prefixes and suffixes of names. Objects can then move
    /// from one Kustomization to another.
    is_uniform: bool,
    names: usize,
}

/// Generates a pair of revisions from a seed. `name` is the name of the pair and of its namespace.
pub fn pair(seed: u64, name: &str) -> Pair {
    let mut dice = Dice::new(seed);
    let [substitutes, is_backward, is_uniform] = [25, 50, 50].map(|percent| dice.chance(percent));
    let mut builder =
        PairBuilder { dice: &mut dice, name: name.to_owned(), substitutes, is_backward, is_uniform, names: 0 };
    let number = 1 + builder.dice.below(3);
    let kustomizations: Vec<_> = (0..number).map(|index| builder.kustomization(index, number)).collect();
    let mut before: Vec<_> = kustomizations.iter().map(|one| builder.folder(one)).collect();
    builder.share(&kustomizations, &mut before);
    let mut after = before.clone();
    for _ in 0..=builder.dice.below(MAX_MUTATIONS) {
        builder.mutate(&kustomizations, &mut after);
    }
    let has_dependencies = kustomizations.iter().any(|one| !one.depends_on.is_empty());
    if has_dependencies {
        // A folder with duplicate objects cannot be built. Kustomizations that depend on it would wait forever.
        after.iter_mut().for_each(Folder::drop_duplicates);
    }
    if !has_dependencies && builder.dice.chance(8) {
        let at = builder.dice.below(number);
        after[at].state = if builder.dice.chance(50) { State::Missing } else { State::Broken };
    }
    let edits = if builder.dice.chance(40) { 1 + builder.dice.below(3) } else { 0 };
    let edits = (0..edits).map(|_| (builder.dice.number(), EDITS[builder.dice.below(EDITS.len())])).collect();
    Pair { name: name.to_owned(), kustomizations, before, after, edits }
}

impl PairBuilder<'_> {
    /// Returns one of the two namespaces for objects, at random.
    fn namespace(&mut self) -> String {
        if self.dice.chance(75) { self.name.clone() } else { format!("{}-b", self.name) }
    }

    fn kustomization(&mut self, index: usize, number: usize) -> Kustomization {
        let mut spec = vec![format!("prune: {}", !self.dice.chance(10))];
        let sets_namespace = !self.is_uniform && self.dice.chance(40);
        if sets_namespace {
            spec.push(format!("targetNamespace: {}", self.namespace()));
        }
        let is_uniform = self.is_uniform;
        let mut maybe = |percent: usize, field: &str| {
            if self.dice.chance(percent) {
                spec.push(field.to_owned());
            }
        };
        maybe(if is_uniform { 0 } else { 10 }, "namePrefix: spec-");
        maybe(if is_uniform { 0 } else { 10 }, "nameSuffix: -end");
        maybe(10, "force: true");
        maybe(10, "deletionPolicy: Orphan");
        maybe(
            8,
            "patches: [{target: {kind: ConfigMap}, patch: '- {op: add, path: /metadata/annotations/patched, value: x}'}]",
        );
        let common = match self.dice.below(30) {
            0 => Some("annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}"),
            1 => Some("labels: {kustomize.toolkit.fluxcd.io/name: other}"),
            2..=4 => Some("labels: {team: blue}, annotations: {note: kept}"),
            _ => None,
        };
        spec.extend(common.map(|common| format!("commonMetadata: {{{common}}}")));
        if self.substitutes {
            spec.push(format!(
                "postBuild: {{substitute: {{env: e{index}}}, substituteFrom: [{{kind: ConfigMap, name: variables}}]}}"
            ));
        }
        // Kustomizations depend only on earlier ones, or only on later ones. So there are no cycles.
        let others = if self.is_backward { index + 1..number } else { 0..index };
        let depends_on = others.filter(|_| self.dice.chance(30)).collect();
        Kustomization { spec, depends_on, sets_namespace }
    }

    fn folder(&mut self, of: &Kustomization) -> Folder {
        let namespace = match self.is_uniform {
            true => Some(self.name.clone()),
            false => self.dice.chance(30).then(|| self.namespace()),
        };
        let layouts = [Layout::Plain, Layout::File, Layout::File, Layout::Overlay, Layout::List];
        let layout = layouts[self.dice.below(layouts.len())];
        let prefix = (!self.is_uniform && self.dice.chance(10)).then(|| "pre-".to_owned());
        let mut folder = Folder {
            objects: Vec::new(),
            generators: Vec::new(),
            namespace,
            prefix,
            annotation: None,
            layout,
            state: State::Builds,
        };
        for _ in 0..self.dice.below(7) {
            let object = self.object(of, &folder);
            folder.objects.push(object);
        }
        if layout != Layout::Plain {
            for _ in 0..self.dice.below(4) {
                let generator = self.generator(of, &folder);
                folder.generators.extend(generator);
            }
        }
        folder
    }

    fn name(&mut self) -> String {
        self.names += 1;
        let number = self.names;
        match self.dice.below(6) {
            0 if self.substitutes => format!("n{number}-${{env}}"),
            1 if self.substitutes => format!("n{number}-${{region}}"),
            2 if self.substitutes => format!("n{number}-${{unset:=fallback}}"),
            3 => format!("n{number}.dotted"),
            4 => format!("n{number}-production"),
            _ => format!("n{number}"),
        }
    }

    /// Returns a random object for `folder`, which the Kustomization `of` builds.
    fn object(&mut self, of: &Kustomization, folder: &Folder) -> Object {
        let name = self.name();
        let moved = of.sets_namespace || folder.namespace.is_some();
        let mut template = if self.dice.chance(40) { 0 } else { self.dice.below(TEMPLATES.len()) };
        // If a namespace is set for all objects, kustomize gives this name to Namespaces. Their deletion would delete
        // the namespace of the pair.
        if TEMPLATES[template].kind == "Namespace" && moved {
            template = 0;
        }
        let kind = &TEMPLATES[template];
        let has_dots = ["ConfigMap", "Secret", "Widget", "Gadget"].contains(&kind.kind);
        let name = if has_dots { name } else { name.replace('.', "-") };
        let name = match kind.kind {
            _ if kind.namespaced => name,
            "ClusterRole" => format!("{}{}{name}", self.name, self.dice.pick(&[":", "__", "-"])),
            _ => format!("{}-{}", self.name, name),
        };
        let namespace = (!moved || self.dice.chance(50)).then(|| self.namespace());
        // Only namespaced objects can have such an entry. Flux waits for cluster-scoped objects even if it does not
        // apply them.
        let opt_out = (kind.namespaced && self.dice.chance(8)).then(|| OPT_OUTS[self.dice.below(OPT_OUTS.len())]);
        Object { template, name, namespace, value: self.dice.below(100) as u64, version: self.dice.below(2), opt_out }
    }

    /// Returns a ConfigMap or Secret generator with random settings. `None` if the generated objects would have no
    /// namespace.
    fn generator(&mut self, of: &Kustomization, folder: &Folder) -> Option<Generator> {
        if !of.sets_namespace && folder.namespace.is_none() {
            return None;
        }
        self.names += 1;
        let name = format!("g{}", self.names);
        let value = self.dice.below(100) as u64;
        Some(Generator { secret: self.dice.chance(30), name, value, hashed: !self.dice.chance(25) })
    }

    /// With a small probability, adds an object of the first folder to the second folder. Two Kustomizations then apply
    /// the same object.
    fn share(&mut self, kustomizations: &[Kustomization], folders: &mut [Folder]) {
        if folders.len() > 1 && self.dice.chance(10) {
            let object = self.dice.any(&folders[0].objects).cloned();
            let shared = object.map(|object| self.adapt(object, &kustomizations[1], &folders[1]));
            folders[1].objects.extend(shared);
        }
    }

    /// Makes one random change to the folders.
    fn mutate(&mut self, kustomizations: &[Kustomization], folders: &mut [Folder]) {
        let (mut at, what) = (self.dice.below(folders.len()), self.dice.below(24));
        if (15..=18).contains(&what) {
            at = folders.iter().position(|folder| !folder.generators.is_empty()).unwrap_or(at);
        }
        let of = &kustomizations[at];
        match what {
            0..=2 => {
                let object = self.object(of, &folders[at]);
                folders[at].objects.push(object);
            }
            3..=5 => drop(self.remove_random(&mut folders[at])),
            6 => self.change(&mut folders[at], |builder, object| object.name = rename(builder, &object.name)),
            7 => self.change(&mut folders[at], |_, object| object.value += 1),
            8 => self.change(&mut folders[at], |_, object| object.version += 1),
            9 => self.change(&mut folders[at], |builder, object| {
                object.namespace = object.namespace.as_ref().map(|_| builder.namespace());
            }),
            10 => self.change(&mut folders[at], |_, object| {
                object.opt_out = if object.opt_out.is_some() { None } else { Some(OPT_OUTS[0]) };
            }),
            11..=14 => {
                let to = (at + 1 + self.dice.below((folders.len() - 1).max(1))) % folders.len();
                if let Some(object) = self.remove_random(&mut folders[at]) {
                    let moved = self.adapt(object, &kustomizations[to], &folders[to]);
                    folders[to].objects.push(moved);
                }
            }
            15..=18 => self.change_generators(of, &mut folders[at]),
            19 if folders[at].namespace.is_some() => folders[at].namespace = Some(self.namespace()),
            19 | 20 => folders[at].prefix = if self.dice.chance(50) { None } else { Some("new-".to_owned()) },
            21 => folders[at].objects.clear(),
            22 => folders[at].layout = if folders[at].layout == Layout::Plain { Layout::Overlay } else { Layout::File },
            _ => folders[at].annotation = Some("{kustomize.toolkit.fluxcd.io/prune: disabled}"),
        }
    }

    /// Adapts `object` to `folder`, which the Kustomization `of` builds. Sets the namespace of the object if it has
    /// none. Replaces a Namespace with a ConfigMap if kustomize would rename the Namespace.
    fn adapt(&mut self, object: Object, of: &Kustomization, folder: &Folder) -> Object {
        let is_set = of.sets_namespace || folder.namespace.is_some();
        let template = if is_set && TEMPLATES[object.template].kind == "Namespace" { 0 } else { object.template };
        let namespace = Some(object.namespace.unwrap_or_else(|| self.namespace()));
        Object { template, namespace, ..object }
    }

    fn remove_random(&mut self, folder: &mut Folder) -> Option<Object> {
        let at = self.dice.below(folder.objects.len().max(1));
        (at < folder.objects.len()).then(|| folder.objects.remove(at))
    }

    fn change(&mut self, folder: &mut Folder, how: impl FnOnce(&mut Self, &mut Object)) {
        let at = self.dice.below(folder.objects.len().max(1));
        if let Some(object) = folder.objects.get_mut(at) {
            how(self, object);
        }
    }

    fn change_generators(&mut self, of: &Kustomization, folder: &mut Folder) {
        let at = if self.dice.chance(25) { usize::MAX } else { self.dice.below(folder.generators.len().max(1)) };
        match (folder.generators.get_mut(at), self.dice.below(6)) {
            (Some(_), 0) => drop(folder.generators.remove(at)),
            (Some(generator), 1) => generator.hashed = !generator.hashed,
            (Some(generator), _) => generator.value += 1,
            (None, _) => {
                let generator = self.generator(of, folder);
                folder.generators.extend(generator);
            }
        }
    }
}

fn rename(builder: &mut PairBuilder<'_>, name: &str) -> String {
    builder.names += 1;
    format!("{name}-r{}", builder.names)
}
