//! `anabranch explain`: prints a capture file, one line per packet.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, stdin};
use std::path::PathBuf;

use anabranch_sim::capture::{self, CaptureReader, Line, ReadError};

use crate::DONE;
use crate::output::{Lines, fail, refuse};

/// The UDP port of SCTP (RFC 6951).
const UDP_PORT: u16 = 9899;

/// The arguments of `anabranch explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The capture, pcapng or pcap; `-` for standard input
    file: PathBuf,
    /// Look for SCTP on this UDP port too, in addition to 9899
    #[arg(long, value_name = "PORT")]
    udp: Vec<u16>,
    /// Print one JSON object per packet and line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
A line has the time in seconds (in a simulated capture: since the beginning of the run), the interface, the addresses
and SCTP ports, the verification tag, the chunks, any fault in square brackets, and after # the comment in the capture.
Gaps are shown as TSNs. A line of TCP has ports, flags and numbers, and each option of Multipath TCP. A datagram that was
captured before the kernel split it into packets (GSO) has a line for each packet, marked \"segment 2 of 5\".

Examples:
  anabranch run scenarios/outage.toml --pcap outage.pcapng
  anabranch explain outage.pcapng
  anabranch explain outage.pcapng | grep dropped
  anabranch explain outage.pcapng --json | jq -r 'select(.comment | contains(\"T3-rtx\")) | .time'
  tcpdump -i any -w - sctp or udp port 9899 | anabranch explain -
  anabranch explain webrtc.pcap --udp 5000
  anabranch run scenarios/mptcp.toml --pcap mptcp.pcapng  &&  anabranch explain mptcp.pcapng | grep DSS

Exit status: 0 done, 2 the file is not a capture or is truncated, 1 anything else.";

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
    match print(input, arguments) {
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
fn print(input: impl Read, arguments: &Arguments) -> Result<(), Failure> {
    let udp = [&[UDP_PORT], &arguments.udp[..]].concat();
    let mut out = Lines::new();
    let mut width = 0;
    for packet in CaptureReader::new(input).map_err(Failure::Read)? {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => return out.flush().map_err(Failure::Write).and(Err(Failure::Read(error))),
        };
        for line in capture::explain(&packet, &udp) {
            width = width.max(line.interface.as_ref().map_or(0, |name| name.chars().count()));
            print_line(&mut out, &line, width, arguments.json).map_err(Failure::Write)?;
        }
    }
    out.flush().map_err(Failure::Write)
}

fn print_line(out: &mut Lines, line: &Line, width: usize, json: bool) -> io::Result<()> {
    if json { out.json(line) } else { out.text(&format!("{line:width$}")) }
}
