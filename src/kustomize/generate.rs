//! Converts two data files about kustomize into Rust source. One contains the OpenAPI schemas that are built into
//! kustomize. The other contains the fields that built-in transformers such as `namePrefix` change. `build.rs` runs
//! this module.
//!
//! The data becomes static data of the program, because parsing the files at run time took a third of the time of a
//! small build.

use std::fmt::Write as _;

/// The placeholder for an empty value in the tables of built-in definitions and field specs.
const NONE: &str = "-";

/// Returns Rust source code for the OpenAPI schema of Kubernetes kinds that is built into kustomize. `table` is the
/// text of `schema/built_in.txt`, which contains the schema.
pub(crate) fn definitions(table: &str) -> String {
    let mut shapes = Shapes::default();
    shapes.add("EMPTY".to_owned());
    let (mut names, mut kinds, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    // the shape of the definition whose fields follow
    let mut open: Option<usize> = None;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        match line.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
            ["kind", version, kind, name] => kinds.push((*kind, *version, *name)),
            ["type", name] => {
                shapes.close(open, &mut fields);
                let id = shapes.add("EMPTY".to_owned());
                names.push((*name, id));
                open = Some(id);
            }
            [field, how, what @ ..] => {
                let id = shapes.add_field(how, what);
                fields.push(format!("({}, {id})", text(field)));
            }
            _ => {}
        }
    }
    shapes.close(open, &mut fields);
    names.sort_unstable();
    kinds.sort_by_key(|(kind, version, _)| (*kind, *version));
    // a definition that the table omits has the first shape, which is empty
    let id_of = |name: &str| names.iter().find(|(own, _)| *own == name).map_or(0, |(_, id)| *id);
    let kinds =
        kinds.iter().map(|(kind, version, name)| format!("({}, {}, {})", text(kind), text(version), id_of(name)));
    let names = names.iter().map(|(name, id)| format!("({}, {id})", text(name)));
    let shapes = list("SHAPES", "Shape", shapes.0.into_iter());
    shapes + &list("NAMES", "(Name, ShapeId)", names) + &list("KINDS", "(Name, Name, ShapeId)", kinds)
}

/// The Rust source of each schema (`Shape`); the index is the id of the schema.
#[derive(Default)]
struct Shapes(Vec<String>);

impl Shapes {
    fn add(&mut self, shape: String) -> usize {
        self.0.push(shape);
        self.0.len() - 1
    }

    /// Adds the schema of a field and returns its id. `how` is the type of the field. `what` depends on the type:
    ///
    /// - `object`: an object. `what` contains the name of its definition.
    /// - `values`: a mapping of objects. `what` contains the name of the definition of these objects.
    /// - `list`: a list. `what` contains the name of the definition of the elements.
    /// - `merge`: a list whose elements a patch identifies by merge keys. `what` contains these keys, and the name of
    ///   the definition of the elements.
    fn add_field(&mut self, how: &str, what: &[&str]) -> usize {
        let shape = match (how, what) {
            ("merge", [keys, items]) => {
                let keys = keys.split(',').filter(|key| *key != NONE).map(text).collect::<Vec<_>>().join(", ");
                let items = self.items(items);
                format!(
                    "Shape {{ merges: true, keys: Cow::Borrowed(const {{ &[{keys}] }}), is_array: true, items: {items}, ..EMPTY }}"
                )
            }
            ("list", [items]) => format!("Shape {{ is_array: true, items: {}, ..EMPTY }}", self.items(items)),
            ("values", [name]) => format!("Shape {{ values: Some({}), ..EMPTY }}", self.reference(name)),
            (_, [name]) => return self.reference(name),
            _ => "EMPTY".to_owned(),
        };
        self.add(shape)
    }

    fn items(&mut self, name: &str) -> String {
        if name == NONE { "None".to_owned() } else { format!("Some({})", self.reference(name)) }
    }

    fn reference(&mut self, name: &str) -> usize {
        self.add(format!("Shape {{ reference: Some({}), ..EMPTY }}", text(name)))
    }

    /// Completes the schema of a type: adds the collected `fields` to the schema with the id `definition`, and clears
    /// `fields`. If `definition` is `None`, the fields are discarded.
    fn close(&mut self, definition: Option<usize>, fields: &mut Vec<String>) {
        let own = std::mem::take(fields).join(", ");
        if let Some(shape) = definition.and_then(|id| self.0.get_mut(id)) {
            *shape = format!("Shape {{ fields: Cow::Borrowed(const {{ &[{own}] }}), ..EMPTY }}");
        }
    }
}

/// Returns Rust source code for the built-in field specs, which are the fields that built-in transformers change.
/// `table` is the text of `engine/field_specs.txt`, which contains the field specs.
pub(crate) fn field_specs(table: &str) -> String {
    let (mut lists, mut references) = (Vec::<(String, Vec<String>)>::new(), Vec::<(String, Vec<String>)>::new());
    let mut is_reference = false;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split_ascii_whitespace().map(|word| if word == NONE { "" } else { word }).collect();
        match words.as_slice() {
            [group, version, kind, create, path] if line.starts_with(' ') => {
                let spec = format!(
                    "FieldSpec {{ {}, path: {}, create: {} }}",
                    gvk(group, version, kind),
                    text(path),
                    *create == "create"
                );
                let lists = if is_reference { &mut references } else { &mut lists };
                lists.last_mut().into_iter().for_each(|(_, specs)| specs.push(spec.clone()));
            }
            ["nameReference", group, version, kind] => {
                is_reference = true;
                references.push((gvk(group, version, kind), Vec::new()));
            }
            [name, ..] => {
                is_reference = false;
                lists.push((format!("{name:?}"), Vec::new()));
            }
            [] => {}
        }
    }
    let lists = lists.iter().map(|(name, specs)| format!("({name}, const {{ &[{}] }})", specs.join(", ")));
    let references = references.iter().map(|(gvk, specs)| {
        format!("NameReference {{ {gvk}, referrers: Cow::Borrowed(const {{ &[{}] }}) }}", specs.join(", "))
    });
    list("LISTS", "(&str, &[FieldSpec])", lists) + &list("NAME_REFERENCES", "NameReference", references)
}

fn gvk(group: &str, version: &str, kind: &str) -> String {
    format!("group: {}, version: {}, kind: {}", text(group), text(version), text(kind))
}

fn text(text: &str) -> String {
    format!("Cow::Borrowed({text:?})")
}

fn list(name: &str, of: &str, items: impl ExactSizeIterator<Item = String>) -> String {
    let mut source = format!("static {name}: [{of}; {}] = [\n", items.len());
    for item in items {
        let _ = writeln!(source, "    {item},");
    }
    source + "];\n"
}
