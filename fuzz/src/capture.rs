//! Bytes that may be a capture file: read to their end or to what is wrong, and explained line by line.

use anabranch_sim::capture::{CaptureReader, explain};

/// The UDP port behind which SCTP is looked for.
const UDP_PORT: u16 = 9899;

/// Packets are counted, hold no more than the file did, and their lines are lines and JSON; an error is the last.
pub fn capture(bytes: &[u8]) {
    let Ok(reader) = CaptureReader::new(bytes) else { return };
    let (mut number, mut held, mut over) = (0, 0, false);
    for packet in reader {
        assert!(!over, "something comes after an error");
        let Ok(packet) = packet else {
            over = true;
            continue;
        };
        number += 1;
        held += packet.bytes.len();
        assert_eq!(packet.number, number);
        assert!(held <= bytes.len(), "{held} bytes out of {}", bytes.len());
        for line in explain(&packet, &[UDP_PORT]) {
            let text = format!("{line:9}");
            assert!(!text.contains(char::is_control), "{text:?}");
            let json = serde_json::to_string(&line).expect("a line is JSON");
            let back: serde_json::Value = serde_json::from_str(&json).expect("what was written can be read");
            assert_eq!(back["number"], number);
        }
    }
}
