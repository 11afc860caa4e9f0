//! Assigns an integer id to each namespace, separately for each Kubernetes kind. Only namespaces that contain objects
//! of the kind have an id.

use std::collections::HashMap;
use std::sync::Arc;

use super::record::NamespaceId;

/// A namespace, and the number of its objects.
#[derive(Debug)]
struct Namespace {
    name: Arc<str>,
    objects: usize,
}

/// The namespaces that have objects of one kind, each with an integer id. When a namespace has no more objects, its id
/// can be reused for another namespace.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    numbers: HashMap<Arc<str>, NamespaceId>,
    all: Vec<Option<Namespace>>,
}

impl Namespaces {
    /// Returns the id of a namespace; `None` if the namespace has no objects of this kind.
    pub(super) fn number(&self, name: &str) -> Option<NamespaceId> {
        self.numbers.get(name).copied()
    }

    /// Returns the name of the namespace with the id `number`; `None` if no namespace has this id.
    pub(super) fn name(&self, number: NamespaceId) -> Option<&Arc<str>> {
        let namespace = self.all.get(usize::try_from(number).ok()?)?.as_ref()?;
        Some(&namespace.name)
    }

    /// Counts a new object in a namespace. Returns the id of the namespace, and assigns one if this is the first
    /// object. `None` if no id is left, because there are already 4 billion namespaces.
    pub(super) fn enter(&mut self, name: &str) -> Option<NamespaceId> {
        let number = match self.number(name) {
            Some(number) => number,
            None => self.add(name)?,
        };
        self.at(number)?.as_mut()?.objects += 1;
        Some(number)
    }

    /// Counts the removal of an object from the namespace with the id `number`. If the namespace has no more objects,
    /// frees the id.
    pub(super) fn leave(&mut self, number: NamespaceId) {
        let Some(place) = self.at(number) else { return };
        let Some(namespace) = place else { return };
        namespace.objects -= 1;
        if namespace.objects == 0 {
            let gone = place.take();
            gone.map(|gone| self.numbers.remove(&gone.name));
        }
    }

    /// Returns the names of the namespaces, sorted.
    pub(super) fn sorted(&self) -> Vec<&Arc<str>> {
        let mut names: Vec<_> = self.numbers.keys().collect();
        names.sort_unstable();
        names
    }

    fn at(&mut self, number: NamespaceId) -> Option<&mut Option<Namespace>> {
        self.all.get_mut(usize::try_from(number).ok()?)
    }

    fn add(&mut self, name: &str) -> Option<NamespaceId> {
        let name: Arc<str> = name.into();
        let namespace = Some(Namespace { name: Arc::clone(&name), objects: 0 });
        // A linear search is fast enough, because new namespaces are rare.
        let place = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
        let number = NamespaceId::try_from(place).ok()?;
        match self.all.get_mut(place) {
            Some(unused) => *unused = namespace,
            None => self.all.push(namespace),
        }
        self.numbers.insert(name, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_emptied_namespaces_are_used_again() {
        let mut namespaces = Namespaces::default();
        let numbers = ["a", "b", "a"].map(|name| namespaces.enter(name).unwrap());
        assert_eq!(numbers, [0, 1, 0]);
        namespaces.leave(0);
        assert_eq!(namespaces.number("a"), Some(0));
        namespaces.leave(0);
        assert_eq!((namespaces.number("a"), namespaces.name(0)), (None, None));
        assert_eq!(namespaces.enter("c"), Some(0));
        assert_eq!(namespaces.sorted().iter().map(|name| &***name).collect::<Vec<_>>(), ["b", "c"]);
    }
}
