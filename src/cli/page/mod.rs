//! Formats objects as one HTML page with a filter. The page refers to no other files. It is readable without
//! JavaScript, because the script only filters.

use std::fmt::Write as _;

pub(super) use crate::drawing::escaped as escape;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Content security policy that forbids everything that the page does not contain itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The parts of an HTML page. All are HTML, except for the title.
#[derive(Default)]
pub(super) struct Page {
    /// The title of the page, as plain text.
    pub(super) title: String,
    /// The HTML at the end of the header: errors and filters.
    pub(super) header: String,
    /// The accessible name of the navigation, such as `Roots`.
    pub(super) label: &'static str,
    /// The HTML of the navigation: links to the sections of the page.
    pub(super) nav: String,
    /// The HTML of the main part. It consists of sections. Each Kubernetes object is an element with the CSS class
    /// `object`.
    pub(super) main: String,
}

impl Page {
    /// Returns the whole page as HTML.
    pub(super) fn render(&self) -> String {
        let Self { header, label, nav, main, .. } = self;
        let title = escape(&self.title);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{header}</header>\n\
             <nav aria-label=\"{label}\">\n{nav}</nav>\n<main>\n{main}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }

    /// Adds an error message to the header of the page.
    pub(super) fn add_error(&mut self, sentence: &str) {
        let _ = writeln!(self.header, "<p class=\"error\">{}</p>", escape(sentence));
    }

    /// Adds a text filter, and a checkbox for each action in `actions`. `actions` contains the name of each action and
    /// its number of objects. Omits actions without objects.
    pub(super) fn add_filters(&mut self, actions: &[(&str, usize)]) {
        self.header.push_str("<form id=\"filter\">\n<input type=\"search\" name=\"text\" placeholder=\"Filter by name, kind or field\" aria-label=\"Filter\">\n");
        for (action, count) in actions.iter().filter(|(_, count)| *count > 0) {
            let _ = writeln!(
                self.header,
                "<label class=\"{action}\"><input type=\"checkbox\" name=\"action\" value=\"{action}\" checked> {action} {count}</label>"
            );
        }
        self.header.push_str("<output></output>\n</form>\n");
    }
}
