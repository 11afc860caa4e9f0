//! A plan as one HTML page, without references to other files. It can be read without JavaScript; the script only filters.

mod folders;
mod sides;

use std::fmt::Write as _;

use super::text::{note, owners, places, subject, summary};
use crate::kustomize::changes::{Action, Counts, FieldChange, ObjectChange, Plan, RootChange};
use folders::Folder;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Forbids everything that the page does not contain itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Returns the page: a summary with filters, the tree of changed roots, and a section for each of them.
pub(super) fn render(plan: &Plan, broken: &[String]) -> String {
    let changed: Vec<_> = plan.roots.iter().filter(|root| root.is_changed()).collect();
    let title = escape(&summary(plan));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    for sentence in broken {
        let _ = writeln!(out, "<p class=\"error\">{}</p>", escape(sentence));
    }
    filters(&mut out, plan.counts());
    out.push_str("</header>\n<nav aria-label=\"Roots\">\n");
    Folder::of(&changed).write(&mut out);
    out.push_str("</nav>\n<main>\n");
    if changed.is_empty() {
        out.push_str("<p>No object changes.</p>\n");
    }
    for (number, root) in changed.iter().enumerate() {
        section(&mut out, number, root);
    }
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// Writes the filters by text and by action; only actions that the plan has.
fn filters(out: &mut String, counts: Counts) {
    let Counts { create, change, replace, delete, orphan, moved, unchanged: _ } = counts;
    out.push_str("<form id=\"filter\">\n<input type=\"search\" name=\"text\" placeholder=\"Filter by name, kind or field\" aria-label=\"Filter\">\n");
    let actions = [
        ("create", create),
        ("change", change),
        ("replace", replace),
        ("delete", delete),
        ("orphan", orphan),
        ("move", moved),
    ];
    for (action, count) in actions.into_iter().filter(|(_, count)| *count > 0) {
        let _ = writeln!(
            out,
            "<label class=\"{action}\"><input type=\"checkbox\" name=\"action\" value=\"{action}\" checked> {action} {count}</label>"
        );
    }
    out.push_str("<output></output>\n</form>\n");
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

/// Escapes a text for elements and attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
