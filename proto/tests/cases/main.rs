//! Packets made by hand that a peer, or a stranger, could send, and what is answered: one row a case.

mod bytes;
mod established;
mod strangers;
mod victim;
