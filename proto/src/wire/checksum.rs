//! The checksum of a packet: CRC32c (RFC 9260 Appendix A).
//!
//! The crate `crc32c` computes the last bytes of a buffer, up to 767 of them, in one chain of CRC instructions, and
//! each waits for the one before. That is half a packet of 1,500 bytes. On x86-64 this file therefore divides a packet
//! of any length into three parts, computes their CRCs side by side, and joins them by multiplications without carry,
//! as V. Gopal and others describe ("Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011).
//! All other processors use the crate.

use crc32c::{crc32c, crc32c_append};
use multiversion::multiversion;
use multiversion::target::match_target;

use super::HEADER;

/// Position of the checksum in the header.
pub(super) const CHECKSUM: std::ops::Range<usize> = 8..HEADER;

/// The checksum that a packet should carry: the CRC32c of all its bytes, with zeros in place of the checksum that
/// stands in it.
///
/// # Panics
///
/// If it is shorter than a common header.
//= rfc9260#section-6.8
//= rfc9260#appendix-A
#[multiversion(targets("x86_64+sse4.2+pclmulqdq"))]
pub(super) fn checksum(packet: &[u8]) -> u32 {
    match_target! {
        "x86_64+sse4.2+pclmulqdq" => in_three_parts(packet),
        _ => by_the_crate(packet),
    }
}

fn by_the_crate(packet: &[u8]) -> u32 {
    let (header, chunks) = packet.split_at(HEADER);
    let mut zeroed = [0; HEADER];
    zeroed[..CHECKSUM.start].copy_from_slice(&header[..CHECKSUM.start]);
    crc32c_append(crc32c(&zeroed), chunks)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn in_three_parts(packet: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (words, bytes) = packet.as_chunks::<8>();
    let [first, second, words @ ..] = words else { return by_the_crate(packet) };
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let mut crc = _mm_crc32_u64(u64::from(u32::MAX), word(first));
    // The first half of the second word is the checksum.
    crc = _mm_crc32_u64(crc, word(second) >> 32 << 32);
    let mut words = words;
    while words.len() >= LEAST_PARTED {
        let length = (words.len() / 3).min(LONGEST_PART);
        let (first, rest) = words.split_at(length);
        let (second, rest) = rest.split_at(length);
        let (third, rest) = rest.split_at(length);
        let (mut crc2, mut crc3) = (0, 0);
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            crc = _mm_crc32_u64(crc, word(first));
            crc2 = _mm_crc32_u64(crc2, word(second));
            crc3 = _mm_crc32_u64(crc3, word(third));
        }
        crc = shifted(shifted(crc, length) ^ crc2, length) ^ crc3;
        words = rest;
    }
    crc = words.iter().fold(crc, |crc, bytes| _mm_crc32_u64(crc, word(bytes)));
    // A CRC has 32 bits, although the instruction returns 64.
    !bytes.iter().fold(crc as u32, |crc, byte| _mm_crc32_u8(crc, *byte))
}

/// What a CRC becomes when `words` words of zeros follow. This is the CRC times x^(64 · words), modulo the polynomial.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn shifted(crc: u64, words: usize) -> u64 {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi64_si128, _mm_cvtsi128_si64};

    let (crc, power) = (_mm_cvtsi64_si128(crc.cast_signed()), _mm_cvtsi64_si128(i64::from(POWERS[words])));
    let product = _mm_cvtsi128_si64(_mm_clmulepi64_si128(crc, power, 0));
    _mm_crc32_u64(0, product.cast_unsigned())
}

/// Fewer words are not divided: joining three parts takes longer than they save. With a limit of 12 or of 36, some
/// packets of 64 to 448 bytes take longer.
#[cfg(target_arch = "x86_64")]
const LEAST_PARTED: usize = 24;
/// Words of the longest part. Three of them hold a packet of 1,500 bytes.
#[cfg(target_arch = "x86_64")]
const LONGEST_PART: usize = 64;

/// By words of zeros that follow: x^(64 · words - 33) modulo the polynomial. The lowest bit is the coefficient of x^31.
/// The exponent is 33 less, because the product of two such numbers, read as 64 bits, is x times too large, and the CRC
/// instruction multiplies by x^32.
#[cfg(target_arch = "x86_64")]
const POWERS: [u32; LONGEST_PART + 1] = {
    /// The polynomial 0x1edc6f41 of RFC 9260 Appendix A, its bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut powers = [0; LONGEST_PART + 1];
    // x^31.
    let mut power = 1;
    let mut words = 1;
    while words < powers.len() {
        powers[words] = power;
        let mut bit = 0;
        while bit < 64 {
            power = (power >> 1) ^ if power & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        words += 1;
    }
    powers
};
