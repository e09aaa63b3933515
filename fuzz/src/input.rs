//! Inputs as rows of small numbers, read from the front: what `derive` would take from the back, or with four
//! bytes for a choice, is written out.

use std::time::Duration;

use anabranch_proto::{Config, Parameters, PolicySpec, Rules};
use arbitrary::{Arbitrary, Result, Unstructured};

/// A configuration, and the steps of what happens then.
#[derive(Debug, Arbitrary)]
#[arbitrary(bound = "T: Arbitrary<'arbitrary>")]
pub struct Case<T> {
    pub setup: Setup,
    #[arbitrary(with = steps)]
    pub steps: Vec<T>,
}

/// Steps of one case at most: beyond it, more bytes say nothing new.
const MOST: usize = 300;

/// As many steps as the bytes make.
pub fn steps<'a, T: Arbitrary<'a>>(bytes: &mut Unstructured<'a>) -> Result<Vec<T>> {
    let mut steps = Vec::new();
    while !bytes.is_empty() && steps.len() < MOST {
        steps.push(bytes.arbitrary()?);
    }
    Ok(steps)
}

/// Up to `most` elements, their number first.
pub fn few<'a, T: Arbitrary<'a>>(bytes: &mut Unstructured<'a>, most: u8) -> Result<Vec<T>> {
    let count = bytes.arbitrary::<u8>()? % (most + 1);
    (0..count).map(|_| bytes.arbitrary()).collect()
}

/// Whether to do what ends an association, or hampers it: once in sixteen times.
pub fn rarely(bytes: &mut Unstructured<'_>) -> Result<bool> {
    Ok(bytes.arbitrary::<u8>()? >= 0xf0)
}

/// The configuration of a case, by a few bytes.
#[derive(Clone, Debug, Arbitrary)]
pub struct Setup {
    era: u8,
    retransmit: u8,
    sizes: u8,
    paths: u8,
    first_tsn: u8,
}

impl Setup {
    /// How many paths there are: one to three.
    pub fn paths(&self) -> usize {
        1 + usize::from(self.paths % 3)
    }

    /// Some bits that the configuration leaves over.
    pub fn spare(&self) -> u8 {
        self.paths / 3
    }

    /// An endpoint that does not give up, with small buffers and TSNs about to wrap.
    pub fn config(&self) -> Config {
        let retransmit =
            PolicySpec::named(["same", "alternate", "timeout-alternate"][usize::from(self.retransmit % 3)]);
        let size = |bit: u8| usize::from(self.sizes >> bit & 1);
        Config {
            rules: Rules::ERAS[usize::from(self.era % 4)].1,
            fast: retransmit.clone(),
            timeout: retransmit,
            receive_buffer: [3000, 20_000][size(1)],
            first_tsn: Some(u32::MAX - u32::from(self.first_tsn)),
            first_ssn: u16::MAX - 3,
            cookie_life: Duration::from_secs(3600),
            parameters: Parameters {
                mtu: [576, 1500][size(0)],
                send_buffer: Some([3000, 30_000][size(2)]),
                rto_min: Duration::from_millis([10, 1000][size(3)]),
                sack_every: [1, 2][size(4)],
                path_max_retrans: [0, 5][size(5)],
                association_max_retrans: 1_000_000,
                max_init_retransmits: 1_000_000,
                heartbeat_interval: Some(Duration::from_secs(1)),
                rto_max: Duration::from_secs(10),
                ..Parameters::default()
            },
            ..Config::default()
        }
    }
}
