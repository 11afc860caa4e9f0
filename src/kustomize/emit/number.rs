//! Formats numbers as kustomize prints them.

use super::Problem;
use crate::go::format_float;

/// Go's JSON encoder writes a float with an exponent if its absolute value is at least this number. YAML does not parse
/// a number with an exponent as an integer.
const JSON_EXPONENT: f64 = 1e21;

/// Formats a float as kustomize prints it. kustomize converts each object to JSON and then parses the JSON as YAML. The
/// YAML parser turns a float without a fraction into an integer if it fits into 64 bits. Returns an error for infinity
/// and NaN.
///
/// Source: `floatEncoder` of Go's encoding/json, `resolve` and `floatv` of go-yaml v2.
pub(super) fn float(float: f64) -> Result<String, Problem> {
    if !float.is_finite() {
        return Err(Problem::NotFinite);
    }
    let is_integer = float.fract() == 0.0 && float.abs() < JSON_EXPONENT;
    let integer = if is_integer { integer(&format_float(float, 'f', None)) } else { None };
    Ok(integer.unwrap_or_else(|| format_float(float, 'g', None)))
}

/// Parses `digits` as an integer and formats it again, so that `-0` becomes `0`. Returns `None` if the integer does not
/// fit into 64 bits. `digits` is the text that Go prints for a float, which is not always the exact value of the float.
fn integer(digits: &str) -> Option<String> {
    match digits.parse::<i64>() {
        Ok(int) => Some(int.to_string()),
        Err(_) => digits.parse::<u64>().ok().map(|int| int.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_floats_as_go_does() {
        let cases = [
            (1.0, "1"),
            (-0.0, "0"),
            (999_999.5, "999999.5"),
            (1_000_000.5, "1.0000005e+06"),
            (1.9e19, "1.9e+19"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (1e-6, "1e-06"),
            (0.0001, "0.0001"),
            (1e21, "1e+21"),
            (1e300, "1e+300"),
        ];
        for (number, text) in cases {
            assert_eq!(float(number).as_deref(), Ok(text));
        }
        assert_eq!(float(f64::INFINITY), Err(Problem::NotFinite));
    }
}
