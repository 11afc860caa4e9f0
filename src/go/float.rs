//! Formats floating-point numbers as Go's `strconv.FormatFloat` does.

/// Maximum number of digits that are computed for a `float64`. Every `float64` has fewer digits than this, so all
/// further digits are zero.
const MAX_DIGITS: usize = 1100;

/// Formats a number in the format `e`, `E`, `f`, `g`, `G`, `x`, `X` or `b`. `precision` is the number of significant
/// digits for `g` and `G`, and of digits after the point for the other formats. Without a precision, the result has the
/// fewest digits that can be parsed back to the same number.
pub fn format_float(value: f64, format: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return if sign.is_empty() { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let magnitude = value.abs();
    let text = match format {
        'f' => fixed(magnitude, precision),
        'e' | 'E' => scientific(magnitude, precision),
        'g' | 'G' => general(magnitude, precision),
        'x' | 'X' => hexadecimal(magnitude, precision),
        _ => binary(magnitude),
    };
    let text = if matches!(format, 'E' | 'G' | 'X') { text.to_ascii_uppercase() } else { text };
    format!("{sign}{text}")
}

fn fixed(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        let (digits, exponent) = digits(value, None);
        return placed(&digits, exponent);
    };
    let shown = precision.min(MAX_DIGITS);
    let text = format!("{value:.shown$}");
    text + &"0".repeat(precision - shown)
}

/// Returns the significant digits of a number, and the decimal exponent of the first digit. `precision` is the number
/// of digits after the first one. If `precision` is `None`, returns the fewest digits that identify the number.
fn digits(value: f64, precision: Option<usize>) -> (String, i32) {
    let Some(precision) = precision else { return shortest(&serde_json::to_string(&value).unwrap_or_default()) };
    let text = format!("{value:.*e}", precision.min(MAX_DIGITS));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits = mantissa.replace('.', "");
    let missing = (precision + 1).saturating_sub(digits.len());
    digits.extend(std::iter::repeat_n('0', missing));
    (digits, exponent.parse().unwrap_or(0))
}

/// Returns the significant digits of a number that `serde_json` printed, and the decimal exponent of the first digit.
/// Zeros at both ends are removed.
///
/// Several decimal numbers may parse to the same float. If the two shortest ones are equally close to this float, Go
/// and `serde_json` use the one with an even last digit. The standard library of Rust uses the larger one.
fn shortest(json: &str) -> (String, i32) {
    let (mantissa, exponent) = json.split_once('e').unwrap_or((json, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return ("0".to_owned(), 0);
    }
    let signed = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    let first = signed(whole.len()) - signed(all.len() - significant.len()) - 1;
    (significant.trim_end_matches('0').to_owned(), first + exponent.parse().unwrap_or(0))
}

/// Formats a `float32` in the format `g`, with the fewest digits that can be parsed back to the same number.
pub fn format_float32(value: f32) -> String {
    if !value.is_finite() {
        return format_float(value.into(), 'g', None);
    }
    let (digits, exponent) = shortest(&serde_json::to_string(&value.abs()).unwrap_or_default());
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}", generally(&digits, exponent, None))
}

fn scientific(value: f64, precision: Option<usize>) -> String {
    let (digits, exponent) = digits(value, precision);
    spelled(&digits, exponent)
}

/// Formats digits in the format `e`, such as `1.5e+07`. `exponent` is the decimal exponent of the first digit.
fn spelled(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(digits.len().min(1));
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
}

fn general(value: f64, precision: Option<usize>) -> String {
    let wanted = precision.map(|precision| precision.max(1));
    let (all, exponent) = digits(value, wanted.map(|wanted| wanted - 1));
    generally(&all, exponent, wanted)
}

/// Formats the digits `all` in the format `g`. The result has an exponent only if the number is very small or large.
/// `exponent` is the decimal exponent of the first digit, and `wanted` is the requested number of significant digits.
fn generally(all: &str, exponent: i32, wanted: Option<usize>) -> String {
    let significant = all.trim_end_matches('0');
    let significant = if significant.is_empty() { "0" } else { significant };
    let count = i32::try_from(significant.len()).unwrap_or(i32::MAX);
    let limit = match wanted.and_then(|wanted| i32::try_from(wanted).ok()) {
        None => 6,
        // Go uses the existing digits if they reach the decimal point.
        Some(wanted) if wanted > count && count > exponent => count,
        Some(wanted) => wanted,
    };
    if exponent < -4 || exponent >= limit {
        return spelled(significant, exponent);
    }
    placed(significant, exponent)
}

/// Formats digits with a decimal point and the necessary zeros. `exponent` is the decimal exponent of the first digit.
fn placed(digits: &str, exponent: i32) -> String {
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    match digits.len() {
        length if length <= whole => format!("{digits}{}", "0".repeat(whole - length)),
        _ if whole == 0 => format!("0.{digits}"),
        _ => format!("{}.{}", &digits[..whole], &digits[whole..]),
    }
}

/// Returns the bits of the mantissa, including the implied leading bit, and the binary exponent of the last bit.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0) {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    }
}

fn binary(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    format!("{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    // Go shifts the leading bit to bit 60.
    exponent = if mantissa == 0 { 0 } else { exponent + 52 };
    mantissa <<= 8;
    while mantissa != 0 && mantissa & 1 << 60 == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = precision * 4;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & 1 << 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(precision) => {
            fraction.truncate(precision);
            fraction.extend(std::iter::repeat_n('0', precision.saturating_sub(15)));
        }
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{fraction}p{sign}{:02}", mantissa >> 60 & 1, exponent.abs())
}
