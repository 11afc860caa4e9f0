//! Paths of fields in objects.

use std::fmt;

/// The path of a field in an object, printed as Kubernetes prints it: `overwrites[0].source`,
/// `metadata.annotations[portcullis.dev/skip]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A member of an object.
    Key(String),
    /// An element of a list, counted from zero.
    Index(usize),
}

impl FieldPath {
    /// Returns the empty path, which refers to the whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the path of a nested member: `["spec", "path"]` gives `spec.path`.
    pub fn of<const N: usize>(keys: [&str; N]) -> Self {
        Self(keys.map(|key| Segment::Key(key.to_owned())).into())
    }

    /// Returns this path followed by the member `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    /// Returns this path followed by the element `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    /// Returns this path followed by the segments of `inner`.
    #[must_use]
    pub fn join(&self, inner: &Self) -> Self {
        Self([self.segments(), inner.segments()].concat())
    }

    /// Returns the segments, from the object to the field.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns whether the path is empty. The empty path refers to the whole object.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if key.is_empty() || key.contains(['.', '/', '[', ' ']) => {
                    write!(f, "[{key}]")?;
                }
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_paths_as_kubernetes_does() {
        let entry = FieldPath::of(["overwrites"]).index(0).key("source");
        assert_eq!(entry.to_string(), "overwrites[0].source");
        let annotation = FieldPath::of(["metadata", "annotations", "portcullis.dev/skip"]);
        assert_eq!(annotation.to_string(), "metadata.annotations[portcullis.dev/skip]");
    }
}
