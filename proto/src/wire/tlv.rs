//! The common codec of parameters and error causes (RFC 9260 §3.2.1): number, length, value. Their tables are in
//! `param.rs` and `cause.rs`.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::{BufMut, Bytes, BytesMut};

use super::reader::{Reader, padded};
use super::{DecodeError, EncodeError};
use crate::Tsn;

/// Bytes of the header of a parameter or cause: type or code, length.
pub(super) const TLV_HEADER: usize = 4;

/// A parameter or a cause. Its table implements it.
pub(super) trait Tlv: Sized {
    /// The lowest number of an extension, if the table has extensions. If the value of such an element cannot be read,
    /// it is kept as unknown: it may mean something else to a peer that does not use the extension.
    const EXTENSIONS: Option<u16>;
    /// Parameter type or cause code.
    fn number(&self) -> u16;
    /// Bytes of the value.
    fn value_size(&self) -> usize;
    fn put_value(&self, out: &mut BytesMut) -> Result<(), EncodeError>;
    fn take_value(number: u16, value: &mut Reader<'_>) -> Result<Self, DecodeError>;
    fn unknown(number: u16, value: Bytes) -> Self;
}

/// Encoded length of a list. Each element but the last is padded.
pub(super) fn list_size<T: Tlv>(list: &[T]) -> usize {
    let size = |element: &T| TLV_HEADER + element.value_size();
    match list.split_last() {
        Some((last, rest)) => rest.iter().map(|e| padded(size(e))).sum::<usize>() + size(last),
        None => 0,
    }
}

/// Appends a list. Each element but the last is padded.
pub(super) fn put_list<T: Tlv>(list: &[T], out: &mut BytesMut) -> Result<(), EncodeError> {
    let start = out.len();
    for element in list {
        pad(out, start);
        out.put_u16(element.number());
        out.put_u16(length(TLV_HEADER + element.value_size())?);
        element.put_value(out)?;
    }
    Ok(())
}

/// Reads a list to its end.
pub(super) fn take_list<T: Tlv>(list: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let mut elements = Vec::new();
    while list.remaining() > 0 {
        elements.push(take_one(list)?);
    }
    Ok(elements)
}

/// Reads the next element of a list.
pub(super) fn take_one<T: Tlv>(list: &mut Reader<'_>) -> Result<T, DecodeError> {
    let (number, mut value) = list.element()?;
    let number = u16::from_be_bytes(number);
    match take_whole(number, value.clone()) {
        Err(_) if is_extension::<T>(number) => Ok(T::unknown(number, value.rest())),
        taken => taken,
    }
}

/// Reads an element, which must use all of its length.
fn take_whole<T: Tlv>(number: u16, mut value: Reader<'_>) -> Result<T, DecodeError> {
    let element = T::take_value(number, &mut value)?;
    value.finish()?;
    Ok(element)
}

fn is_extension<T: Tlv>(number: u16) -> bool {
    T::EXTENSIONS.is_some_and(|lowest| number >= lowest)
}

/// Whether an unknown element with this number, which is in the table, would not be decoded as unknown.
pub(super) fn is_known<T: Tlv>(number: u16, value: &Bytes) -> bool {
    !is_extension::<T>(number) || take_whole::<T>(number, Reader::new(value, value)).is_ok()
}

/// Converts a size to a length field.
pub(super) fn length(size: usize) -> Result<u16, EncodeError> {
    u16::try_from(size).map_err(|_| EncodeError::TooLong { size })
}

/// Appends zeros until the element that begins at `start` has a multiple of four bytes.
pub(super) fn pad(out: &mut BytesMut, start: usize) {
    let size = out.len() - start;
    if !size.is_multiple_of(4) {
        out.put_bytes(0, padded(size) - size);
    }
}

/// How a value of type `T` is encoded.
pub(super) trait Layout<T> {
    fn size(content: &T) -> usize;
    fn put(content: &T, out: &mut BytesMut);
    fn take(value: &mut Reader<'_>) -> Result<T, DecodeError>;
}

/// The content alone.
pub(super) enum Plain {}

impl Layout<Bytes> for Plain {
    fn size(content: &Bytes) -> usize {
        content.len()
    }
    fn put(content: &Bytes, out: &mut BytesMut) {
        out.put_slice(content);
    }
    fn take(value: &mut Reader<'_>) -> Result<Bytes, DecodeError> {
        Ok(value.rest())
    }
}

impl Layout<Ipv4Addr> for Plain {
    fn size(_: &Ipv4Addr) -> usize {
        4
    }
    fn put(content: &Ipv4Addr, out: &mut BytesMut) {
        out.put_slice(&content.octets());
    }
    fn take(value: &mut Reader<'_>) -> Result<Ipv4Addr, DecodeError> {
        value.array::<4>().map(Ipv4Addr::from)
    }
}

impl Layout<Ipv6Addr> for Plain {
    fn size(_: &Ipv6Addr) -> usize {
        16
    }
    fn put(content: &Ipv6Addr, out: &mut BytesMut) {
        out.put_slice(&content.octets());
    }
    fn take(value: &mut Reader<'_>) -> Result<Ipv6Addr, DecodeError> {
        value.array::<16>().map(Ipv6Addr::from)
    }
}

impl Layout<u16> for Plain {
    fn size(_: &u16) -> usize {
        2
    }
    fn put(content: &u16, out: &mut BytesMut) {
        out.put_u16(*content);
    }
    fn take(value: &mut Reader<'_>) -> Result<u16, DecodeError> {
        value.u16()
    }
}

impl Layout<u32> for Plain {
    fn size(_: &u32) -> usize {
        4
    }
    fn put(content: &u32, out: &mut BytesMut) {
        out.put_u32(*content);
    }
    fn take(value: &mut Reader<'_>) -> Result<u32, DecodeError> {
        value.u32()
    }
}

impl Layout<Tsn> for Plain {
    fn size(_: &Tsn) -> usize {
        4
    }
    fn put(content: &Tsn, out: &mut BytesMut) {
        out.put_u32(content.0);
    }
    fn take(value: &mut Reader<'_>) -> Result<Tsn, DecodeError> {
        value.u32().map(Tsn)
    }
}

impl Layout<Vec<u16>> for Plain {
    fn size(content: &Vec<u16>) -> usize {
        2 * content.len()
    }
    fn put(content: &Vec<u16>, out: &mut BytesMut) {
        content.iter().for_each(|number| out.put_u16(*number));
    }
    fn take(value: &mut Reader<'_>) -> Result<Vec<u16>, DecodeError> {
        let count = value.remaining() / 2;
        Ok(value.arrays(count)?.map(u16::from_be_bytes).collect())
    }
}

/// The content, then sixteen bits that are sent as zero and ignored when received.
pub(super) enum ThenReserved {}

impl Layout<u16> for ThenReserved {
    fn size(_: &u16) -> usize {
        4
    }
    fn put(content: &u16, out: &mut BytesMut) {
        out.put_u16(*content);
        out.put_u16(0);
    }
    fn take(value: &mut Reader<'_>) -> Result<u16, DecodeError> {
        let content = value.u16()?;
        value.u16()?;
        Ok(content)
    }
}

/// A count of thirty-two bits, then that number of elements.
pub(super) enum Counted {}

impl Layout<Vec<u16>> for Counted {
    fn size(content: &Vec<u16>) -> usize {
        4 + Plain::size(content)
    }
    fn put(content: &Vec<u16>, out: &mut BytesMut) {
        // The count cannot overflow: the length field, which counts bytes in sixteen bits, was checked before.
        out.put_u32(content.len() as u32);
        Plain::put(content, out);
    }
    fn take(value: &mut Reader<'_>) -> Result<Vec<u16>, DecodeError> {
        let count = value.u32()?;
        let content: Vec<u16> = Plain::take(value)?;
        if content.len() == count as usize { Ok(content) } else { Err(value.wrong()) }
    }
}

/// Declares the parameters or the causes: number, variant, content and encoding; then those without content; then the
/// name of the number of an unknown one, and the lowest number of an extension.
macro_rules! tlv {
    (
        $(#[$doc:meta])*
        enum $name:ident {
            $( $(#[$row_doc:meta])* $number:literal $row:ident($content:ty) as $layout:ty, )+
        }
        bare { $( $(#[$bare_doc:meta])* $bare_number:literal $bare:ident, )* }
        $(#[$other_doc:meta])*
        unknown $other:ident
        extensions $extensions:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum $name {
            $( $(#[$row_doc])* $row($content), )+
            $( $(#[$bare_doc])* $bare, )*
            /// Any other one.
            Unknown {
                $(#[$other_doc])*
                $other: u16,
                /// What follows the header, without padding.
                value: ::bytes::Bytes,
            },
        }

        impl $name {
            /// Its number on the wire.
            pub fn number(&self) -> u16 {
                match self {
                    $( $name::$row(_) => $number, )+
                    $( $name::$bare => $bare_number, )*
                    $name::Unknown { $other, .. } => *$other,
                }
            }

            /// Encoded length in bytes, without padding.
            pub fn size(&self) -> usize {
                $crate::wire::tlv::TLV_HEADER + $crate::wire::tlv::Tlv::value_size(self)
            }
        }

        impl $crate::wire::tlv::Tlv for $name {
            const EXTENSIONS: Option<u16> = $extensions;

            fn number(&self) -> u16 {
                $name::number(self)
            }

            fn value_size(&self) -> usize {
                match self {
                    $( $name::$row(content) => <$layout as Layout<$content>>::size(content), )+
                    $( $name::$bare => 0, )*
                    $name::Unknown { value, .. } => value.len(),
                }
            }

            fn put_value(&self, out: &mut ::bytes::BytesMut) -> Result<(), $crate::wire::EncodeError> {
                match self {
                    $( $name::$row(content) => <$layout as Layout<$content>>::put(content, out), )+
                    $( $name::$bare => {} )*
                    $name::Unknown { $other, value }
                        if [$( $number, )+ $( $bare_number, )*].contains($other)
                            && $crate::wire::tlv::is_known::<Self>(*$other, value) =>
                    {
                        return Err($crate::wire::EncodeError::Known { number: *$other });
                    }
                    $name::Unknown { value, .. } => ::bytes::BufMut::put_slice(out, value),
                }
                Ok(())
            }

            fn take_value(
                number: u16,
                value: &mut $crate::wire::reader::Reader<'_>,
            ) -> Result<Self, $crate::wire::DecodeError> {
                Ok(match number {
                    $( $number => $name::$row(<$layout as Layout<$content>>::take(value)?), )+
                    $( $bare_number => $name::$bare, )*
                    $other => $name::Unknown { $other, value: value.rest() },
                })
            }

            fn unknown($other: u16, value: ::bytes::Bytes) -> Self {
                $name::Unknown { $other, value }
            }
        }
    };
}
pub(super) use tlv;
