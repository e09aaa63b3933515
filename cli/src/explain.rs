//! `anabranch explain`: prints a capture file, one line per packet, or compares one end of it with our endpoint.

use anabranch_proto::wire::UDP_PORT;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, stdin};
use std::path::PathBuf;

use anabranch_sim::capture::{self, CaptureReader, Line, ReadError};

use crate::output::{Lines, fail, refuse};
use crate::{DONE, against};

/// The arguments of `anabranch explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The capture, pcapng or pcap; `-` for standard input
    file: PathBuf,
    /// Look for SCTP on this UDP port too, in addition to 9899
    #[arg(long, value_name = "PORT")]
    udp: Vec<u16>,
    /// Print one JSON object per packet and line; with --against, one object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    against: against::Asked,
}

const EXAMPLES: &str = "\
A line has the time in seconds (in a simulated capture: since the beginning of the run), the interface, the addresses
and SCTP ports, the verification tag, the chunks, any fault in square brackets, and after # the comment in the capture.
Gaps are shown as TSNs. A line of TCP has ports, flags and numbers, and each option of Multipath TCP. A datagram that was
captured before the kernel split it into packets (GSO) has a line for each packet, marked \"segment 2 of 5\".

With --against, our endpoint takes the place of one end of the first association in the capture, in virtual time: it meets the packets
of the other end at their times, and its user sends what the captured user sent. Printed is where its answers differ from those in
the capture, and the rule, mechanism or parameter with which they do not. The capture should be made at that end. The guide
docs/captures.md says what is compared.

Examples:
  anabranch run scenarios/outage.toml --pcap outage.pcapng
  anabranch explain outage.pcapng
  anabranch explain outage.pcapng | grep dropped
  anabranch explain outage.pcapng --json | jq -r 'select(.comment | contains(\"T3-rtx\")) | .time'
  tcpdump -i any -w - sctp or udp port 9899 | anabranch explain -
  anabranch explain webrtc.pcap --udp 5000
  anabranch run scenarios/mptcp.toml --pcap mptcp.pcapng  &&  anabranch explain mptcp.pcapng | grep DSS
  anabranch explain theirs.pcap --against era=rfc9260
  anabranch explain theirs.pcap --against era=rfc4960 --against rto_min=\"200 ms\" --as 192.0.2.7 --json

Exit status: 0 done, with --against: no difference; 1 a difference, or anything else; 2 the file is not a capture, is truncated or has
no handshake, or a setting is wrong.";

/// Prints the capture and returns the exit status.
pub(crate) fn explain(arguments: &Arguments) -> u8 {
    let name = arguments.file.display();
    let input: Box<dyn Read> = match arguments.file.to_str() {
        Some("-") => Box::new(stdin().lock()),
        _ => match File::open(&arguments.file) {
            Ok(file) => Box::new(BufReader::new(file)),
            Err(error) => return refuse(format!("{name}: {error}")),
        },
    };
    let reader = match CaptureReader::new(input) {
        Ok(reader) => reader,
        Err(error) => return refuse(format!("{name}: {error}")),
    };
    let udp = [&[UDP_PORT], &arguments.udp[..]].concat();
    if arguments.against.is_asked() {
        return against::compare(&arguments.against, &name.to_string(), reader, &udp, arguments.json);
    }
    match print(reader, &udp, arguments.json) {
        Ok(()) => DONE,
        Err(Failure::Read(error)) => refuse(format!("{name}: {error}")),
        // It is no failure if the reader has closed the pipe.
        Err(Failure::Write(error)) if error.kind() == ErrorKind::BrokenPipe => DONE,
        Err(Failure::Write(error)) => fail(format!("cannot write the lines: {error}")),
    }
}

/// Why not all lines were printed.
enum Failure {
    Read(ReadError),
    Write(io::Error),
}

/// Prints packet after packet until the end of the file or the first fault in it.
fn print(reader: CaptureReader<impl Read>, udp: &[u16], json: bool) -> Result<(), Failure> {
    let mut out = Lines::new();
    let mut width = 0;
    for packet in reader {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => return out.flush().map_err(Failure::Write).and(Err(Failure::Read(error))),
        };
        for line in capture::explain(&packet, udp) {
            width = width.max(line.interface.as_ref().map_or(0, |name| name.chars().count()));
            print_line(&mut out, &line, width, json).map_err(Failure::Write)?;
        }
    }
    out.flush().map_err(Failure::Write)
}

fn print_line(out: &mut Lines, line: &Line, width: usize, json: bool) -> io::Result<()> {
    if json { out.json(line) } else { out.text(&format!("{line:width$}")) }
}
