//! Floats in decimal digits, as Go's `strconv` prints them.

use std::fmt::Write;

/// From this exponent on, the format `g` prints one.
const GENERAL_EXPONENT: i32 = 6;
/// Below this exponent too.
const LEAST_EXPONENT: i32 = -4;

/// The shortest decimal digits that identify a finite float.
///
/// Of two equally close candidates, Go and `serde_json` take the even one; the standard library rounds up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortest {
    negative: bool,
    /// Without zeros at either end; `0` alone for zero.
    digits: String,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl Shortest {
    /// Finds the digits of a finite number.
    pub fn of(float: f64) -> Option<Self> {
        float.is_finite().then(|| Self::of_json(&serde_json::to_string(&float).ok()?))?
    }

    /// Finds the digits of a finite number of 32 bits.
    pub fn of_single(float: f32) -> Option<Self> {
        float.is_finite().then(|| Self::of_json(&serde_json::to_string(&float).ok()?))?
    }

    fn of_json(json: &str) -> Option<Self> {
        let unsigned = json.strip_prefix('-').unwrap_or(json);
        let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let zeros = all.len() - all.trim_start_matches('0').len();
        let negative = unsigned.len() < json.len();
        if zeros == all.len() {
            return Some(Self { negative, digits: "0".to_owned(), exponent: 0 });
        }
        let point = i32::try_from(whole.len()).ok()? - i32::try_from(zeros).ok()?;
        let digits = all.trim_matches('0').to_owned();
        Some(Self { negative, digits, exponent: exponent.parse::<i32>().ok()? + point - 1 })
    }

    /// Prints as `FormatFloat(_, 'g', -1, _)` does: with an exponent of at least two digits if the number is large or small.
    pub fn general(&self) -> String {
        if (LEAST_EXPONENT..GENERAL_EXPONENT).contains(&self.exponent) {
            return self.positional();
        }
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("{}{first}{point}{rest}e{sign}{:02}", self.sign(), self.exponent.abs())
    }

    /// Prints as `FormatFloat(_, 'f', -1, _)` does: without an exponent.
    pub fn positional(&self) -> String {
        let mut text = self.sign().to_owned();
        let before_point = usize::try_from(self.exponent + 1).unwrap_or(0);
        if self.exponent < 0 {
            let zeros = self.exponent.unsigned_abs() as usize - 1;
            // writing into a String does not fail
            let _ = write!(text, "0.{:0<zeros$}{}", "", self.digits);
        } else if self.digits.len() <= before_point {
            let _ = write!(text, "{:0<before_point$}", self.digits);
        } else {
            let (whole, fraction) = self.digits.split_at(before_point);
            let _ = write!(text, "{whole}.{fraction}");
        }
        text
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(float: f64) -> String {
        Shortest::of(float).unwrap().general()
    }

    #[test]
    fn ties_go_to_the_even_digit() {
        assert_eq!(general(916_787_552_133_074.2), "9.167875521330742e+14");
        assert_eq!(general(-150_371_889_340_771.12), "-1.5037188934077112e+14");
    }

    #[test]
    fn exponents_are_printed_outside_of_four_and_six_digits() {
        let cases = [(0.0001, "0.0001"), (0.00001, "1e-05"), (123_456.0, "123456"), (1_234_567.0, "1.234567e+06")];
        for (float, text) in cases {
            assert_eq!(general(float), text);
        }
        assert_eq!(general(-0.0), "-0");
        assert_eq!(Shortest::of_single(0.1).unwrap().general(), "0.1");
        assert_eq!(Shortest::of(f64::NAN), None);
    }

    #[test]
    fn positions_need_no_exponent() {
        let positional = |float| Shortest::of(float).unwrap().positional();
        assert_eq!(positional(1e20), "100000000000000000000");
        assert_eq!(positional(1.25e-9), "0.00000000125");
        assert_eq!(positional(-1234.5), "-1234.5");
    }
}
