//! Bytes that may be a capture file: read to their end or to what is wrong, and explained line by line.

use anabranch_proto::wire::UDP_PORT;
use std::time::Duration;

use anabranch_sim::against::{Comparison, Conversation, compare};
use anabranch_sim::capture::{CaptureReader, explain};

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

/// An association in them, if there is one, is replayed against our endpoint.
pub fn against(bytes: &[u8]) {
    let Ok(reader) = CaptureReader::new(bytes) else { return };
    let Ok(conversation) = Conversation::read(reader, &[UDP_PORT], None) else { return };
    let settings = vec!["era=rfc9260".to_owned()];
    // With any tolerance of times, few differences remain to be explained.
    let comparison =
        Comparison { settings, within: Duration::from_secs(3600), mtu: None, bulk: bytes.len() % 2 == 0 };
    // Addresses and ports of a capture can be such as no endpoint has.
    let Ok(compared) = compare(&conversation, &comparison) else { return };
    assert!(compared.differences.iter().all(|one| one.recorded.is_some() || one.ours.is_some()));
}
