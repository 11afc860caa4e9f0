//! Finds mistakes in format strings of Go's `fmt.Sprintf`, such as `%d` for a text. Compares each verb in the format
//! string with the type of its value, if the type is known.
//!
//! Sprintf never fails. Instead, its result contains a text for each mistake, such as `%!d(float64=7)`, `%!s(MISSING)`
//! or `%!(EXTRA string=2)`. The documentation of Go's package fmt says which verb takes which type.

use super::transforms::Shape;

/// Returns the problems of a format string in the order of its verbs. `shapes` are the types of the arguments. If
/// `has_integers` is false, every number is a float64, so arguments of unknown type cannot be integers.
pub(super) fn problems(format: &str, shapes: &[Shape], has_integers: bool) -> Vec<String> {
    let mut check = Check {
        rest: format.chars().peekable(),
        shapes,
        has_integers,
        next: 0,
        is_reordered: false,
        problems: Vec::new(),
    };
    check.run();
    if check.next < shapes.len() && !check.is_reordered {
        let (verbs, values) = (check.next, shapes.len());
        check.problems.push(format!(
            "{} but {}: the text would end with %!(EXTRA …)",
            count(verbs, "verb"),
            count(values, "value")
        ));
    }
    check.problems
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

struct Check<'f> {
    rest: std::iter::Peekable<std::str::Chars<'f>>,
    shapes: &'f [Shape],
    has_integers: bool,
    /// The index of the argument that the next verb formats.
    next: usize,
    /// Whether a verb selects its argument by index, as in `%[2]s`. If so, unused arguments are allowed.
    is_reordered: bool,
    problems: Vec<String>,
}

impl Check<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '%' {
                self.verb();
            }
        }
    }

    /// Parses a directive after `%`: flags, argument index, width, precision, argument index, verb.
    fn verb(&mut self) {
        while self.rest.next_if(|c| ['#', '0', '+', '-', ' '].contains(c)).is_some() {}
        self.index();
        self.size();
        if self.rest.next_if_eq(&'.').is_some() {
            self.index();
            self.size();
        }
        self.index();
        match self.rest.next() {
            None => self.problems.push("a % at the end: the text would end with %!(NOVERB)".to_owned()),
            Some('%') => {}
            Some(verb) => self.take(verb),
        }
    }

    fn index(&mut self) {
        if self.rest.next_if_eq(&'[').is_none() {
            return;
        }
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let is_closed = self.rest.next_if_eq(&']').is_some();
        self.is_reordered = true;
        match digits.parse::<usize>() {
            Ok(number) if is_closed && (1..=self.shapes.len()).contains(&number) => self.next = number - 1,
            _ => {
                let have = count(self.shapes.len(), "value");
                self.problems.push(format!(
                    "[{digits}] is not the index of one of {have}: the text would contain %!…(BADINDEX)"
                ));
            }
        }
    }

    /// Parses the optional width or precision of a verb, such as `8` in `%8d`. It consists of digits or is `*`. For a
    /// `*`, `fmt.Sprintf` takes the number from the next argument. Reports a problem if this argument cannot be an
    /// integer.
    fn size(&mut self) {
        if self.rest.next_if_eq(&'*').is_some() {
            let is_whole = |shape: &Shape| {
                matches!(shape, Shape::Integer | Shape::Number) || *shape == Shape::Any && self.has_integers
            };
            if !self.shapes.get(self.next).is_some_and(is_whole) {
                self.problems.push("a * takes a whole number: the text would contain %!(BADWIDTH)".to_owned());
            }
            self.next += 1;
            return;
        }
        while self.rest.next_if(char::is_ascii_digit).is_some() {}
    }

    fn take(&mut self, verb: char) {
        let (shape, at) = (self.shapes.get(self.next).copied(), self.next + 1);
        self.next += 1;
        let problem = match shape {
            None => format!("verb {at}, %{verb}, has no value: the text would contain %!{verb}(MISSING)"),
            Some(shape) if !self.fits(verb, shape) => self.misfit(verb, shape),
            Some(_) => return,
        };
        self.problems.push(problem);
    }

    fn misfit(&self, verb: char, shape: Shape) -> String {
        const OF_INTEGERS: &str = "cdoOU";
        if shape == Shape::Any && OF_INTEGERS.contains(verb) {
            return format!(
                "%{verb} takes integers, but every number here is a float64: the text would contain %!{verb}(float64=…)"
            );
        }
        if shape == Shape::Any {
            return format!("%{verb} is not a verb: the text would contain %!{verb}(…)");
        }
        format!("%{verb} does not take {}: the text would contain %!{verb}({}=…)", shape.name(), shape.word())
    }

    fn fits(&self, verb: char, shape: Shape) -> bool {
        let takes = |verbs: &str| verbs.contains(verb);
        let (text, boolean, integer, float) = (takes("sqxX"), takes("t"), takes("bcdoOqxXU"), takes("beEfFgGxX"));
        takes("vT")
            || match shape {
                Shape::Text => text,
                Shape::Bool => boolean,
                Shape::Integer => integer,
                Shape::Float => float,
                Shape::Number => integer || float,
                Shape::Any if !self.has_integers => text || boolean || float,
                // The verb applies to the elements, whose types are unknown.
                Shape::Any | Shape::List | Shape::Object => text || boolean || integer || float,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(format: &str, shapes: &[Shape], has_integers: bool) -> Vec<String> {
        problems(format, shapes, has_integers)
    }

    #[test]
    fn accepts_matching_verbs_and_values() {
        let any = [Shape::Any, Shape::Any];
        for format in ["%s-%v", "%[2]s", "%[2]s-%[1]s", "100%% %s %s", "%-10s|%+.2f", "%[1]s-%[1]s-%s"] {
            assert_eq!(found(format, &any, true), Vec::<String>::new(), "{format}");
            assert_eq!(found(format, &any, false), Vec::<String>::new(), "{format}");
        }
        assert_eq!(found("%05d", &[Shape::Integer], false), Vec::<String>::new());
        assert_eq!(found("%d", &[Shape::Any], true), Vec::<String>::new());
        assert_eq!(found("%v", &[Shape::List], true), Vec::<String>::new());
    }

    #[test]
    fn reports_mistakes_that_sprintf_writes_into_the_text() {
        let cases: [(&str, &[Shape], bool, &str); 10] = [
            ("%s-%s", &[Shape::Any], true, "%!s(MISSING)"),
            ("%s", &[Shape::Any, Shape::Any], true, "%!(EXTRA"),
            ("plain", &[Shape::Any], true, "%!(EXTRA"),
            ("%s%", &[Shape::Any], true, "%!(NOVERB)"),
            ("%[3]s", &[Shape::Any], true, "BADINDEX"),
            ("%d", &[Shape::Any], false, "%!d(float64=…)"),
            ("%d", &[Shape::Text], true, "%!d(string=…)"),
            ("%d", &[Shape::Float], true, "%!d(float64=…)"),
            ("%z", &[Shape::Any], true, "%!z(…)"),
            ("%*s", &[Shape::Text, Shape::Text], true, "BADWIDTH"),
        ];
        for (format, shapes, has_integers, expected) in cases {
            let problems = found(format, shapes, has_integers);
            assert!(problems.len() == 1 && problems[0].contains(expected), "{format}: {problems:?}");
        }
    }
}
