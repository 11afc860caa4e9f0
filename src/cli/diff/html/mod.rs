//! Formats the plan of `portcullis diff` as one HTML page. The plan contains the changes of all kustomize roots.

mod folders;
mod sides;

use std::fmt::Write as _;

use super::super::page::{Page, escape};
use super::text::{note, owners, places, subject, summary};
use crate::kustomize::changes::{Action, Counts, FieldChange, ObjectChange, Plan, RootChange};
use folders::Folder;

/// Formats the changes of all kustomize roots as an HTML page. The page has a summary with filters, a tree of the
/// folders that contain changed roots, and a section for each changed root. `broken` has a sentence for each limit that
/// the changes exceed.
pub(super) fn render(plan: &Plan, broken: &[String]) -> String {
    let changed: Vec<_> = plan.roots.iter().filter(|root| root.is_changed()).collect();
    let mut page = Page { title: summary(plan), label: "Roots", ..Page::default() };
    broken.iter().for_each(|sentence| page.add_error(sentence));
    let Counts { create, change, replace, delete, orphan, moved, unchanged: _ } = plan.counts();
    page.add_filters(&[
        ("create", create),
        ("change", change),
        ("replace", replace),
        ("delete", delete),
        ("orphan", orphan),
        ("move", moved),
    ]);
    Folder::of(&changed).write(&mut page.nav);
    if changed.is_empty() {
        page.main.push_str("<p>No object changes.</p>\n");
    }
    for (number, root) in changed.iter().enumerate() {
        section(&mut page.main, number, root);
    }
    page.render()
}

fn section(out: &mut String, number: usize, root: &RootChange) {
    let (name, about) = (escape(root.root.shown()), escape(&format!("{}{}", owners(root), note(&root.state))));
    let _ = writeln!(out, "<section id=\"root-{number}\">\n<h2>{name}<small>{about}</small></h2>");
    if let Some(cause) = root.state.cause() {
        let (message, file) = (escape(&cause.message), escape(cause.site.file.as_str()));
        let _ = writeln!(out, "<p class=\"error\">{message} <code>{file}:{}</code></p>", cause.site.place.line);
    }
    root.objects.iter().for_each(|change| object(out, change));
    let _ = writeln!(out, "<p class=\"unchanged\">{} unchanged</p>\n</section>", root.unchanged);
}

fn object(out: &mut String, change: &ObjectChange) {
    let (action, subject) = (change.action.as_str(), escape(&subject(change)));
    // Reviewers look at changes and deletions first; a new object has nothing to compare.
    let open = if matches!(change.action, Action::Create | Action::Move { .. }) { "" } else { " open" };
    let _ = writeln!(
        out,
        "<details class=\"object\" data-action=\"{action}\"{open}><summary><b class=\"{action}\">{action}</b> {subject}</summary>"
    );
    if !change.fields.is_empty() {
        out.push_str("<ul class=\"fields\">\n");
        change.fields.iter().for_each(|change| field(out, change));
        out.push_str("</ul>\n");
    }
    sides::write(out, &change.before, &change.after);
    out.push_str("</details>\n");
}

fn field(out: &mut String, change: &FieldChange) {
    let (path, places) = (escape(&change.path), escape(&places(change)));
    let _ = writeln!(out, "<li><code>{path}</code> <span>{places}</span></li>");
}
