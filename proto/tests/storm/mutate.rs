//! What somebody on the path who computes checksums can do to a packet.

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use crate::world::{below, one_in};

const HEADER: usize = 12;
const LONGEST: usize = 60_000;
/// Chunk types that are made up.
const TYPES: &[u8] =
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 64, 128, 130, 132, 192, 193, 194, 63, 255];
/// How far a number is moved.
const STEPS: &[u32] = &[1, 2, u32::MAX, 100, 1 << 16, 1 << 30, 1 << 31];

/// Changes a packet in a few ways; `others` have passed before.
pub(crate) fn mutate(chance: &mut ChaCha8Rng, packet: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..=below(chance, 3) {
        match below(chance, 9) {
            0 => flip(chance, packet),
            1 => overwrite(chance, packet),
            2 => cut(chance, packet),
            3 => splice(chance, packet, others),
            4 => repeat(chance, packet),
            5 => invent(chance, packet),
            6 => stretch(chance, packet),
            7 => shift(chance, packet),
            _ => change_tag(chance, packet, others),
        }
    }
    packet.truncate(LONGEST);
}

fn pick<'a, T>(chance: &mut ChaCha8Rng, from: &'a [T]) -> Option<&'a T> {
    if from.is_empty() { None } else { from.get(below(chance, from.len() as u64) as usize) }
}

/// The chunks, each with its padding.
fn chunks(packet: &[u8]) -> Vec<Vec<u8>> {
    let (mut chunks, mut at) = (Vec::new(), HEADER);
    while at + 4 <= packet.len() {
        let length = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        let end = (at + length.max(4)).next_multiple_of(4).min(packet.len());
        chunks.push(packet[at..end].to_vec());
        at = end;
    }
    chunks
}

pub(crate) fn flip(chance: &mut ChaCha8Rng, packet: &mut [u8]) {
    let at = below(chance, packet.len() as u64) as usize;
    packet[at] ^= 1 << below(chance, 8);
}

fn overwrite(chance: &mut ChaCha8Rng, packet: &mut [u8]) {
    let at = below(chance, packet.len() as u64) as usize;
    packet[at] = [0, 1, 0xff, 0x7f, 0x80][below(chance, 5) as usize];
}

fn cut(chance: &mut ChaCha8Rng, packet: &mut Vec<u8>) {
    let length = HEADER as u64 + below(chance, packet.len() as u64);
    packet.truncate(if one_in(chance, 4) { length } else { length & !3 } as usize);
}

/// A chunk of another packet is put between those of this one.
fn splice(chance: &mut ChaCha8Rng, packet: &mut Vec<u8>, others: &[Vec<u8>]) {
    let Some(other) = pick(chance, others) else { return };
    let Some(foreign) = pick(chance, &chunks(other)).cloned() else { return };
    let mut own = chunks(packet);
    own.insert(below(chance, own.len() as u64 + 1) as usize, foreign);
    packet.truncate(HEADER);
    packet.extend(own.concat());
}

fn repeat(chance: &mut ChaCha8Rng, packet: &mut Vec<u8>) {
    let Some(chunk) = pick(chance, &chunks(packet)).cloned() else { return };
    for _ in 0..below(chance, 20) {
        packet.extend_from_slice(&chunk);
    }
}

/// A chunk of some type with nothing sensible in it.
fn invent(chance: &mut ChaCha8Rng, packet: &mut Vec<u8>) {
    let length = 4 + below(chance, 40) as u16;
    let kind = TYPES[below(chance, TYPES.len() as u64) as usize];
    let mut chunk = vec![kind, below(chance, 16) as u8, (length >> 8) as u8, length as u8];
    let zero = one_in(chance, 2);
    chunk.resize(usize::from(length).next_multiple_of(4), 0);
    if !zero {
        chance.fill_bytes(&mut chunk[4..]);
    }
    if one_in(chance, 2) {
        packet.truncate(HEADER);
    }
    packet.extend(chunk);
}

/// The first chunk's length is said to be another.
fn stretch(chance: &mut ChaCha8Rng, packet: &mut [u8]) {
    if let Some(field) = packet.get_mut(HEADER + 2..HEADER + 4) {
        let length = u16::from_be_bytes([field[0], field[1]]);
        let other = length.wrapping_add(below(chance, 9) as u16).wrapping_sub(4);
        field.copy_from_slice(&other.to_be_bytes());
    }
}

/// A number of 32 bits is moved, a little or far.
fn shift(chance: &mut ChaCha8Rng, packet: &mut [u8]) {
    let fields = packet.len().saturating_sub(HEADER + 4) / 4;
    if fields > 0 {
        let at = HEADER + 4 + 4 * below(chance, fields as u64) as usize;
        if let Some(field) = packet.get_mut(at..at + 4) {
            let value = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
            let step = STEPS[below(chance, STEPS.len() as u64) as usize];
            field.copy_from_slice(&value.wrapping_add(step).to_be_bytes());
        }
    }
}

fn change_tag(chance: &mut ChaCha8Rng, packet: &mut [u8], others: &[Vec<u8>]) {
    let tag = match below(chance, 6) {
        0 => [0; 4],
        1 => chance.next_u32().to_be_bytes(),
        _ => match pick(chance, others) {
            Some(other) if other.len() >= 8 => [other[4], other[5], other[6], other[7]],
            _ => return,
        },
    };
    if packet.len() >= 8 {
        packet[4..8].copy_from_slice(&tag);
    }
}
