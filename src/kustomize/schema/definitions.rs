//! OpenAPI definitions, reduced to the parts that merging needs.

use std::borrow::Cow;

/// The index of a [`Shape`] in [`Definitions`].
pub(super) type ShapeId = usize;

/// A name in a schema definition, such as the name of a field or a kind. It is borrowed from the binary if the
/// definition is built in, and owned if the definition comes from a file.
pub(super) type Name = Cow<'static, str>;

/// A reduced OpenAPI schema. It contains only what merging needs: fields, elements of lists, and how lists are merged.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// The name of the definition to which the schema refers (`$ref`).
    pub(super) reference: Option<Name>,
    pub(super) fields: Cow<'static, [(Name, ShapeId)]>,
    /// The schema of all fields that are not in `fields` (`additionalProperties`).
    pub(super) values: Option<ShapeId>,
    pub(super) is_array: bool,
    pub(super) items: Option<ShapeId>,
    /// Whether patches merge the elements of the list instead of replacing the list.
    pub(super) merges: bool,
    pub(super) keys: Cow<'static, [Name]>,
}

impl Shape {
    /// Returns the id of the schema of the field `name`. If the schema does not list the field, returns the id of the
    /// schema of additional properties (`values`), or `None` if there is none.
    pub(super) fn field(&self, name: &str) -> Option<ShapeId> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, id)| *id).or(self.values)
    }
}

/// Schema definitions, indexed by name and by kind. Lookups work only after [`Definitions::sort`].
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) shapes: Cow<'static, [Shape]>,
    pub(super) names: Cow<'static, [(Name, ShapeId)]>,
    /// The kinds, each with its apiVersion and the id of its schema.
    pub(super) kinds: Cow<'static, [(Name, Name, ShapeId)]>,
    /// The id of an empty schema, which is the schema of all fields that are missing in these definitions. `None` if
    /// the definitions are complete. Only kustomize's built-in definitions are not complete, because Portcullis stores
    /// only the fields that matter for merging lists.
    pub(super) opaque: Option<ShapeId>,
}

impl Definitions {
    pub(super) fn add(&mut self, shape: Shape) -> ShapeId {
        self.shapes.to_mut().push(shape);
        self.shapes.len() - 1
    }

    pub(super) fn add_named(&mut self, name: Name, shape: Shape) -> ShapeId {
        let id = self.add(shape);
        self.names.to_mut().push((name, id));
        id
    }

    pub(super) fn shape_mut(&mut self, id: ShapeId) -> Option<&mut Shape> {
        self.shapes.to_mut().get_mut(id)
    }

    /// Registers a definition as the schema of a kind. If several definitions are registered for the same kind, the
    /// last one wins.
    pub(super) fn add_kind(&mut self, api_version: Name, kind: Name, id: ShapeId) {
        self.kinds.to_mut().push((kind, api_version, id));
    }

    /// Sorts the names and kinds, so that lookups can use binary search. Must be called after names or kinds are added.
    pub(super) fn sort(&mut self) {
        self.names.to_mut().sort_by(|(a, _), (b, _)| a.cmp(b));
        self.kinds.to_mut().sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    }

    pub(super) fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the id of the schema that was added first.
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
        let at = self.names.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.names.get(at).map(|(_, id)| *id)
    }

    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<ShapeId> {
        let wanted = (kind, api_version);
        let end = self.kinds.partition_point(|(kind, api_version, _)| (&**kind, &**api_version) <= wanted);
        let (kind, api_version, id) = self.kinds.get(end.checked_sub(1)?)?;
        ((&**kind, &**api_version) == wanted).then_some(*id)
    }
}
