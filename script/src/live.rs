//! Translates between the script's numbers and the stack's. The stack's tag and TSNs are random; a script's are fixed.

use super::wire::{self, ABORT, HEADER, INIT, INIT_ACK, SHUTDOWN_COMPLETE, number};

/// What is known about the numbers of both ends.
#[derive(Default)]
pub(super) struct Live {
    own: Option<Own>,
    /// The peer's Initiate Tag, which is the verification tag of the stack's packets.
    peer_tag: Option<u32>,
    /// The Initiate Tag of the peer's last INIT.
    last_init: Option<u32>,
    /// The verification tag of the peer's last packet.
    last_tag: u32,
    /// Whether a connect call was made whose INIT was not yet seen.
    pub(super) connecting: bool,
}

/// The tag and the TSN that a script states for an INIT or INIT ACK, if they are numbers.
pub(super) type Written = (Option<u32>, Option<u32>);

/// The stack's tag and first TSN: the script's numbers and the actual ones.
#[derive(Copy, Clone)]
struct Own {
    tag: (u32, u32),
    tsn: (u32, u32),
}

impl Own {
    /// The difference between the actual number and the script's.
    fn shift(&self) -> u32 {
        self.tsn.1.wrapping_sub(self.tsn.0)
    }
}

/// The chunks of `packet`, as far as their lengths are valid: the offset and the bytes of each.
fn walk(packet: &[u8]) -> Vec<(usize, usize)> {
    let (mut places, mut at) = (Vec::new(), HEADER);
    while let Some(&[a, b]) = packet.get(at + 2..at + 4) {
        let length = usize::from(u16::from_be_bytes([a, b]));
        places.push((at, length.min(packet.len() - at)));
        if length < 4 {
            break;
        }
        at += length.next_multiple_of(4);
    }
    places
}

const RECONFIG: u8 = 130;
const OUTGOING_RESET: u16 = 13;
const RESPONSE: u16 = 16;
const RESPONSE_WITH_TSNS: usize = 20;

/// The parameters of the RE-CONFIG chunk at `at`: for each its type, the offset of its first number, and its length.
/// Parameters that are too short for their numbers are left out.
fn requests(packet: &[u8], at: usize, length: usize) -> Vec<(u16, usize, usize)> {
    let (mut found, mut place, end) = (Vec::new(), at + 4, at + length);
    while let Some(&[a, b, c, d]) = packet.get(place..place + 4).filter(|_| place + 4 <= end) {
        let (kind, size) = (u16::from_be_bytes([a, b]), usize::from(u16::from_be_bytes([c, d])));
        let least = match kind {
            OUTGOING_RESET => 16,
            RESPONSE => 12,
            14..=18 => 8,
            _ => usize::MAX,
        };
        if size >= least && place + size <= end {
            found.push((kind, place + 4, size));
        }
        place += size.max(4).next_multiple_of(4);
    }
    found
}

fn add(packet: &mut [u8], at: usize, n: u32) {
    if let Some(four) = packet.get_mut(at..at + 4) {
        let sum = u32::from_be_bytes([four[0], four[1], four[2], four[3]]).wrapping_add(n);
        four.copy_from_slice(&sum.to_be_bytes());
    }
}

impl Live {
    /// Learns from a packet of the stack. `written` holds the tag and TSN that the script states for its INIT or INIT
    /// ACK, if they are numbers. If only one is stated, it is learned only while nothing is known: a script that does
    /// not check the answer to an unexpected INIT keeps its numbers. `setting_up`: whether the stack itself is
    /// connecting.
    pub(super) fn learn(&mut self, packet: &[u8], written: Written, setting_up: bool) {
        let Some((at, length)) = walk(packet).first().copied() else { return };
        let (Some(tag), Some(tsn)) = (number(packet, at + 4), number(packet, at + 16)) else { return };
        let enough = match written {
            (Some(_), Some(_)) => true,
            (None, None) => false,
            _ => self.own.is_none(),
        };
        if length < 20 || !enough {
            return;
        }
        let own = Own { tag: (written.0.unwrap_or(tag), tag), tsn: (written.1.unwrap_or(tsn), tsn) };
        match u16::from(packet[at]) {
            INIT if self.connecting => {
                self.own = Some(own);
                self.connecting = false;
            }
            INIT_ACK if !setting_up => {
                self.own = Some(own);
                self.peer_tag = self.last_init;
            }
            _ => {}
        }
    }

    /// Learns the peer's tag from its packet. `expecting`: whether the stack expects an INIT ACK.
    fn note(&mut self, packet: &[u8], expecting: bool) {
        for (at, length) in walk(packet).into_iter().filter(|(_, length)| *length >= 20) {
            match u16::from(packet[at]) {
                INIT => self.last_init = number(packet, at + 4),
                INIT_ACK if expecting && length >= 20 => self.peer_tag = number(packet, at + 4),
                _ => {}
            }
        }
    }

    /// Converts the script's numbers in a packet of the peer to the stack's numbers, and sets its tag.
    pub(super) fn inject(&mut self, packet: &mut [u8], tag: Option<u32>, raw: bool, expecting: bool) {
        if !raw {
            self.note(packet, expecting);
        }
        wire::set_tag(packet, self.tag_of(packet, tag, raw));
        self.last_tag = wire::tag(packet);
        let Some(shift) = self.own.map(|own| own.shift()).filter(|_| !raw) else { return };
        for (at, length) in walk(packet) {
            match (packet[at], length) {
                (7 | 12, 8..) => add(packet, at + 4, shift),
                (RECONFIG, _) => {
                    requests(packet, at, length).into_iter().for_each(|(kind, at, size)| match kind {
                        OUTGOING_RESET => add(packet, at + 4, shift),
                        RESPONSE => {
                            add(packet, at, shift);
                            if size == RESPONSE_WITH_TSNS {
                                add(packet, at + 12, shift);
                            }
                        }
                        _ => {}
                    })
                }
                (3, 16..) => {
                    add(packet, at + 4, shift);
                    let counts = number(packet, at + 12).unwrap_or(0);
                    let (gaps, dups) = ((counts >> 16) as usize, (counts & 0xffff) as usize);
                    if length >= 16 + 4 * gaps + 4 * dups {
                        (0..dups).for_each(|i| add(packet, at + 16 + 4 * (gaps + i), shift));
                    }
                }
                (16, 20..) => {
                    add(packet, at + 4, shift);
                    let [blocks, dups] = [12, 16].map(|place| number(packet, at + place).unwrap_or(0));
                    let blocks = ((blocks >> 16) + (blocks & 0xffff)) as usize;
                    let dups = (dups >> 16) as usize;
                    if length >= 20 + 4 * (blocks + dups) {
                        (0..dups).for_each(|i| add(packet, at + 20 + 4 * (blocks + i), shift));
                    }
                }
                _ => {}
            }
        }
    }

    /// The verification tag of a packet of the peer. `written` is the value of `tag=`.
    fn tag_of(&self, packet: &[u8], written: Option<u32>, raw: bool) -> u32 {
        let chunks = if raw { Vec::new() } else { walk(packet) };
        let reflects = |&(at, _): &(usize, usize)| {
            matches!(u16::from(packet[at]), ABORT | SHUTDOWN_COMPLETE) && packet[at + 1] & 1 == 1
        };
        let reflected = chunks.iter().any(reflects);
        let init = chunks.iter().any(|(at, length)| u16::from(packet[*at]) == INIT && *length >= 20);
        match (written, self.own) {
            (Some(0), _) => 0,
            (Some(n), None) => n,
            (Some(n), Some(_)) if reflected => n,
            (Some(n), Some(own)) => own.tag.1.wrapping_add(n.wrapping_sub(own.tag.0)).max(1),
            (None, _) if init => 0,
            (None, _) if reflected => self.peer_tag.unwrap_or(0),
            (None, own) => own.map_or(0, |own| own.tag.1),
        }
    }

    /// Converts the stack's numbers in its own packet to the script's numbers.
    pub(super) fn to_script(&self, packet: &mut [u8]) {
        let Some(own) = self.own else { return };
        let back = own.shift().wrapping_neg();
        for (at, length) in walk(packet) {
            match (packet[at], length) {
                (0 | 13 | 64 | 192 | 194, 8..) => add(packet, at + 4, back),
                (RECONFIG, _) => {
                    requests(packet, at, length).into_iter().for_each(|(kind, at, size)| match kind {
                        OUTGOING_RESET => {
                            add(packet, at, back);
                            add(packet, at + 8, back);
                        }
                        RESPONSE if size == RESPONSE_WITH_TSNS => add(packet, at + 8, back),
                        RESPONSE => {}
                        _ => add(packet, at, back),
                    })
                }
                (1 | 2, 20..) => {
                    add(packet, at + 16, back);
                    if number(packet, at + 4) == Some(own.tag.1) {
                        packet[at + 4..at + 8].copy_from_slice(&own.tag.0.to_be_bytes());
                    }
                }
                _ => {}
            }
        }
    }

    /// The error in the verification tag of a packet of the stack, if there is one.
    pub(super) fn fault(&self, packet: &[u8]) -> Option<String> {
        let (chunks, tag) = (walk(packet), wire::tag(packet));
        let has = |kind: u16| chunks.iter().any(|(at, _)| u16::from(packet[*at]) == kind);
        let reflects = chunks.iter().any(|(at, _)| {
            matches!(u16::from(packet[*at]), ABORT | SHUTDOWN_COMPLETE) && packet[*at + 1] & 1 == 1
        });
        let allowed: Vec<u32> = if has(INIT) {
            vec![0]
        } else if reflects {
            vec![self.last_tag]
        } else if has(INIT_ACK) {
            self.last_init.into_iter().collect()
        } else {
            self.peer_tag.into_iter().chain(self.last_init).collect()
        };
        let right = allowed.contains(&tag) || allowed.is_empty();
        (!right).then(|| format!("the verification tag is {tag}, and {} would be right", list(&allowed)))
    }
}

fn list(tags: &[u32]) -> String {
    tags.iter().map(u32::to_string).collect::<Vec<_>>().join(" or ")
}
