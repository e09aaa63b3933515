//! Concurrent multipath transfer over loss-free paths fills them all.

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

/// User data of a full packet, and its bytes.
const SHARE: f64 = 1452.0 / 1500.0;

/// Paths of so many Mbit/s and milliseconds, with queues of 100 packets.
fn scenario(paths: &[(u32, u32)]) -> String {
    let mut text = "stop = '30 s'\nmeasure = ['20 s', '30 s']\n".to_owned();
    for (number, (rate, delay)) in paths.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = 'l{number}'\nbetween = ['a', 'b']\nrate = '{rate} Mbit/s'\ndelay = '{delay} ms'\nqueue = '100 packets'\n"
        );
    }
    text + "[[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\n[flow.sctp]\ncmt = true\nreceive_buffer = '8 MiB'\n"
}

/// The part of the user data that the paths can carry which arrives from 20 s on.
fn filled(paths: &[(u32, u32)]) -> f64 {
    let document = Document::parse("test.toml", &scenario(paths)).expect("it can be parsed");
    let scenario = document.scenario("test", &Policies::default()).expect("it can be read");
    let result = run(&scenario, RunOptions::default()).expect("it runs");
    let goodput = result.flows[0].measured.as_ref().expect("it is measured").goodput;
    let capacity: u32 = paths.iter().map(|(rate, _)| rate).sum();
    goodput / (f64::from(capacity) * 1e6 * SHARE)
}

/// What stood in queues or in the receiver's buffer at 20 s can lift it a little above 1.
#[test]
fn all_paths_together_carry_what_their_rates_allow() {
    let settings: [&[(u32, u32)]; 6] = [
        &[(20, 5), (20, 5)],
        &[(20, 5), (20, 30)],
        &[(20, 5), (5, 30)],
        &[(20, 30), (5, 5)],
        &[(10, 5), (20, 15), (5, 30)],
        &[(10, 30), (20, 5), (5, 15)],
    ];
    for paths in settings {
        let filled = filled(paths);
        assert!((0.98..1.01).contains(&filled), "{paths:?} (Mbit/s, ms): {filled}");
    }
}
