//! OpenAPI definitions, reduced to the parts that merging needs.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The index of a shape in its definitions.
pub(super) type ShapeId = usize;

/// A static text from the binary, or an owned one from a file.
pub(super) type Name = Cow<'static, str>;

/// A schema.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The referenced definition.
    pub(super) reference: Option<Name>,
    pub(super) fields: BTreeMap<Name, ShapeId>,
    /// The schema of all other fields.
    pub(super) values: Option<ShapeId>,
    pub(super) is_array: bool,
    pub(super) items: Option<ShapeId>,
    /// Whether patches merge the list.
    pub(super) merges: bool,
    pub(super) keys: Vec<Name>,
}

/// Definitions with their names and kinds.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    shapes: Vec<Shape>,
    names: BTreeMap<Name, ShapeId>,
    /// The apiVersions of each kind, with their definitions.
    kinds: BTreeMap<Name, Vec<(Name, ShapeId)>>,
    /// The shape of omitted definitions; `None` if all are present.
    opaque: Option<ShapeId>,
}

impl Definitions {
    /// Creates definitions that omit parts which merging does not need.
    pub(super) fn reduced() -> Self {
        let mut definitions = Self::default();
        definitions.opaque = Some(definitions.add(Shape::default()));
        definitions
    }

    pub(super) fn add(&mut self, shape: Shape) -> ShapeId {
        self.shapes.push(shape);
        self.shapes.len() - 1
    }

    pub(super) fn add_named(&mut self, name: Name, shape: Shape) -> ShapeId {
        let id = self.add(shape);
        self.names.insert(name, id);
        id
    }

    pub(super) fn shape_mut(&mut self, id: ShapeId) -> Option<&mut Shape> {
        self.shapes.get_mut(id)
    }

    /// Sets the kind of a definition. If it is set several times, the last one wins.
    pub(super) fn add_kind(&mut self, api_version: Name, kind: Name, id: ShapeId) {
        let versions = self.kinds.entry(kind).or_default();
        versions.retain(|(other, _)| *other != api_version);
        versions.push((api_version, id));
    }

    pub(super) fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the shape that was added first.
    pub(super) fn first(&self) -> Option<ShapeId> {
        (!self.shapes.is_empty()).then_some(0)
    }

    pub(super) fn opaque(&self) -> Option<ShapeId> {
        self.opaque
    }

    pub(super) fn shape(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id)
    }

    pub(super) fn named(&self, name: &str) -> Option<ShapeId> {
        self.names.get(name).copied()
    }

    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<ShapeId> {
        let mut versions = self.kinds.get(kind)?.iter();
        versions.find(|(version, _)| version == api_version).map(|(_, id)| *id)
    }
}
