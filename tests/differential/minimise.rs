//! Minimizes a kustomize tree for which Portcullis and kustomize have different results.

use crate::case::Case;

/// Maximum number of smaller trees that are tried. Many of them need a build with kustomize.
const MAX_BUILDS: usize = 600;

/// Removes files, links and lines from a case, as long as `is_still_wrong` returns true for the remaining case. Returns
/// the smallest case that was found.
pub fn minimise(case: &Case, mut is_still_wrong: impl FnMut(&Case) -> bool) -> Case {
    let (mut best, mut builds) = (case.clone(), 0);
    let mut attempt = |best: &mut Case, smaller: Case| {
        builds += 1;
        let better = builds <= MAX_BUILDS && smaller != *best && is_still_wrong(&smaller);
        if better {
            *best = smaller;
        }
        better
    };
    loop {
        let before = best.clone();
        for path in before.files.keys().chain(before.links.keys()) {
            let mut smaller = best.clone();
            smaller.files.remove(path);
            smaller.links.remove(path);
            attempt(&mut best, smaller);
        }
        for path in before.files.keys() {
            remove_lines(&mut best, path, &mut attempt);
        }
        let restricted = Case { unrestricted: false, ..best.clone() };
        attempt(&mut best, restricted);
        if best == before {
            return best;
        }
    }
}

/// Tries to remove groups of adjacent lines from a file, the largest groups first. `attempt` receives the smaller case.
/// If Portcullis and kustomize still have different results for it, `attempt` replaces `best` with it and returns true.
fn remove_lines(best: &mut Case, path: &str, attempt: &mut impl FnMut(&mut Case, Case) -> bool) {
    let count = |best: &Case| best.files.get(path).map_or(0, |text| text.lines().count());
    let mut length = count(best);
    while length > 0 {
        let mut at = 0;
        while at < count(best) {
            let mut smaller = best.clone();
            if let Some(text) = smaller.files.get_mut(path) {
                let kept = text.lines().enumerate().filter(|(number, _)| !(at..at + length).contains(number));
                *text = kept.map(|(_, line)| format!("{line}\n")).collect();
            }
            if !attempt(best, smaller) {
                at += length;
            }
        }
        length /= 2;
    }
}
