//! The clock's side of the network: packets from devices into it, and out of it at their time.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Instant;

use anabranch_proto::Time;
use anabranch_sim::{Arrival, Live};
use hdrhistogram::Histogram;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use tun_rs::SyncDevice;

use crate::processes::Signals;
use crate::{Ending, FailedProgram, InterfaceReport, Lateness, Report, ShellError, echo, system};

/// Packets that are read from a device before the others have their turn.
const BATCH: usize = 64;
/// The largest IP packet.
const LARGEST: usize = 65_535;
/// Lateness is counted up to this, in nanoseconds.
const LATEST: u64 = 3_600_000_000_000;

/// Carries packets between devices and the network.
pub(crate) struct Carrier {
    live: Live,
    /// By interface: its device, if its node has one.
    ports: Vec<Option<SyncDevice>>,
    /// By interface: the packets carried. Those of other hosts stay at zero.
    counts: Vec<Count>,
    /// When virtual time is zero.
    begun: Instant,
    buffer: Vec<u8>,
    /// In nanoseconds.
    lateness: Histogram<u64>,
    unroutable: u64,
    unanswered: u64,
}

/// Packets and bytes.
#[derive(Copy, Clone, Default)]
struct Count {
    sent: [u64; 2],
    received: [u64; 2],
}

impl Carrier {
    /// Virtual time begins now.
    pub(crate) fn new(live: Live, ports: Vec<Option<SyncDevice>>) -> Result<Self, ShellError> {
        // By default the kernel may wake us 50 µs late, so that wake-ups fall together.
        prctl::set_timerslack(1).map_err(|error| system("cannot set the timer", error.into()))?;
        let lateness = Histogram::new_with_max(LATEST, 3).expect("the bounds are right");
        Ok(Carrier {
            counts: vec![Count::default(); ports.len()],
            live,
            ports,
            begun: Instant::now(),
            buffer: vec![0; LARGEST],
            lateness,
            unroutable: 0,
            unanswered: 0,
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + self.begun.elapsed()
    }

    /// Does what is due, then waits for the next packet, timer or signal, and not beyond `until`.
    pub(crate) fn step(&mut self, signals: &Signals, until: Option<Instant>) -> io::Result<()> {
        self.advance();
        let mut read = 0;
        for interface in 0..self.ports.len() {
            read += self.receive(interface)?;
        }
        match read {
            0 => self.wait(signals, until),
            _ => Ok(()),
        }
    }

    /// Lets virtual time go on to the clock's, and hands over what has arrived.
    fn advance(&mut self) {
        let now = self.now();
        loop {
            // Event by event, so that answers to pings leave at the very time at which they arrive.
            let next = self.live.next_event();
            self.live.advance(next.min(now));
            while let Some(arrival) = self.live.arrived() {
                self.deliver(arrival);
            }
            if next > now {
                break;
            }
        }
    }

    fn deliver(&mut self, arrival: Arrival) {
        let Arrival { at, interface, mut packet } = arrival;
        let Some(device) = &self.ports[interface] else {
            match echo::answer(&mut packet) {
                Some(to) => drop(self.live.send(interface, to, packet)),
                None => self.unanswered += 1,
            }
            return;
        };
        // A full or closing device drops the packet, as a network card would.
        if device.send(&packet).is_ok() {
            let [packets, bytes] = &mut self.counts[interface].received;
            *packets += 1;
            *bytes += packet.len() as u64;
        }
        let late = self.begun.elapsed().saturating_sub(at.since(Time::ZERO));
        self.lateness.saturating_record(late.as_nanos() as u64);
    }

    /// Reads packets from a device; how many.
    fn receive(&mut self, interface: usize) -> io::Result<usize> {
        for number in 0..BATCH {
            let Some(device) = &self.ports[interface] else { return Ok(number) };
            let length = match device.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(number),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.advance();
            let packet = &self.buffer[..length];
            let Some(to) = echo::destination(packet) else { continue };
            self.send(interface, to, packet.to_vec());
        }
        Ok(BATCH)
    }

    fn send(&mut self, interface: usize, to: IpAddr, packet: Vec<u8>) {
        let [packets, bytes] = &mut self.counts[interface].sent;
        *packets += 1;
        *bytes += packet.len() as u64;
        // The kernel's own greetings on a new device are no business of the scenario.
        if !self.live.send(interface, to, packet) && !to.is_multicast() {
            self.unroutable += 1;
        }
    }

    fn wait(&mut self, signals: &Signals, until: Option<Instant>) -> io::Result<()> {
        let due = match self.live.next_event() {
            Time::NEVER => None,
            time => Some(time.since(Time::ZERO).saturating_sub(self.begun.elapsed())),
        };
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = [due, left].into_iter().flatten().min().map(TimeSpec::from);
        let devices = self.ports.iter().flatten().map(|device| device.as_fd());
        let watched = devices.chain([signals.as_fd()]);
        let mut watched: Vec<PollFd<'_>> = watched.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut watched, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The summary of the session, which ends now: nothing may have happened for a while.
    pub(crate) fn report(
        &mut self,
        ending: Ending,
        failed: Vec<FailedProgram>,
        overrun: u64,
    ) -> Result<Report, ShellError> {
        self.advance();
        let attached = self.live.interfaces().iter().zip(&self.counts).filter(|(i, _)| i.attached);
        let interfaces = attached.map(|(interface, count)| InterfaceReport {
            node: interface.node.clone(),
            link: interface.link.clone(),
            address: interface.address,
            sent: count.sent[0],
            sent_bytes: count.sent[1],
            received: count.received[0],
            received_bytes: count.received[1],
        });
        Ok(Report {
            ending,
            failed,
            interfaces: interfaces.collect(),
            lateness: Lateness::new(&self.lateness),
            unroutable: self.unroutable,
            unanswered: self.unanswered,
            overrun,
            run: self.live.result()?,
        })
    }
}
