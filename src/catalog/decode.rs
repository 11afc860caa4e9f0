//! Decodes the parts of an object that the catalog stores, directly from its JSON text.
//!
//! The decoder reads the object in one pass. It copies the values of these parts as text. It skips the others, after
//! checking that they are valid JSON. It builds a tree of values only for the fields that indexes read.

use std::borrow::Cow;

use memchr::memchr2;
use serde_json::{Map, Value};

use super::parts::{Part, Selection};
use super::selected;
use crate::admission::json;
use crate::admission::scan::{CheckedValue, Scanner, Unread};

/// A metadata field that is not stored. The API server writes it for every object, and it is often half of the object.
const MANAGED_FIELDS: &str = "managedFields";
const RESOURCE_VERSION: &str = "resourceVersion";
/// Annotation in which `kubectl apply` records the whole object. The catalog does not store this annotation.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of a decoded object, and the parts that the catalog stores. After a decoding error, the values are
/// incomplete.
#[derive(Debug, Default)]
pub(super) struct Decoded<'t> {
    /// `metadata.namespace`; empty if absent.
    pub(super) namespace: Cow<'t, str>,
    /// `metadata.name`; empty if absent.
    pub(super) name: Cow<'t, str>,
    /// `metadata.resourceVersion`; empty if absent.
    pub(super) resource_version: Cow<'t, str>,
    /// `apiVersion`; empty if absent.
    pub(super) api_version: Cow<'t, str>,
    /// The parts of the object that the catalog stores, as JSON text. Kind, name and namespace are not included.
    pub(super) text: String,
    /// The maximum depth to which objects and lists are nested in `text`.
    pub(super) depth: usize,
    /// The stored fields that the indexes read. Name and namespace are not included.
    pub(super) indexed: Map<String, Value>,
}

/// Decodes an object from its JSON text, and writes the result to `out`. Decodes only the fields in `selection`.
///
/// # Errors
///
/// If the text is not a JSON object.
pub(super) fn decode<'t>(selection: &Selection, text: &'t str, out: &mut Decoded<'t>) -> Result<(), String> {
    if !Scanner::new(text).is_at_object() {
        return Err("it is not an object".to_owned());
    }
    let decoded = decode_start(selection, text, out);
    let ended = decoded.and_then(|length| Scanner::new(text).starting_at(length).end());
    // The parser's messages are more precise, and contain the line and the column.
    ended.map_err(|unread| json::parse(text).map_or_else(|error| error.to_string(), |_| unread.to_string()))
}

/// Decodes the object at the start of a JSON text, as [`decode`] does. The text may continue after the object. Returns
/// the length of the object in bytes, including white space before it.
///
/// # Errors
///
/// If the text does not begin with a JSON object, or ends before the object ends.
pub(super) fn decode_start<'t>(selection: &Selection, text: &'t str, out: &mut Decoded<'t>) -> Result<usize, Unread> {
    let mut decoder = Decoder { scanner: Scanner::new(text), depth: 0, out };
    let indexed = decoder.object(&selection.stored, Some(&selection.indexed), Place::Root)?;
    let length = decoder.scanner.at();
    out.indexed = indexed.unwrap_or_default();
    Ok(length)
}

/// The position of the decoder in an object: the whole object, its metadata, its annotations, or any other value.
/// Metadata and annotations have members that are never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Below,
}

/// How a member of an object is decoded: skipped, copied, or decoded further.
enum Member<'p> {
    Skip,
    ApiVersion,
    Namespace,
    Name,
    /// The member is `metadata.resourceVersion`. Its value is always written to `Decoded::resource_version`. If
    /// `is_kept` is true, it also becomes part of `Decoded::text`, because the catalog stores this field.
    ResourceVersion {
        is_kept: bool,
    },
    Keep(&'p Part, Place),
}

impl Place {
    fn member<'p>(self, part: &'p Part, key: &str) -> Member<'p> {
        let keep = |place| part.member(key).map_or(Member::Skip, |part| Member::Keep(part, place));
        match (self, key) {
            (Self::Root, "apiVersion") => Member::ApiVersion,
            (Self::Root, "kind") => Member::Skip,
            (Self::Root, "metadata") => {
                static NOTHING: Part = Part::Members(Vec::new());
                Member::Keep(part.member(key).unwrap_or(&NOTHING), Self::Metadata)
            }
            (Self::Metadata, "name") => Member::Name,
            (Self::Metadata, "namespace") => Member::Namespace,
            (Self::Metadata, RESOURCE_VERSION) => Member::ResourceVersion { is_kept: part.member(key).is_some() },
            (Self::Metadata, MANAGED_FIELDS) | (Self::Annotations, LAST_APPLIED) => Member::Skip,
            (Self::Metadata, "annotations") => keep(Self::Annotations),
            _ => keep(Self::Below),
        }
    }
}

/// A decoder that copies selected fields of a JSON value to `out`, as JSON text.
struct Decoder<'t, 'o> {
    scanner: Scanner<'t>,
    /// Number of objects and lists around the position of the scanner.
    depth: usize,
    out: &'o mut Decoded<'t>,
}

impl<'t> Decoder<'t, '_> {
    /// Decodes the value at the position of the scanner. `part` selects the fields to copy. `indexed` selects the
    /// fields to return; `None` if no field of the value is returned.
    fn value(&mut self, part: &Part, indexed: Option<&Part>, place: Place) -> Result<Option<Value>, Unread> {
        let is_copied = matches!(part, Part::Whole) && place == Place::Below;
        if !is_copied && self.scanner.is_at_object() {
            Ok(self.object(part, indexed, place)?.map(Value::Object))
        } else if !is_copied && self.scanner.is_at_list() {
            Ok(self.list(part.item(), indexed.map(Part::item))?.map(Value::Array))
        } else {
            let value = self.scanner.checked_value()?;
            Ok(self.copy(value, indexed))
        }
    }

    fn list(&mut self, item: &Part, indexed: Option<&Part>) -> Result<Option<Vec<Value>>, Unread> {
        let mut items = indexed.map(|_| Vec::new());
        self.scanner.open_list()?;
        self.enter('[');
        let start = self.out.text.len();
        while self.scanner.item()? {
            self.separate(start);
            let value = self.value(item, indexed, Place::Below)?;
            if let Some(items) = &mut items {
                items.extend(value);
            }
        }
        self.leave(']');
        Ok(items)
    }

    fn object(
        &mut self,
        part: &Part,
        indexed: Option<&Part>,
        place: Place,
    ) -> Result<Option<Map<String, Value>>, Unread> {
        let mut members = indexed.map(|_| Map::new());
        self.scanner.open()?;
        self.enter('{');
        let start = self.out.text.len();
        while let Some(key) = self.scanner.key()? {
            let value = self.member(&key, part, indexed, place, start)?;
            if let (Some(members), Some(value)) = (&mut members, value) {
                members.insert(key.into_owned(), value);
            }
        }
        self.leave('}');
        Ok(members)
    }

    fn enter(&mut self, bracket: char) {
        self.out.text.push(bracket);
        self.depth += 1;
        self.out.depth = self.out.depth.max(self.depth);
    }

    fn leave(&mut self, bracket: char) {
        self.out.text.push(bracket);
        self.depth -= 1;
    }

    /// Decodes the member `key` of an object. `part` and `indexed` are the selections for the object, and its members
    /// are written from `start` on. Returns the fields in the member that `indexed` selects; `None` if it selects
    /// nothing.
    fn member(
        &mut self,
        key: &str,
        part: &Part,
        indexed: Option<&Part>,
        place: Place,
        start: usize,
    ) -> Result<Option<Value>, Unread> {
        let indexed = || indexed.and_then(|indexed| indexed.member(key));
        match place.member(part, key) {
            Member::Skip => drop(self.scanner.checked_value()?),
            Member::ApiVersion => self.out.api_version = self.string()?,
            Member::Namespace => self.out.namespace = self.string()?,
            Member::Name => self.out.name = self.string()?,
            Member::ResourceVersion { is_kept } => {
                let version = self.scanner.checked_value()?;
                self.out.resource_version = Scanner::new(version.text).string().unwrap_or_default();
                if is_kept {
                    self.begin_member(key, start);
                    return Ok(self.copy(version, indexed()));
                }
            }
            Member::Keep(part, place) => {
                self.begin_member(key, start);
                return self.value(part, indexed(), place);
            }
        }
        Ok(None)
    }

    /// Copies a JSON value. Returns the fields in it that `indexed` selects; `None` if `indexed` is `None`.
    fn copy(&mut self, value: CheckedValue<'_>, indexed: Option<&Part>) -> Option<Value> {
        match value.has_blanks {
            true => copy_compact(value.text, &mut self.out.text),
            false => self.out.text.push_str(value.text),
        }
        self.out.depth = self.out.depth.max(self.depth + value.depth);
        // The value is valid JSON. If it is nested too deep, the whole object is rejected later.
        indexed.map(|indexed| selected::parse(indexed, value.text).unwrap_or_default())
    }

    /// Writes the key of a member. `start` is the beginning of the object's members.
    fn begin_member(&mut self, key: &str, start: usize) {
        self.separate(start);
        push_key(key, &mut self.out.text);
    }

    /// Writes a comma, unless the object or list whose text begins at `start` is still empty.
    fn separate(&mut self, start: usize) {
        if self.out.text.len() > start {
            self.out.text.push(',');
        }
    }

    /// Decodes a string. Returns an empty string if the value has another type.
    fn string(&mut self) -> Result<Cow<'t, str>, Unread> {
        if self.scanner.is_at_string() {
            return self.scanner.string();
        }
        self.scanner.checked_value().map(|_| Cow::default())
    }
}

/// Appends the key of a member and a colon to `out`.
fn push_key(key: &str, out: &mut String) {
    if key.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
        out.extend(["\"", key, "\":"]);
    } else {
        out.push_str(&Value::from(key).to_string());
        out.push(':');
    }
}

/// Appends a JSON text to `out`, without the white space between its tokens.
fn copy_compact(json: &str, out: &mut String) {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let (bytes, mut from, mut at) = (json.as_bytes(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'"' {
            at = end_of_string(bytes, at);
        } else if is_blank(byte) {
            out.push_str(json.get(from..at).unwrap_or_default());
            at += bytes.iter().skip(at).take_while(|byte| is_blank(byte)).count();
            from = at;
        } else {
            at += 1;
        }
    }
    out.push_str(json.get(from..).unwrap_or_default());
}

/// Returns the position after the string whose opening quote is at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => return bytes.len(),
        }
    }
}
