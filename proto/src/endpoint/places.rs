//! The places in which an endpoint keeps its associations. When an association is forgotten, its place is used again
//! with another id.

use crate::AssociationId;
use crate::association::Association;

/// The associations of an endpoint, by place. Most endpoints have one association, so the first place is kept apart
/// from the others: what lies in the endpoint itself is at hand.
#[derive(Clone, Default, Debug)]
pub(super) struct Associations {
    first: Option<Association>,
    /// The places from the second one on.
    others: Vec<Option<Box<Association>>>,
    /// The number of places that were used.
    used: usize,
    /// The next ids for the free places.
    free: Vec<AssociationId>,
}

impl Associations {
    /// The id that the next association must have.
    pub(super) fn next_id(&self) -> AssociationId {
        self.free.last().copied().unwrap_or(AssociationId(self.used as u64))
    }

    /// Stores an association whose id is [`Associations::next_id`].
    pub(super) fn insert(&mut self, association: Association) {
        debug_assert_eq!(association.id(), self.next_id());
        let place = association.id().place();
        if self.free.pop().is_none() {
            self.used += 1;
            self.others.resize_with(self.used - 1, || None);
        }
        match place {
            0 => self.first = Some(association),
            _ => self.others[place - 1] = Some(Box::new(association)),
        }
    }

    /// Forgets an association.
    pub(super) fn free(&mut self, id: AssociationId) {
        if self.of(id).is_some() {
            match id.place() {
                0 => self.first = None,
                place => self.others[place - 1] = None,
            }
            self.free.push(id.successor());
        }
    }

    pub(super) fn of(&self, id: AssociationId) -> Option<&Association> {
        self.in_place(id.place()).filter(|association| association.id() == id)
    }

    pub(super) fn of_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.in_place_mut(id.place()).filter(|association| association.id() == id)
    }

    /// The association in this place.
    #[inline]
    pub(super) fn in_place(&self, place: usize) -> Option<&Association> {
        if place == 0 { self.first.as_ref() } else { self.others.get(place - 1)?.as_deref() }
    }

    /// The association in this place.
    #[inline]
    pub(super) fn in_place_mut(&mut self, place: usize) -> Option<&mut Association> {
        if place == 0 { self.first.as_mut() } else { self.others.get_mut(place - 1)?.as_deref_mut() }
    }

    /// Every association.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Association> {
        self.first.iter_mut().chain(self.others.iter_mut().flatten().map(|association| &mut **association))
    }

    /// The number of places that were created.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.used
    }
}
