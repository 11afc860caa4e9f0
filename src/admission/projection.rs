//! Parses only the parts of an object that rules read.

use serde_json::{Map, Value};

use super::json;
use super::scan::{Jump, Scanner, Unread};

/// The path of a field in an object. It lists the names of the members from the outermost to the innermost, such as
/// `["spec", "path"]`.
pub type Path = &'static [&'static str];

/// The name of the object member that is always parsed, because every decision and message needs the metadata.
const METADATA: &str = "metadata";
/// The member of `metadata` that is never parsed. The API server writes it for every object, and it is often half of
/// the object's size. It consists of hundreds of small maps, so parsing it would cost more than parsing everything
/// else.
const MANAGED_FIELDS: &str = "managedFields";

/// Parses the JSON text of an object, except `metadata.managedFields`. If `parts` is not `None`, parses only the
/// metadata and the values at the paths in `parts`.
///
/// `jumps` contains the start and end positions of nested values, which an earlier scan of the text recorded. They make
/// it faster to skip the values that are not parsed.
///
/// # Errors
/// Fails in these cases:
///
/// - The text is not valid JSON, is not an object, or is nested too deep.
/// - The metadata is not an object.
/// - A path in `parts` leads through a value that is not an object.
///
/// The caller then parses the whole text with [`json::parse`], which returns a better error if the text is invalid.
pub(super) fn parse(text: &str, jumps: &[Jump], parts: Option<&[Path]>) -> Result<Value, Unread> {
    if json::is_too_deep(text) {
        return Err(Unread::Misplaced("an object with fewer levels", 0));
    }
    let mut scanner = Scanner::new(text).jumping(jumps);
    let object = Part::Object(parts).read(&mut scanner)?;
    scanner.end()?;
    Ok(object)
}

/// A selection of members of a JSON object. Only these members are parsed, and the others are skipped. A member that is
/// an object can have its own selection.
enum Part<'p> {
    /// The object at the top level of the JSON text. `Some` contains the paths of the values to parse, in addition to
    /// the metadata. `None` means that all members are parsed.
    Object(Option<&'p [Path]>),
    Metadata,
    /// The member is a nested object. Only the values at these paths are parsed. The paths are relative to the nested
    /// object.
    Below(Vec<Path>),
}

/// How a member of an object is parsed: whole, in part, or not at all.
enum Member<'p> {
    Omitted,
    Whole,
    Part(Part<'p>),
}

impl<'p> Part<'p> {
    fn member(&self, key: &str) -> Member<'p> {
        match self {
            Self::Object(_) if key == METADATA => Member::Part(Part::Metadata),
            Self::Metadata if key == MANAGED_FIELDS => Member::Omitted,
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
                Member::Omitted => {
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
        false if rests.is_empty() => Member::Omitted,
        false => Member::Part(Part::Below(rests)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omits_only_managed_fields() {
        let text =
            r#"{"a":{"managedFields":1},"metadata":{"name":"n","managedFields":[{"f:a":{}}]},"managedFields":2}"#;
        let projected = json!({"a": {"managedFields": 1}, "metadata": {"name": "n"}, "managedFields": 2});
        assert_eq!(parse(text, &[], None).unwrap(), projected);
    }

    #[test]
    fn parses_only_metadata_and_the_parts() {
        let text = r#"{"metadata":{"name":"n"},"spec":{"a":{"b":1},"c":{"d":2,"e":3},"f":4},"status":{"spec":5}}"#;
        let read = |parts: &[Path]| parse(text, &[], Some(parts)).unwrap();
        assert_eq!(read(&[]), json!({"metadata": {"name": "n"}}));
        let parts: [Path; 3] = [&["spec", "a"], &["spec", "c", "e"], &["spec", "none"]];
        assert_eq!(read(&parts), json!({"metadata": {"name": "n"}, "spec": {"a": {"b": 1}, "c": {"e": 3}}}));
        let parts: [Path; 2] = [&["spec", "a"], &["spec"]];
        assert_eq!(read(&parts)["spec"]["f"], 4);
    }

    #[test]
    fn gives_the_same_result_with_jumps() {
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
    fn rejects_unusual_input() {
        for text in ["[]", "{", "{} {}", r#"{"metadata":null}"#, r#"{"metadata":{"managedFields":}}"#, r#"{"a":01}"#] {
            assert!(parse(text, &[], None).is_err(), "{text}");
        }
        assert!(parse(r#"{"spec":7}"#, &[], Some(&[&["spec", "a"]])).is_err());
    }

    #[test]
    fn rejects_deep_nesting_in_omitted_parts() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        for levels in [0, 1, 125, 126, 127, 128, 1_000] {
            let text = nested(levels);
            assert_eq!(parse(&text, &[], Some(&[])).is_err(), json::parse(&text).is_err(), "{levels}");
        }
        let wide = format!(r#"{{"a":[{}"[[["]}}"#, r#"{"}}[[\"":[]},"#.repeat(500));
        assert!(parse(&wide, &[], Some(&[])).is_ok());
    }
}
