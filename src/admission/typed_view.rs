//! A cache for the typed view of an object. A typed view is a Rust struct that is computed once from the object's JSON.
//! Many rules read it.

use std::any::Any;
use std::sync::OnceLock;

/// A cache for one value of any Rust type that is computed from a Kubernetes object. Several rules need the same value,
/// so it is computed only once.
#[derive(Debug, Default)]
pub struct TypedView(OnceLock<Box<dyn Any + Send + Sync>>);

impl TypedView {
    /// Returns the cached view. If there is none, computes the view with `make` and caches it.
    ///
    /// The cache stores a single view, of the type that is requested first. A view of another type is computed on each
    /// call. Rules use one type of view for each kind of object.
    pub fn get_or_compute<T: Any + Send + Sync + Clone>(&self, make: impl Fn() -> T) -> T {
        let cached = self.0.get_or_init(|| Box::new(make()));
        cached.downcast_ref::<T>().cloned().unwrap_or_else(make)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn computes_the_first_type_once() {
        let (cached, made) = (TypedView::default(), Cell::new(0));
        let make = || {
            made.set(made.get() + 1);
            "text"
        };
        assert_eq!((cached.get_or_compute(make), cached.get_or_compute(make), made.get()), ("text", "text", 1));
        assert_eq!(cached.get_or_compute(|| 5), 5);
    }
}
