//! Formats integers and floating-point numbers for `fmt.Sprintf`.

use super::super::float::format_float;
use super::super::quote::is_printable;
use super::print::Printer;
use super::text::quoted_character;

impl Printer {
    /// Prints an `int64`. Returns false if the verb does not accept integers.
    pub(super) fn integer(&mut self, value: i64, verb: char) -> bool {
        let magnitude = value.unsigned_abs();
        match verb {
            'v' | 'd' => self.digits(value, "", &magnitude.to_string()),
            'b' => self.digits(value, "0b", &format!("{magnitude:b}")),
            'o' => self.digits(value, "0", &format!("{magnitude:o}")),
            'O' => self.digits(value, "0o", &format!("{magnitude:o}")),
            'x' => self.digits(value, "0x", &format!("{magnitude:x}")),
            'X' => self.digits(value, "0X", &format!("{magnitude:X}")),
            'c' => self.pad(&String::from(character(value))),
            'q' => self.pad(&quoted_character(character(value), self.flags.plus)),
            'U' => self.code_point(value),
            _ => return false,
        }
        true
    }

    /// Prints the integer `value`: its sign, `prefix` and `digits`. `digits` are the digits without a sign. `prefix`,
    /// such as `0x`, is printed only if the verb or the flag `#` requires it. Leading zeros fill the number up to the
    /// precision. If there is no precision, and the flag `0` is set without the flag `-`, leading zeros fill the number
    /// up to the width.
    fn digits(&mut self, value: i64, prefix: &str, digits: &str) {
        let flags = self.flags;
        let sign = match () {
            () if value < 0 => "-",
            () if flags.plus => "+",
            () if flags.space => " ",
            () => "",
        };
        let least = match (flags.precision, flags.width) {
            (Some(0), _) if value == 0 => return self.pad_with_spaces(""),
            (Some(precision), _) => precision,
            (None, Some(width)) if flags.zero && !flags.minus => width.saturating_sub(sign.len()),
            _ => 0,
        };
        let digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        let prefix = match prefix {
            "0o" => match flags.sharp && !digits.starts_with('0') {
                true => "0o0",
                false => "0o",
            },
            "0" if digits.starts_with('0') => "",
            _ if flags.sharp => prefix,
            _ => "",
        };
        self.pad_with_spaces(&format!("{sign}{prefix}{digits}"));
    }

    fn code_point(&mut self, value: i64) {
        // Go prints the bits of the number, so a negative number is large.
        let bits = value.cast_unsigned();
        let least = self.flags.precision.unwrap_or(0).max(4);
        let digits = format!("{bits:X}");
        let mut text = format!("U+{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
        let c = u32::try_from(bits).ok().and_then(char::from_u32);
        if let Some(c) = c.filter(|c| self.flags.sharp && is_printable(*c)) {
            text.push_str(&format!(" '{c}'"));
        }
        self.pad_with_spaces(&text);
    }

    /// Prints a `float64`. Returns false if the verb does not accept floats.
    pub(super) fn float(&mut self, value: f64, verb: char) -> bool {
        let (format, default) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'e' | 'E' | 'f' => (verb, Some(6)),
            'F' => ('f', Some(6)),
            _ => return false,
        };
        let precision = self.flags.precision.or(default);
        let text = format_float(value, format, precision);
        let (sign, mut number) = match text.strip_prefix('-') {
            Some(number) => ("-", number.to_owned()),
            None => ("+", text.trim_start_matches('+').to_owned()),
        };
        let flags = self.flags;
        let shown = if sign == "+" && flags.space && !flags.plus { " " } else { sign };
        let has_sign = flags.plus || shown != "+";
        if !value.is_finite() {
            // Infinity is always printed with its sign.
            let sign = if value.is_nan() && !flags.space && !flags.plus { "" } else { shown };
            self.pad_with_spaces(&format!("{sign}{number}"));
            return true;
        }
        if flags.sharp && verb != 'b' {
            number = with_point(&number, verb, precision);
        }
        let missing = flags.width.unwrap_or(0).saturating_sub(number.len() + 1);
        match has_sign {
            true if flags.zero && !flags.minus && missing > 0 => {
                self.out.push_str(shown);
                self.fill(missing);
                self.out.push_str(&number);
            }
            true => self.pad(&format!("{shown}{number}")),
            false => self.pad(&number),
        }
        true
    }
}

/// Returns the character of a code point. For an invalid code point, returns U+FFFD.
fn character(value: i64) -> char {
    u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
}

/// Returns `number`, a formatted float, with the decimal point and the trailing zeros that the flag `#` requires. They
/// depend on the `verb` and the `precision` of the format.
fn with_point(number: &str, verb: char, precision: Option<usize>) -> String {
    let is_hexadecimal = matches!(verb, 'x' | 'X');
    let mut wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6).cast_signed(),
        _ => 0,
    };
    let marks: &[char] = if is_hexadecimal { &['p', 'P'] } else { &['e', 'E', 'p', 'P'] };
    let (digits, tail) = number.split_at(number.find(marks).unwrap_or(number.len()));
    let mut text = digits.to_owned();
    let mut seen = false;
    for c in digits.chars().filter(|&c| c != '.') {
        seen |= c != '0';
        wanted -= isize::from(seen);
    }
    if !digits.contains('.') {
        wanted -= isize::from(digits == "0");
        text.push('.');
    }
    text.extend(std::iter::repeat_n('0', usize::try_from(wanted).unwrap_or(0)));
    text + tail
}
