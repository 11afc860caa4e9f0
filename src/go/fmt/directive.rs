//! Parses the format strings of `fmt.Sprintf`: directives with flags, width, precision, argument number and verb.

use serde_json::Value;

use super::super::Any;
use super::print::{Flags, Printer};
use super::{MAX_TEXT, TooLong};

/// The largest width, precision or argument number that Go accepts.
const MAX_NUMBER: i64 = 1_000_000;

/// A reader of a format string, with its position and the state of the current directive.
struct Reader<'f> {
    format: &'f str,
    at: usize,
    argument: usize,
    count: usize,
    /// Whether any directive so far selects its argument by number, such as `%[2]d`. If so, unused arguments are not an
    /// error.
    is_reordered: bool,
    /// Whether all argument numbers of the current directive are valid.
    numbers_are_valid: bool,
    /// Whether the reader is directly after an argument number, such as `[3]`.
    is_after_number: bool,
}

impl Printer {
    pub(super) fn printed(mut self, format: &str, values: &[Any]) -> Result<String, TooLong> {
        let mut reader = Reader {
            format,
            at: 0,
            argument: 0,
            count: values.len(),
            is_reordered: false,
            numbers_are_valid: true,
            is_after_number: false,
        };
        while let Some(length) = format[reader.at..].find('%') {
            self.out.push_str(&format[reader.at..reader.at + length]);
            reader.at += length + 1;
            self.directive(&mut reader, values);
            self.check()?;
        }
        self.out.push_str(&format[reader.at..]);
        if !reader.is_reordered && reader.argument < values.len() {
            self.extra(&values[reader.argument..]);
        }
        self.check()?;
        Ok(self.out)
    }

    fn check(&self) -> Result<(), TooLong> {
        if self.is_full() || self.out.len() > MAX_TEXT { Err(TooLong) } else { Ok(()) }
    }

    /// Parses the directive after a `%`, and prints its argument.
    fn directive(&mut self, reader: &mut Reader<'_>, values: &[Any]) {
        self.flags = reader.flags();
        reader.numbers_are_valid = true;
        reader.is_after_number = false;
        reader.number();
        self.width(reader, values);
        self.precision(reader, values);
        if !reader.is_after_number {
            reader.number();
        }
        let Some(verb) = reader.rest().chars().next() else { return self.out.push_str("%!(NOVERB)") };
        reader.at += verb.len_utf8();
        match values.get(reader.argument) {
            _ if verb == '%' => self.out.push('%'),
            _ if !reader.numbers_are_valid => self.out.push_str(&format!("%!{verb}(BADINDEX)")),
            None => self.out.push_str(&format!("%!{verb}(MISSING)")),
            Some(value) => {
                self.flags.take_verb(verb);
                self.argument(value, verb);
                reader.argument += 1;
            }
        }
    }

    fn width(&mut self, reader: &mut Reader<'_>, values: &[Any]) {
        if !reader.takes('*') {
            self.flags.width = reader.digits();
            if reader.is_after_number && self.flags.width.is_some() {
                reader.numbers_are_valid = false;
            }
            return;
        }
        reader.is_after_number = false;
        match reader.star(values) {
            None => self.out.push_str("%!(BADWIDTH)"),
            Some(width) => {
                if width < 0 {
                    self.flags.minus = true;
                    self.flags.zero = false;
                }
                self.flags.width = usize::try_from(width.abs()).ok();
            }
        }
    }

    fn precision(&mut self, reader: &mut Reader<'_>, values: &[Any]) {
        // A dot at the end of the format is a verb, not the start of a precision.
        if reader.rest() == "." || !reader.takes('.') {
            return;
        }
        if reader.is_after_number {
            reader.numbers_are_valid = false;
        }
        reader.number();
        if !reader.takes('*') {
            self.flags.precision = Some(reader.digits().unwrap_or(0));
            return;
        }
        reader.is_after_number = false;
        match reader.star(values).and_then(|precision| usize::try_from(precision).ok()) {
            Some(precision) => self.flags.precision = Some(precision),
            None => self.out.push_str("%!(BADPREC)"),
        }
    }

    /// Prints Go's error for arguments that no directive used: `%!(EXTRA string=a)`.
    fn extra(&mut self, values: &[Any]) {
        self.flags = Flags::default();
        self.out.push_str("%!(EXTRA ");
        for (at, value) in values.iter().enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            match value {
                Any::Json(Value::Null) => self.out.push_str("<nil>"),
                _ => {
                    self.out.push_str(value.type_name());
                    self.out.push('=');
                    self.argument(value, 'v');
                }
            }
        }
        self.out.push(')');
    }
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.format[self.at..]
    }

    fn takes(&mut self, c: char) -> bool {
        let takes = self.rest().starts_with(c);
        if takes {
            self.at += 1;
        }
        takes
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        loop {
            match self.rest().bytes().next() {
                Some(b'#') => flags.sharp = true,
                Some(b'0') => flags.zero = true,
                Some(b'+') => flags.plus = true,
                Some(b'-') => flags.minus = true,
                Some(b' ') => flags.space = true,
                _ => return flags,
            }
            self.at += 1;
        }
    }

    /// Parses an argument number, such as `[3]`, at the current position. Does nothing if there is no argument number.
    fn number(&mut self) {
        self.is_after_number = false;
        let rest = self.rest();
        if !rest.starts_with('[') {
            return;
        }
        let inner = rest.find(']').filter(|_| rest.len() >= 3).map(|end| &rest[1..end]);
        let length = inner.map_or(1, |inner| inner.len() + 2);
        let number = inner.and_then(whole);
        self.is_reordered = true;
        self.is_after_number = number.is_some();
        match number.and_then(|number| number.checked_sub(1)).filter(|&index| index < self.count) {
            Some(index) => self.argument = index,
            None => self.numbers_are_valid = false,
        }
        self.at += length;
    }

    /// Parses a decimal number at the current position. `None` if there is no number, or if it is too large. If it is
    /// too large, also skips the rest of the format string, as Go does.
    fn digits(&mut self) -> Option<usize> {
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let number = bounded(&rest[..length]);
        self.at = if number.is_some() { self.at + length } else { self.format.len() };
        number
    }

    /// Returns the width or precision that a `*` in a directive stands for. This is the value of the next argument.
    /// `None` if the argument is not an integer, or if it is too large.
    fn star(&mut self, values: &[Any]) -> Option<i64> {
        let value = values.get(self.argument)?;
        self.argument += 1;
        match value {
            Any::Json(Value::Number(number)) => {
                number.as_i64().filter(|number| number.unsigned_abs() <= MAX_NUMBER.unsigned_abs())
            }
            _ => None,
        }
    }
}

/// Parses a text that contains only digits. `None` for other texts and for numbers that are too large.
fn whole(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| bounded(text)).flatten()
}

/// Parses a decimal number. `None` if the number is too large. Like Go, compares the number so far with [`MAX_NUMBER`]
/// before it adds each digit, but not after the last one. So the result can be about ten times as large as
/// [`MAX_NUMBER`].
fn bounded(digits: &str) -> Option<usize> {
    let mut number: i64 = 0;
    for digit in digits.bytes() {
        if number > MAX_NUMBER {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    usize::try_from(number).ok()
}
