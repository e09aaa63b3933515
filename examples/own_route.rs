//! A rule of one's own: retransmissions take the path with the shortest round trip. Here it is compared with two of
//! those built in, in the simulator; on real networks it goes into `anabranch_net::Options::policies`.

use std::error::Error;

use anabranch_proto::policy::{Ask, Choice, PathView, PolicyError, PolicySpec, Route};
use anabranch_proto::{Config, Policies};
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

/// The path with the shortest smoothed round trip among those that carry data.
#[derive(Clone, Debug)]
struct Shortest;

impl Route for Shortest {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let usable = paths.iter().filter(|path| path.carries());
        // A path that was never measured comes last.
        let shortest = usable.min_by_key(|path| (path.srtt.is_none(), path.srtt, path.id.0));
        match (shortest, ask.last) {
            (Some(path), _) => Choice::Send(path.id),
            (None, Some(last)) => Choice::Send(last),
            (None, None) => Choice::Wait,
        }
    }
}

fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    match spec.settings.keys().next() {
        None => Ok(Box::new(Shortest)),
        Some(key) => {
            Err(PolicyError::Setting { name: spec.name.clone(), why: format!("it has no setting `{key}`") })
        }
    }
}

const SCENARIO: &str = r#"
[[link]]
name = "wifi"
between = ["phone", "server"]
rate = "10 Mbit/s"
delay = "15 ms"
loss = "2 %"

[[link]]
name = "satellite"
between = ["phone", "server"]
rate = "2 Mbit/s"
delay = "280 ms"

[[flow]]
name = "upload"
from = "phone"
to = "server"
send = "5 MB"

[flow.sctp]
primary = "wifi"
retransmit = "RULE"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let mut policies = Policies::default();
    policies.add_route("shortest", make);
    for rule in ["shortest", "same", "alternate"] {
        let document = Document::parse("own_route.toml", &SCENARIO.replace("RULE", rule))?;
        let scenario = document.scenario("own_route", &policies)?;
        let result = run(&scenario, RunOptions { policies: policies.clone(), ..RunOptions::default() })?;
        let flow = &result.flows[0];
        println!("{rule:<10} {:6.2} s", flow.completion.ok_or("the transfer did not end")?);
    }
    Ok(())
}
