//! Where SACKs return and what they acknowledge: CMT beside two associations over the same two channels (figure 3 of
//! the publication on CMT over multihop wireless).

use std::collections::{BTreeMap, BTreeSet};

use anabranch_proto::Policies;
use anabranch_proto::wire::Chunk;
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Names, Observer, Record, Side};
use anabranch_sim::{RunOptions, run};

const TEXT: &str = "\
era = 'rfc4960'
stop = '20 s'
[[channel]]
name = 'freq1'
[[channel]]
name = 'freq2'
[[chain]]
name = 'a'
hops = 3
spacing = '300 m'
channels = ['freq1', 'freq2']
[[flow]]
name = 'f'
from = 'a0'
to = 'a3'
message_size = '1000 B'
[flow.sctp]
verification = 'same-local'
";

/// The path of each TSN that is not acknowledged, and for each SACK its path and those of the data that it newly
/// acknowledges.
#[derive(Default)]
struct Sacks {
    outstanding: BTreeMap<u32, String>,
    seen: BTreeSet<(String, BTreeSet<String>)>,
}

impl Observer for Sacks {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, _: anabranch_proto::Time, record: &Record<'_>) {
        let Record::Sent { side, path: Some(path), packet, .. } = record else { return };
        if *side == Side::Client {
            let sent = packet.tsns().map(|tsn| (tsn.0, (*path).to_owned()));
            self.outstanding.extend(sent);
            return;
        }
        for chunk in packet.sctp().map_or(&[][..], |packet| &packet.chunks[..]) {
            if let Chunk::Sack(sack) = chunk {
                // What was not acknowledged yet lies directly below the Cumulative TSN Ack.
                let below = (0..).map_while(|n| self.outstanding.remove(&sack.cumulative.0.wrapping_sub(n)));
                let acknowledged = below.collect();
                self.seen.insert(((*path).to_owned(), acknowledged));
            }
        }
    }
}

/// All combinations of a SACK's path and the paths of the data that it newly acknowledges, with these edits.
fn sacks(edits: &[&str]) -> BTreeSet<(String, BTreeSet<String>)> {
    let mut document = Document::parse("figure3.toml", TEXT).expect("it is TOML");
    edits.iter().for_each(|edit| document.set("--set", edit).expect("it can be edited"));
    let scenario = document.scenario("figure3", &Policies::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let mut sacks = Sacks::default();
    run(&scenario, RunOptions { observer: Some(&mut sacks), ..RunOptions::default() }).expect("it runs");
    sacks.seen
}

#[test]
fn sacks_of_cmt_return_by_any_path_and_acknowledge_both() {
    let sacks = sacks(&["flow.f.sctp.cmt=true"]);
    let both = BTreeSet::from(["freq1".to_owned(), "freq2".to_owned()]);
    for path in &both {
        assert!(sacks.contains(&(path.clone(), both.clone())), "{path}: {sacks:?}");
    }
}

#[test]
fn sacks_of_two_associations_stay_on_their_path() {
    let sacks = sacks(&["flow.f.stripe=true"]);
    let returned: BTreeSet<_> = sacks.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(returned, BTreeSet::from(["freq1", "freq2"]));
    for (path, acknowledged) in &sacks {
        assert!(acknowledged.iter().all(|of| of == path), "{path}: {acknowledged:?}");
    }
}
