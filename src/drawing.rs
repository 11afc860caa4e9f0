//! Shared parts of drawings: colours, escaping for each notation, and the SVG document.

/// Fill colour of roots.
pub const BLUE: &str = "#dbeafe";
/// Fill colour of parts.
pub const GREEN: &str = "#dcfce7";
/// Fill colour of other nodes.
pub const PALE: &str = "#f3f4f6";
/// Colour of errors.
pub const RED: &str = "#dc2626";
/// Colour of lines.
pub const GREY: &str = "#6b7280";

/// Escapes a text for XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Quotes a text for Graphviz.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Escapes a text for a label in Mermaid.
pub fn label(text: &str) -> String {
    text.replace('"', "#quot;")
}

/// Returns an SVG document of this size in pixels, with text 13 pixels high.
pub fn svg(width: usize, height: usize, shapes: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n{shapes}</svg>\n"
    )
}
