//! Generates random trees. Their folders refer to one another in realistic layouts, and the kustomization files contain
//! random fields. Some trees contain mistakes.

mod content;
mod faults;
mod fields;
mod folder;
mod objects;
mod patches;
mod plugins;
mod yaml;

use std::collections::BTreeMap;

use crate::case::Case;
use crate::dice::Dice;
use folder::Folder;

/// Maximum number of folders in a tree.
const MAX_FOLDERS: usize = 6;
const FOLDER_PATHS: &[&str] = &[
    "base",
    "app",
    "comp",
    "overlays/dev",
    "components/db",
    "base-2",
    "app/sub",
    "components/web",
    "z",
    "overlays/prod",
    "c..d",
    "deep/er/still",
];

/// A tree under construction.
#[derive(Default)]
pub struct TreeBuilder {
    folders: Vec<Folder>,
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
}

/// Returns a random tree.
pub fn tree(dice: &mut Dice) -> Case {
    let mut tree = TreeBuilder::default();
    for path in folder_paths(dice) {
        let folder = Folder::random(dice, &mut tree, path);
        tree.folders.push(folder);
    }
    let faults = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2][dice.below(10)];
    (0..faults).for_each(|_| faults::add_mistake(dice, &mut tree));
    let built = if dice.chance(8) { dice.below(tree.folders.len()) } else { tree.folders.len() - 1 };
    let build = tree.folders[built].path.to_owned();
    let unrestricted = dice.chance(10);
    for folder in std::mem::take(&mut tree.folders) {
        let text = folder.text(dice);
        tree.files.insert(format!("{}/{}", folder.path, folder.file_name), text);
    }
    let mut case = Case { name: String::new(), files: tree.files, links: tree.links, build, unrestricted };
    if dice.chance(5) {
        crate::damage::mutate(dice, &mut case);
    }
    case
}

fn folder_paths(dice: &mut Dice) -> Vec<&'static str> {
    let count = 1 + dice.below(MAX_FOLDERS);
    let mut folder_paths: Vec<&str> = Vec::new();
    while folder_paths.len() < count {
        let first = dice.below(FOLDER_PATHS.len());
        let free = (0..FOLDER_PATHS.len()).map(|step| FOLDER_PATHS[(first + step) % FOLDER_PATHS.len()]);
        folder_paths.extend(free.into_iter().find(|place| !folder_paths.contains(place)));
    }
    folder_paths
}

/// Returns the relative path from the folder `from` to the file or folder `to`.
pub fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.split('/').collect(), to.split('/').collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let steps = from[common..].iter().map(|_| "..").chain(to[common..].iter().copied());
    let path = steps.collect::<Vec<_>>().join("/");
    if path.is_empty() { ".".to_owned() } else { path }
}
