//! Text that may be a recording of a transfer, which `anabranch replay` repeats.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use anabranch_net::{Call, Tape};
use anabranch_proto::wire::Packet;
use anabranch_proto::{Endpoint, Incoming, Message, Output, Policies, Time};
use anabranch_sim::scenario::protocol;

use crate::support::{PORT, address, at};
use recording::Recording;
use repeat::{Step, Unable, repeat};

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../cli/src/net/recording.rs"]
mod recording;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../cli/src/net/repeat.rs"]
mod repeat;

/// From one end to the other, in the example.
const DELAY: Duration = Duration::from_millis(20);

/// It is repeated to its end, or an error says where it cannot be. Times never go back.
pub fn recorded(bytes: &[u8]) {
    let (mut sent, mut last) = (0, Time::ZERO);
    let whole = repeat(Cursor::new(bytes.to_vec()), &mut |step, _| {
        sent += u64::from(matches!(step, Step::Sent(..)));
        if let Step::Arrived(now, _) | Step::Sent(now, ..) = step {
            assert!(*now >= last, "{now:?} after {last:?}");
            last = *now;
        }
    });
    match whole {
        Ok(whole) => assert_eq!(whole.packets, sent),
        Err(Unable::Read(why) | Unable::Differs(why)) => assert!(!why.trim().is_empty()),
    }
}

/// An example in this file: two messages over one path, recorded by the end that sends.
pub fn record(file: &Path) {
    let (config, mut now) = (protocol("settings", &[]).expect("the defaults"), Time::ZERO);
    let end = |side| {
        Endpoint::new(at(side, 1, &config), Policies::default(), [side as u8; 32]).expect("it can be used")
    };
    let (mut sender, mut listener) = (Recorded::new(end(0), file), end(1));
    listener.set_listening(true);
    let to = [address(0, 1)];
    sender.tape.call(now, &Call::Connect(PORT + 1, &to));
    let id = sender.endpoint.connect(now, PORT + 1, &to).expect("a path");
    for round in 0..30 {
        let there = sender.drain(now);
        for packet in there {
            listener.handle(now + DELAY, Incoming::Packet(packet));
        }
        let back = drained(|| listener.poll(now + DELAY));
        now += DELAY * 2;
        for packet in back {
            let incoming = Incoming::Packet(packet);
            sender.tape.call(now, &Call::Handle(&incoming));
            sender.endpoint.handle(now, incoming);
        }
        if round == 4 || round == 8 {
            let message = Message { payload: vec![7; 200 * round].into(), ..Message::default() };
            sender.tape.call(now, &Call::Send(id, &message));
            sender.endpoint.send(now, id, message).expect("it is up");
        }
        if round == 15 {
            sender.tape.call(now, &Call::Shutdown(id));
            sender.endpoint.shutdown(now, id);
        }
    }
    sender.tape.finish().expect("all of it is written");
}

/// The end that is recorded.
struct Recorded {
    endpoint: Endpoint,
    tape: Recording,
}

impl Recorded {
    fn new(endpoint: Endpoint, file: &Path) -> Self {
        let mut tape = Recording::begin(file, Vec::new(), false).expect("a file that can be written");
        tape.begin(endpoint.config(), &[0; 32]);
        Recorded { endpoint, tape }
    }

    fn drain(&mut self, now: Time) -> Vec<Box<Packet>> {
        // What is polled at a time belongs to a call at that time.
        self.tape.call(now, &Call::Time);
        let Recorded { endpoint, tape } = self;
        drained(|| {
            let output = endpoint.poll(now);
            tape.polled(&output);
            output
        })
    }
}

/// The packets that leave until there is nothing more to do.
fn drained(mut poll: impl FnMut() -> Output) -> Vec<Box<Packet>> {
    let mut packets = Vec::new();
    loop {
        match poll() {
            Output::Transmit(packet, _) => packets.push(packet),
            Output::Wait(_) => return packets,
            Output::Event(..) | Output::Note(_) => {}
        }
    }
}
