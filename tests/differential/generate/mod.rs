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
const PLACES: &[&str] = &[
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
pub struct Forest {
    folders: Vec<Folder>,
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
}

/// Returns a random tree.
pub fn tree(dice: &mut Dice) -> Case {
    let mut forest = Forest::default();
    for path in places(dice) {
        let folder = Folder::random(dice, &mut forest, path);
        forest.folders.push(folder);
    }
    let faults = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2][dice.below(10)];
    (0..faults).for_each(|_| faults::mistake(dice, &mut forest));
    let built = if dice.chance(8) { dice.below(forest.folders.len()) } else { forest.folders.len() - 1 };
    let build = forest.folders[built].path.to_owned();
    let unrestricted = dice.chance(10);
    for folder in std::mem::take(&mut forest.folders) {
        let text = folder.text(dice);
        forest.files.insert(format!("{}/{}", folder.path, folder.file_name), text);
    }
    let mut case = Case { name: String::new(), files: forest.files, links: forest.links, build, unrestricted };
    if dice.chance(5) {
        crate::damage::damage(dice, &mut case);
    }
    case
}

fn places(dice: &mut Dice) -> Vec<&'static str> {
    let count = 1 + dice.below(MAX_FOLDERS);
    let mut places: Vec<&str> = Vec::new();
    while places.len() < count {
        let first = dice.below(PLACES.len());
        let free = (0..PLACES.len()).map(|step| PLACES[(first + step) % PLACES.len()]);
        places.extend(free.into_iter().find(|place| !places.contains(place)));
    }
    places
}

/// Returns the relative path from the folder `from` to the file or folder `to`.
pub fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.split('/').collect(), to.split('/').collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let steps = from[common..].iter().map(|_| "..").chain(to[common..].iter().copied());
    let path = steps.collect::<Vec<_>>().join("/");
    if path.is_empty() { ".".to_owned() } else { path }
}
