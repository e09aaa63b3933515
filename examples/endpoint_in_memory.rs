//! Two endpoints of the core and nothing else: no socket, no clock. One connects and sends a message, the other
//! answers. A packet takes 10 ms from one to the other, because this program says so.

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, LocalAddress, Message, Output, Policies, Time,
};

const DELAY: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let address = |host| Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)));
    let mut client = Endpoint::new(config(address(1)), Policies::default(), [1; 32])?;
    let mut server = Endpoint::new(config(address(2)), Policies::default(), [2; 32])?;
    server.set_listening(true);

    let mut now = Time::ZERO;
    let association = client.connect(now, 5000, &[address(2)])?;
    // The message waits until the association is up.
    client.send(now, association, Message { payload: b"hello".as_slice().into(), ..Message::default() })?;
    let mut under_way: VecDeque<(Time, Box<Packet>)> = VecDeque::new();
    let mut answered = false;
    while !answered {
        // Each endpoint says all that it has to say, until it waits.
        let mut next = Vec::new();
        for endpoint in [&mut client, &mut server] {
            for (id, event) in drain(endpoint, now, &mut under_way, &mut next) {
                println!("{:8.3} s: {event:?}", now.as_nanos() as f64 * 1e-9);
                if event == Event::Readable {
                    answered |= read(endpoint, now, id);
                }
            }
        }
        // Time goes on to whatever happens next.
        next.extend(under_way.front().map(|(at, _)| *at));
        now = next.into_iter().min().ok_or("nothing is left to happen")?.max(now);
        while let Some((_, packet)) = under_way.pop_front_if(|(at, _)| *at <= now) {
            let to = if packet.to == address(1) { &mut client } else { &mut server };
            to.handle(now, Incoming::Packet(packet));
        }
    }
    Ok(())
}

fn config(address: Address) -> Config {
    Config { addresses: vec![LocalAddress { address, prefix: 24 }], ..Config::default() }
}

/// Takes what an endpoint has to say: packets go on their way, events are returned.
fn drain(
    endpoint: &mut Endpoint,
    now: Time,
    under_way: &mut VecDeque<(Time, Box<Packet>)>,
    next: &mut Vec<Time>,
) -> Vec<(AssociationId, Event)> {
    let mut events = Vec::new();
    loop {
        match endpoint.poll(now) {
            Output::Transmit(packet, _reason) => under_way.push_back((now + DELAY, packet)),
            Output::Event(id, event) => events.push((id, event)),
            Output::Note(_) => {}
            Output::Wait(until) => {
                next.extend(until);
                return events;
            }
        }
    }
}

/// Prints a received message and answers a greeting. Returns whether the message was the answer.
fn read(endpoint: &mut Endpoint, now: Time, id: AssociationId) -> bool {
    let mut answered = false;
    while let Some(delivery) = endpoint.read(now, id) {
        let text = delivery.into_bytes();
        println!("            {text:?}");
        answered |= text == "welcome";
        if text == "hello" {
            let payload = b"welcome".as_slice().into();
            let _ = endpoint.send(now, id, Message { payload, ..Message::default() });
        }
    }
    answered
}
