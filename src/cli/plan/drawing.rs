//! Formats the plan of a Flux Kustomization as an SVG drawing and as an HTML page. They show which objects Flux
//! deletes, moves, keeps and creates, and why.

use std::fmt::Write as _;

use super::super::page::{Page, escape};
use super::report::{Report, Row};
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED};

/// Maximum number of objects that a drawing lists for one action, such as `delete`, so that the drawing stays readable.
/// The others are only counted.
const MAX_DRAWN: usize = 40;
/// Maximum number of objects that an HTML page lists for one action, such as `delete`, so that browsers can load the
/// page quickly. The others are only counted.
const MAX_LISTED: usize = 1_000;
/// Maximum number of warnings that a drawing or an HTML page shows, so that the objects stay easy to find. The others
/// are only counted.
const MAX_WARNINGS: usize = 20;
/// Maximum length of the text of a row in a drawing, in characters, so that the drawing does not become too wide. A
/// longer text is cut, and the tooltip of the row shows the whole text.
const MAX_TEXT: usize = 140;

/// A heading in the SVG drawing or HTML page of a plan, and the actions whose objects are listed below this heading.
/// For example, the heading `Deletions` has the actions `delete` and `replace`, which remove objects from the cluster.
struct Group {
    title: &'static str,
    actions: &'static [&'static str],
    fill: &'static str,
    stroke: &'static str,
}

const GROUPS: [Group; 4] = [
    Group { title: "Deletions", actions: &["delete", "possible", "replace", "gone"], fill: PALE, stroke: RED },
    Group { title: "Moves", actions: &["move"], fill: BLUE, stroke: GREY },
    Group { title: "Kept", actions: &["keep", "orphan", "skip"], fill: PALE, stroke: GREY },
    Group { title: "Additions", actions: &["create", "take"], fill: GREEN, stroke: GREY },
];

impl Group {
    fn rows<'r>(&self, report: &'r Report) -> Vec<(&'static str, Vec<&'r Row>)> {
        let of = |action: &&'static str| report.rows.iter().filter(|row| row.action == *action).collect::<Vec<_>>();
        let all = self.actions.iter().map(|action| (*action, of(action)));
        all.filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// Returns the line with the number of objects that Flux applied before and applies again, such as
    /// `7 applied as before`. Only the group `Kept` has this line. Returns `None` for other groups, or if the number is
    /// zero.
    fn applied(&self, report: &Report) -> Option<String> {
        (self.title == "Kept" && report.applied > 0).then(|| format!("{} applied as before", report.applied))
    }
}

/// Returns the first `most` items, and a line with the number of the other items. The line is `None` if there are no
/// other items.
fn bounded<T>(items: &[T], most: usize) -> (&[T], Option<String>) {
    let shown = items.get(..most).unwrap_or(items);
    let left_out = items.len() - shown.len();
    (shown, (left_out > 0).then(|| format!("{left_out} more are not shown")))
}

/// Returns the error and the warnings as lines of the output. The error says why the folder of the Flux Kustomization
/// cannot be built. If there are more than `MAX_WARNINGS` warnings, the last line counts those that are not shown.
fn problems(report: &Report) -> Vec<String> {
    let broken = report.broken.iter().map(|why| format!("cannot be built, so Flux deletes nothing: {why}"));
    let (shown, more) = bounded(&report.warnings, MAX_WARNINGS);
    broken.chain(shown.iter().map(|warning| format!("warning: {warning}"))).chain(more).collect()
}

/// The rows of an SVG drawing, in which each row can have a parent row.
#[derive(Default)]
struct Outline(Vec<drawing::Row>);

impl Outline {
    /// Adds a row with the colors `fill` and `stroke` below the row with the index `parent`. If `parent` is `None`,
    /// adds the row at the top level. Returns the index of the new row.
    fn add(&mut self, parent: Option<usize>, text: &str, (fill, stroke): (&'static str, &'static str)) -> usize {
        let depth = parent.and_then(|parent| self.0.get(parent)).map_or(0, |parent| parent.depth + 1);
        let title = if text.chars().count() > MAX_TEXT { text.to_owned() } else { String::new() };
        let text = match title.is_empty() {
            true => text.to_owned(),
            false => text.chars().take(MAX_TEXT).chain(['…']).collect(),
        };
        self.0.push(drawing::Row { parent, depth, text, title, fill, stroke, is_round: false });
        self.0.len() - 1
    }
}

impl Report {
    /// Returns an SVG drawing of the plan, which shows what Flux does with each object.
    pub(super) fn svg(&self) -> String {
        let mut outline = Outline::default();
        let top = outline.add(None, &self.title, (BLUE, GREY));
        for problem in problems(self) {
            outline.add(Some(top), &problem, (PALE, RED));
        }
        for group in &GROUPS {
            let (rows, colours) = (group.rows(self), (group.fill, group.stroke));
            let applied = group.applied(self);
            if rows.is_empty() && applied.is_none() {
                continue;
            }
            let parent = outline.add(Some(top), group.title, colours);
            for (action, rows) in rows {
                let parent = outline.add(Some(parent), &format!("{action} {}", rows.len()), colours);
                let (shown, more) = bounded(&rows, MAX_DRAWN);
                let texts = shown.iter().map(|row| match &row.note {
                    Some(note) => format!("{}: {note}", row.subject()),
                    None => row.subject(),
                });
                for text in texts.chain(more) {
                    outline.add(Some(parent), &text, colours);
                }
            }
            if let Some(text) = applied {
                outline.add(Some(parent), &text, colours);
            }
        }
        drawing::outline(&outline.0)
    }

    /// Returns an HTML page that shows what Flux does with each object. The page has filters.
    pub(super) fn html(&self) -> String {
        let mut page = Page { title: self.title.clone(), label: "Actions", ..Page::default() };
        problems(self).iter().for_each(|problem| page.add_error(problem));
        if self.broken.is_some() {
            page.add_filters(&[]);
            return page.render();
        }
        let actions = GROUPS.iter().flat_map(|group| group.actions);
        page.add_filters(&actions.map(|action| (*action, self.count(action))).collect::<Vec<_>>());
        page.nav.push_str("<ul>\n");
        let _ = writeln!(page.main, "<p>{}</p>", escape(&self.summary()));
        for (number, group) in GROUPS.iter().enumerate() {
            self.section(&mut page, number, group);
        }
        page.nav.push_str("</ul>\n");
        page.render()
    }

    fn section(&self, page: &mut Page, number: usize, group: &Group) {
        let (rows, applied) = (group.rows(self), group.applied(self));
        let count: usize = rows.iter().map(|(_, rows)| rows.len()).sum();
        if count == 0 && applied.is_none() {
            return;
        }
        let title = group.title;
        let _ = writeln!(page.nav, "<li><a href=\"#root-{number}\">{title} <small>{count}</small></a></li>");
        let _ = writeln!(page.main, "<section id=\"root-{number}\">\n<h2>{title}</h2>");
        for (action, rows) in rows {
            let (shown, more) = bounded(&rows, MAX_LISTED);
            shown.iter().for_each(|row| object(&mut page.main, row));
            if let Some(more) = more {
                let _ = writeln!(page.main, "<p class=\"unchanged\">{action}: {more}</p>");
            }
        }
        if let Some(applied) = applied {
            let _ = writeln!(page.main, "<p class=\"unchanged\">{applied}</p>");
        }
        page.main.push_str("</section>\n");
    }
}

fn object(out: &mut String, row: &Row) {
    let (action, subject) = (row.action, escape(&row.subject()));
    let _ = write!(
        out,
        "<details class=\"object\" data-action=\"{action}\" open><summary><b class=\"{action}\">{action}</b> {subject}</summary>"
    );
    if let Some(note) = &row.note {
        let _ = write!(out, "<p class=\"reason\">{}</p>", escape(note));
    }
    out.push_str("</details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::identity::ObjectId;

    fn row(action: &'static str, name: &str) -> Row {
        Row::new(
            action,
            &ObjectId { kind: "ConfigMap".into(), namespace: "a".into(), name: name.into(), group: String::new() },
        )
    }

    fn report(rows: Vec<Row>) -> Report {
        let title = "Kustomization flux-system/shop, revision main@sha1:1".to_owned();
        Report { title, broken: None, rows, applied: 7, warnings: vec!["KZ061 <all>".to_owned()] }
    }

    /// Returns the texts of a drawing from top to bottom.
    fn texts(svg: &str) -> Vec<&str> {
        let texts = svg.split("<text ").skip(1).filter_map(|rest| rest.split_once('>')?.1.split_once("</text>"));
        texts.map(|(text, _)| text).collect()
    }

    #[test]
    fn draws_what_goes_moves_stays_and_comes_with_the_reasons() {
        let rows = vec![
            row("delete", "old"),
            row("move", "m").because("to a/web"),
            row("keep", "k").because("prune: disabled"),
            row("create", "new"),
        ];
        let expected = [
            "Kustomization flux-system/shop, revision main@sha1:1",
            "warning: KZ061 &lt;all&gt;",
            "Deletions",
            "delete 1",
            "ConfigMap a/old",
            "Moves",
            "move 1",
            "ConfigMap a/m: to a/web",
            "Kept",
            "keep 1",
            "ConfigMap a/k: prune: disabled",
            "7 applied as before",
            "Additions",
            "create 1",
            "ConfigMap a/new",
        ];
        let report = report(rows);
        assert_eq!(texts(&report.svg()), expected);
        assert_eq!((report.svg(), report.html()), (report.svg(), report.html()));
    }

    #[test]
    fn ten_thousand_objects_are_counted() {
        let rows = (0..10_000).map(|number| row("delete", &format!("c{number:05}")).because("because ".repeat(100)));
        let report = Report { warnings: (0..10_000).map(|n| format!("KZ060 {n}")).collect(), ..report(rows.collect()) };
        let (svg, html) = (report.svg(), report.html());
        assert_eq!(texts(&svg).iter().filter(|text| text.starts_with("ConfigMap")).count(), MAX_DRAWN);
        assert!(svg.contains("9960 more are not shown") && svg.contains("9980 more are not shown"), "{svg}");
        assert!(texts(&svg).iter().all(|text| text.chars().count() <= MAX_TEXT + 1), "{svg}");
        assert_eq!(html.matches("<details").count(), MAX_LISTED);
        assert!(html.contains("delete: 9000 more are not shown") && html.contains("> delete 10000</label>"));
    }

    #[test]
    fn texts_are_no_markup() {
        let attack = "<script>\"&";
        let report = Report {
            title: attack.into(),
            warnings: vec![attack.into()],
            ..report(vec![row("keep", attack).because(attack)])
        };
        for text in [report.svg(), report.html()] {
            assert!(!text.contains(attack) && text.contains("&lt;script&gt;&quot;&amp;"), "{text}");
        }
    }

    #[test]
    fn a_tree_that_cannot_be_built_has_its_reason() {
        let report = Report::broken("title".into(), "a & b".into());
        let words = "cannot be built, so Flux deletes nothing: a &amp; b";
        assert_eq!(texts(&report.svg()), ["title", words]);
        assert!(report.html().contains(words));
    }
}
