//! Timestamps as go-yaml parses them and Go's JSON writes them.

use std::fmt;

/// A point in time with the time zone in which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp {
    date: [u32; 3],
    time: [u32; 3],
    nanos: u32,
    /// The time zone as minutes east of Greenwich.
    zone: i32,
}

/// Maximum number of digits of fractional seconds, as in Go.
const FRACTION: usize = 9;
/// Maximum number of hours in the offset of a time zone, as in Go.
const HOURS_OF_ZONE: u32 = 24;
/// Maximum minutes in the UTC offset of a time zone. For example, the offset `+05:30` has 30 minutes. Go has the same
/// maximum.
const MINUTES_OF_ZONE: u32 = 60;

impl Timestamp {
    /// Parses a timestamp in one of go-yaml's four forms: `2006-1-2`, `2006-1-2 15:4:5`, `2006-1-2T15:4:5Z` or
    /// `2006-1-2t15:4:5Z`. Returns `None` for other texts.
    pub(super) fn read(text: &str) -> Option<Self> {
        // Most texts are not dates; this check is cheaper than a search.
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        let (date, rest) = match text.find(['T', 't', ' ']) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let date = day(date)?;
        let Some(separator) = rest.chars().next() else {
            return Some(Self { date, time: [0; 3], nanos: 0, zone: 0 });
        };
        // In a layout of Go, one space matches any number of spaces.
        let (clock, zone) = if separator == ' ' { (rest.trim_start_matches(' '), 0) } else { split_zone(&rest[1..])? };
        let (time, nanos) = clock_of(clock)?;
        Some(Self { date, time, nanos, zone })
    }
}

/// Parses a date such as `2026-01-31` into year, month and day. The year must have four digits.
fn day(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('-');
    let year = parts.next().filter(|year| year.len() == 4).and_then(number)?;
    let month = parts.next().and_then(short).filter(|month| (1..=12).contains(month))?;
    let day = parts.next().and_then(short)?;
    (parts.next().is_none() && (1..=days(year, month)).contains(&day)).then_some([year, month, day])
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => 31,
    }
}

fn split_zone(text: &str) -> Option<(&str, i32)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (clock, zone) = text.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let two = |text: &str| number(text).filter(|_| text.len() == 2);
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let east = (hours <= HOURS_OF_ZONE && minutes <= MINUTES_OF_ZONE).then_some((hours * 60 + minutes) as i32)?;
    Some((clock, if zone.starts_with('-') { -east } else { east }))
}

/// Parses hours, minutes, seconds and an optional fraction of a second. Returns the fraction in nanoseconds.
fn clock_of(text: &str) -> Option<([u32; 3], u32)> {
    let (clock, fraction) = match text.find(['.', ',']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let mut next = |limit: u32| parts.next().and_then(short).filter(|part| *part < limit);
    let time = [next(24)?, next(60)?, next(60)?];
    let nanos = fraction.map_or(Some(0), nanos)?;
    parts.next().is_none().then_some((time, nanos))
}

fn nanos(digits: &str) -> Option<u32> {
    let is_fraction = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let kept = digits.get(..FRACTION.min(digits.len()))?;
    is_fraction.then(|| format!("{kept:0<FRACTION$}").parse().ok())?
}

fn short(text: &str) -> Option<u32> {
    number(text).filter(|_| text.len() <= 2)
}

fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl fmt::Display for Timestamp {
    /// Formats the time in RFC 3339, without trailing zeros in the fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([year, month, day], [hour, minute, second]) = (self.date, self.time);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        let minutes = self.zone.unsigned_abs();
        match self.zone {
            0 => f.write_str("Z"),
            zone => write!(f, "{}{:02}:{:02}", if zone < 0 { '-' } else { '+' }, minutes / 60, minutes % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Option<String> {
        Timestamp::read(text).map(|time| time.to_string())
    }

    #[test]
    fn reads_the_four_forms() {
        assert_eq!(json("2001-1-1").as_deref(), Some("2001-01-01T00:00:00Z"));
        assert_eq!(json("2001-12-14t21:59:43.10-05:00").as_deref(), Some("2001-12-14T21:59:43.1-05:00"));
        assert_eq!(json("2001-12-14T1:2:3Z").as_deref(), Some("2001-12-14T01:02:03Z"));
        assert_eq!(json("2001-12-14 21:59:43").as_deref(), Some("2001-12-14T21:59:43Z"));
        assert_eq!(json("2001-12-14   1:2:3,5").as_deref(), Some("2001-12-14T01:02:03.5Z"));
        assert_eq!(json("2001-12-14T1:2:3+24:60").as_deref(), Some("2001-12-14T01:02:03+25:00"));
    }

    #[test]
    fn refuses_everything_else() {
        for text in ["2001-02-29", "2001-12-14 21:59:43 -5", "2001-12-14T21:59:43", "01-01-01", "2001-01-01x", "1.2.3"]
        {
            assert_eq!(json(text), None, "{text:?}");
        }
    }
}
