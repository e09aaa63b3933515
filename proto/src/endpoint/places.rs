//! The places in which an endpoint keeps its associations. When an association is forgotten, its place is used again
//! with another id.

use std::ops::{Index, IndexMut};

use crate::AssociationId;
use crate::association::Association;

/// The associations of an endpoint, by place.
#[derive(Clone, Default, Debug)]
pub(super) struct Associations {
    places: Vec<Option<Box<Association>>>,
    /// The next ids for the free places.
    free: Vec<AssociationId>,
}

impl Associations {
    /// The id that the next association must have.
    pub(super) fn next_id(&self) -> AssociationId {
        self.free.last().copied().unwrap_or(AssociationId(self.places.len() as u64))
    }

    /// Stores an association whose id is [`Associations::next_id`].
    pub(super) fn insert(&mut self, association: Association) {
        debug_assert_eq!(association.id(), self.next_id());
        let place = association.id().place();
        if self.free.pop().is_none() {
            self.places.push(None);
        }
        self.places[place] = Some(Box::new(association));
    }

    /// Forgets an association.
    pub(super) fn free(&mut self, id: AssociationId) {
        if self.of(id).is_some() {
            self.places[id.place()] = None;
            self.free.push(id.successor());
        }
    }

    pub(super) fn of(&self, id: AssociationId) -> Option<&Association> {
        self.places.get(id.place())?.as_deref().filter(|association| association.id() == id)
    }

    pub(super) fn of_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.places.get_mut(id.place())?.as_deref_mut().filter(|association| association.id() == id)
    }

    /// The association in this place.
    pub(super) fn in_place_mut(&mut self, place: usize) -> Option<&mut Association> {
        self.places.get_mut(place)?.as_deref_mut()
    }

    /// Every association.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Association> {
        self.places.iter_mut().flatten().map(|association| &mut **association)
    }

    /// The number of places that were created.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }
}

impl Index<usize> for Associations {
    type Output = Option<Box<Association>>;

    #[inline]
    fn index(&self, place: usize) -> &Self::Output {
        &self.places[place]
    }
}

impl IndexMut<usize> for Associations {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut Self::Output {
        &mut self.places[place]
    }
}
