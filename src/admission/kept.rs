//! What is worked out of an object once and used by many rules.

use std::any::Any;
use std::sync::OnceLock;

/// The typed view that a system made of an object, kept beside the object.
#[derive(Debug, Default)]
pub struct Kept(OnceLock<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// What `make` makes, made once.
    ///
    /// Every system makes one type of a kind; asked for another type, it is made anew each time.
    pub fn or_make<T: Any + Send + Sync + Clone>(&self, make: impl Fn() -> T) -> T {
        let kept = self.0.get_or_init(|| Box::new(make()));
        kept.downcast_ref::<T>().cloned().unwrap_or_else(make)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_type_is_made_once() {
        let (kept, made) = (Kept::default(), Cell::new(0));
        let make = || {
            made.set(made.get() + 1);
            "text"
        };
        assert_eq!((kept.or_make(make), kept.or_make(make), made.get()), ("text", "text", 1));
        assert_eq!(kept.or_make(|| 5), 5);
    }
}
