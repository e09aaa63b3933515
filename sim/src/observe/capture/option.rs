//! Numbers of the pcapng format that writing and reading share (draft-ietf-opsawg-pcapng).

/// Block types.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const PACKET_OBSOLETE: u32 = 2;
pub(super) const PACKET_SIMPLE: u32 = 3;
pub(super) const PACKET: u32 = 6;

/// How a section header tells its byte order.
pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Options of every block.
pub(super) const END: u16 = 0;
pub(super) const COMMENT: u16 = 1;
/// In a section header: the program that wrote the file.
pub(super) const PROGRAM: u16 = 4;
/// In an interface description: the name.
pub(super) const NAME: u16 = 2;
pub(super) const DESCRIPTION: u16 = 3;
pub(super) const RESOLUTION: u16 = 9;
pub(super) const OFFSET: u16 = 14;
/// In a packet: its lowest two bits are the direction.
pub(super) const FLAGS: u16 = 2;
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;

/// Link types (www.tcpdump.org/linktypes.html).
/// The link type of radiotap before frames of IEEE 802.11.
pub(super) const RADIOTAP: u16 = 127;
pub(super) const RAW: u16 = 101;
