//! Decodes JSON as `encoding/json` does, with Go's error messages.

use serde_json::{Number, Value};

use super::parse::{JsonError, MAX_DEPTH, parse};
use crate::go::{format_float, quote};

/// The Go type into which a JSON text is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The Go type `map[string]any`.
    Object,
    /// The Go type `[]any`.
    Array,
}

/// Decodes a JSON text into a map or a list. All numbers become `float64`. Returns `None` for `null`, because Go
/// decodes it as nil.
///
/// # Errors
/// If the text is not valid JSON, does not contain a value of the type `target`, or contains a number that does not fit
/// into a `float64`. The error is Go's message. A value that is nested [`MAX_DEPTH`] or more levels deep is an error
/// here, although Go accepts up to 10 000 levels.
pub fn unmarshal(text: &str, target: Target) -> Result<Option<Value>, String> {
    Scanner { bytes: text.as_bytes(), at: 0, open: Vec::new() }.document()?;
    let value = parse(text).map_err(|error| match error {
        JsonError::Malformed(_) => out_of_range(text, target),
        deep => deep.to_string(),
    })?;
    match (value, target) {
        (Value::Null, _) => Ok(None),
        (value @ Value::Object(_), Target::Object) | (value @ Value::Array(_), Target::Array) => {
            Ok(Some(floats(value)))
        }
        (value, _) => Err(mismatch(&value, target)),
    }
}

fn mismatch(value: &Value, target: Target) -> String {
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        _ => "object",
    };
    let wanted = if target == Target::Object { "map[string]interface {}" } else { "[]interface {}" };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// Returns Go's error message for the first number that does not fit into a `float64`. If the JSON value is not of the
/// type `target`, returns Go's error message for the wrong type instead.
fn out_of_range(text: &str, target: Target) -> String {
    let found = match text.trim_start().chars().next() {
        Some('{') => Value::Object(serde_json::Map::new()),
        Some('[') => Value::Array(Vec::new()),
        _ => Value::from(0),
    };
    if found.is_object() != (target == Target::Object) || found.is_number() {
        return mismatch(&found, target);
    }
    let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let mut numbers = text.split(|c| !is_number(c)).filter(|number| number.parse().is_ok_and(f64::is_infinite));
    let number = numbers.next().unwrap_or_default();
    format!("json: cannot unmarshal number {number} into Go value of type float64")
}

/// Converts all numbers of a value to `float64`.
pub fn floats(mut value: Value) -> Value {
    let float = |number: &Number| number.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number);
    convert_numbers(&mut value, &float);
    value
}

/// Converts the numbers of a value to Go types. Numbers without a fraction become `int64` if they fit. Other numbers
/// become `float64`. The result is the same as if Go encoded the value to JSON and `k8s.io/apimachinery` decoded it.
pub fn integers(mut value: Value) -> Value {
    convert_numbers(&mut value, &integer);
    value
}

/// Replaces each number in `value` with the result of `convert`.
fn convert_numbers(value: &mut Value, convert: &impl Fn(&Number) -> Value) {
    match value {
        Value::Number(number) => *value = convert(number),
        Value::Array(items) => items.iter_mut().for_each(|item| convert_numbers(item, convert)),
        Value::Object(members) => members.values_mut().for_each(|member| convert_numbers(member, convert)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn integer(number: &Number) -> Value {
    let Some(value) = number.as_f64().filter(|_| !number.is_i64()) else { return number.clone().into() };
    let is_whole = value.fract() == 0.0 && value.abs() < 1e21;
    match format_float(value, 'f', None).parse::<i64>() {
        Ok(integer) if is_whole => integer.into(),
        _ => value.into(),
    }
}

/// A scanner that checks the syntax of a JSON text. It reports the same errors as Go.
struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The closing brackets of the objects and lists that are still open. The bracket of the innermost object or list
    /// is last.
    open: Vec<u8>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), String> {
        self.value("looking for beginning of value")?;
        while let Some(close) = self.open.last().copied() {
            self.space();
            let within = if close == b'}' { "after object key:value pair" } else { "after array element" };
            match self.next()? {
                b',' if close == b'}' => self.key("looking for beginning of object key string")?,
                b',' => self.value("looking for beginning of value")?,
                byte if byte == close => {
                    self.open.pop();
                }
                _ => return Err(self.invalid(within)),
            }
        }
        self.space();
        if self.at < self.bytes.len() {
            self.at += 1;
            return Err(self.invalid("after top-level value"));
        }
        Ok(())
    }

    /// Checks the syntax of a JSON value up to its first scalar, `{}` or `[]`. In `{"a": [1, 2]}`, for example, checks
    /// only `{"a": [1`.
    ///
    /// Adds the closing brackets that are still missing, here `}` and `]`, to the field `open`. The caller uses them to
    /// check the rest of the value. `context` is the end of Go's error message if the value begins with an invalid
    /// character.
    fn value(&mut self, context: &str) -> Result<(), String> {
        let mut context = context.to_owned();
        loop {
            self.space();
            match self.next()? {
                b'{' | b'[' if self.open.len() >= MAX_DEPTH => return Err(JsonError::TooDeep.to_string()),
                b'{' => {
                    self.open.push(b'}');
                    self.space();
                    if self.bytes.get(self.at) == Some(&b'}') {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                    return self.key("looking for beginning of object key string");
                }
                b'[' => {
                    self.open.push(b']');
                    self.space();
                    if self.bytes.get(self.at) == Some(&b']') {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                    context = "looking for beginning of value".to_owned();
                }
                b'"' => return self.string(),
                b'-' => return self.number(),
                b'0'..=b'9' => {
                    self.at -= 1;
                    return self.number();
                }
                b't' => return self.word("rue", "true"),
                b'f' => return self.word("alse", "false"),
                b'n' => return self.word("ull", "null"),
                _ => return Err(self.invalid(&context)),
            }
        }
    }

    fn key(&mut self, context: &str) -> Result<(), String> {
        self.space();
        if self.next()? != b'"' {
            return Err(self.invalid(context));
        }
        self.string()?;
        self.space();
        if self.next()? != b':' {
            return Err(self.invalid("after object key"));
        }
        self.value("looking for beginning of value")
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next_of("in string escape code")? {
                    b'u' => {
                        for _ in 0..4 {
                            let context = "in \\u hexadecimal character escape";
                            if !self.next_of(context)?.is_ascii_hexdigit() {
                                return Err(self.invalid(context));
                            }
                        }
                    }
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    _ => return Err(self.invalid("in string escape code")),
                },
                byte if byte < b' ' => return Err(self.invalid("in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Result<(), String> {
        let context = "in numeric literal";
        match self.next_of(context)? {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.invalid(context)),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        if !self.next_of(context)?.is_ascii_digit() {
            return Err(self.invalid(context));
        }
        self.digits();
        Ok(())
    }

    fn word(&mut self, rest: &str, word: &str) -> Result<(), String> {
        for expected in rest.bytes() {
            let context = format!("in literal {word} (expecting {})", character(expected));
            if self.next_of(&context)? != expected {
                return Err(self.invalid(&context));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).copied().ok_or("unexpected end of JSON input")?;
        self.at += 1;
        Ok(byte)
    }

    /// Returns the next byte. At the end of the text, returns the same error as Go: `invalid character ' '` and then
    /// `context`, such as `in numeric literal`. Go reports a space, because it treats the end of the text as a space.
    fn next_of(&mut self, context: &str) -> Result<u8, String> {
        self.next().map_err(|_| format!("invalid character ' ' {context}"))
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Returns Go's error message for the byte that was read last. The message ends with the text `context`.
    fn invalid(&self, context: &str) -> String {
        let byte = self.at.checked_sub(1).and_then(|at| self.bytes.get(at)).copied().unwrap_or_default();
        format!("invalid character {} {context}", character(byte))
    }
}

/// Returns a byte in single quotes, as Go's error messages show it.
fn character(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(&String::from(char::from(byte)));
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}
