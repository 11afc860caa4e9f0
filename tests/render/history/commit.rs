//! Reads the files of a git commit, and finds the kustomization roots in these files. For each root, determines which
//! files and folders kustomize can read to build the root. This code does not use the build engine of Portcullis.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use portcullis::yaml::{self, Limits};
use serde_json::Value;

const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The fields of a kustomization file that accept folders.
const FOLDERS: [&str; 6] = ["resources", "bases", "components", "generators", "transformers", "validators"];
const MAX_LINKS: usize = 40;

/// A git repository.
pub struct Repository {
    /// The path of the folder with the git objects.
    pub git_dir: PathBuf,
    /// The targets of symbolic links, by the hash of the blob.
    links: HashMap<String, String>,
    /// The parsed kustomization files, by the hash of the blob.
    parsed: HashMap<String, Rc<Kustomization>>,
}

/// The parts of a kustomization file that can refer to files.
#[derive(Default)]
struct Kustomization {
    is_component: bool,
    /// The entries of `resources` and of the other fields in [`FOLDERS`]. An entry can name a file or a folder.
    entries: Vec<String>,
    /// All single-line strings in the file.
    texts: Vec<String>,
}

/// The files, symbolic links and folders of a commit.
pub struct Commit {
    pub id: String,
    /// The git mode and the hash of each file and folder, by path. The path of the top folder is empty.
    nodes: BTreeMap<String, (String, String)>,
    /// The targets of symbolic links, by path.
    links: HashMap<String, String>,
    kustomizations: BTreeMap<String, Vec<Rc<Kustomization>>>,
}

impl Repository {
    pub fn new(folder: &Path) -> Self {
        let git_dir = [folder.join(".git"), folder.to_owned()].into_iter().find(|dir| dir.exists());
        let git_dir = git_dir.expect("the repository exists");
        Self { git_dir, links: HashMap::new(), parsed: HashMap::new() }
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").arg("--git-dir").arg(&self.git_dir).args(args).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the ids of the commit `newest` and of at most `commits` of its ancestors, the oldest first. Follows only
    /// the first parent of each commit.
    pub fn history(&self, newest: &str, commits: usize) -> Vec<String> {
        let list = self.git(&["log", "--first-parent", "--format=%H", "-n", &(commits + 1).to_string(), newest]);
        let mut list: Vec<_> = list.lines().map(str::to_owned).collect();
        list.reverse();
        list
    }

    pub fn commit(&mut self, id: &str) -> Commit {
        let root = self.git(&["rev-parse", &format!("{id}^{{tree}}")]).trim().to_owned();
        let mut nodes = BTreeMap::from([(String::new(), ("040000".to_owned(), root))]);
        for line in self.git(&["ls-tree", "-r", "-t", "-z", "--full-tree", id]).split_terminator('\0') {
            let (about, path) = line.split_once('\t').expect("an entry has a path");
            let mut about = about.split(' ');
            let (mode, _, hash) = (about.next(), about.next(), about.next());
            nodes.insert(path.to_owned(), (mode.unwrap_or_default().to_owned(), hash.unwrap_or_default().to_owned()));
        }
        let links = nodes.iter().filter(|(_, (mode, _))| mode == "120000");
        let links = links.map(|(path, (_, hash))| (path.clone(), self.link(hash))).collect();
        let mut kustomizations = BTreeMap::<String, Vec<_>>::new();
        for (path, (mode, hash)) in nodes.iter().filter(|(path, _)| NAMES.contains(&name(path))) {
            if mode.starts_with("100") {
                kustomizations.entry(parent(path).to_owned()).or_default().push(self.kustomization(hash));
            }
        }
        Commit { id: id.to_owned(), nodes, links, kustomizations }
    }

    fn link(&mut self, hash: &str) -> String {
        if let Some(target) = self.links.get(hash) {
            return target.clone();
        }
        let target = self.git(&["cat-file", "blob", hash]);
        self.links.insert(hash.to_owned(), target.clone());
        target
    }

    fn kustomization(&mut self, hash: &str) -> Rc<Kustomization> {
        if let Some(parsed) = self.parsed.get(hash) {
            return Rc::clone(parsed);
        }
        let text = self.git(&["cat-file", "blob", hash]);
        let document = yaml::documents(&text, &Limits::default()).next().and_then(Result::ok);
        let parsed = Rc::new(document.map(|document| Kustomization::of(&document.value)).unwrap_or_default());
        self.parsed.insert(hash.to_owned(), Rc::clone(&parsed));
        parsed
    }
}

impl Kustomization {
    fn of(file: &Value) -> Self {
        let mut texts = Vec::new();
        collect_texts(file, &mut texts);
        let entries = FOLDERS.iter().filter_map(|field| file.get(field)?.as_array()).flatten();
        let entries = entries.filter_map(|entry| entry.as_str().map(str::to_owned)).collect();
        Self { is_component: file.get("kind").is_some_and(|kind| kind == "Component"), entries, texts }
    }
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.contains('\n') => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(map) => map.values().for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}

impl Commit {
    /// Returns the roots: the folders that have a kustomization file, and to which no other kustomization refers.
    /// Leaves out Components, hidden folders and templates of Helm charts.
    pub fn roots(&self) -> BTreeSet<String> {
        let folders: BTreeSet<&String> = self.kustomizations.keys().filter(|folder| !self.is_ignored(folder)).collect();
        let references = |folder: &&String| {
            let entries = self.kustomizations[*folder].iter().flat_map(|file| &file.entries);
            entries.filter_map(|entry| self.resolve(folder, entry)).collect::<Vec<_>>()
        };
        let referred: BTreeSet<String> = folders.iter().flat_map(references).collect();
        let is_component = |folder: &String| self.kustomizations[folder].first().is_some_and(|file| file.is_component);
        let is_root = |folder: &&String| !referred.contains(*folder) && !is_component(folder);
        folders.into_iter().filter(is_root).cloned().collect()
    }

    fn is_ignored(&self, folder: &str) -> bool {
        let is_template = |below: &str| {
            let chart = |prefix: &str| self.nodes.contains_key(join(prefix, "Chart.yaml").as_str());
            name(below) == "templates" && chart(parent(below))
        };
        let mut above = folder;
        while !above.is_empty() {
            if name(above).starts_with('.') || is_template(above) {
                return true;
            }
            above = parent(above);
        }
        false
    }

    /// Returns the path of the file or folder that an entry refers to, with symbolic links resolved. Returns `None` if
    /// the path does not exist in the commit.
    fn resolve(&self, folder: &str, entry: &str) -> Option<String> {
        let mut path = String::new();
        let mut pending: Vec<String> = format!("{folder}/{entry}").split('/').rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." if path.is_empty() => return None,
                ".." => path = parent(&path).to_owned(),
                part => path = join(&path, part),
            }
            if let Some(target) = self.links.get(&path) {
                links += 1;
                path = parent(&path).to_owned();
                pending.extend(target.split('/').rev().map(str::to_owned));
                if links > MAX_LINKS || target.starts_with('/') {
                    return None;
                }
            }
        }
        self.nodes.contains_key(&path).then_some(path)
    }

    /// Returns a key that identifies the content of all files that kustomize can read to build a root. The key contains
    /// the hash of the root's folder. It also contains the hashes of all files and folders to which a string in one of
    /// the kustomization files may refer, because kustomize loads no other files. If a symbolic link is in or above one
    /// of these folders, the key contains the hash of the whole commit.
    pub fn inputs(&self, root: &str) -> String {
        let (mut seen, mut pending) = (BTreeMap::new(), vec![root.to_owned()]);
        while let Some(path) = pending.pop() {
            let hash = self.nodes.get(&path).map_or("nothing", |(_, hash)| hash);
            if seen.insert(path.clone(), hash).is_some() {
                continue;
            }
            let texts = self.kustomizations.get(&path).into_iter().flatten().flat_map(|file| &file.texts);
            // The hash of a folder covers all files in it and in its subfolders.
            let is_separate = |entry: &String| !is_within(entry, &path) || self.kustomizations.contains_key(entry);
            pending.extend(texts.filter_map(|text| lexical(&path, text)).filter(is_separate));
        }
        let has_links = seen.keys().any(|path| {
            let is_above = |link: &String| is_within(path, link);
            self.links.keys().any(|link| is_within(link, path) || is_above(link))
        });
        if has_links {
            seen.insert(String::new(), &self.nodes[""].1);
        }
        seen.iter().fold(root.to_owned(), |key, (path, hash)| format!("{key}\n{path} {hash}"))
    }
}

/// Resolves `entry`, a path relative to `folder`, to a path relative to the root of the repository. Does not follow
/// symbolic links. Returns `None` if the resulting path is outside of the repository.
fn lexical(folder: &str, entry: &str) -> Option<String> {
    let mut path = folder.to_owned();
    for part in entry.split('/') {
        match part {
            "" | "." => {}
            ".." if path.is_empty() => return None,
            ".." => path = parent(&path).to_owned(),
            part => path = join(&path, part),
        }
    }
    Some(path)
}

fn is_within(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
