//! Parses and encodes JSON as Go's `encoding/json` does. Its results differ from those of `serde_json`.

mod decode;
mod encode;
mod parse;

pub use decode::{Target, floats, integers, unmarshal};
pub use encode::{marshal, marshal_indent};
pub use parse::{JsonError, MAX_DEPTH, parse};
