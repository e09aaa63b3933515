//! Two endpoints of this stack, with its codec between them.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Ecn, Packet};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, LocalAddress, Message, Output, Parameters, Policies,
    Time,
};
use bytes::{Bytes, BytesMut};

use crate::{MESSAGE, SEND_BUFFER};

const PORT: u16 = 5000;
/// Bytes of the buffer that packets are encoded into, one behind the other.
const BLOCK: usize = 1 << 16;

pub struct Pair {
    ends: [Endpoint; 2],
    now: Time,
    /// By sending side.
    travelling: [VecDeque<Bytes>; 2],
    wake: [Option<Time>; 2],
    ids: [Option<AssociationId>; 2],
    block: BytesMut,
    /// Full buffers, to be used again when nothing of them is under way or unread. The system's allocator would return
    /// their memory to the kernel and get it back, page by page, which takes a quarter of the time.
    full: VecDeque<BytesMut>,
    read: u64,
    packets: u64,
}

impl Pair {
    pub fn new(packet: u32) -> Self {
        let ends = [endpoint(0, packet), endpoint(1, packet)];
        let mut pair = Pair {
            ends,
            now: Time::ZERO,
            travelling: Default::default(),
            wake: [None; 2],
            ids: [None; 2],
            block: BytesMut::with_capacity(BLOCK),
            full: VecDeque::new(),
            read: 0,
            packets: 0,
        };
        pair.ends[0].connect(pair.now, PORT, &[address(1)]).expect("a path");
        pair.drain(0);
        crate::Pair::exchange(&mut pair);
        assert!(pair.ids.iter().all(Option::is_some), "both are up");
        pair
    }

    fn drain(&mut self, side: usize) {
        loop {
            match self.ends[side].poll(self.now) {
                Output::Transmit(packet, _) => {
                    self.transmit(side, &packet);
                    self.ends[side].reuse(packet);
                }
                Output::Event(id, Event::Up) => self.ids[side] = Some(id),
                Output::Event(id, Event::Readable) => {
                    while let Some(delivery) = self.ends[side].read(self.now, id) {
                        assert_eq!(delivery.len(), MESSAGE.len());
                        self.read += 1;
                    }
                }
                Output::Wait(until) => return self.wake[side] = until,
                _ => {}
            }
        }
    }

    fn transmit(&mut self, side: usize, packet: &Packet) {
        if self.block.capacity() < packet.size() {
            let free = self.full.front_mut().is_some_and(|oldest| oldest.try_reclaim(BLOCK));
            let next = if free { self.full.pop_front() } else { None };
            let next = next.unwrap_or_else(|| BytesMut::with_capacity(BLOCK));
            self.full.push_back(std::mem::replace(&mut self.block, next));
        }
        packet.encode(&mut self.block).expect("what is sent can be encoded");
        self.travelling[side].push_back(self.block.split().freeze());
        self.packets += 1;
    }

    fn arrive(&mut self, side: usize, bytes: Bytes) {
        let (from, to) = (address(1 - side), address(side));
        let mut packet = self.ends[side].spare();
        packet.decode_into(from, to, Ecn::NotEct, &bytes, &bytes).expect("what was sent can be decoded");
        self.ends[side].handle(self.now, Incoming::Packet(packet));
        self.drain(side);
    }
}

impl crate::Pair for Pair {
    fn fill(&mut self, most: u64) -> u64 {
        let id = self.ids[0].expect("it is up");
        let message = || Message { payload: MESSAGE, ..Message::default() };
        let taken = (0..most).take_while(|_| self.ends[0].send(self.now, id, message()).is_ok()).count();
        self.drain(0);
        taken as u64
    }

    fn exchange(&mut self) -> u64 {
        let before = self.read;
        while !self.travelling.iter().all(VecDeque::is_empty) {
            for side in 0..2 {
                let arriving = std::mem::take(&mut self.travelling[1 - side]);
                arriving.into_iter().for_each(|bytes| self.arrive(side, bytes));
            }
        }
        self.read - before
    }

    fn wait(&mut self) {
        self.now = self.wake.into_iter().flatten().min().expect("a timer");
        self.drain(0);
        self.drain(1);
    }

    fn packets(&self) -> u64 {
        self.packets
    }
}

fn address(side: usize) -> Address {
    Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + side as u8)))
}

fn endpoint(side: usize, packet: u32) -> Endpoint {
    let config = Config {
        addresses: vec![LocalAddress { address: address(side), prefix: 24 }],
        port: PORT,
        parameters: Parameters { mtu: 20 + packet, send_buffer: Some(SEND_BUFFER), ..Parameters::default() },
        ..Config::default()
    };
    Endpoint::new(config, Policies::default(), [side as u8; 32]).expect("a usable configuration")
}
