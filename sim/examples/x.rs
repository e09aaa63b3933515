use anabranch_proto::wire::Chunk;
use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run};
#[derive(Default)]
struct Watch {
    names: Names,
    on: bool,
}
impl Observer for Watch {
    fn begin(&mut self, names: &Names) {
        self.names = names.clone();
    }
    fn record(&mut self, at: Time, record: &Record<'_>) {
        if !self.on {
            return;
        }
        if let Record::Sent { side, path: Some(path), packet, .. } = record {
            for chunk in packet.sctp().map(|p| &p.chunks[..]).unwrap_or_default() {
                match (side, chunk) {
                    (Side::Client, Chunk::Data(data)) => {
                        println!("D {:.6} {} {}", at.as_secs_f64(), data.tsn.0, path)
                    }
                    (Side::Client, Chunk::Heartbeat(_)) => println!("H {:.6} 0 {}", at.as_secs_f64(), path),
                    (Side::Server, Chunk::Sack(s)) => println!(
                        "S {:.6} {} {} {:?} {}",
                        at.as_secs_f64(),
                        s.cumulative.0,
                        path,
                        s.gaps,
                        s.a_rwnd
                    ),
                    _ => {}
                }
            }
        }
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&a[1]).unwrap();
    let seeds: u64 = a[2].parse().unwrap();
    let mut doc = Document::parse("x", &text).unwrap();
    for set in &a[3..] {
        if set != "-t" {
            doc.set("set", set).unwrap();
        }
    }
    let scenario = doc.scenario("x", &Policies::default()).unwrap_or_else(|e| panic!("{e}"));
    let trace = a.iter().any(|a| a == "-t");
    let mut all = Vec::new();
    for n in 0..seeds {
        let mut s = scenario.clone();
        s.seed += n;
        let mut w = Watch { on: trace, ..Default::default() };
        let observer: Option<&mut dyn Observer> = if trace { Some(&mut w) } else { None };
        let r = run(&s, RunOptions { observer, ..RunOptions::default() }).unwrap();
        all.push(serde_json::to_value(r).unwrap());
    }
    if !trace {
        println!("{}", serde_json::to_string(&all).unwrap());
    }
}
