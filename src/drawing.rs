//! Code that all drawings use: colors, SVG documents, and functions that escape text for SVG, Graphviz and Mermaid.

/// Light blue: the fill color of roots of trees, and of other nodes to highlight.
pub const BLUE: &str = "#dbeafe";
/// Light green: the fill color of nodes that differ from their siblings, such as Components in a kustomize tree.
pub const GREEN: &str = "#dcfce7";
/// Light gray: the fill color of nodes that are not highlighted.
pub const PALE: &str = "#f3f4f6";
/// Red: the color of borders and lines that show an error or a deletion.
pub const RED: &str = "#dc2626";
/// Gray: the color of borders and lines that show neither an error nor a deletion.
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

/// A row of an [`outline`]: one node of a tree.
#[derive(Debug, Clone)]
pub struct Row {
    /// The index of the row of the parent node. This row is above the current row. `None` for the root.
    pub parent: Option<usize>,
    /// The depth in the tree; 0 for the root.
    pub depth: usize,
    /// The text in the box of the node.
    pub text: String,
    /// The tooltip of the box; empty for none.
    pub title: String,
    /// Fill color of the box, such as [`PALE`].
    pub fill: &'static str,
    /// Color of the box's border, and of the line from the parent.
    pub stroke: &'static str,
    /// Whether the corners of the box are round.
    pub is_round: bool,
}

impl Default for Row {
    fn default() -> Self {
        let (text, title) = (String::new(), String::new());
        Self { parent: None, depth: 0, text, title, fill: PALE, stroke: GREY, is_round: false }
    }
}

/// Height of a row in the drawing that [`outline`] returns, in pixels.
const ROW: usize = 34;
/// Horizontal indentation per level, in pixels.
const STEP: usize = 36;
/// Upper bound for the width of a letter in pixels, at a font size of 13 pixels.
const LETTER: usize = 8;

impl Row {
    fn x(&self) -> usize {
        10 + self.depth * STEP
    }

    fn width(&self) -> usize {
        self.text.chars().count() * LETTER + 16
    }

    fn shape(&self, number: usize) -> String {
        let Self { fill, stroke, .. } = self;
        let (x, y, width) = (self.x(), 10 + number * ROW, self.width());
        let title =
            if self.title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(&self.title)) };
        let radius = if self.is_round { 12 } else { 2 };
        format!(
            "<g>{title}<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"24\" rx=\"{radius}\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
            x + 8,
            y + 17,
            escaped(&self.text)
        )
    }

    /// Returns an SVG line from the row `parent` to the row `number`. The line first goes down and then to the right.
    fn line(&self, parent: usize, number: usize) -> String {
        let (x, from, to) = (self.x() - STEP / 2, 34 + parent * ROW, 22 + number * ROW);
        format!("<path d=\"M{x} {from} V{to} H{}\" fill=\"none\" stroke=\"{}\"/>\n", self.x(), self.stroke)
    }
}

/// Returns an SVG document that shows a tree as an outline: a row for each node, from top to bottom.
pub fn outline(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.x() + row.width() + 20).max().unwrap_or_default();
    let lines = rows.iter().enumerate().filter_map(|(number, row)| Some(row.line(row.parent?, number)));
    let shapes = rows.iter().enumerate().map(|(number, row)| row.shape(number));
    svg(width, rows.len() * ROW + 20, &lines.chain(shapes).collect::<String>())
}

/// Returns an SVG document that contains the SVG elements `shapes`. `width` and `height` are in pixels. Text is 13
/// pixels high.
pub fn svg(width: usize, height: usize, shapes: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n{shapes}</svg>\n"
    )
}
