//! The `portcullis` command.

fn main() {}
