//! A request for admission, as rules see it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::Value;

use super::json::{self, JsonError};
use super::scan::Jump;
use super::{Kept, Path, lean};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `CREATE`
    Create,
    /// `UPDATE`, which covers patches and server-side apply
    Update,
    /// `DELETE`; only the old object is there
    Delete,
    /// `CONNECT`, such as exec or proxy
    Connect,
}

impl Operation {
    /// Reads the API server's word.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// The API server's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The resource that a request is about, after the API server's conversion (`matchPolicy: Equivalent`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource<'a> {
    /// API group, empty for the core group.
    pub group: Cow<'a, str>,
    /// API version, such as `v1alpha1`.
    pub version: Cow<'a, str>,
    /// Plural name, such as `installations`.
    pub plural: Cow<'a, str>,
    /// Kind, such as `Installation`.
    pub kind: Cow<'a, str>,
    /// Subresource, such as `status`; empty for the main resource.
    pub subresource: Cow<'a, str>,
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User<'a> {
    /// User name, such as `system:serviceaccount:kube-system:namespace-controller`.
    pub name: Cow<'a, str>,
    /// Groups.
    pub groups: Vec<Cow<'a, str>>,
}

/// The controllers that delete what has lost its namespace or its owner: the namespace controller and the garbage
/// collector, and the controller manager where all its controllers share one identity. Refusing them helps nobody.
pub const COLLECTORS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

impl User<'_> {
    /// Whether it is a ServiceAccount: a controller or a pipeline, and no person.
    pub fn is_service_account(&self) -> bool {
        self.name.starts_with("system:serviceaccount:")
    }

    /// Whether it is one of the [`COLLECTORS`].
    pub fn is_collector(&self) -> bool {
        COLLECTORS.contains(&&*self.name)
    }
}

/// An object of a request: kept as raw text until somebody wants to look inside. Then what is wanted of it is read, and
/// never its `metadata.managedFields`, which no rule looks at.
#[derive(Debug, Default)]
pub struct Object<'a> {
    raw: Option<&'a str>,
    jumps: Vec<Jump>,
    parsed: OnceLock<Parsed>,
    whole: OnceLock<Option<Value>>,
    view: Kept,
}

/// What was read of an object.
#[derive(Debug)]
struct Parsed {
    value: Value,
    /// The parts that were wanted; `None` for all of it.
    parts: Option<Vec<Path>>,
}

static ABSENT: Value = Value::Null;

impl<'a> Object<'a> {
    /// An object that is not parsed yet: its JSON text, or `None` where the request carries none.
    pub fn raw(raw: Option<&'a str>) -> Self {
        Self { raw, ..Self::default() }
    }

    /// As [`Object::raw`], from a text that was walked through.
    pub(super) fn scanned(raw: Option<&'a str>, jumps: Vec<Jump>) -> Self {
        Self { raw, jumps, ..Self::default() }
    }

    /// An object that is there already, from a file.
    pub fn parsed(value: Value) -> Self {
        Self { parsed: OnceLock::from(Parsed { value, parts: None }), ..Self::default() }
    }

    /// Whether the request carries it.
    pub fn is_present(&self) -> bool {
        self.raw.is_some() || self.parsed.get().is_some()
    }

    /// Its JSON text; `None` where the request carries none.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let parsed = || Some(Cow::Owned(self.parsed.get()?.value.to_string()));
        self.raw.map(Cow::Borrowed).or_else(parsed)
    }

    /// Parses it, once: its metadata and what stands at `parts`, or all of it. Wanted again with other parts, it is read
    /// whole.
    ///
    /// # Errors
    /// When it is nested too deep or is no JSON object.
    pub fn read(&self, parts: Option<&[Path]>) -> Result<(), JsonError> {
        let Some(raw) = self.raw else { return Ok(()) };
        if let Some(parsed) = self.parsed.get() {
            let wants_more = parsed.parts.as_deref().is_some_and(|read| parts != Some(read));
            // What was passed over at first may be unreadable.
            return if wants_more && self.whole().is_none() { json::parse(raw).map(|_| ()) } else { Ok(()) };
        }
        let value = lean::parse(raw, &self.jumps, parts).or_else(|_| json::parse(raw))?;
        if !value.is_object() {
            return Err(JsonError::Malformed(format!("it is {}, not an object", json::kind_of(&value))));
        }
        self.parsed.get_or_init(|| Parsed { value, parts: parts.map(<[Path]>::to_vec) });
        Ok(())
    }

    /// All of the object, whatever was wanted of it; `None` where it cannot be read. For what is rarely needed.
    pub fn whole(&self) -> Option<&Value> {
        let Some(raw) = self.raw else { return self.parsed.get().map(|parsed| &parsed.value) };
        self.whole.get_or_init(|| json::parse(raw).ok()).as_ref()
    }

    /// The object, once [read](Self::read); `null` before that and where there is none.
    pub fn value(&self) -> &Value {
        let whole = self.whole.get().and_then(Option::as_ref);
        whole.or_else(|| self.parsed.get().map(|parsed| &parsed.value)).unwrap_or(&ABSENT)
    }

    /// What `make` makes of the object, once it is [read](Self::read): made once for all rules. See [`Kept::or_make`].
    pub fn view<T: Any + Send + Sync + Clone>(&self, make: fn(&Value) -> T) -> T {
        self.view.or_make(|| make(self.value()))
    }
}

/// A request for admission.
///
/// Built by [`super::review::read`] from the wire, or by the offline commands from files.
#[derive(Debug)]
pub struct Request<'a> {
    /// Identifies the request; every answer echoes it.
    pub uid: Cow<'a, str>,
    /// What it is about.
    pub resource: Resource<'a>,
    /// Name of the object; empty when it is still to be generated.
    pub name: Cow<'a, str>,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// What is done.
    pub operation: Operation,
    /// Who does it.
    pub user: User<'a>,
    /// Whether nothing will be stored (`--dry-run=server`).
    pub dry_run: bool,
    /// The object as it is to be; absent on `DELETE`.
    pub object: Object<'a>,
    /// The object as it is; absent on `CREATE`.
    pub old_object: Object<'a>,
    /// When the API server gives up, less a margin for the way back.
    pub deadline: Option<Instant>,
}

impl Request<'_> {
    /// Parses both objects, so that [`Request::object`] and [`Request::old_object`] have them: their metadata and what
    /// stands at `parts`, or all.
    ///
    /// # Errors
    /// Which of the two could not be read, and why.
    pub fn read(&self, parts: Option<&[Path]>) -> Result<(), (&'static str, JsonError)> {
        self.object.read(parts).map_err(|error| ("object", error))?;
        self.old_object.read(parts).map_err(|error| ("oldObject", error))
    }

    /// The object as it is to be; `null` on `DELETE`.
    pub fn object(&self) -> &Value {
        self.object.value()
    }

    /// The object as it is; `null` on `CREATE`.
    pub fn old_object(&self) -> &Value {
        self.old_object.value()
    }

    /// The request with its object as `patch` makes it, as a later webhook sees it.
    #[must_use]
    pub fn patched(mut self, patch: &json_patch::Patch) -> Self {
        let mut object = self.object().clone();
        // A patch of ours fits the object that it was made from.
        if json_patch::patch(&mut object, patch).is_ok() {
            self.object = Object::parsed(object);
        }
        self
    }

    /// The object that the request is about: the new one, or on `DELETE` the old one.
    pub fn subject(&self) -> &Value {
        if self.operation == Operation::Delete { self.old_object() } else { self.object() }
    }

    /// Whether the object is on its way out already (`metadata.deletionTimestamp` is set).
    ///
    /// Such an update only takes finalizers away: refusing it would keep the object for ever.
    pub fn is_being_deleted(&self) -> bool {
        let timestamp = self.object().get("metadata").and_then(|metadata| metadata.get("deletionTimestamp"));
        timestamp.is_some_and(|time| !time.is_null())
    }

    /// The name for people: the object's, or its `generateName` with a star.
    pub fn display_name(&self) -> String {
        let text = |pointer| self.subject().pointer(pointer).and_then(Value::as_str);
        if !self.name.is_empty() {
            return self.name.to_string();
        }
        match (text("/metadata/name"), text("/metadata/generateName")) {
            (Some(name), _) => name.to_owned(),
            (None, Some(prefix)) => format!("{prefix}*"),
            (None, None) => String::new(),
        }
    }
}
