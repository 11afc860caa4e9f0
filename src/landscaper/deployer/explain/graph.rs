//! Generates diagrams of the states of a DeployItem and the transitions between them, in Mermaid and SVG format.
//!
//! Each box is a state. A dashed red border marks a state that a rule of Portcullis prevents. Each arrow is a
//! transition. An arrow is blue if Landscaper writes the new state, and green if a deployer does. In the SVG, arrows
//! have numbers, and a legend lists their names.

use super::{Edge, edges};
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED, escaped};
use crate::landscaper::deployer::machine::{Actor, STATES, State, StateInfo};

/// The color of arrows for transitions in which Landscaper writes the new state.
const LANDSCAPER: &str = "#2563eb";
/// The color of arrows for transitions in which a deployer writes the new state.
const DEPLOYER: &str = "#16a34a";

fn colour(by: Actor) -> &'static str {
    match by {
        Actor::Landscaper => LANDSCAPER,
        Actor::Deployer => DEPLOYER,
    }
}

fn fill(info: &StateInfo) -> &'static str {
    match info.state {
        _ if info.prevented_by.is_some() => PALE,
        State::Working | State::Uninstalling => GREEN,
        _ => BLUE,
    }
}

/// Returns a Mermaid flowchart of the states of a DeployItem and the transitions between them.
pub fn mermaid() -> String {
    let mut text = String::from("flowchart LR\n");
    for info in &STATES {
        let (name, fill) = (info.name, fill(info));
        let label = drawing::label(&format!("{name}<br/>{}", info.phase));
        let stroke = info.prevented_by.map(|_| format!(",stroke:{RED},stroke-dasharray:4")).unwrap_or_default();
        text += &format!("  {name}[\"{label}\"]\n  style {name} fill:{fill}{stroke}\n");
    }
    for (number, Edge { from, to, by, names }) in edges().iter().enumerate() {
        let (from, to) = (from.info().name, to.info().name);
        text += &format!("  {from} -->|\"{}\"| {to}\n", drawing::label(&names.join(", ")));
        text += &format!("  linkStyle {number} stroke:{}\n", colour(*by));
    }
    text
}

/// Half the width and half the height of the box of a state, in pixels.
const HALF: (f64, f64) = (88.0, 30.0);
/// The width and height of the drawing without its legend, in pixels.
const SIZE: (usize, usize) = (1060, 600);
/// The height of a line of the legend, in pixels.
const LINE: usize = 20;

/// A point of the drawing: x and y, in pixels.
type Point = (f64, f64);

/// Returns the center of the box of a state.
fn place(state: State) -> Point {
    match state {
        State::New => (110.0, 300.0),
        State::Triggered => (380.0, 300.0),
        State::Working => (660.0, 190.0),
        State::Uninstalling => (660.0, 410.0),
        State::Finished => (940.0, 300.0),
        State::Stray => (240.0, 550.0),
        State::Contradiction => (800.0, 550.0),
    }
}

/// Returns an SVG drawing, with a legend, of the states of a DeployItem and the transitions between them.
pub fn svg() -> String {
    let edges = edges();
    let mut shapes = [Actor::Landscaper, Actor::Deployer].map(arrowhead).concat();
    for (number, edge) in edges.iter().enumerate() {
        shapes += &line(number, edge, &edges[..number]);
    }
    shapes += &STATES.iter().map(shape).collect::<String>();
    for (number, edge) in edges.iter().enumerate() {
        shapes += &legend(number, edge);
    }
    drawing::svg(SIZE.0, SIZE.1 + edges.len().div_ceil(2) * LINE + 20, &shapes)
}

fn arrowhead(by: Actor) -> String {
    format!(
        "<marker id=\"{}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"{}\"/></marker>\n",
        by.as_str(),
        colour(by)
    )
}

fn shape(info: &StateInfo) -> String {
    let ((x, y), (half_width, half_height)) = (place(info.state), HALF);
    let (stroke, dash) = if info.prevented_by.is_some() { (RED, " stroke-dasharray=\"4\"") } else { (GREY, "") };
    let below = info.prevented_by.map_or_else(|| info.phase.to_owned(), |rule| format!("prevented by {rule}"));
    format!(
        "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" \
         stroke=\"{stroke}\"{dash}/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\">{}</text></g>\n",
        escaped(info.meaning),
        x - half_width,
        y - half_height,
        half_width * 2.0,
        half_height * 2.0,
        fill(info),
        y - 4.0,
        escaped(info.name),
        y + 14.0,
        escaped(&below)
    )
}

/// Returns the SVG of `edge`, an edge of the state graph. It is a curve with the label `number` + 1. `before` contains
/// the edges that are already drawn: if some of them connect the same states, the new curve is drawn beside them.
fn line(number: usize, edge: &Edge, before: &[Edge]) -> String {
    let beside = before.iter().filter(|other| (other.from, other.to) == (edge.from, edge.to)).count();
    let (from, bend, to) = curve(edge, beside);
    let middle = ((from.0 + 2.0 * bend.0 + to.0) / 4.0, (from.1 + 2.0 * bend.1 + to.1) / 4.0);
    let (colour, name) = (colour(edge.by), edge.by.as_str());
    format!(
        "<path d=\"M{:.0} {:.0} Q{:.0} {:.0} {:.0} {:.0}\" fill=\"none\" stroke=\"{colour}\" \
         marker-end=\"url(#{name})\"/>\n<circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"9\" fill=\"white\" stroke=\"{colour}\"/>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"11\">{}</text>\n",
        from.0,
        from.1,
        bend.0,
        bend.1,
        to.0,
        to.1,
        middle.0,
        middle.1,
        middle.0,
        middle.1 + 4.0,
        number + 1
    )
}

/// Returns the start, the control point and the end of the curve of an edge. `beside` is the number of curves that are
/// already drawn from the same start state to the same end state. Longer curves bend more, to avoid the boxes between
/// their ends.
fn curve(edge: &Edge, beside: usize) -> (Point, Point, Point) {
    let (from, to) = (place(edge.from), place(edge.to));
    let beside = beside as f64;
    if edge.from == edge.to {
        let side = if from.1 > 350.0 { 1.0 } else { -1.0 };
        let (y, bend) = (from.1 + side * HALF.1, from.1 + side * (HALF.1 + 60.0));
        return ((from.0 - 30.0 - beside * 8.0, y), (from.0, bend + side * beside * 20.0), (from.0 + 30.0, y));
    }
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    let bend = match length {
        700.0.. => length * 0.62,
        // Pass above or below the box in between, for both directions.
        500.0.. if dx > 0.0 && dy.abs() > 1.0 => -dy.signum() * length * 0.3,
        _ => 36.0,
    } + beside * 64.0;
    // Bend to the left of the direction, so that the reverse transition bends to the other side.
    let middle = ((from.0 + to.0) / 2.0 + dy / length * bend, (from.1 + to.1) / 2.0 - dx / length * bend);
    (edge_of_box(from, middle), middle, edge_of_box(to, middle))
}

/// Returns the point where the line from the center `middle` of a box to the point `towards` crosses the border of the
/// box.
fn edge_of_box(middle: Point, towards: Point) -> Point {
    let (dx, dy) = (towards.0 - middle.0, towards.1 - middle.1);
    let share = (HALF.0 / dx.abs().max(1.0)).min(HALF.1 / dy.abs().max(1.0));
    (middle.0 + dx * share, middle.1 + dy * share)
}

fn legend(number: usize, Edge { by, names, .. }: &Edge) -> String {
    let (x, y) = (20 + number % 2 * (SIZE.0 / 2), SIZE.1 + 10 + number / 2 * LINE);
    let text = escaped(&format!("{}  {}: {}", number + 1, by.as_str(), names.join(", ")));
    format!("<text x=\"{x}\" y=\"{y}\" fill=\"{}\">{text}</text>\n", colour(*by))
}
