//! Known answers, written by hand from the figures of the RFC.
#[test]
fn sizes() {
    use super::*;
    eprintln!(
        "chunk {} unknown {} param {} cause {} init {} packet {}",
        size_of::<Chunk>(),
        size_of::<chunk::Unknown>(),
        size_of::<Param>(),
        size_of::<Cause>(),
        size_of::<chunk::Init>(),
        size_of::<Packet>()
    );
}
