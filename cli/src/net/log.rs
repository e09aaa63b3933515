//! The output of a listener: log lines for people, events for programs.

use std::io;
use std::net::SocketAddr;

use anabranch_net::Device;
use anabranch_proto::wire::Address;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use super::paths;
use super::pen::Pen;
use crate::DONE;
use crate::output::{log, print, print_json_line};

/// The format of log lines.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Time, level, transfer, peer and message
    Text,
    /// The same as one JSON object per line
    Json,
}

/// The destinations of log and events.
#[derive(Clone)]
pub(super) struct Journal {
    format: Format,
    /// With events: events on standard output, the log on standard error. Otherwise the log on standard output.
    events: bool,
    output: Pen,
    log: Pen,
}

impl Journal {
    /// Writes the log in this form from now on.
    pub(super) fn begin(format: Format, events: bool) -> Journal {
        let journal = Journal { format, events, output: Pen::new(), log: Pen::new() };
        let lines =
            tracing_subscriber::fmt().with_writer(journal.clone()).with_ansi(false).with_target(false);
        // A second journal in the same process keeps the format of the first.
        let _ = match format {
            Format::Text => tracing::subscriber::set_global_default(lines.finish()),
            Format::Json => {
                let lines = lines.json().flatten_event(true).with_span_list(false);
                tracing::subscriber::set_global_default(lines.finish())
            }
        };
        journal
    }

    /// Reports the listening addresses. Returns false if nobody reads the output.
    pub(super) fn listening(&self, place: SocketAddr, device: &Device) -> bool {
        let (name, refused) = match device {
            Device::Any => (None, None),
            Device::Bound(name) => (Some(name), None),
            Device::Refused(name, why) => (Some(name), Some(why)),
        };
        let place = paths::place(Address { ip: place.ip(), udp: place.port() });
        if self.events {
            let event = json!({ "address": place, "device": name, "device_refused": refused });
            return print_json_line(&named("listening", event)) == DONE;
        }
        let line = match (name, refused) {
            (None, _) => format!("listening at {place}"),
            (Some(name), None) => format!("listening at {place} on {name}"),
            (Some(name), Some(why)) => format!("listening at {place}, not bound to {name}: {why}"),
        };
        match self.format {
            Format::Text => print(&line) == DONE,
            Format::Json => {
                tracing::info!("{line}");
                true
            }
        }
    }

    /// Prints an event, if events are on, with its name and the time in seconds since 1970.
    pub(super) fn event(&self, name: &str, event: Value) {
        if self.events {
            let event = named(name, event);
            self.output.write(move || {
                print_json_line(&event);
            });
        }
    }

    /// Waits a moment until everything is written.
    pub(super) fn finish(&self) {
        self.output.finish();
        self.log.finish();
    }
}

fn named(name: &str, mut event: Value) -> Value {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    event["event"] = name.into();
    event["time"] = since.as_secs_f64().into();
    event
}

impl MakeWriter<'_> for Journal {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line { journal: self.clone(), bytes: Vec::new() }
    }
}

/// A log line, which is written when it is complete.
pub(super) struct Line {
    journal: Journal,
    bytes: Vec<u8>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let line = String::from_utf8_lossy(&self.bytes).trim_end_matches('\n').to_owned();
        let (json, events) = (self.journal.format == Format::Json, self.journal.events);
        self.journal.log.write(move || log(&line, json, events));
    }
}
