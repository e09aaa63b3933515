//! Which packets a link direction loses.

use std::hint::cold_path;

use crate::chance::{Draws, threshold};
use crate::scenario::Loss;
use crate::transport::Frame;

/// The losses of one link direction. The n-th packet offered takes the n-th draw or the n-th place in a list,
/// whatever becomes of it and whatever the losses were before.
#[derive(Debug)]
pub(crate) struct Losses {
    root: u64,
    /// Names the draws.
    stream: Box<str>,
    rule: Rule,
}

/// The draws of a rule are made with it: most links lose nothing.
#[derive(Debug)]
enum Rule {
    None,
    Random {
        below: u64,
        draws: Box<Draws>,
    },
    /// Packet numbers, ascending, and how many of them are past.
    Listed {
        numbers: Vec<u64>,
        past: usize,
    },
    Bits {
        /// The natural logarithm of the probability that a bit is right.
        right: f64,
        /// The size of the last packet, and its threshold.
        last: (u32, u64),
        draws: Box<Draws>,
    },
    Every(u64),
    Gilbert(Box<Gilbert>),
    Data(Box<Data>),
}

/// The chain of Gilbert and Elliott: thresholds by state, good and bad.
#[derive(Debug)]
struct Gilbert {
    lost: [u64; 2],
    leave: [u64; 2],
    bad: bool,
    draws: Draws,
    /// Decides when the state changes.
    steps: Draws,
}

/// Packets of one flow with user data.
#[derive(Debug)]
struct Data {
    /// Where the flow's routes have this direction in the table of routes, ascending.
    hops: Vec<u32>,
    /// As in [`Rule::Listed`].
    numbers: Vec<u64>,
    past: usize,
    /// Such packets so far.
    seen: u64,
}

impl Losses {
    /// `stream` names the draws of this direction.
    pub(crate) fn new(root: u64, stream: &str, loss: &Loss) -> Self {
        let mut losses = Losses { root, stream: stream.into(), rule: Rule::None };
        losses.change(loss, &[]);
        losses
    }

    /// From the next packet on, these. `hops` says where the flow that the loss names has this direction in the
    /// table of routes, ascending.
    pub(crate) fn change(&mut self, loss: &Loss, hops: &[u32]) {
        let draws = || Draws::new(self.root, &self.stream);
        self.rule = match loss {
            Loss::None => Rule::None,
            Loss::Random(probability) => {
                Rule::Random { below: threshold(*probability), draws: Box::new(draws()) }
            }
            Loss::Listed(numbers) => Rule::Listed { numbers: numbers.clone(), past: 0 },
            Loss::Bits(wrong) => {
                Rule::Bits { right: libm::log1p(-wrong), last: (0, 0), draws: Box::new(draws()) }
            }
            Loss::Every(n) => Rule::Every(*n),
            Loss::Gilbert { good, bad, to_bad, to_good } => Rule::Gilbert(Box::new(Gilbert {
                lost: [threshold(*good), threshold(*bad)],
                leave: [threshold(*to_bad), threshold(*to_good)],
                bad: false,
                draws: draws(),
                steps: Draws::new(self.root, &format!("{}/state", self.stream)),
            })),
            Loss::Data { numbers, .. } => {
                let (hops, numbers) = (hops.to_vec(), numbers.clone());
                Rule::Data(Box::new(Data { hops, numbers, past: 0, seen: 0 }))
            }
        };
    }

    /// Whether packet `number`, counted from 1 in the order offered, is lost. Asked in ascending order.
    #[inline(always)]
    pub(crate) fn loses(&mut self, number: u64, frame: &Frame) -> bool {
        !matches!(self.rule, Rule::None) && self.strikes(number, frame)
    }

    /// Whether packet `number` is sure not to be lost, whatever it is. May be asked before it is offered.
    #[inline]
    pub(crate) fn spares(&mut self, number: u64) -> bool {
        match &mut self.rule {
            Rule::None => true,
            Rule::Random { below, draws } => {
                cold_path();
                draws.nth(number - 1) >= *below
            }
            _ => {
                cold_path();
                false
            }
        }
    }

    // Most links lose nothing: what follows stays out of their way.
    #[inline(never)]
    fn strikes(&mut self, number: u64, frame: &Frame) -> bool {
        match &mut self.rule {
            Rule::None => false,
            Rule::Random { below, draws } => draws.nth(number - 1) < *below,
            Rule::Listed { numbers, past } => listed(numbers, past, number),
            Rule::Bits { right, last, draws } => {
                if last.0 != frame.size {
                    // A packet is lost if any of its bits is wrong: 1 - (1 - p)^bits.
                    let lost = -libm::expm1(f64::from(frame.size) * 8.0 * *right);
                    *last = (frame.size, threshold(lost));
                }
                draws.nth(number - 1) < last.1
            }
            Rule::Every(n) => number.is_multiple_of(*n),
            Rule::Gilbert(chain) => {
                let state = usize::from(chain.bad);
                chain.bad ^= chain.steps.nth(number - 1) < chain.leave[state];
                chain.draws.nth(number - 1) < chain.lost[state]
            }
            Rule::Data(data) => {
                if data.hops.binary_search(&frame.hop).is_err() || !frame.body.has_data() {
                    return false;
                }
                data.seen += 1;
                listed(&data.numbers, &mut data.past, data.seen)
            }
        }
    }
}

/// Whether `number` is one of the ascending `numbers`, of which `past` are below it.
fn listed(numbers: &[u64], past: &mut usize, number: u64) -> bool {
    *past += numbers[*past..].iter().take_while(|listed| **listed < number).count();
    numbers.get(*past) == Some(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::frame;

    fn lost(losses: &mut Losses, numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.filter(|n| losses.loses(*n, &frame(1500, 0))).collect()
    }

    #[test]
    fn listed_packets_are_lost() {
        let mut losses = Losses::new(1, "x", &Loss::Listed(vec![1, 3, 4, 9]));
        assert_eq!(lost(&mut losses, 1..=10), [1, 3, 4, 9]);
        losses.change(&Loss::Listed(vec![2, 11, 13]), &[]);
        assert_eq!(lost(&mut losses, 11..=20), [11, 13]);
    }

    #[test]
    fn random_losses_belong_to_the_packet_number() {
        let mut always_on = Losses::new(1, "x", &Loss::Random(0.25));
        let expected = lost(&mut always_on, 1..=4000);
        assert!((900..1100).contains(&expected.len()), "{}", expected.len());
        let mut late = Losses::new(1, "x", &Loss::None);
        assert!(lost(&mut late, 1..=1000).is_empty());
        late.change(&Loss::Random(0.25), &[]);
        let tail: Vec<_> = expected.into_iter().filter(|n| *n > 1000).collect();
        assert_eq!(lost(&mut late, 1001..=4000), tail);
    }

    #[test]
    fn certain_loss_and_none() {
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Random(1.0)), 1..=100).len(), 100);
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Random(0.0)), 1..=100).len(), 0);
    }

    #[test]
    fn every_so_many_is_lost() {
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Every(50)), 1..=160), [50, 100, 150]);
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Every(1)), 1..=3), [1, 2, 3]);
    }

    /// Within four standard deviations of a binomial count.
    fn assert_share(count: usize, of: u64, share: f64) {
        let (mean, sd) = (of as f64 * share, (of as f64 * share * (1.0 - share)).sqrt());
        assert!((count as f64 - mean).abs() < 4.0 * sd, "{count} of {of} is not {share}");
    }

    /// 1 - (1 - p)^bits, for small and large packets.
    #[test]
    fn bit_errors_lose_packets_by_their_size() {
        const PACKETS: u64 = 200_000;
        for (size, share) in [(1500, 0.011_928_352), (40, 0.000_319_949)] {
            let mut losses = Losses::new(3, "x", &Loss::Bits(1e-6));
            let count = (1..=PACKETS).filter(|n| losses.loses(*n, &frame(size, 0))).count();
            assert_share(count, PACKETS, share);
        }
        assert_eq!(lost(&mut Losses::new(3, "x", &Loss::Bits(1.0)), 1..=9).len(), 9);
    }

    /// The stationary share of losses is (to_good × good + to_bad × bad) / (to_bad + to_good), and stays in the bad
    /// state last 1 / to_good packets on average.
    #[test]
    fn gilbert_elliott_is_its_closed_form() {
        const PACKETS: u64 = 400_000;
        let (to_bad, to_good) = (0.01, 0.25);
        let chain = |good, bad| Loss::Gilbert { good, bad, to_bad, to_good };
        let count = lost(&mut Losses::new(5, "x", &chain(0.001, 0.3)), 1..=PACKETS).len() as f64;
        let share = (to_good * 0.001 + to_bad * 0.3) / (to_bad + to_good);
        // Losses come in bursts, so that the variance is larger than a binomial one: by the sum of all correlations,
        // which decay as (1 - to_bad - to_good)^k.
        let bad = to_bad / (to_bad + to_good);
        let decay: f64 = 1.0 - to_bad - to_good;
        let covariance = bad * (1.0 - bad) * (0.3 - 0.001) * (0.3 - 0.001) * 2.0 * decay / (1.0 - decay);
        let sd = (PACKETS as f64 * (share * (1.0 - share) + covariance)).sqrt();
        assert!(
            (count - PACKETS as f64 * share).abs() < 4.0 * sd,
            "{count} is not {}",
            PACKETS as f64 * share
        );

        // With a certain loss in the bad state and none in the good one, the runs of losses are the stays.
        let numbers = lost(&mut Losses::new(5, "x", &chain(0.0, 1.0)), 1..=PACKETS);
        let stays = 1 + numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        let (mean, expected) = (numbers.len() as f64 / stays as f64, 1.0 / to_good);
        let sd = ((1.0 - to_good) / to_good / to_good / stays as f64).sqrt();
        assert!((mean - expected).abs() < 4.0 * sd, "{mean} is not {expected}");
    }
}
