//! Which packets a link direction loses.

use crate::chance::{Draws, threshold};
use crate::scenario::Loss;

/// The losses of one link direction. The n-th packet offered takes the n-th draw or the n-th place in a list,
/// whatever becomes of it and whatever the losses were before.
#[derive(Debug)]
pub(crate) struct Losses {
    draws: Draws,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    None,
    Random {
        below: u64,
    },
    /// Packet numbers, ascending, and how many of them are past.
    Listed {
        numbers: Vec<u64>,
        past: usize,
    },
}

impl Losses {
    /// `stream` names the draws of this direction.
    pub(crate) fn new(root: u64, stream: &str, loss: &Loss) -> Self {
        let mut losses = Losses { draws: Draws::new(root, stream), rule: Rule::None };
        losses.change(loss);
        losses
    }

    /// From the next packet on, these.
    pub(crate) fn change(&mut self, loss: &Loss) {
        self.rule = match loss {
            Loss::None => Rule::None,
            Loss::Random(probability) => Rule::Random { below: threshold(*probability) },
            Loss::Listed(numbers) => Rule::Listed { numbers: numbers.clone(), past: 0 },
        };
    }

    /// Whether packet `number`, counted from 1 in the order offered, is lost. Asked in ascending order.
    pub(crate) fn loses(&mut self, number: u64) -> bool {
        !matches!(self.rule, Rule::None) && self.strikes(number)
    }

    // Most links lose nothing: what follows stays out of their way.
    #[inline(never)]
    fn strikes(&mut self, number: u64) -> bool {
        match &mut self.rule {
            Rule::None => false,
            Rule::Random { below } => self.draws.nth(number - 1) < *below,
            Rule::Listed { numbers, past } => {
                *past += numbers[*past..].iter().take_while(|listed| **listed < number).count();
                numbers.get(*past) == Some(&number)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(losses: &mut Losses, numbers: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        numbers.filter(|n| losses.loses(*n)).collect()
    }

    #[test]
    fn listed_packets_are_lost() {
        let mut losses = Losses::new(1, "x", &Loss::Listed(vec![1, 3, 4, 9]));
        assert_eq!(lost(&mut losses, 1..=10), [1, 3, 4, 9]);
        losses.change(&Loss::Listed(vec![2, 11, 13]));
        assert_eq!(lost(&mut losses, 11..=20), [11, 13]);
    }

    #[test]
    fn random_losses_belong_to_the_packet_number() {
        let mut always_on = Losses::new(1, "x", &Loss::Random(0.25));
        let expected = lost(&mut always_on, 1..=4000);
        assert!((900..1100).contains(&expected.len()), "{}", expected.len());
        let mut late = Losses::new(1, "x", &Loss::None);
        assert!(lost(&mut late, 1..=1000).is_empty());
        late.change(&Loss::Random(0.25));
        let tail: Vec<_> = expected.into_iter().filter(|n| *n > 1000).collect();
        assert_eq!(lost(&mut late, 1001..=4000), tail);
    }

    #[test]
    fn certain_loss_and_none() {
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Random(1.0)), 1..=100).len(), 100);
        assert_eq!(lost(&mut Losses::new(1, "x", &Loss::Random(0.0)), 1..=100).len(), 0);
    }
}
