//! Minimises a tree while the disagreement stays the same.

use crate::case::Case;

/// How many trees are tried: each that the analysis still judges so costs a build.
const MAX_BUILDS: usize = 600;

/// Takes away what can be taken away so that `still` holds.
pub fn minimise(case: &Case, mut still: impl FnMut(&Case) -> bool) -> Case {
    let (mut best, mut builds) = (case.clone(), 0);
    let mut attempt = |best: &mut Case, smaller: Case| {
        builds += 1;
        let better = builds <= MAX_BUILDS && smaller != *best && still(&smaller);
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
            lines(&mut best, path, &mut attempt);
        }
        let restricted = Case { unrestricted: false, ..best.clone() };
        attempt(&mut best, restricted);
        if best == before {
            return best;
        }
    }
}

/// Takes runs of lines out of a file, long ones first.
fn lines(best: &mut Case, path: &str, attempt: &mut impl FnMut(&mut Case, Case) -> bool) {
    let count = |best: &Case| best.files.get(path).map_or(0, |text| text.lines().count());
    let mut run = count(best);
    while run > 0 {
        let mut at = 0;
        while at < count(best) {
            let mut smaller = best.clone();
            if let Some(text) = smaller.files.get_mut(path) {
                let kept = text.lines().enumerate().filter(|(number, _)| !(at..at + run).contains(number));
                *text = kept.map(|(_, line)| format!("{line}\n")).collect();
            }
            if !attempt(best, smaller) {
                at += run;
            }
        }
        run /= 2;
    }
}
