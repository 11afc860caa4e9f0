//! Random mutations of the files and the build settings of a tree.

use crate::case::Case;
use crate::dice::Dice;

type Mutation = fn(&mut Dice, &mut Case) -> Option<()>;

const MUTATIONS: &[Mutation] = &[
    drop_file,
    rename_file,
    rename_list,
    change_kind,
    truncate_file,
    repeat_line,
    drop_line,
    swap_lines,
    change_word,
    insert_token,
    overwrite_file,
    build_another_folder,
    toggle_restrictor,
];
const WORDS: &[(&str, &str)] = &[
    ("Kustomization", "Component"),
    ("Component", "Kustomization"),
    ("v1alpha1", "v1beta1"),
    ("v1beta1", "v1alpha1"),
    ("ConfigMap", "Secret"),
    ("ConfigMap", "Deployment"),
    ("ConfigMap", "Namespace"),
    ("../", "./"),
    ("../", "../../"),
    ("name: ", "name: new-"),
    ("name: ", "name: 1 # "),
    ("namePrefix", "nameSuffix"),
    ("merge", "replace"),
    ("merge", "create"),
    (": ", ":  "),
    (": ", ":"),
    ("- ", "-"),
    ("[", "[ "),
    ("]", ",]"),
    ("metadata:", "metadata: {}\nx:"),
    ("v1", "v2"),
    ("x", "y"),
    ("a", "b"),
];
/// Characters and tokens with a meaning in YAML. go-yaml and the parser of Portcullis might interpret some of them
/// differently.
const TOKENS: &[&str] = &[
    " ",
    "\n",
    "\t",
    "\r",
    ":",
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "#",
    " #",
    "\"",
    "'",
    "|",
    ">",
    "&a ",
    "*a ",
    "!",
    "!!str ",
    "!!null ",
    "!foo ",
    "? ",
    "?",
    "---\n",
    "...\n",
    "%",
    "%YAML 1.2\n---\n",
    "@",
    "\\",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "~",
    "null",
    "1",
    "<<: ",
    "<<",
];
const LISTS: &[&str] = &[
    "resources",
    "components",
    "bases",
    "transformers",
    "generators",
    "patchesStrategicMerge",
    "crds",
    "configurations",
];

/// Applies one random mutation. Tries up to four mutations; if none of them is applicable, leaves the case unchanged.
pub fn mutate(dice: &mut Dice, case: &mut Case) {
    for _ in 0..4 {
        let mutation = MUTATIONS[dice.below(MUTATIONS.len())];
        if mutation(dice, case).is_some() {
            return;
        }
    }
}

fn some_path(dice: &mut Dice, case: &Case) -> Option<String> {
    let paths: Vec<&String> = case.files.keys().collect();
    dice.any(&paths).map(|path| (*path).clone())
}

fn edit(dice: &mut Dice, case: &mut Case, edit: impl Fn(&mut Dice, &mut Vec<String>) -> Option<()>) -> Option<()> {
    let path = some_path(dice, case)?;
    let content = case.files.get_mut(&path)?;
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    edit(dice, &mut lines)?;
    *content = lines.iter().map(|line| format!("{line}\n")).collect();
    Some(())
}

fn drop_file(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let path = some_path(dice, case)?;
    case.files.remove(&path).map(|_| ())
}

fn rename_file(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let path = some_path(dice, case)?;
    let content = case.files.remove(&path)?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let name =
        dice.pick(&["kustomization.yaml", "kustomization.yml", "Kustomization", "a.yaml", "other/kustomization.yaml"]);
    case.files.insert(format!("{folder}/{name}").trim_start_matches('/').to_owned(), content);
    Some(())
}

/// Renames a list field of a kustomization file to another list field. Its entries then belong to the other field.
fn rename_list(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let (from, to) = (dice.pick(LISTS), dice.pick(LISTS));
    edit(dice, case, |_, lines| {
        let line = lines.iter_mut().find(|line| line.starts_with(&format!("{from}:")))?;
        *line = line.replacen(from, to, 1);
        Some(())
    })
}

fn change_kind(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let kind = dice.pick(&["Component", "Kustomization", "List", "ConfigMap", "Namespace", "Deployment", "component"]);
    edit(dice, case, |_, lines| {
        let line = lines.iter_mut().find(|line| line.starts_with("kind:"))?;
        *line = format!("kind: {kind}");
        Some(())
    })
}

fn truncate_file(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let path = some_path(dice, case)?;
    let content = case.files.get_mut(&path)?;
    let ends: Vec<usize> = content.char_indices().map(|(at, _)| at).collect();
    content.truncate(*dice.any(&ends)?);
    Some(())
}

fn repeat_line(dice: &mut Dice, case: &mut Case) -> Option<()> {
    edit(dice, case, |dice, lines| {
        let line = dice.any(lines)?.clone();
        lines.insert(dice.below(lines.len() + 1), line);
        Some(())
    })
}

fn drop_line(dice: &mut Dice, case: &mut Case) -> Option<()> {
    edit(dice, case, |dice, lines| (!lines.is_empty()).then(|| drop(lines.remove(dice.below(lines.len())))))
}

fn swap_lines(dice: &mut Dice, case: &mut Case) -> Option<()> {
    edit(dice, case, |dice, lines| {
        let count = lines.len();
        (count > 1).then(|| lines.swap(dice.below(count), dice.below(count)))
    })
}

fn change_word(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let (from, to) = WORDS[dice.below(WORDS.len())];
    let path = some_path(dice, case)?;
    let content = case.files.get_mut(&path)?;
    let positions: Vec<usize> = content.match_indices(from).map(|(at, _)| at).collect();
    let at = *dice.any(&positions)?;
    content.replace_range(at..at + from.len(), to);
    Some(())
}

fn insert_token(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let path = some_path(dice, case)?;
    let content = case.files.get_mut(&path)?;
    let positions: Vec<usize> = content.char_indices().map(|(at, _)| at).chain([content.len()]).collect();
    content.insert_str(*dice.any(&positions)?, dice.pick(TOKENS));
    Some(())
}

/// Replaces the content of one file with the content of another file.
fn overwrite_file(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let (from, to) = (some_path(dice, case)?, some_path(dice, case)?);
    let content = case.files.get(&from)?.clone();
    case.files.insert(to, content);
    Some(())
}

fn build_another_folder(dice: &mut Dice, case: &mut Case) -> Option<()> {
    let path = some_path(dice, case)?;
    case.build = path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned();
    Some(())
}

fn toggle_restrictor(_: &mut Dice, case: &mut Case) -> Option<()> {
    case.unrestricted = !case.unrestricted;
    Some(())
}
