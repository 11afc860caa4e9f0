//! Defines a pair of revisions of one Flux source. The pair consists of the Kustomizations that use the source, their
//! folders in both revisions, and changes of live objects between the revisions.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::kinds::TEMPLATES;

/// The Kustomizations that use one Flux source, and two revisions of this source.
pub struct Pair {
    /// The name of this pair of revisions. The first namespace of the pair has the same name.
    pub name: String,
    /// The Kustomizations. Each one builds the folder with the same index in `before` and `after`.
    pub kustomizations: Vec<Kustomization>,
    /// The folders of the first revision.
    pub before: Vec<Folder>,
    /// The folders of the second revision.
    pub after: Vec<Folder>,
    /// Changes of live objects between the revisions. Each entry contains a number and a change. The number selects the
    /// object to change from the objects that Flux has applied.
    pub edits: Vec<(u64, Edit)>,
}

/// A Flux Kustomization.
pub struct Kustomization {
    /// The lines of `spec` that the test generates for this Kustomization. The other lines are the same for all
    /// Kustomizations.
    pub spec: Vec<String>,
    /// The indexes of the Kustomizations in `dependsOn`.
    pub depends_on: Vec<usize>,
    /// Whether `spec` contains `targetNamespace`.
    pub sets_namespace: bool,
}

/// The folder of a Kustomization in one revision.
#[derive(Clone)]
pub struct Folder {
    pub objects: Vec<Object>,
    /// The generators in the kustomization file of the folder.
    pub generators: Vec<Generator>,
    /// The field `namespace` of the kustomization file.
    pub namespace: Option<String>,
    /// The field `namePrefix` of the kustomization file.
    pub prefix: Option<String>,
    /// The field `commonAnnotations` of the kustomization file.
    pub annotation: Option<&'static str>,
    pub layout: Layout,
    pub state: State,
}

/// A Kubernetes object in a folder.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// The index of the object's template in [`TEMPLATES`].
    pub template: usize,
    pub name: String,
    /// The namespace in the manifest. Manifests of cluster-scoped kinds do not contain it.
    pub namespace: Option<String>,
    /// A number in the manifest. Changing it changes the content of the object.
    pub value: u64,
    /// The index of the object's API version in the list of versions that the template has.
    pub version: usize,
    /// A label or annotation that tells Flux whether to prune or update the object. The first string is the name of the
    /// field, `labels` or `annotations`. The second string is the label or annotation, with key and value.
    pub opt_out: Option<(&'static str, &'static str)>,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Clone, PartialEq, Eq)]
pub struct Generator {
    /// Whether the generator creates a Secret, instead of a ConfigMap.
    pub secret: bool,
    /// The name without the hash suffix.
    pub name: String,
    /// A number in the generated data. The second revision may increase it, so that the data changes.
    pub value: u64,
    /// Whether kustomize adds a hash suffix to the name.
    pub hashed: bool,
}

/// How the objects of a folder are written into files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One file for each object, without a kustomization file.
    Plain,
    /// A kustomization file that lists one file for each object.
    File,
    /// A kustomization file that refers to another folder, which contains the objects.
    Overlay,
    /// A kustomization file that refers to one file, which contains all objects in a List.
    List,
}

/// Whether a folder can be built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Builds,
    /// The folder does not exist.
    Missing,
    /// The kustomization file refers to a file that does not exist.
    Broken,
}

/// A change of a live object between two revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Sets a label or annotation. The strings are the field (`labels` or `annotations`), the key, and the value.
    Set(&'static str, &'static str, &'static str),
    /// Removes the labels that name the Flux Kustomization which applied the object.
    RemoveOwner,
    Delete,
}

/// Files as pairs of path and content.
pub type Files = Vec<(String, String)>;

impl Folder {
    /// Removes objects with the same kind and name as an earlier object.
    pub fn drop_duplicates(&mut self) {
        let mut seen = HashSet::new();
        self.objects.retain(|object| seen.insert((object.template, object.name.clone())));
    }

    /// Returns whether the folder needs a kustomization file, for example for generators.
    fn needs_file(&self) -> bool {
        let is_empty = self.generators.is_empty() && self.namespace.is_none() && self.prefix.is_none();
        !is_empty || self.annotation.is_some() || self.state == State::Broken
    }

    /// Returns the files of the folder `k<number>`, and of its base if the layout is [`Layout::Overlay`].
    pub fn files(&self, number: usize) -> Files {
        let top = format!("k{number}");
        match self.layout {
            _ if self.state == State::Missing => Vec::new(),
            Layout::Plain if !self.needs_file() => {
                let mut files = self.manifests(&top);
                files.push((format!("{top}/README.md"), "plain manifests\n".to_owned()));
                files
            }
            Layout::Plain | Layout::File => self.with_file(&top, self.manifests(&top)),
            Layout::Overlay => {
                let base = format!("base{number}");
                let mut files = self.manifests(&base);
                let names: String = files.iter().map(|(path, _)| format!("- {}\n", file_name(path))).collect();
                let listed =
                    if names.is_empty() { "resources: []\n".to_owned() } else { format!("resources:\n{names}") };
                files.push((format!("{base}/kustomization.yaml"), listed));
                let missing = if self.state == State::Broken { "- missing.yaml\n" } else { "" };
                let kustomization = format!("resources:\n- ../{base}\n{missing}{}", self.settings());
                files.push((format!("{top}/kustomization.yaml"), kustomization));
                files
            }
            Layout::List => self.with_file(&top, vec![(format!("{top}/list.yaml"), self.list())]),
        }
    }

    fn with_file(&self, top: &str, mut files: Files) -> Files {
        let mut resources: String = files.iter().map(|(path, _)| format!("- {}\n", file_name(path))).collect();
        if self.state == State::Broken {
            resources += "- missing.yaml\n";
        }
        let listed =
            if resources.is_empty() { "resources: []\n".to_owned() } else { format!("resources:\n{resources}") };
        files.push((format!("{top}/kustomization.yaml"), listed + &self.settings()));
        files
    }

    fn manifests(&self, folder: &str) -> Files {
        let file = |(index, object): (usize, &Object)| (format!("{folder}/object-{index}.yaml"), object.manifest());
        self.objects.iter().enumerate().map(file).collect()
    }

    fn list(&self) -> String {
        let item = |object: &Object| {
            let manifest = object.manifest();
            let indented = manifest.lines().enumerate().map(|(at, line)| match at {
                0 => format!("- {line}\n"),
                _ => format!("  {line}\n"),
            });
            indented.collect::<String>()
        };
        let items: String = self.objects.iter().map(item).collect();
        let items = if items.is_empty() { " []\n".to_owned() } else { format!("\n{items}") };
        format!("apiVersion: v1\nkind: List\nitems:{items}")
    }

    /// Returns the YAML fields of the kustomization file, except `resources`.
    fn settings(&self) -> String {
        let mut text = String::new();
        let mut field = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key}: {value}");
            }
        };
        field("namespace", self.namespace.as_deref());
        field("namePrefix", self.prefix.as_deref());
        field("commonAnnotations", self.annotation);
        for (secret, key) in [(false, "configMapGenerator"), (true, "secretGenerator")] {
            let own: String = self.generators.iter().filter(|one| one.secret == secret).map(Generator::entry).collect();
            if !own.is_empty() {
                let _ = write!(text, "{key}:\n{own}");
            }
        }
        text
    }
}

impl Generator {
    fn entry(&self) -> String {
        let Self { name, value, hashed, .. } = self;
        let options = if *hashed { "" } else { "  options: {disableNameSuffixHash: true}\n" };
        format!("- name: {name}\n  literals: [key=v{value}]\n{options}")
    }
}

impl Object {
    /// Returns the manifest of the object as YAML.
    pub fn manifest(&self) -> String {
        let template = &TEMPLATES[self.template];
        let (api_version, kind) = (template.api_version(self.version), template.kind);
        let mut text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {}\n", self.name);
        if let Some(namespace) = self.namespace.as_ref().filter(|_| template.namespaced) {
            let _ = writeln!(text, "  namespace: {namespace}");
        }
        let (labels, annotations) = match self.opt_out {
            Some(("labels", entry)) => (format!("  labels: {{{entry}}}\n"), String::new()),
            Some((_, entry)) => (String::new(), format!(", {entry}")),
            None => (String::new(), String::new()),
        };
        let _ = writeln!(text, "{labels}  annotations: {{example.org/value: '{}'{annotations}}}", self.value);
        text + &template.body(self.value)
    }
}

impl Pair {
    /// Returns all files of a revision. `folders` are the folders in this revision.
    pub fn files(&self, folders: &[Folder]) -> Files {
        let of_folders = folders.iter().enumerate().flat_map(|(number, folder)| folder.files(number));
        of_folders.chain([("README.md".to_owned(), "a fleet\n".to_owned())]).collect()
    }

    /// Returns the names of objects in the second revision that Flux does not update: a label or annotation tells Flux
    /// to ignore the object, or only to create it.
    pub fn unapplied(&self) -> Vec<&str> {
        let objects = self.after.iter().flat_map(|folder| &folder.objects);
        let is_unapplied = |object: &&Object| {
            object.opt_out.is_some_and(|(_, entry)| entry.contains("reconcile") || entry.contains("ssa"))
        };
        objects.filter(is_unapplied).map(|object| object.name.as_str()).collect()
    }

    /// Returns the manifests of the Kustomizations, of their GitRepository, and of a ConfigMap with variables. `url` is
    /// the URL of the repository.
    pub fn manifests(&self, url: &str) -> Vec<String> {
        let name = &self.name;
        let source = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: fleet, namespace: {name}}}\nspec: \
             {{interval: 1h, url: \"{url}\", ref: {{branch: main}}}}\n"
        );
        let variables = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: variables, namespace: {name}}}\ndata: {{region: eu}}\n"
        );
        let each = self.kustomizations.iter().enumerate().map(|(number, one)| one.manifest(name, number));
        [variables, source].into_iter().chain(each).collect()
    }
}

impl Kustomization {
    fn manifest(&self, namespace: &str, number: usize) -> String {
        let mut spec: String = self.spec.iter().map(|line| format!("  {line}\n")).collect();
        if !self.depends_on.is_empty() {
            let names: Vec<_> = self.depends_on.iter().map(|other| format!("{{name: k{other}}}")).collect();
            let _ = writeln!(spec, "  dependsOn: [{}]", names.join(", "));
        }
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: k{number}, namespace: \
             {namespace}}}\nspec:\n  interval: 1h\n  retryInterval: 2s\n  timeout: 30s\n  path: ./k{number}\n  sourceRef: {{kind: \
             GitRepository, name: fleet}}\n{spec}"
        )
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
