//! Translates regular expressions from Go's syntax to that of the `regex` crate, in one pass.

use super::class::class;
use super::error::{Code, SyntaxError};
use super::escape::{character, perl_class, unicode_class};

/// Maximum repetition count, as in Go. The counts of nested repetitions are multiplied, and the product must not exceed
/// this maximum either.
const MAX_REPEAT: usize = 1000;
/// A character class that matches no character. In a translated pattern, it replaces surrogate code points such as
/// `\x{D800}`, because UTF-8 text cannot contain them.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    /// The groups whose closing parenthesis has not been read. The whole pattern is first, and the innermost group is
    /// last.
    open: Vec<Group>,
    /// The offset of the repetition that was just parsed. Another repetition directly after it is an error.
    repeated: Option<usize>,
    /// The end of the last operand in `out`, as a byte offset. An operand is the part of the pattern that a repetition
    /// such as `*` repeats. A repetition is inserted at this offset and not at the end, because flags such as `(?i)`
    /// may follow the operand.
    operand_end: usize,
}

/// A group whose closing parenthesis has not been read, or the whole pattern.
#[derive(Default)]
struct Group {
    /// Whether the next token of the group may be a repetition such as `*`. This is the case if the last element of the
    /// group can be repeated.
    has_operand: bool,
    /// The product of the nested repetition counts in the last operand: 6 for `(a{2}){3}`.
    operand: usize,
    /// The largest repetition count in this group. The counts of nested repetitions are multiplied: 6 for `(a{2}){3}`.
    most: usize,
}

impl Group {
    fn operand(&mut self, repetitions: usize) {
        self.has_operand = true;
        self.operand = repetitions;
        self.most = self.most.max(repetitions);
    }
}

/// Translates a regular expression in Go's syntax to the syntax of the `regex` crate.
pub(super) fn translate(pattern: &str) -> Result<String, SyntaxError> {
    let mut translator = Translator {
        pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        open: vec![Group::default()],
        repeated: None,
        operand_end: 0,
    };
    while let Some(c) = translator.rest.chars().next() {
        translator.element(c)?;
        if translator.open.len() > super::MAX_NESTING as usize {
            return Err(SyntaxError::new(Code::NestingDepth, pattern));
        }
    }
    match translator.open.len() {
        1 => Ok(translator.out),
        _ => Err(SyntaxError::new(Code::MissingParenthesis, pattern)),
    }
}

impl<'p> Translator<'p> {
    fn group(&mut self) -> &mut Group {
        if self.open.is_empty() {
            self.open.push(Group::default());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn element(&mut self, c: char) -> Result<(), SyntaxError> {
        let repeated = self.repeated.take();
        match c {
            '(' if self.rest.starts_with("(?") => return self.special_group(),
            '(' => self.begin("("),
            ')' => return self.end(),
            '|' => {
                self.group().has_operand = false;
                self.take(1, "|");
            }
            '*' | '+' | '?' => return self.repetition(1, None, repeated),
            '{' => match counts(self.rest) {
                Some((length, bounds)) => return self.repetition(length, Some(bounds), repeated),
                None => self.literal('{'.into(), 1),
            },
            '[' => {
                let (class, after) = class(self.rest)?;
                self.atom(&class, after);
            }
            '.' | '^' | '$' => {
                let text = c.to_string();
                self.atom(&text, &self.rest[1..]);
            }
            '\\' => return self.escape(),
            _ => self.literal(c.into(), c.len_utf8()),
        }
        Ok(())
    }

    fn take(&mut self, length: usize, text: &str) {
        self.rest = &self.rest[length..];
        self.out.push_str(text);
    }

    fn atom(&mut self, text: &str, after: &'p str) {
        self.out.push_str(text);
        self.operand_end = self.out.len();
        self.rest = after;
        self.group().operand(1);
    }

    fn literal(&mut self, code_point: u32, length: usize) {
        let text = char::from_u32(code_point).map_or(NOTHING.to_owned(), |c| regex::escape(c.encode_utf8(&mut [0; 4])));
        self.atom(&text, &self.rest[length..]);
    }

    fn begin(&mut self, text: &str) {
        let length = text.len();
        self.take(length, text);
        self.open.push(Group::default());
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        match self.open.pop() {
            Some(group) if !self.open.is_empty() => {
                self.take(1, ")");
                self.operand_end = self.out.len();
                self.group().operand(group.most.max(1));
                Ok(())
            }
            _ => Err(SyntaxError::new(Code::UnexpectedParenthesis, self.pattern)),
        }
    }

    /// Translates a group that starts with `(?`, which sets the name or the flags of the group.
    fn special_group(&mut self) -> Result<(), SyntaxError> {
        let rest = self.rest;
        for prefix in ["(?P<", "(?<"] {
            if let Some(after) = rest.strip_prefix(prefix) {
                return self.named(after, prefix.len());
            }
        }
        let Some(length) = flags(&rest[2..]) else { return Err(self.no_flags()) };
        let (text, is_group) = (&rest[2..1 + length], rest[..2 + length].ends_with(':'));
        self.rest = &rest[2 + length..];
        let flags = normal(text);
        match is_group {
            true => {
                self.out.push_str(&format!("(?{flags}:"));
                self.open.push(Group::default());
            }
            false if flags.is_empty() => {}
            false => self.out.push_str(&format!("(?{flags})")),
        }
        Ok(())
    }

    /// Returns Go's error for invalid syntax after `(?`, with the part of the pattern that Go reports.
    fn no_flags(&self) -> SyntaxError {
        let after = &self.rest[2..];
        let mut seen = String::new();
        for (at, c) in after.char_indices() {
            let is_wrong = !is_flag(c) || (c == '-' && seen.contains('-'));
            if is_wrong {
                return SyntaxError::new(Code::PerlOperator, &self.rest[..2 + at + c.len_utf8()]);
            }
            seen.push(c);
        }
        SyntaxError::new(Code::PerlOperator, self.rest)
    }

    fn named(&mut self, after: &'p str, prefix: usize) -> Result<(), SyntaxError> {
        let wrong = |part: &str| SyntaxError::new(Code::NamedCapture, part);
        let (name, _) = after.split_once('>').ok_or_else(|| wrong(self.rest))?;
        let whole = &self.rest[..prefix + name.len() + 1];
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(wrong(whole));
        }
        // The `regex` crate has other rules for names, and no caller uses groups by name.
        self.rest = &self.rest[whole.len()..];
        self.out.push('(');
        self.open.push(Group::default());
        Ok(())
    }

    fn repetition(
        &mut self,
        length: usize,
        counts: Option<Bounds>,
        repeated: Option<usize>,
    ) -> Result<(), SyntaxError> {
        let start = self.pattern.len() - self.rest.len();
        let operator = &self.rest[..length];
        let wrong = |code, part: &str| Err(SyntaxError::new(code, part));
        let length = length + usize::from(self.rest[length..].starts_with('?'));
        if matches!(counts, Some(None)) {
            return wrong(Code::RepeatSize, operator);
        }
        if !self.group().has_operand {
            return wrong(Code::MissingRepeatArgument, &self.rest[..length]);
        }
        if let Some(first) = repeated {
            return wrong(Code::RepeatOperator, &self.pattern[first..start + length]);
        }
        if let Some((least, most)) = counts.flatten() {
            let times = most.unwrap_or(least).max(1);
            let total = self.group().operand.saturating_mul(times);
            if times >= 2 && total > MAX_REPEAT {
                return wrong(Code::RepeatSize, &self.rest[..length]);
            }
            self.group().operand(total);
        }
        self.out.insert_str(self.operand_end, &self.rest[..length]);
        self.operand_end += length;
        self.rest = &self.rest[length..];
        self.repeated = Some(start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let rest = self.rest;
        let letter = rest[1..].chars().next();
        match letter {
            Some('Q') => self.quoted(),
            Some('A') => self.atom(r"\A", &rest[2..]),
            Some('z') => self.atom(r"\z", &rest[2..]),
            Some('b') => self.atom(r"(?-u:\b)", &rest[2..]),
            Some('B') => self.atom(r"(?-u:\B)", &rest[2..]),
            _ => {
                if let Some((class, after)) = unicode_class(rest)? {
                    self.atom(&class, after);
                } else if let Some(class) = letter.and_then(perl_class) {
                    self.atom(class, &rest[2..]);
                } else {
                    let (code_point, after) = character(rest)?;
                    self.literal(code_point, rest.len() - after.len());
                }
            }
        }
        Ok(())
    }

    /// Translates `\Q`: all text up to `\E` is literal.
    fn quoted(&mut self) {
        let quoted = &self.rest[2..];
        let (text, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
        if !text.is_empty() {
            self.group().operand(1);
        }
        self.out.push_str(&regex::escape(text));
        self.operand_end = self.out.len();
        self.rest = after;
    }
}

fn is_flag(c: char) -> bool {
    matches!(c, 'i' | 'm' | 's' | 'U' | '-')
}

/// Normalizes the flags of a group, such as `i-s`, for the `regex` crate. Removes duplicates. If a flag occurs both
/// before and after `-`, keeps only the one after `-`.
fn normal(flags: &str) -> String {
    let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
    let all = ['i', 'm', 's', 'U'];
    let on: String = all.into_iter().filter(|&flag| on.contains(flag) && !off.contains(flag)).collect();
    let off: String = all.into_iter().filter(|&flag| off.contains(flag)).collect();
    if off.is_empty() { on } else { format!("{on}-{off}") }
}

/// Returns the length of the flags of a group, such as `i-s:` after `(?`. The length includes the final `:` or `)`.
/// `None` if the flags are invalid.
fn flags(text: &str) -> Option<usize> {
    let end = text.find(|c| !is_flag(c))?;
    let flags = &text[..end];
    let is_closed = text[end..].starts_with([':', ')']);
    let is_sound = flags.matches('-').count() <= 1 && !flags.ends_with('-');
    (is_closed && is_sound).then_some(end + 1)
}

/// The minimum and maximum of a repetition such as `{2,5}`. The inner option is `None` if there is no maximum. The
/// outer option is `None` if a bound is too large, or if the minimum exceeds the maximum.
type Bounds = Option<(usize, Option<usize>)>;

/// Parses a repetition such as `{2,5}` at the start of `rest`. Returns the length of the repetition in the pattern, and
/// its bounds. `None` if the brace is a literal.
fn counts(rest: &str) -> Option<(usize, Bounds)> {
    let inner = rest[1..].split_once('}')?.0;
    let (least, most) = match inner.split_once(',') {
        None => (number(inner)?, number(inner)?.map(Some)),
        Some((least, "")) => (number(least)?, Some(None)),
        Some((least, most)) => (number(least)?, number(most)?.map(Some)),
    };
    let bounds = least.zip(most).filter(|(least, most)| most.is_none_or(|most| *least <= most));
    Some((inner.len() + 2, bounds))
}

/// Parses a number. The outer option is `None` if the text is not a number, or has leading zeros. The inner option is
/// `None` if the number is too large.
fn number(text: &str) -> Option<Option<usize>> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = is_number && (text.len() == 1 || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok().filter(|&number| number <= MAX_REPEAT))
}
