//! A generated pair of revisions: Kustomizations of one source, their folders before and after, and changes of live objects.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::kinds::TEMPLATES;

/// Kustomizations with two revisions of their source.
pub struct Pair {
    /// The name, which is that of its namespace.
    pub name: String,
    /// The Kustomizations. Each builds the folder with its index.
    pub kustomizations: Vec<Kustomization>,
    /// The folders of the first revision.
    pub before: Vec<Folder>,
    /// The folders of the second revision.
    pub after: Vec<Folder>,
    /// What is done to live objects between both.
    pub edits: Vec<(u64, Edit)>,
}

/// A Kustomization.
pub struct Kustomization {
    /// The fields of the spec besides path, source and intervals.
    pub spec: Vec<String>,
    /// The indexes of the Kustomizations that it waits for.
    pub depends_on: Vec<usize>,
    /// Whether the spec sets the namespace of all objects.
    pub sets_namespace: bool,
}

/// The folder of a Kustomization in one revision.
#[derive(Clone)]
pub struct Folder {
    /// Its objects.
    pub objects: Vec<Object>,
    /// The generators in its kustomization file.
    pub generators: Vec<Generator>,
    /// `namespace` in the kustomization file.
    pub namespace: Option<String>,
    /// `namePrefix` in the kustomization file.
    pub prefix: Option<String>,
    /// `commonAnnotations` in the kustomization file.
    pub annotation: Option<&'static str>,
    /// How the objects are written into files.
    pub layout: Layout,
    /// Whether the folder can be built.
    pub state: State,
}

/// An object.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// The index of its template.
    pub template: usize,
    /// The name.
    pub name: String,
    /// The namespace in the manifest.
    pub namespace: Option<String>,
    /// A number in its content.
    pub value: u64,
    /// The index of its API version.
    pub version: usize,
    /// A label or annotation that affects pruning: `labels` or `annotations`, and the entry.
    pub opt_out: Option<(&'static str, &'static str)>,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Clone, PartialEq, Eq)]
pub struct Generator {
    /// Whether it generates a Secret.
    pub secret: bool,
    /// The name without the hash.
    pub name: String,
    /// A number in its content.
    pub value: u64,
    /// Whether the name gets a hash.
    pub hashed: bool,
}

/// How the objects of a folder are written into files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A file for each object, without a kustomization file.
    Plain,
    /// A kustomization file that names a file for each object.
    File,
    /// A kustomization file that names another folder, which has the objects.
    Overlay,
    /// A kustomization file that names one file with an object of the kind List.
    List,
}

/// Whether a folder can be built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can.
    Builds,
    /// It does not exist.
    Missing,
    /// Its kustomization file names a file that does not exist.
    Broken,
}

/// A change of a live object between the revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Sets a label or an annotation: `labels` or `annotations`, key, value.
    Set(&'static str, &'static str, &'static str),
    /// Removes the labels that name the owner.
    Disown,
    /// Deletes it.
    Delete,
}

/// Files by path.
pub type Files = Vec<(String, String)>;

impl Folder {
    /// Removes objects of the same kind and name as an earlier one.
    pub fn drop_duplicates(&mut self) {
        let mut seen = HashSet::new();
        self.objects.retain(|object| seen.insert((object.template, object.name.clone())));
    }

    /// Returns whether its kustomization file changes objects, so that it must have one.
    fn needs_file(&self) -> bool {
        let is_empty = self.generators.is_empty() && self.namespace.is_none() && self.prefix.is_none();
        !is_empty || self.annotation.is_some() || self.state == State::Broken
    }

    /// Returns the files of the folder `kN`.
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

    /// Returns the fields of the kustomization file besides `resources`.
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
    /// Returns the manifest.
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
    /// Returns the files of a revision.
    pub fn files(&self, folders: &[Folder]) -> Files {
        let of_folders = folders.iter().enumerate().flat_map(|(number, folder)| folder.files(number));
        of_folders.chain([("README.md".to_owned(), "a fleet\n".to_owned())]).collect()
    }

    /// Returns the names in manifests of the objects that Flux does not apply, or only creates.
    pub fn unapplied(&self) -> Vec<&str> {
        let objects = self.after.iter().flat_map(|folder| &folder.objects);
        let is_unapplied = |object: &&Object| {
            object.opt_out.is_some_and(|(_, entry)| entry.contains("reconcile") || entry.contains("ssa"))
        };
        objects.filter(is_unapplied).map(|object| object.name.as_str()).collect()
    }

    /// Returns the Kustomizations with their source, as manifests.
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
