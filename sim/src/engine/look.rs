//! When somebody looks at what happens in a run. The code that every packet runs is compiled for each of these cases,
//! because hardly any run is looked at.

/// Nobody looks at single events.
pub(super) const NEVER: u8 = 0;
/// An observer looks later at what was kept of them.
pub(super) const LATER: u8 = 1;
/// Something looks at each of them in its order: an observer, means over time, the reactions to outages, or a test.
pub(super) const NOW: u8 = 2;
