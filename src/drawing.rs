//! What drawings have in common, whatever they show: colours, texts in their notations, and the shapes of an SVG.

/// What is at the top of something.
pub const BLUE: &str = "#dbeafe";
/// What is a part of something.
pub const GREEN: &str = "#dcfce7";
/// Everything else.
pub const PALE: &str = "#f3f4f6";
/// What is wrong.
pub const RED: &str = "#dc2626";
/// Lines.
pub const GREY: &str = "#6b7280";

/// A text in an XML document.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A quoted text for Graphviz.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text in a label of Mermaid.
pub fn label(text: &str) -> String {
    text.replace('"', "#quot;")
}

/// An SVG document of this size in pixels, its texts 13 pixels high.
pub fn svg(width: usize, height: usize, shapes: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n{shapes}</svg>\n"
    )
}
