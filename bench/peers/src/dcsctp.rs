//! Two sockets of `dcsctp`, as it is published. It formats a dump of every packet whatever is logged, with no
//! switch: its figure says what that costs, and is no yardstick.

use std::collections::VecDeque;

use dcsctp::api::{DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId};

use crate::{MESSAGE, SEND_BUFFER, THEIR_PACKET};

pub struct Pair {
    ends: [Box<dyn DcSctpSocket>; 2],
    leaving: [VecDeque<Vec<u8>>; 2],
    connected: usize,
    read: u64,
    packets: u64,
}

impl Pair {
    pub fn new() -> Self {
        let options = Options {
            mtu: THEIR_PACKET as usize,
            max_receiver_window_buffer_size: SEND_BUFFER as usize,
            max_send_buffer_size: SEND_BUFFER as usize,
            per_stream_send_queue_limit: SEND_BUFFER as usize,
            ..Options::default()
        };
        let ends = [dcsctp::new_socket("a", &options), dcsctp::new_socket("b", &options)];
        let mut pair = Pair { ends, leaving: Default::default(), connected: 0, read: 0, packets: 0 };
        pair.ends[0].connect();
        pair.drain(0);
        crate::Pair::exchange(&mut pair);
        assert_eq!(pair.connected, 2, "both are up");
        pair
    }

    fn drain(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            match event {
                SocketEvent::SendPacket(bytes) => self.leaving[side].push_back(bytes),
                SocketEvent::OnConnected() => self.connected += 1,
                _ => {}
            }
        }
        while let Some(message) = self.ends[side].get_next_message() {
            assert_eq!(message.payload.len(), MESSAGE.len());
            self.read += 1;
        }
    }
}

impl crate::Pair for Pair {
    fn fill(&mut self, most: u64) -> u64 {
        let message = || Message::new(StreamId(0), PpId(0), MESSAGE.to_vec());
        let options = SendOptions::default();
        let taken = (0..most).take_while(|_| self.ends[0].send(message(), &options).is_ok()).count();
        self.drain(0);
        taken as u64
    }

    fn exchange(&mut self) -> u64 {
        let before = self.read;
        while !self.leaving.iter().all(VecDeque::is_empty) {
            for side in 0..2 {
                let arriving = std::mem::take(&mut self.leaving[1 - side]);
                self.packets += arriving.len() as u64;
                for bytes in arriving {
                    self.ends[side].handle_input(&bytes);
                    self.drain(side);
                }
            }
        }
        self.read - before
    }

    fn wait(&mut self) {
        let next: SocketTime = self.ends[0].poll_timeout().min(self.ends[1].poll_timeout());
        for side in 0..2 {
            self.ends[side].advance_time(next);
            self.drain(side);
        }
    }

    fn packets(&self) -> u64 {
        self.packets
    }
}
