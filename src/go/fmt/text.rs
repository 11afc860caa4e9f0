//! Formats strings for `fmt.Sprintf`.

use super::super::quote::{is_printable, quote, quote_ascii};
use super::print::Printer;

impl Printer {
    /// Prints a string. Returns false if the verb does not accept strings.
    pub(super) fn string(&mut self, text: &str, verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.text(text),
            'x' => self.hexadecimal(text, false),
            'X' => self.hexadecimal(text, true),
            'q' => self.quoted(text),
            _ => return false,
        }
        true
    }

    /// Prints a string without quotes, truncated to the precision and padded to the width.
    pub(super) fn text(&mut self, text: &str) {
        self.pad(self.cut(text));
    }

    fn quoted(&mut self, text: &str) {
        let text = self.cut(text);
        let quoted = if self.flags.sharp && can_be_raw(text) {
            format!("`{text}`")
        } else if self.flags.plus {
            quote_ascii(text)
        } else {
            quote(text)
        };
        self.pad(&quoted);
    }

    /// Truncates a string to the precision of the directive, such as 3 characters for `%.3s`.
    fn cut<'t>(&self, text: &'t str) -> &'t str {
        let Some(count) = self.flags.precision else { return text };
        text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
    }

    fn hexadecimal(&mut self, text: &str, is_upper: bool) {
        let bytes = text.as_bytes();
        let bytes = &bytes[..bytes.len().min(self.flags.precision.unwrap_or(usize::MAX))];
        let prefix = match (self.flags.sharp, is_upper) {
            (false, _) => "",
            (true, false) => "0x",
            (true, true) => "0X",
        };
        let mut encoded = String::new();
        for (at, byte) in bytes.iter().enumerate() {
            if at > 0 && self.flags.space {
                encoded.push(' ');
            }
            if at == 0 || self.flags.space {
                encoded.push_str(prefix);
            }
            encoded.push_str(&if is_upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad(&encoded);
    }
}

/// Returns whether Go can write a string in backquotes, as for `%#q`.
fn can_be_raw(text: &str) -> bool {
    text.chars().all(|c| c != '\u{feff}' && c != '`' && (c == '\t' || (c >= ' ' && c != '\u{7f}')))
}

/// Returns a character in single quotes, as Go prints it. If `is_ascii` is true, escapes a character that is not ASCII.
pub(super) fn quoted_character(c: char, is_ascii: bool) -> String {
    let text = super::super::quote::quote_with(&String::from(c), '\'', is_ascii);
    debug_assert!(is_ascii || !is_printable(c) || text.contains(c));
    text
}
