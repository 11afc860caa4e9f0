//! Reads the objects in files one by one. Only one object is in memory at a time.
//!
//! JSON text is split into objects before it is parsed. Other text is split into YAML documents, and each document is
//! parsed separately.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::pieces::{MAX_DOCUMENT_BYTES, PIECE_BYTES, Pieces, SEPARATOR};
use super::{Aliased, MAX_FOLDER_DEPTH, ManifestError, Source, entries, is_manifest};
use crate::admission::scan;
use crate::catalog::frames::{self, FrameError, Frames};
use crate::yaml::{self, Document};

/// A Kubernetes object in a file, as JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Object<'t> {
    /// The `apiVersion` of the object, such as `apps/v1`.
    pub api_version: &'t str,
    /// The `kind` of the object, such as `Deployment`.
    pub kind: &'t str,
    /// The JSON text of the object. Functions of this module may pass a text that continues after the object or ends
    /// before its end; [`each`] passes exactly the object.
    pub text: &'t str,
}

impl Object<'_> {
    /// Returns the API group in `api_version`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Removes the text after the object. Returns an error message if the object is incomplete.
    pub(super) fn alone(self) -> Result<Self, String> {
        let text = scan::length(self.text.as_bytes()).and_then(|length| self.text.get(..length));
        Ok(Self { text: text.ok_or("the object is incomplete")?, ..self })
    }
}

/// A callback that receives each Kubernetes object in a file, and returns the length of its text in bytes. The text
/// that it receives may continue after the object, because the end of the object is not known yet. The callback returns
/// an error message if it cannot process the object, or if the text ends before the object ends. In the second case, it
/// receives the object again, with more text.
pub(super) type Take<'f> = dyn FnMut(Object<'_>) -> Result<usize, String> + 'f;

/// Reads every object in files and folders, and passes it to `take`. Returns all errors. In folders, reads every
/// `.yaml`, `.yml` and `.json` file.
///
/// `take` may receive an object twice, because some files are read again from the start. A file that begins like JSON
/// but is not JSON is read again as YAML. A large file that contains several JSON lists is read again as a sequence of
/// JSON objects.
pub fn each<P: AsRef<Path>>(paths: &[P], mut take: impl FnMut(Object<'_>) -> Result<(), String>) -> Vec<ManifestError> {
    let mut take_alone = |object: Object<'_>| {
        let object = object.alone()?;
        take(object).map(|()| object.text.len())
    };
    files_in(paths).into_iter().flat_map(|found| objects(found, &mut take_alone)).collect()
}

/// A file to read, or a folder that cannot be read. The first value is its path. The second value is `Ok` for a file,
/// and the error for a folder.
pub(super) type Found = (PathBuf, io::Result<()>);

/// Returns the files at `paths`. If a path is a folder, returns the manifest files in this folder, sorted.
pub(super) fn files_in<P: AsRef<Path>>(paths: &[P]) -> Vec<Found> {
    paths.iter().flat_map(|path| files(path.as_ref(), 0)).collect()
}

/// Reads every object in a file, and passes it to `take`. Returns the errors.
pub(super) fn objects((file, found): Found, take: &mut Take<'_>) -> Vec<ManifestError> {
    let mut errors = Vec::new();
    let read = found.and_then(|()| Reading { file: &file, take, errors: &mut errors }.file());
    if let Err(error) = read {
        let (name, problem) = (file.display().to_string(), error.to_string());
        errors.push(ManifestError { name, place: None, problem });
    }
    errors
}

/// Returns the file at `path`. If `path` is a folder, returns the manifest files in it and in its subfolders, sorted.
/// Also returns the folders that cannot be read, with the error. `depth` is the number of folders above `path` that
/// were already entered.
fn files(path: &Path, depth: usize) -> Vec<Found> {
    let all = match path.is_dir() {
        false => return vec![(path.to_owned(), Ok(()))],
        true if depth > MAX_FOLDER_DEPTH => Err(io::Error::other("folders are nested too deep here")),
        true => entries(path),
    };
    match all {
        Ok(all) => {
            let wanted = all.into_iter().filter(|path| path.is_dir() || is_manifest(path));
            wanted.flat_map(|path| files(&path, depth + 1)).collect()
        }
        Err(error) => vec![(path.to_owned(), Err(error))],
    }
}

/// The reason why a file is not read as JSON.
enum NoJson {
    Io(io::Error),
    /// The text is not JSON, or one of its objects has an error. The file is then read again as YAML, because the YAML
    /// parser also knows the position of the error.
    Other,
}

impl From<io::Error> for NoJson {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for NoJson {
    fn from(_: FrameError) -> Self {
        Self::Other
    }
}

/// The task of reading one file of Kubernetes objects. It has the path of the file, the function that receives each
/// object, and the errors so far.
struct Reading<'r, 'f> {
    file: &'r Path,
    take: &'r mut Take<'f>,
    errors: &'r mut Vec<ManifestError>,
}

impl Reading<'_, '_> {
    fn file(&mut self) -> io::Result<()> {
        let mut pieces = Pieces::open(self.file)?;
        pieces.fill(PIECE_BYTES)?;
        // JSON never contains this separator.
        let has_separator = memchr::memmem::find(&pieces.buffer, SEPARATOR).is_some();
        if pieces.buffer.trim_ascii_start().first() == Some(&b'{') && !has_separator {
            match self.json(pieces) {
                Err(NoJson::Io(error)) => return Err(error),
                Err(NoJson::Other) => pieces = Pieces::open(self.file)?,
                Ok(()) => return Ok(()),
            }
        }
        self.documents(pieces)
    }

    /// Reads a JSON file. The file is a Kubernetes List of any size, or a sequence of objects. `pieces` contains the
    /// beginning of the file. Fails if the file cannot be read, or must be read as YAML instead.
    fn json(&mut self, mut pieces: Pieces) -> Result<(), NoJson> {
        if pieces.is_at_end() {
            let text = std::str::from_utf8(&pieces.buffer).map_err(|_| NoJson::Other)?;
            return self.values(text);
        }
        if self.is_list(&pieces.buffer)? {
            // Its buffer can be used again while the list is read.
            drop(pieces);
            match self.list() {
                // The file contains several lists, or is not JSON.
                Err(NoJson::Other) => pieces = Pieces::open(self.file)?,
                read => return read,
            }
        }
        while !pieces.fill(pieces.buffer.len() + PIECE_BYTES)? {
            if pieces.buffer.len() > MAX_DOCUMENT_BYTES {
                return Err(NoJson::Other);
            }
        }
        let text = std::str::from_utf8(&pieces.buffer).map_err(|_| NoJson::Other)?;
        self.values(text)
    }

    /// Returns whether the file is a Kubernetes List. `start` is the beginning of the file. Searches the whole file for
    /// the `kind` if necessary, because kubectl writes `kind` after `items`.
    fn is_list(&self, start: &[u8]) -> Result<bool, NoJson> {
        let mut frames = Frames::default();
        frames.push(start);
        let has_items = frames.advance()?;
        let kind = Some(frames.kind()).filter(|kind| !kind.is_empty());
        match kind.or_else(|| kind_at_end(self.file)).filter(|_| has_items) {
            Some(kind) => Ok(kind.ends_with("List")),
            None => Self::holds_list(&mut File::open(self.file)?),
        }
    }

    fn holds_list(mut text: impl Read) -> Result<bool, NoJson> {
        let mut has_items = false;
        let envelope = framed(&mut text, |item| {
            has_items = true;
            length(item)
        });
        Ok(has_items && envelope.is_ok_and(|envelope| envelope.kind.ends_with("List")))
    }

    fn list(&mut self) -> Result<(), NoJson> {
        framed(&mut File::open(self.file)?, |text| self.value(text)).map(drop)
    }

    /// Reads the consecutive JSON objects in `text`, and passes each one to `take`. If an object is a Kubernetes List,
    /// passes the items of the List instead.
    fn values(&mut self, text: &str) -> Result<(), NoJson> {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let length = length(rest).ok().filter(|_| rest.starts_with('{')).ok_or(NoJson::Other)?;
            let (value, behind) = rest.split_at_checked(length).ok_or(NoJson::Other)?;
            let may_be_list = frames::type_of(value).is_none_or(|(_, kind)| kind.ends_with("List"));
            if may_be_list && Self::holds_list(value.as_bytes())? {
                framed(&mut value.as_bytes(), |text| self.value(text))?;
            } else {
                self.value(value)?;
            }
            rest = behind.trim_start();
        }
        Ok(())
    }

    /// Passes the object at the start of `text` to `take`, and returns the length of the object in bytes. Skips a value
    /// that is not a Kubernetes object. The text may continue after the value.
    fn value(&mut self, text: &str) -> Result<usize, NoJson> {
        if let Some((api_version, kind)) = frames::type_of(text) {
            return (self.take)(Object { api_version: &api_version, kind: &kind, text }).map_err(|_| NoJson::Other);
        }
        let length = length(text)?;
        let value = text.get(..length).unwrap_or_default();
        serde_json::from_str(value).map(|_: serde::de::IgnoredAny| length).map_err(|_| NoJson::Other)
    }

    fn documents(&mut self, mut pieces: Pieces) -> io::Result<()> {
        while let Some((text, lines)) = pieces.next()? {
            for document in yaml::documents(&text, &yaml::Limits::default()) {
                match document {
                    Ok(document) => self.document(document, lines),
                    Err(error) => {
                        let mut place = error.place;
                        place.line += lines;
                        self.fail(Some(place), error.problem.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    fn document(&mut self, mut document: Document, lines: u32) {
        let mut place = document.start();
        place.line += lines;
        if !Aliased::default().take(document.aliased) {
            return self.fail(Some(place), Aliased::problem(document.aliased));
        }
        let mut value = document.value.take();
        drop(document);
        let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        let objects = match value.get_mut("items").filter(|_| is_list).and_then(Value::as_array_mut) {
            Some(items) => std::mem::take(items),
            None => vec![value],
        };
        for object in objects {
            let text = |key| object.get(key).and_then(Value::as_str);
            let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else { continue };
            if let Err(problem) = (self.take)(Object { api_version, kind, text: &object.to_string() }) {
                self.fail(Some(place), problem);
            }
        }
    }

    fn fail(&mut self, place: Option<yaml::Place>, problem: String) {
        let name = self.file.display().to_string();
        let source = || Arc::new(Source { name: name.clone(), text: String::new() });
        let place = place.map(|place| (source(), place));
        self.errors.push(ManifestError { name, place, problem });
    }
}

/// Returns the length in bytes of the JSON value at the start of `text`. Fails if the value is incomplete.
fn length(text: &str) -> Result<usize, NoJson> {
    scan::length(text.as_bytes()).ok_or(NoJson::Other)
}

/// Splits a list into its items while it is read. Passes each item to `take`, as [`Frames::take_items`] describes.
/// Returns the other fields of the list.
///
/// Returns an error if the file contains several objects: first an object that is not a list but has a field `items`,
/// and then a list. At first, such a file looks like a single list. The error asks the user to write each object into
/// its own file.
fn framed(
    from: &mut impl Read,
    mut take: impl FnMut(&str) -> Result<usize, NoJson>,
) -> Result<frames::Envelope, NoJson> {
    let mut frames = Frames::default();
    while !frames.is_complete() {
        frames.read(from, PIECE_BYTES)?;
        match frames.take_items(&mut take) {
            Err(NoJson::Other) if frames.envelope().is_ok_and(|envelope| !envelope.kind.ends_with("List")) => {
                let problem = "it contains an object with the field items, and then a list: write each to its own file";
                return Err(io::Error::other(problem).into());
            }
            taken => taken?,
        }
    }
    Ok(frames.envelope()?)
}

/// Returns the `kind` of a list in a JSON file, if `kind` is written after an array such as `items`. Reads only the end
/// of the file. `None` if no `kind` is found there.
fn kind_at_end(file: &Path) -> Option<String> {
    /// Number of bytes that are read at the end of a JSON file with a Kubernetes List. The `kind` of the List is
    /// usually there, because kubectl writes it after `items`.
    const END_BYTES: u64 = 4096;
    let (mut file, mut end) = (File::open(file).ok()?, Vec::new());
    file.seek(io::SeekFrom::End(0)).ok()?;
    let start = file.stream_position().ok()?.saturating_sub(END_BYTES);
    file.seek(io::SeekFrom::Start(start)).ok()?;
    file.read_to_end(&mut end).ok()?;
    memchr::memrchr_iter(b']', &end).find_map(|bracket| {
        // JSON only if the bracket closes a member of the outermost object.
        let text = [b"{\"items\":[]", end.get(bracket + 1..)?].concat();
        let envelope: frames::Envelope = serde_json::from_slice(&text).ok()?;
        Some(envelope.kind).filter(|kind| !kind.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use super::*;

    fn read(name: &str, content: &[u8]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), content).unwrap();
        let mut found = Vec::new();
        let errors = each(&[folder.path()], |object| {
            let value: Value = serde_json::from_str(object.text).map_err(|error| error.to_string())?;
            found.push(format!("{}/{} {}", object.group(), object.kind, value["metadata"]["name"]));
            Ok(())
        });
        let messages = |error: ManifestError| error.to_string().rsplit_once(name).unwrap().1.to_owned();
        (found, errors.into_iter().map(messages).collect())
    }

    fn things(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("example.org/Thing \"thing-{number}\"")).collect()
    }

    fn thing(number: usize) -> String {
        let padding = "x".repeat(300);
        format!(
            r#"{{"apiVersion":"example.org/v1","kind":"Thing","metadata":{{"name":"thing-{number}"}},"p":"{padding}"}}"#
        )
    }

    #[test]
    fn every_form_of_a_file_has_the_same_objects() {
        for count in [1, 3, 2_000] {
            let all: Vec<_> = (0..count).map(thing).collect();
            let kind_last = format!(r#"{{"apiVersion":"v1","items":[{}],"kind":"List"}}"#, all.join(", "));
            let kind_first = format!(r#"{{"kind":"ThingList","items":[{}],"metadata":{{}}}}"#, all.join("\n,"));
            let forms = [
                kind_last,
                kind_first,
                all.join("\n"),
                all.join("\n---\n"),
                format!("---\n{}", all.join("\n--- # next\n")),
            ];
            for form in forms {
                assert_eq!(read("a.json", form.as_bytes()), (things(count), Vec::new()));
            }
            let mut yaml = String::new();
            for number in 0..count {
                write!(yaml, "---\napiVersion: example.org/v1\nkind: Thing\nmetadata: {{name: thing-{number}}}\n")
                    .unwrap();
                write!(yaml, "text: |\n  {}\n", "line\n  ".repeat(30)).unwrap();
            }
            assert_eq!(read("a.yaml", yaml.as_bytes()), (things(count), Vec::new()));
        }
    }

    #[test]
    fn documents_that_are_no_objects_are_skipped() {
        for text in
            ["{}", "{\"a\": 1}", "[1]", "a: b", "", "{\"kind\":\"List\",\"items\":[1,{\"kind\":\"A\"}]}", "# nothing"]
        {
            assert_eq!(read("a.json", text.as_bytes()), (Vec::new(), Vec::new()), "{text}");
        }
        // An object with `items` that is not a list.
        let text = r#"{"apiVersion":"example.org/v1","items":[{"a":1}],"kind":"Thing","metadata":{"name":"thing-0"}}"#;
        assert_eq!(read("a.json", text.as_bytes()), (things(1), Vec::new()));
    }

    #[test]
    fn the_kind_behind_the_items_decides_what_a_large_file_is() {
        let all: Vec<_> = (0..1_000).map(thing).collect();
        let of_kind = |kind: &str, end: &str| {
            let items = all.join(",");
            format!(
                r#"{{"apiVersion":"example.org/v1","items":[{items}],"kind":"{kind}","metadata":{{"name":"thing-0"}}{end}}}"#
            )
        };
        let found = |text: String| read("a.json", text.as_bytes());
        assert_eq!(found(of_kind("ThingList", "")), (things(1_000), Vec::new()));
        assert_eq!(found(of_kind("ThingList", r#","more":[[{"kind":"Thing"}],"]"]"#)), (things(1_000), Vec::new()));
        assert_eq!(found(of_kind("Thing", "")), (things(1), Vec::new()));
        assert_eq!(found(of_kind("Thing", r#","more":["],\"kind\":\"List\"}"]"#)), (things(1), Vec::new()));
        // The objects of the first list are read twice, before and after the second list is found.
        let (lists, errors) = found(of_kind("ThingList", "") + &of_kind("ThingList", ""));
        assert_eq!((lists.len(), errors), (3_000, Vec::new()));
        let errors = found(of_kind("Thing", "") + &of_kind("ThingList", "")).1;
        assert!(errors.len() == 1 && errors[0].contains("write each to its own file"), "{errors:?}");
    }

    #[test]
    fn errors_have_their_line() {
        let (found, errors) = read("a.yaml", format!("{}\n---\na: [\n", thing(0)).as_bytes());
        assert_eq!((found, errors.len()), (things(1), 1));
        assert!(errors[0].starts_with(":3:") || errors[0].starts_with(":4:"), "{errors:?}");
        let mut long = (0..3_000).map(thing).collect::<Vec<_>>().join("\n---\n");
        long.push_str("\n---\na: b: c\n");
        let (found, errors) = read("a.yaml", long.as_bytes());
        assert_eq!(found.len(), 3_000);
        assert!(errors.len() == 1 && errors[0].starts_with(":6001:"), "{errors:?}");
        assert_eq!(read("a.yaml", b"a: \xff\n").1, [": it is not UTF-8 text"]);
        assert!(!read("a.json", b"{\"a\": [}").1.is_empty());
    }
}
