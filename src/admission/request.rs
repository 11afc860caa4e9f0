//! The admission request that rules read.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::Value;

use super::json::{self, JsonError};
use super::metadata::Metadata;
use super::scan::Jump;
use super::{Path, TypedView, projection};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `CREATE`.
    Create,
    /// `UPDATE`, which includes patches and server-side apply.
    Update,
    /// `DELETE`, which has only the old object.
    Delete,
    /// `CONNECT`, such as exec or proxy.
    Connect,
}

impl Operation {
    /// Parses the API server's name of an operation, such as `CREATE`. Returns `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            "CONNECT" => Some(Self::Connect),
            _ => None,
        }
    }

    /// Returns the API server's name of the operation, such as `CREATE`.
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

/// The resource type of a request. If the API server has converted the object to another version because of
/// `matchPolicy: Equivalent`, this is the type after the conversion.
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

/// The user who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User<'a> {
    /// User name, such as `system:serviceaccount:kube-system:namespace-controller`.
    pub name: Cow<'a, str>,
    /// Groups of the user, such as `system:authenticated`.
    pub groups: Vec<Cow<'a, str>>,
}

/// User names of the Kubernetes controllers that delete objects after their namespace or owner is deleted. These are
/// the namespace controller and the garbage collector. `kube-controller-manager` is included, because both controllers
/// may run under its user name. Denying requests of these users would only block the cleanup.
pub const COLLECTORS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

impl User<'_> {
    /// Returns whether the user is a ServiceAccount: a controller or a pipeline, not a person.
    pub fn is_service_account(&self) -> bool {
        self.name.starts_with("system:serviceaccount:")
    }

    /// Returns whether the user is a Kubernetes controller that deletes objects during a cleanup, such as the garbage
    /// collector. [`COLLECTORS`] lists the names of these users.
    pub fn is_collector(&self) -> bool {
        COLLECTORS.contains(&&*self.name)
    }
}

/// An object of a request. It stays raw text until [`Object::read`] parses the required parts. These parts usually do
/// not include `metadata.managedFields`.
#[derive(Debug, Default)]
pub struct Object<'a> {
    raw: Option<&'a str>,
    jumps: Vec<Jump>,
    parsed: OnceLock<Parsed>,
    whole: OnceLock<Option<Value>>,
    view: TypedView,
}

/// The parsed JSON value of an object. It contains the whole object, or only the metadata and the fields in `parts`.
#[derive(Debug)]
struct Parsed {
    value: Value,
    /// The paths of the fields that are parsed, in addition to `metadata`. `None` if the whole object is parsed.
    parts: Option<Vec<Path>>,
}

static ABSENT: Value = Value::Null;

impl<'a> Object<'a> {
    /// Creates an unparsed object from its JSON text. `raw` is `None` if the request does not contain the object.
    pub fn raw(raw: Option<&'a str>) -> Self {
        Self { raw, ..Self::default() }
    }

    /// Creates an unparsed object from its JSON text, as [`Object::raw`] does. `jumps` contains the start and end
    /// positions of nested values, which an earlier scan of the text recorded. With these positions, the parser can
    /// skip the values faster.
    pub(super) fn scanned(raw: Option<&'a str>, jumps: Vec<Jump>) -> Self {
        Self { raw, jumps, ..Self::default() }
    }

    /// Creates an object from a parsed value.
    pub fn parsed(value: Value) -> Self {
        Self { parsed: OnceLock::from(Parsed { value, parts: None }), ..Self::default() }
    }

    /// Returns whether the admission request contains this object. For example, a `CREATE` request has no `oldObject`,
    /// and a `DELETE` request has no `object`.
    pub fn is_present(&self) -> bool {
        self.raw.is_some() || self.parsed.get().is_some()
    }

    /// Returns the JSON text of this object. `None` if the admission request does not contain the object. For example,
    /// a `CREATE` request has no `oldObject`.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let parsed = || Some(Cow::Owned(self.parsed.get()?.value.to_string()));
        self.raw.map(Cow::Borrowed).or_else(parsed)
    }

    /// Parses `metadata` and `parts` of the object, or the whole object if `parts` is `None`. A second call with other
    /// parts parses the whole object.
    ///
    /// # Errors
    /// If the object is not valid JSON, is not a JSON object, or is nested too deep.
    pub fn read(&self, parts: Option<&[Path]>) -> Result<(), JsonError> {
        let Some(raw) = self.raw else { return Ok(()) };
        if let Some(parsed) = self.parsed.get() {
            let wants_more = parsed.parts.as_deref().is_some_and(|read| parts != Some(read));
            // A part that the first call skipped may be invalid.
            return if wants_more && self.whole().is_none() { json::parse(raw).map(|_| ()) } else { Ok(()) };
        }
        let value = projection::parse(raw, &self.jumps, parts).or_else(|_| json::parse(raw))?;
        if !value.is_object() {
            return Err(JsonError::Malformed(format!("it is {}, not an object", json::kind_of(&value))));
        }
        self.parsed.get_or_init(|| Parsed { value, parts: parts.map(<[Path]>::to_vec) });
        Ok(())
    }

    /// Parses and returns the whole object; `None` if it is invalid.
    pub fn whole(&self) -> Option<&Value> {
        let Some(raw) = self.raw else { return self.parsed.get().map(|parsed| &parsed.value) };
        self.whole.get_or_init(|| json::parse(raw).ok()).as_ref()
    }

    /// Returns the parts of the object that [`Object::read`] parsed. Returns `null` before the first call of
    /// [`Object::read`], or if the request does not contain the object.
    pub fn value(&self) -> &Value {
        let whole = self.whole.get().and_then(Option::as_ref);
        whole.or_else(|| self.parsed.get().map(|parsed| &parsed.value)).unwrap_or(&ABSENT)
    }

    /// Returns the typed view of the object. The function `make` computes the view from [`Object::value`] on the first
    /// call. Later calls return the cached view. See [`TypedView::get_or_compute`].
    pub fn view<T: Any + Send + Sync + Clone>(&self, make: fn(&Value) -> T) -> T {
        self.view.get_or_compute(|| make(self.value()))
    }
}

/// An admission request.
///
/// [`super::review::read`] creates it from the API server's JSON. Offline commands create it from files.
#[derive(Debug)]
pub struct Request<'a> {
    /// Unique id of the request. The response repeats it.
    pub uid: Cow<'a, str>,
    /// API group, version and plural name of the resource type, such as `apps`, `v1` and `deployments`.
    pub resource: Resource<'a>,
    /// Name of the object; empty if the API server has not generated the name yet.
    pub name: Cow<'a, str>,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// The operation, such as [`Operation::Create`].
    pub operation: Operation,
    /// The user who sends the request.
    pub user: User<'a>,
    /// Whether the request is a dry run (`--dry-run=server`), whose result is not stored.
    pub dry_run: bool,
    /// The new object; absent on `DELETE`.
    pub object: Object<'a>,
    /// The stored object; absent on `CREATE`.
    pub old_object: Object<'a>,
    /// The time by which the response must be ready. This is the API server's deadline minus a margin for sending the
    /// response. `None` if there is no deadline.
    pub deadline: Option<Instant>,
}

impl Request<'_> {
    /// Parses the metadata and `parts` of both objects. Parses the whole objects if `parts` is `None`. Afterwards,
    /// [`Request::object`] and [`Request::old_object`] return the parsed objects.
    ///
    /// # Errors
    /// If one of the objects cannot be parsed. The error contains the name of the object, `object` or `oldObject`, and
    /// the reason.
    pub fn read(&self, parts: Option<&[Path]>) -> Result<(), (&'static str, JsonError)> {
        self.object.read(parts).map_err(|error| ("object", error))?;
        self.old_object.read(parts).map_err(|error| ("oldObject", error))
    }

    /// Returns the new object; `null` on `DELETE`.
    pub fn object(&self) -> &Value {
        self.object.value()
    }

    /// Returns the stored object; `null` on `CREATE`.
    pub fn old_object(&self) -> &Value {
        self.old_object.value()
    }

    /// Returns the request with `patch` applied to its object. The API server does the same before it calls the next
    /// webhook.
    #[must_use]
    pub fn patched(mut self, patch: &json_patch::Patch) -> Self {
        let mut object = self.object().clone();
        // The patch was computed from this object, so it applies.
        if json_patch::patch(&mut object, patch).is_ok() {
            self.object = Object::parsed(object);
        }
        self
    }

    /// Returns the object that the request is about. This is the new object, or the stored object on `DELETE`.
    pub fn subject(&self) -> &Value {
        if self.operation == Operation::Delete { self.old_object() } else { self.object() }
    }

    /// Returns whether the object is being deleted (`metadata.deletionTimestamp` is set).
    ///
    /// Updates of such an object usually remove finalizers. Denying them would keep the object forever.
    pub fn is_deleting(&self) -> bool {
        Metadata::of(self.object()).is_deleting()
    }

    /// Returns the object's name for messages. If the name is not generated yet, returns `generateName` followed by
    /// `*`.
    pub fn display_name(&self) -> String {
        let metadata = Metadata::of(self.subject());
        if !self.name.is_empty() {
            return self.name.to_string();
        }
        match (metadata.name(), metadata.generate_name()) {
            ("", Some(prefix)) => format!("{prefix}*"),
            (name, _) => name.to_owned(),
        }
    }
}
