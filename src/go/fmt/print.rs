//! Formats values of all types for `fmt.Sprintf`.

use serde_json::Value;

use super::super::Any;
use super::super::any::type_of;
use super::MAX_TEXT;

/// The flags, width and precision of a format directive, such as `%-8d`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// Whether the directive is `%#v`, which prints values in Go's syntax.
    pub(super) sharp_v: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

impl Flags {
    /// Adapts the flags `#` and `+` to `verb`. For the verbs `%v` and `%w`, these flags have a different meaning than
    /// for other verbs.
    pub(super) fn take_verb(&mut self, verb: char) {
        if matches!(verb, 'v' | 'w') {
            self.sharp_v = self.sharp;
            self.sharp = false;
            self.plus = false;
        }
    }
}

/// A printer that appends formatted values to a text.
#[derive(Debug, Default)]
pub(super) struct Printer {
    pub(super) out: String,
    pub(super) flags: Flags,
}

impl Printer {
    /// Returns whether the text is longer than [`MAX_TEXT`]. Formatting then fails, so the rest of the value need not
    /// be printed.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() > MAX_TEXT
    }

    /// Prints an argument in the format of the verb `verb`, such as `d`. If the verb does not accept the argument,
    /// prints the error text that Go prints, such as `%!d(string=a)`.
    pub(super) fn argument(&mut self, value: &Any, verb: char) {
        match (value, verb) {
            (Any::Json(Value::Null), 'T' | 'v') => self.pad("<nil>"),
            (Any::Json(Value::Null), _) => self.mistake(value, verb),
            (_, 'T') => self.text(value.type_name()),
            // Go prints the address of a map or list, which cannot be reproduced.
            (_, 'p') => self.mistake(value, verb),
            (Any::NonFinite(value), _) if self.float(*value, verb) => {}
            (Any::Bytes(bytes), _) if self.string(&String::from_utf8_lossy(bytes), verb) => {}
            (Any::Json(value), _) => self.value(value, verb),
            (Any::NilMap | Any::NilSlice, 'w') => self.mistake(value, verb),
            (Any::NilMap, _) => self.nil("map[]", "map[string]interface {}(nil)"),
            (Any::NilSlice, _) => self.nil("[]", "[]interface {}(nil)"),
            (Any::NonFinite(_) | Any::Bytes(_), _) => self.mistake(value, verb),
        }
    }

    fn nil(&mut self, plain: &str, go: &str) {
        self.out.push_str(if self.flags.sharp_v { go } else { plain });
    }

    /// Prints a JSON value. Calls itself for nested values, so the depth of the recursion is the nesting depth of the
    /// value.
    fn value(&mut self, value: &Value, verb: char) {
        if self.is_full() {
            return;
        }
        let is_printed = match value {
            Value::Null => {
                self.nil("<nil>", "interface {}(nil)");
                true
            }
            Value::Bool(is) => self.boolean(*is, verb),
            Value::String(text) => self.string(text, verb),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => self.integer(integer, verb),
                None => self.float(number.as_f64().unwrap_or_default(), verb),
            },
            Value::Array(_) | Value::Object(_) if verb == 'w' => false,
            Value::Array(items) => {
                self.open(value, "[");
                for (at, item) in items.iter().enumerate() {
                    self.separate(at);
                    self.value(item, verb);
                }
                self.close();
                true
            }
            Value::Object(members) => {
                self.open(value, "map[");
                for (at, (key, member)) in members.iter().enumerate() {
                    self.separate(at);
                    self.value(&Value::String(key.clone()), verb);
                    self.out.push(':');
                    self.value(member, verb);
                }
                self.close();
                true
            }
        };
        if !is_printed {
            self.mistake(&Any::Json(value.clone()), verb);
        }
    }

    fn open(&mut self, value: &Value, plain: &str) {
        if self.flags.sharp_v {
            self.out.push_str(type_of(value));
            self.out.push('{');
        } else {
            self.out.push_str(plain);
        }
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.out.push_str(if self.flags.sharp_v { ", " } else { " " });
        }
    }

    fn close(&mut self) {
        self.out.push(if self.flags.sharp_v { '}' } else { ']' });
    }

    fn boolean(&mut self, is: bool, verb: char) -> bool {
        let prints = matches!(verb, 't' | 'v');
        if prints {
            self.pad(if is { "true" } else { "false" });
        }
        prints
    }

    /// Prints Go's error for a value that the verb does not accept, such as `%!d(string=a)`.
    fn mistake(&mut self, value: &Any, verb: char) {
        self.out.push_str(&format!("%!{verb}("));
        if *value == Any::Json(Value::Null) {
            self.out.push_str("<nil>");
        } else {
            self.out.push_str(value.type_name());
            self.out.push('=');
            self.argument(value, 'v');
        }
        self.out.push(')');
    }

    /// Prints a text, padded to the requested width.
    pub(super) fn pad(&mut self, text: &str) {
        let missing = self.flags.width.unwrap_or(0).saturating_sub(text.chars().count());
        if !self.flags.minus {
            self.fill(missing);
        }
        self.out.push_str(text);
        if self.flags.minus {
            self.fill(missing);
        }
    }

    /// Prints `count` characters of padding: zeros if the flag `0` is set without `-`, otherwise spaces.
    pub(super) fn fill(&mut self, count: usize) {
        let padding = if self.flags.zero && !self.flags.minus { '0' } else { ' ' };
        self.out.extend(std::iter::repeat_n(padding, count));
    }

    /// Prints a text, padded to the requested width with spaces only.
    pub(super) fn pad_with_spaces(&mut self, text: &str) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }
}
