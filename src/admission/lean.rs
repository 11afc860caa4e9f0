//! Objects without what no rule reads.

use serde_json::{Map, Value};

use super::json;
use super::scan::{Jump, Scanner, Unread};

/// Where in an object something stands: the names of its members, from the outside in.
pub type Path = &'static [&'static str];

/// Read of every object: gates and messages look at it.
const METADATA: &str = "metadata";
/// Left out of the metadata: written for every object by the API server, often half of its size, and made of hundreds of
/// small maps. Reading it would cost more than all the rest.
const MANAGED_FIELDS: &str = "managedFields";

/// Reads an object without `metadata.managedFields`; of the rest only what stands at `parts`, where they are given.
///
/// What is passed over is followed by its quotes and brackets alone, or jumped over where that was done before.
///
/// # Errors
/// For whatever is not as usual: no JSON, no object, too deep, metadata that is none. [`json::parse`] says what it is.
pub(super) fn parse(text: &str, jumps: &[Jump], parts: Option<&[Path]>) -> Result<Value, Unread> {
    if json::is_too_deep(text) {
        return Err(Unread::Misplaced("an object that is not as deep", 0));
    }
    let mut scanner = Scanner::new(text).jumping(jumps);
    let object = Part::Object(parts).read(&mut scanner)?;
    scanner.end()?;
    Ok(object)
}

/// A part of an object that is read member by member.
enum Part<'p> {
    /// The object itself.
    Object(Option<&'p [Path]>),
    /// Its metadata.
    Metadata,
    /// What is at these paths below it.
    Below(Vec<Path>),
}

/// What becomes of a member.
enum Member<'p> {
    LeftOut,
    Whole,
    Part(Part<'p>),
}

impl<'p> Part<'p> {
    fn member(&self, key: &str) -> Member<'p> {
        match self {
            Self::Object(_) if key == METADATA => Member::Part(Part::Metadata),
            Self::Metadata if key == MANAGED_FIELDS => Member::LeftOut,
            Self::Object(None) | Self::Metadata => Member::Whole,
            Self::Object(Some(paths)) => below(paths, key),
            Self::Below(paths) => below(paths, key),
        }
    }

    fn read(&self, scanner: &mut Scanner<'_>) -> Result<Value, Unread> {
        let mut members = Map::new();
        scanner.open()?;
        while let Some(key) = scanner.key()? {
            let value = match self.member(&key) {
                Member::LeftOut => {
                    scanner.value()?;
                    continue;
                }
                Member::Whole => scanner.parse()?,
                Member::Part(part) => part.read(scanner)?,
            };
            members.insert(key.into_owned(), value);
        }
        Ok(Value::Object(members))
    }
}

fn below<'p>(paths: &[Path], key: &str) -> Member<'p> {
    let rests = paths.iter().filter_map(|path| path.split_first().filter(|(first, _)| **first == key));
    let rests: Vec<Path> = rests.map(|(_, rest)| rest).collect();
    match rests.iter().any(|rest| rest.is_empty()) {
        true => Member::Whole,
        false if rests.is_empty() => Member::LeftOut,
        false => Member::Part(Part::Below(rests)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_left_out_and_nothing_else() {
        let text =
            r#"{"a":{"managedFields":1},"metadata":{"name":"n","managedFields":[{"f:a":{}}]},"managedFields":2}"#;
        let lean = json!({"a": {"managedFields": 1}, "metadata": {"name": "n"}, "managedFields": 2});
        assert_eq!(parse(text, &[], None).unwrap(), lean);
    }

    #[test]
    fn parts_are_read_and_nothing_else_but_metadata() {
        let text = r#"{"metadata":{"name":"n"},"spec":{"a":{"b":1},"c":{"d":2,"e":3},"f":4},"status":{"spec":5}}"#;
        let read = |parts: &[Path]| parse(text, &[], Some(parts)).unwrap();
        assert_eq!(read(&[]), json!({"metadata": {"name": "n"}}));
        let parts: [Path; 3] = [&["spec", "a"], &["spec", "c", "e"], &["spec", "none"]];
        assert_eq!(read(&parts), json!({"metadata": {"name": "n"}, "spec": {"a": {"b": 1}, "c": {"e": 3}}}));
        let parts: [Path; 2] = [&["spec", "a"], &["spec"]];
        assert_eq!(read(&parts)["spec"]["f"], 4);
    }

    #[test]
    fn what_was_passed_over_is_jumped_over() {
        let text = r#"{"metadata":{"name":"n","labels":{"a":"]"}},"spec":{"a":[{"b":"{"}],"c":{"d":[2]},"e":[[3]]}}"#;
        let mut jumps = Vec::new();
        Scanner::new(&format!(" {text}")).value_and_jumps(&mut jumps).unwrap();
        assert_eq!(jumps.len(), 4);
        for parts in [&[][..], &[&["spec", "a"][..]], &[&["spec", "c", "d"]], &[&["spec"]]] {
            assert_eq!(parse(text, &jumps, Some(parts)).unwrap(), parse(text, &[], Some(parts)).unwrap());
        }
        assert_eq!(parse(text, &jumps, None).unwrap(), parse(text, &[], None).unwrap());
    }

    #[test]
    fn what_is_not_as_usual_is_for_others() {
        for text in ["[]", "{", "{} {}", r#"{"metadata":null}"#, r#"{"metadata":{"managedFields":}}"#, r#"{"a":01}"#] {
            assert!(parse(text, &[], None).is_err(), "{text}");
        }
        assert!(parse(r#"{"spec":7}"#, &[], Some(&[&["spec", "a"]])).is_err());
    }

    #[test]
    fn what_is_left_out_may_not_be_deep_either() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        for levels in [0, 1, 125, 126, 127, 128, 1_000] {
            let text = nested(levels);
            assert_eq!(parse(&text, &[], Some(&[])).is_err(), json::parse(&text).is_err(), "{levels}");
        }
        let wide = format!(r#"{{"a":[{}"[[["]}}"#, r#"{"}}[[\"":[]},"#.repeat(500));
        assert!(parse(&wide, &[], Some(&[])).is_ok());
    }
}
