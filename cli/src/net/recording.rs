//! The recording of a transfer: everything that the core was told, with the times. `anabranch replay` reads it.
//!
//! A line of JSON for each call, after a line with the parameters. Of user data, sent and received, only the lengths
//! are kept. A recording holds the seed of the endpoint, from which its tags and cookies are derived.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_net::{Call, Tape};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Ports, Quoted};
use anabranch_proto::{AssociationId, Config, Incoming, LocalAddress, Message, Output, Reliability, Time};
use anabranch_sim::scenario::protocol;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the format.
const FORMAT: u32 = 2;

/// The largest message in bytes that a recording may hold, so that a forged one does not take all memory.
const LARGEST: usize = 1 << 20;

/// No line of a recording has so many bytes: a packet has at most 65,535.
const LONGEST: u64 = 1 << 18;

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    recording: u32,
    /// The version of the program.
    program: String,
    /// The settings of the protocol, `KEY=VALUE`.
    settings: Vec<String>,
    /// Whether peers could initiate associations.
    #[serde(default)]
    listening: bool,
    port: u16,
    mtu: u32,
    ip_header: u32,
    addresses: Vec<(SocketAddr, u8)>,
    seed: String,
}

/// Every further line: a call, and what the endpoint did between the call before and this one.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    /// The time of the call, nanoseconds from the beginning.
    pub(super) at: u64,
    /// How often the endpoint was polled since the call before.
    pub(super) polls: u64,
    /// The packets that it has sent so far.
    pub(super) sent: u64,
    pub(super) call: Told,
}

/// What the endpoint is told.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    Time,
    Packet {
        from: SocketAddr,
        to: SocketAddr,
        ecn: u8,
        bytes: String,
    },
    Writable(SocketAddr, bool),
    Up(SocketAddr, bool),
    TooBig(SocketAddr, u32),
    Unreachable {
        remote: SocketAddr,
        ports: (u16, u16),
        tag: u32,
        initiate_tag: Option<u32>,
    },
    Connect {
        port: u16,
        to: Vec<SocketAddr>,
    },
    Send {
        association: u64,
        stream: u16,
        ppid: u32,
        unordered: bool,
        immediate: bool,
        bytes: usize,
    },
    Read(u64),
    Shutdown(u64),
    Abort {
        association: u64,
        reason: String,
    },
    Listen(bool),
    Forget(u64),
    /// A call that a recording cannot hold.
    Other,
    /// The end, with the hash of all packets sent.
    End {
        sha256: String,
    },
}

/// Adds a packet to the hash of all packets sent: its bytes, with zeros for user data.
pub(super) fn add(packet: &Packet, hash: &mut Sha256) {
    let packet = without_user_data(packet);
    let mut bytes = BytesMut::new();
    // What the core builds can be encoded.
    let _ = packet.encode_without_checksum(&mut bytes);
    hash.update(packet.to.ip.to_string());
    hash.update(&bytes);
}

/// The packet with zeros for user data.
fn without_user_data(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    for chunk in &mut packet.chunks {
        match chunk {
            Chunk::Data(data) => data.payload = zeros(data.payload.len()),
            Chunk::IData(data) => data.payload = zeros(data.payload.len()),
            _ => {}
        }
    }
    packet
}

fn zeros(length: usize) -> Bytes {
    Bytes::from(vec![0; length])
}

fn place(address: Address) -> SocketAddr {
    SocketAddr::new(address.ip, address.udp)
}

fn address(place: SocketAddr) -> Address {
    Address { ip: place.ip(), udp: place.port() }
}

/// The code points of RFC 3168.
const ECN: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

impl Told {
    fn of(call: &Call<'_>) -> Told {
        match call {
            Call::Time => Told::Time,
            Call::Handle(incoming) => Told::incoming(incoming),
            Call::Connect(port, to) => {
                Told::Connect { port: *port, to: to.iter().copied().map(place).collect() }
            }
            Call::Send(id, message) if message.reliability == Reliability::Full => Told::Send {
                association: id.0,
                stream: message.stream,
                ppid: message.ppid,
                unordered: message.unordered,
                immediate: message.immediate,
                bytes: message.payload.len(),
            },
            Call::Read(id) => Told::Read(id.0),
            Call::Shutdown(id) => Told::Shutdown(id.0),
            Call::Abort(id, reason) => {
                Told::Abort { association: id.0, reason: BASE64_STANDARD.encode(reason) }
            }
            Call::Listen(on) => Told::Listen(*on),
            Call::Forget(id) => Told::Forget(id.0),
            Call::Send(..) | Call::Other => Told::Other,
        }
    }

    fn incoming(incoming: &Incoming) -> Told {
        match incoming {
            Incoming::Packet(packet) => {
                let mut bytes = BytesMut::new();
                if without_user_data(packet).encode_without_checksum(&mut bytes).is_err() {
                    return Told::Other;
                }
                let ecn = ECN.iter().position(|known| *known == packet.ecn).unwrap_or_default() as u8;
                let bytes = BASE64_STANDARD.encode(&bytes);
                Told::Packet { from: place(packet.from), to: place(packet.to), ecn, bytes }
            }
            Incoming::Writable(local, is) => Told::Writable(place(*local), *is),
            Incoming::Up(local, is) => Told::Up(place(*local), *is),
            Incoming::TooBig(remote, mtu) => Told::TooBig(place(*remote), *mtu),
            Incoming::Unreachable(remote, quoted) => Told::Unreachable {
                remote: place(*remote),
                ports: (quoted.ports.source, quoted.ports.destination),
                tag: quoted.tag,
                initiate_tag: quoted.initiate_tag,
            },
        }
    }

    /// What arrives with this call, if it is that.
    pub(super) fn arrives(&self) -> Result<Option<Incoming>, String> {
        Ok(Some(match self {
            Told::Packet { from, to, ecn, bytes } => {
                let bytes = BASE64_STANDARD.decode(bytes).map_err(|error| error.to_string())?;
                let ecn = ECN.get(usize::from(*ecn)).copied().unwrap_or(Ecn::NotEct);
                let packet = Packet::decode_unchecked(address(*from), address(*to), ecn, bytes.into());
                Incoming::Packet(Box::new(packet.map_err(|error| error.to_string())?))
            }
            Told::Writable(local, is) => Incoming::Writable(address(*local), *is),
            Told::Up(local, is) => Incoming::Up(address(*local), *is),
            Told::TooBig(remote, mtu) => Incoming::TooBig(address(*remote), *mtu),
            Told::Unreachable { remote, ports: (source, destination), tag, initiate_tag } => {
                let ports = Ports { source: *source, destination: *destination };
                let quoted = Quoted { ports, tag: *tag, initiate_tag: *initiate_tag };
                Incoming::Unreachable(address(*remote), quoted)
            }
            _ => return Ok(None),
        }))
    }

    /// The message that is sent with this call, with zeros for user data, and its association.
    pub(super) fn message(&self) -> Result<Option<(AssociationId, Message)>, String> {
        let Told::Send { association, stream, ppid, unordered, immediate, bytes } = *self else {
            return Ok(None);
        };
        if bytes > LARGEST {
            return Err(format!(
                "a message of {bytes} bytes: none of these commands sends more than {LARGEST}"
            ));
        }
        let (payload, reliability) = (zeros(bytes), Reliability::Full);
        let message = Message { stream, ppid, unordered, immediate, payload, reliability };
        Ok(Some((AssociationId(association), message)))
    }
}

/// The reason of an abort.
pub(super) fn reason(text: &str) -> Result<Bytes, String> {
    BASE64_STANDARD.decode(text).map(Bytes::from).map_err(|error| error.to_string())
}

/// Addresses of a call to connect.
pub(super) fn addresses(to: &[SocketAddr]) -> Vec<Address> {
    to.iter().copied().map(address).collect()
}

/// Writes a recording while the transfer goes on.
struct Writer {
    out: BufWriter<File>,
    settings: Vec<String>,
    listening: bool,
    /// Whether there is an endpoint.
    begun: bool,
    polls: u64,
    sent: u64,
    at: u64,
    hash: Sha256,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl Writer {
    fn line(&mut self, value: &impl Serialize) {
        if self.failed.is_none() {
            let written = serde_json::to_writer(&mut self.out, value).map_err(io::Error::from);
            self.failed = written.and_then(|()| self.out.write_all(b"\n")).err();
        }
    }

    fn call(&mut self, at: u64, call: Told) {
        self.at = at;
        let polls = std::mem::take(&mut self.polls);
        self.line(&Line { at, polls, sent: self.sent, call });
    }
}

/// The recording of an endpoint that is in use: one handle for the endpoint, one for who ends it.
#[derive(Clone)]
pub(super) struct Recording(Arc<Mutex<Writer>>);

impl Recording {
    /// Begins a recording of an endpoint with these settings of the protocol.
    pub(super) fn begin(file: &Path, settings: Vec<String>, listening: bool) -> io::Result<Recording> {
        let out = BufWriter::new(File::create(file)?);
        let hash = Sha256::new();
        let (begun, failed) = (false, None);
        let writer = Writer { out, settings, listening, begun, polls: 0, sent: 0, at: 0, hash, failed };
        Ok(Recording(Arc::new(Mutex::new(writer))))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there was an endpoint to be recorded.
    pub(super) fn has_begun(&self) -> bool {
        self.lock().begun
    }

    /// Ends the recording. Reports whether anything could not be written.
    pub(super) fn finish(&self) -> io::Result<()> {
        let mut writer = self.lock();
        let (at, sha256) = (writer.at, hexadecimal(&writer.hash.clone().finalize()));
        writer.call(at, Told::End { sha256 });
        match writer.failed.take() {
            Some(error) => Err(error),
            None => writer.out.flush(),
        }
    }
}

impl Tape for Recording {
    fn begin(&mut self, config: &Config, seed: &[u8; 32]) {
        let mut writer = self.lock();
        writer.begun = true;
        let head = Head {
            recording: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            settings: writer.settings.clone(),
            listening: writer.listening,
            port: config.port,
            mtu: config.mtu,
            ip_header: config.ip_header,
            addresses: config.addresses.iter().map(|local| (place(local.address), local.prefix)).collect(),
            seed: BASE64_STANDARD.encode(seed),
        };
        writer.line(&head);
    }

    fn call(&mut self, at: Time, call: &Call<'_>) {
        self.lock().call(at.as_nanos(), Told::of(call));
    }

    fn polled(&mut self, output: &Output) {
        let mut writer = self.lock();
        writer.polls += 1;
        if let Output::Transmit(packet, _) = output {
            writer.sent += 1;
            add(packet, &mut writer.hash);
        }
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A recording that is read.
pub(super) struct Reader {
    input: Box<dyn BufRead>,
    /// The number of the line read last.
    number: u64,
    /// Whether peers could initiate associations.
    pub(super) listening: bool,
}

impl Reader {
    /// Begins to read a recording, and makes the parameters and the seed of its endpoint.
    pub(super) fn new(input: impl BufRead + 'static) -> Result<(Reader, Config, [u8; 32]), String> {
        let mut reader = Reader { input: Box::new(input), number: 0, listening: false };
        let head: Head = reader.read()?.ok_or("this is no recording: it is empty")?;
        if head.recording != FORMAT {
            return Err(format!("the recording has format {}, this program reads {FORMAT}", head.recording));
        }
        reader.listening = head.listening;
        let mut config = protocol("the recording", &head.settings)
            .map_err(|error| error.render(false).trim().to_owned())?;
        (config.port, config.mtu, config.ip_header) = (head.port, head.mtu, head.ip_header);
        let local =
            |(place, prefix): &(SocketAddr, u8)| LocalAddress { address: address(*place), prefix: *prefix };
        config.addresses = head.addresses.iter().map(local).collect();
        let seed = BASE64_STANDARD.decode(&head.seed).ok().and_then(|seed| seed.try_into().ok());
        Ok((reader, config, seed.ok_or("line 1: the seed has not 32 bytes")?))
    }

    /// The next call.
    pub(super) fn next(&mut self) -> Result<Option<Line>, String> {
        self.read()
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn read<T: for<'a> Deserialize<'a>>(&mut self) -> Result<Option<T>, String> {
        self.number += 1;
        let mut line = Vec::new();
        let input = Read::take(&mut self.input, LONGEST).read_until(b'\n', &mut line);
        let length = input.map_err(|error| error.to_string())? as u64;
        match length {
            0 => return Ok(None),
            LONGEST => {
                return Err(format!("line {}: this is no recording: the line is too long", self.number));
            }
            _ => {}
        }
        let read = serde_json::from_slice(&line);
        read.map(Some).map_err(|error: serde_json::Error| match error.is_eof() {
            true => format!("line {}: the recording ends within this line: it was cut off", self.number),
            false => format!("line {}: this is no recording: {}", self.number, without_place(&error)),
        })
    }
}

/// The message of serde, which counts the one line that it sees as line 1.
fn without_place(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    let bare = message.rsplit_once(" at line ").map_or(message.as_str(), |(bare, _)| bare);
    format!("{bare} at column {column}")
}
