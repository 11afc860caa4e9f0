//! Parses the HTTP headers `traceparent` and `tracestate` (W3C Trace Context), with which the API server identifies its
//! span.
//!
//! The crate opentelemetry_sdk has a parser for these headers, but it accepts some invalid ones. For example, it
//! accepts ids that are too short, and ids that begin with a plus sign. This parser ignores every header that does not
//! follow the specification.

use std::str::FromStr as _;

use axum::http::HeaderMap;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

// Length of a `traceparent` header of version 00 in bytes: 2, 32, 16 and 2 hexadecimal digits, separated by hyphens.
// Headers of later versions start with the same fields.
const LENGTH: usize = 55;
/// Maximum length of the header `tracestate`. The specification requires that values up to this length are propagated.
/// Longer values are dropped, to bound the memory of queued spans.
const MAX_STATE_LENGTH: usize = 512;

/// Returns the caller's span from the headers. `None` if the headers do not contain exactly one valid span, or if the
/// span is not sampled.
pub(super) fn sampled(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all("traceparent").iter();
    // Duplicate headers are ambiguous.
    let (Some(header), None) = (values.next(), values.next()) else { return None };
    let (trace, span, flags) = parse(header.as_bytes())?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, state(headers));
    (context.is_valid() && context.is_sampled()).then_some(context)
}

fn parse(header: &[u8]) -> Option<(TraceId, SpanId, u8)> {
    let (known, rest) = header.split_at_checked(LENGTH)?;
    let [version, trace, span, flags] = known.split(|byte| *byte == b'-').collect::<Vec<_>>()[..] else { return None };
    let version = u8::try_from(number(version, 2)?).ok()?;
    let is_whole = match version {
        0 => rest.is_empty(),
        u8::MAX => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    let (trace, span, flags) = (number(trace, 32)?, number(span, 16)?, number(flags, 2)?);
    is_whole.then_some((TraceId::from(trace), SpanId::from(u64::try_from(span).ok()?), u8::try_from(flags).ok()?))
}

/// Parses a number of exactly `digits` lower-case hexadecimal digits.
fn number(text: &[u8], digits: usize) -> Option<u128> {
    let is_number = text.len() == digits && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    u128::from_str_radix(text, 16).ok()
}

/// Returns the trace state of the header `tracestate`, or an empty one if it is invalid or too long.
fn state(headers: &HeaderMap) -> TraceState {
    let parts: Option<Vec<_>> = headers.get_all("tracestate").iter().map(|part| part.to_str().ok()).collect();
    let whole = parts.unwrap_or_default().join(",");
    if whole.len() > MAX_STATE_LENGTH {
        return TraceState::NONE;
    }
    TraceState::from_str(&whole).unwrap_or(TraceState::NONE)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        all.iter().map(header).collect()
    }

    fn parent(traceparent: &str) -> Option<SpanContext> {
        sampled(&headers(&[("traceparent", traceparent)]))
    }

    #[test]
    fn accepts_sampled_parents() {
        for (version, flags, more) in
            [("00", "01", ""), ("00", "03", ""), ("cc", "01", ""), ("01", "ff", "-what-is-new")]
        {
            let context = parent(&format!("{version}-{TRACE}-{SPAN}-{flags}{more}")).unwrap();
            assert_eq!((context.trace_id().to_string(), context.span_id().to_string()), (TRACE.into(), SPAN.into()));
            assert!(context.is_remote() && context.trace_flags() == TraceFlags::SAMPLED);
        }
    }

    #[test]
    fn rejects_headers_outside_the_specification() {
        let upper = TRACE.to_uppercase();
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}-00"),
            format!("00-{TRACE}-{SPAN}-02"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("01-{TRACE}-{SPAN}-01more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("+0-{TRACE}-{SPAN}-01"),
            format!("00-{upper}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{TRACE}-{SPAN}0-1"),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00_{TRACE}_{SPAN}_01"),
        ] {
            assert_eq!(parent(&wrong), None, "{wrong}");
        }
        let right = format!("00-{TRACE}-{SPAN}-01");
        assert_eq!(sampled(&headers(&[("traceparent", &right), ("traceparent", &right)])), None, "duplicate header");
        let mut not_ascii = HeaderMap::new();
        not_ascii.insert("traceparent", HeaderValue::from_bytes(&[0xe9; 55]).unwrap());
        assert_eq!(sampled(&not_ascii), None);
    }

    #[test]
    fn propagates_valid_state_only() {
        let right = format!("00-{TRACE}-{SPAN}-01");
        let state = |values: &[&str]| {
            let values = values.iter().map(|value| ("tracestate", *value));
            let all: Vec<_> = [("traceparent", &*right)].into_iter().chain(values).collect();
            sampled(&headers(&all)).unwrap().trace_state().header()
        };
        assert_eq!(state(&[]), "");
        assert_eq!(state(&["congo=t61", "rojo=00f0"]), "congo=t61,rojo=00f0");
        assert_eq!(state(&["no equals sign"]), "");
        assert_eq!(state(&[&format!("a={}", "x".repeat(MAX_STATE_LENGTH))]), "");
    }
}
