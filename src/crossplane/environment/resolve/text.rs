//! Computes the results of `string` transforms.

use serde_json::Value;

use super::super::{Profile, Regexp, Replace, StringTransform, StringType};
use super::TransformError;
use crate::go::fmt::{self, MAX_TEXT, TooLong};
use crate::go::{Any, base64, hash, quote, regexp, to_lower, to_upper};

impl StringTransform {
    pub(super) fn resolve(&self, input: &Any, profile: Profile) -> Result<Any, TransformError> {
        let name = self.string_type.as_str();
        let unset = |what: &str| TransformError::new(format!("string transform of type {name} {what} is not set"));
        match &self.string_type {
            StringType::Format => {
                let format = self.fmt.as_ref().ok_or_else(|| unset("fmt"))?;
                Ok(Any::text(fmt::sprintf(format, std::slice::from_ref(input))?))
            }
            StringType::Convert => convert(self.convert.as_ref().ok_or_else(|| unset("convert"))?, input),
            StringType::TrimPrefix | StringType::TrimSuffix => {
                let trim = self.trim.as_ref().ok_or_else(|| unset("trim"))?;
                let text = fmt::plain(input)?;
                let trimmed = match self.string_type {
                    StringType::TrimPrefix => text.strip_prefix(trim.as_str()),
                    _ => text.strip_suffix(trim.as_str()),
                };
                Ok(Any::text(trimmed.unwrap_or(&text)))
            }
            StringType::Regexp => self.regexp.as_ref().ok_or_else(|| unset("regexp"))?.find(input),
            StringType::Join => join(&self.join.as_ref().ok_or_else(|| unset("join"))?.separator, input, profile),
            StringType::Replace if profile == Profile::Function => {
                self.replace.as_ref().ok_or_else(|| unset("replace"))?.replaced(input)
            }
            StringType::Replace | StringType::Other(_) => {
                Err(TransformError::new(format!("type {name} is not supported for string transform type")))
            }
        }
    }
}

fn convert(conversion: &str, input: &Any) -> Result<Any, TransformError> {
    let text = || fmt::plain(input);
    Ok(Any::text(match conversion {
        "ToUpper" => to_upper(&text()?),
        "ToLower" => to_lower(&text()?),
        "ToJson" => json(input)?,
        "ToBase64" => encoded(&plain_bytes(input)?),
        "FromBase64" => {
            let decoded = base64::decode(&text()?);
            let wrong = |error| TransformError::new(format!("string is not valid base64: {error}"));
            return Ok(Any::bytes(decoded.map_err(wrong)?));
        }
        "ToSha1" => hash::sha1(&hashed(input, "cannot generate hash")?),
        "ToSha256" => hash::sha256(&hashed(input, "cannot generate hash")?),
        "ToSha512" => hash::sha512(&hashed(input, "cannot generate hash")?),
        "ToAdler32" => hash::adler32(&hashed(input, "unable to generate Adler checksum")?).to_string(),
        other => return Err(TransformError::new(format!("type {other} is not supported for string convert"))),
    }))
}

fn json(input: &Any) -> Result<String, TransformError> {
    input.to_json().map_err(|error| TransformError::new(format!("cannot marshal to JSON: {error}")))
}

/// Returns the bytes that Go's format verb `%v` prints for `input`.
fn plain_bytes(input: &Any) -> Result<Vec<u8>, TooLong> {
    match input {
        Any::Bytes(bytes) => Ok(bytes.clone()),
        other => fmt::plain(other).map(String::into_bytes),
    }
}

fn encoded(bytes: &[u8]) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns the bytes to hash. A string is hashed unchanged, and any other value is hashed as JSON. `what` is the prefix
/// of the error message for a value that cannot be encoded as JSON.
fn hashed(input: &Any, what: &str) -> Result<Vec<u8>, TransformError> {
    match input {
        Any::Json(Value::String(text)) => Ok(text.clone().into_bytes()),
        Any::Bytes(bytes) => Ok(bytes.clone()),
        other => json(other).map(String::into_bytes).map_err(|error| error.within(what)),
    }
}

impl Regexp {
    fn find(&self, input: &Any) -> Result<Any, TransformError> {
        let regexp = regexp::compile(&self.pattern)
            .map_err(|error| TransformError::new(format!("could not compile regexp: {error}")))?;
        let group = self.group.unwrap_or(0);
        let Ok(index) = usize::try_from(group) else {
            return Err(TransformError::new(format!("group {group} is negative, which makes Crossplane panic")));
        };
        let text = fmt::plain(input)?;
        let found = regexp.captures(&text).filter(|groups| index < groups.len());
        let groups = found.ok_or_else(|| {
            TransformError::new(format!("regexp {} had no matches for group {group}", quote(&self.pattern)))
        })?;
        Ok(Any::text(groups.get(index).map_or("", |found| found.as_str())))
    }
}

fn join(separator: &str, input: &Any, profile: Profile) -> Result<Any, TransformError> {
    let items = match input {
        Any::Json(Value::Array(items)) => items.as_slice(),
        Any::NilSlice => &[],
        _ if profile == Profile::Native117 => return Err(TransformError::new("cannot join non-array values")),
        _ => return Err(TransformError::new("could not parse input array")),
    };
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        text.push_str(if at > 0 { separator } else { "" });
        text.push_str(&fmt::plain(&Any::Json(item.clone()))?);
        if text.len() > MAX_TEXT {
            return Err(TooLong.into());
        }
    }
    if profile == Profile::Function && !items.is_empty() && !separator.is_empty() {
        // The function removes only one byte of the separator after the last element, whatever its length.
        text.push_str(separator);
        let mut bytes = text.into_bytes();
        bytes.pop();
        return Ok(Any::bytes(bytes));
    }
    Ok(Any::text(text))
}

impl Replace {
    fn replaced(&self, input: &Any) -> Result<Any, TransformError> {
        let text = fmt::plain(input)?;
        let count = text.matches(&self.search).count();
        if text.len().saturating_add(count.saturating_mul(self.replace.len())) > MAX_TEXT {
            return Err(TooLong.into());
        }
        Ok(Any::text(text.replace(&self.search, &self.replace)))
    }
}
