//! A congestion window of one's own: it never changes. What that does to a queue is seen beside RFC 9260's window.

use std::error::Error;
use std::sync::Arc;

use anabranch_proto::policy::window::{Congestion, MakeWindow, Start};
use anabranch_proto::policy::{PolicyError, PolicySpec, Setting};
use anabranch_proto::{Config, Policies};
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

/// A constant window of this number of bytes.
#[derive(Clone, Debug)]
struct Fixed(u64);

impl Congestion for Fixed {
    fn window(&self) -> u64 {
        self.0
    }
}

/// `{ name = "fixed", packets = 40 }`: the window in packets.
fn make(spec: &PolicySpec, _: &Config) -> Result<MakeWindow, PolicyError> {
    spec.allow(&["packets"])?;
    let Some(Setting::Number(packets)) = spec.settings.get("packets") else {
        return Err(spec.refuse("it needs the setting `packets`, a number"));
    };
    let packets = *packets as u64;
    Ok(Arc::new(move |start: Start| Box::new(Fixed(packets * start.unit))))
}

const SCENARIO: &str = r#"
[[link]]
name = "dsl"
between = ["home", "server"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = "30 packets"

[[flow]]
name = "upload"
from = "home"
to = "server"
send = "5 MB"

[flow.sctp]
window = WINDOW
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut policies = Policies::default();
    policies.add_window("fixed", make);
    for window in
        [r#""standard""#, r#"{ name = "fixed", packets = 20 }"#, r#"{ name = "fixed", packets = 80 }"#]
    {
        let document = Document::parse("own_window.toml", &SCENARIO.replace("WINDOW", window))?;
        let scenario = document.scenario("own_window", &policies)?;
        let result = run(&scenario, RunOptions { policies: policies.clone(), ..RunOptions::default() })?;
        let drops: u64 = result.links.iter().map(|link| link.dropped).sum();
        let seconds = result.flows[0].completion.ok_or("the transfer did not end")?;
        println!("{window:<36} {seconds:6.2} s, {drops} packets dropped");
    }
    Ok(())
}
