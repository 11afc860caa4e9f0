//! Checks cron schedules as Landscaper does.
//!
//! Source: `ParseStandard` of robfig/cron v3: five fields or a descriptor, with an optional time zone before them.
//! `ParseStandard` also accepts `?` as `*`, ignores empty parts between commas, and reads `5/2` as every second value
//! from 5.

use super::duration;

/// A field of a cron schedule, such as the month, with its range of numbers. `names` contains the names that can be
/// used instead of the numbers, such as `jan`. The first name stands for the number `least`.
struct Field {
    name: &'static str,
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

static FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, greatest: 59, names: &[] },
    Field { name: "hour", least: 0, greatest: 23, names: &[] },
    Field { name: "day of the month", least: 1, greatest: 31, names: &[] },
    Field { name: "month", least: 1, greatest: 12, names: MONTHS },
    Field { name: "day of the week", least: 0, greatest: 6, names: DAYS },
];

const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The areas of the time zone database: the first part of names such as `Europe/Berlin`.
const AREAS: &[&str] = &[
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Brazil",
    "Canada",
    "Chile",
    "Etc",
    "Europe",
    "Indian",
    "Mexico",
    "Pacific",
    "US",
];
/// The names of time zones that have no area, such as `UTC`. Go also accepts an empty name and `Local`.
const ZONES: &[&str] = &[
    "",
    "CET",
    "CST6CDT",
    "Cuba",
    "EET",
    "EST",
    "EST5EDT",
    "Egypt",
    "Eire",
    "GB",
    "GMT",
    "Greenwich",
    "HST",
    "Hongkong",
    "Iceland",
    "Iran",
    "Israel",
    "Jamaica",
    "Japan",
    "Kwajalein",
    "Libya",
    "Local",
    "MET",
    "MST",
    "MST7MDT",
    "NZ",
    "Navajo",
    "PRC",
    "PST8PDT",
    "Poland",
    "Portugal",
    "ROC",
    "ROK",
    "Singapore",
    "Turkey",
    "UCT",
    "UTC",
    "Universal",
    "W-SU",
    "WET",
    "Zulu",
];

/// Returns a description of the mistake in a cron schedule; `None` if Landscaper accepts the schedule.
///
/// If a time zone has an area, such as `Europe`, only the area is checked, because the list of cities changes every
/// year.
pub fn problem(schedule: &str) -> Option<String> {
    let schedule = match schedule.strip_prefix("CRON_TZ=").or_else(|| schedule.strip_prefix("TZ=")) {
        Some(zoned) => {
            let Some((zone, rest)) = zoned.split_once(' ') else {
                return Some("the schedule after the time zone is missing".to_owned());
            };
            let area = zone.split_once('/').map(|(area, _)| area);
            if !area.map_or(ZONES.contains(&zone), |area| AREAS.contains(&area)) {
                return Some(format!("unknown time zone {zone:?}"));
            }
            rest.trim()
        }
        None => schedule,
    };
    if schedule.starts_with('@') { descriptor(schedule) } else { fields(schedule) }
}

fn descriptor(text: &str) -> Option<String> {
    if DESCRIPTORS.contains(&text) {
        return None;
    }
    match text.strip_prefix("@every ") {
        Some(every) if every != "none" && duration::is_duration(every) => None,
        Some(every) => Some(format!("{every:?} is not a duration, such as 1h30m")),
        None => Some(format!("unknown descriptor {text:?}; use one of {}, @every 1h", DESCRIPTORS.join(", "))),
    }
}

fn fields(text: &str) -> Option<String> {
    let parts: Vec<_> = text.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        let names: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
        return Some(format!("it has {} fields, not five: {}", parts.len(), names.join(", ")));
    }
    let mut pairs = FIELDS.iter().zip(parts);
    pairs.find_map(|(field, part)| {
        let mut ranges = part.split(',').filter(|range| !range.is_empty());
        ranges.find(|range| !field.has(range)).map(|range| format!("{range:?} is not a valid {}", field.name))
    })
}

impl Field {
    /// Reports whether a range such as `1-5` or `*/2` is valid for this field of a cron schedule. The range has no
    /// commas.
    fn has(&self, range: &str) -> bool {
        let (range, step) = match range.split_once('/') {
            Some((range, step)) => (range, number(step)),
            None => (range, Some(1)),
        };
        if step.is_none_or(|step| step == 0) {
            return false;
        }
        let (low, high) = match range.split_once('-') {
            Some((_, high)) if high.contains('-') => return false,
            Some((low, high)) => (low, Some(high)),
            None => (range, None),
        };
        if ["*", "?"].contains(&low) {
            return true;
        }
        let (Some(low), Some(high)) = (self.number(low), self.number(high.unwrap_or(low))) else { return false };
        self.least <= low && low <= high && high <= self.greatest
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|at| u32::try_from(at).ok()).map(|at| at + self.least);
        named.or_else(|| number(text))
    }
}

/// Parses a number in the same way as Go's `Atoi`, but accepts no negative numbers.
fn number(text: &str) -> Option<u32> {
    text.strip_prefix('+').unwrap_or(text).bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn accepts_the_schedules_of_robfig_cron() {
        let right = [
            "0 0 * * 0",
            "@daily",
            "@every 1h",
            "*/5 1-3,7 1/2 JAN-mar mon",
            "? * * * ?",
            "CRON_TZ=Europe/Berlin 0 6 * * *",
        ];
        assert!(right.into_iter().all(|text| problem(text).is_none()));
        let wrong = [
            "",
            " ",
            "* * * *",
            "60 * * * *",
            "* * * * 7",
            "5-3 * * * *",
            "*/0 * * * *",
            "@often",
            "@every",
            "1-2-3 * * * *",
            "TZ=UTC",
        ];
        for text in wrong {
            assert!(problem(text).is_some(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[@*?0-9a-z,/ +=-]{0,30}|CRON_TZ=.{0,10}") {
            let _ = problem(&text);
        }
    }
}
