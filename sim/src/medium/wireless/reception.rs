//! Models of reception: whether a radio begins to receive a signal, whether it can read a signal in the presence of
//! others, and whether it senses the medium busy.

use std::fmt::Debug;

/// A model of reception. A strength is a number that falls with distance; only the model knows its unit.
pub(crate) trait Reception: Debug + Send + Sync {
    /// The distance in metres beyond which a signal has no effect.
    fn reach(&self) -> f64;
    /// The strength at this distance in metres.
    fn strength(&self, metres: f64) -> f64;
    /// Whether a radio can read a signal of this strength if there is no other.
    fn decodes(&self, strength: f64) -> bool;
    /// Whether a signal of this strength, alone, makes the medium busy.
    fn senses(&self, strength: f64) -> bool;
    /// Whether an idle radio begins to receive a new signal.
    fn locks(&self, new: f64, beside: Beside) -> bool;
    /// Whether a radio that is receiving `held` switches to a new signal. `beside`: all other signals.
    fn takes_over(&self, new: f64, held: f64, beside: Beside) -> bool;
    /// Whether a signal that is being received stays readable.
    fn survives(&self, held: f64, beside: Beside) -> bool;
    /// Whether a radio that receives nothing senses the medium busy.
    fn busy(&self, heard: Beside) -> bool;
}

/// Signals on the air at one place.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub(crate) struct Beside {
    /// The sum of their strengths.
    pub(crate) sum: f64,
    /// The largest of them, 0 if there is none.
    pub(crate) strongest: f64,
}

impl Beside {
    /// These signals and one more.
    pub(crate) fn and(self, strength: f64) -> Self {
        Beside { sum: self.sum + strength, strongest: self.strongest.max(strength) }
    }
}

/// What an idle radio does with a signal beside which there is no other. Most signals are such: this is computed once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Alone {
    /// It begins to receive it.
    pub(crate) locks: bool,
    /// It can read it.
    pub(crate) readable: bool,
}

impl Alone {
    /// Of a signal of this strength.
    pub(crate) fn new(rules: &dyn Reception, strength: f64) -> Self {
        let locks = rules.locks(strength, Beside::default());
        let survives = rules.survives(strength, Beside::default());
        Alone { locks, readable: locks && survives && rules.decodes(strength) }
    }
}

/// Three ranges. Within `decode` a frame can be read. Within `sense` the medium is busy, and an unreadable frame is
/// noticed. Within `interfere` any signal spoils another. Strengths are distance to the power of −4.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Range {
    interfere: f64,
    decodes: f64,
    senses: f64,
    /// The ratio by which a frame must be stronger to survive another signal. `None`: it never survives.
    capture: Option<f64>,
}

impl Range {
    /// Ranges are in metres, the capture ratio in decibels.
    pub(crate) fn new(decode: f64, sense: f64, interfere: f64, capture: Option<f64>) -> Self {
        Range {
            interfere,
            decodes: fourth_power(decode),
            senses: fourth_power(sense),
            capture: capture.map(ratio),
        }
    }
}

impl Reception for Range {
    fn reach(&self) -> f64 {
        self.interfere
    }

    fn strength(&self, metres: f64) -> f64 {
        fourth_power(metres)
    }

    fn decodes(&self, strength: f64) -> bool {
        strength >= self.decodes
    }

    fn senses(&self, strength: f64) -> bool {
        strength >= self.senses
    }

    fn locks(&self, new: f64, _: Beside) -> bool {
        self.senses(new)
    }

    fn takes_over(&self, _: f64, _: f64, _: Beside) -> bool {
        false
    }

    fn survives(&self, held: f64, beside: Beside) -> bool {
        beside.strongest == 0.0 || self.capture.is_some_and(|ratio| held >= ratio * beside.strongest)
    }

    fn busy(&self, heard: Beside) -> bool {
        self.senses(heard.strongest)
    }
}

fn fourth_power(metres: f64) -> f64 {
    let square = metres * metres;
    1.0 / (square * square)
}

/// Converts decibels to a ratio of powers.
pub(super) fn ratio(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(strength: f64) -> Beside {
        Beside::default().and(strength)
    }

    #[test]
    fn three_ranges_include_their_ends() {
        let range = Range::new(370.0, 520.0, 812.0, None);
        let at = |metres| range.strength(metres);
        assert_eq!([range.decodes(at(370.0)), range.decodes(at(370.1))], [true, false]);
        assert_eq!([range.senses(at(520.0)), range.senses(at(520.1))], [true, false]);
        assert_eq!([range.busy(alone(at(500.0))), range.busy(alone(at(600.0)))], [true, false]);
        assert_eq!(
            [range.locks(at(500.0), alone(at(300.0))), range.locks(at(600.0), alone(0.0))],
            [true, false]
        );
        assert!(!range.survives(at(300.0), alone(at(812.0))));
        assert!(range.survives(at(300.0), Beside::default()));
    }

    #[test]
    fn capture_is_a_ratio_of_powers() {
        // 300 against 600 m: 12.04 dB; against 450 m: 7.04 dB.
        let range = Range::new(370.0, 520.0, 520.0, Some(10.0));
        let held = range.strength(300.0);
        assert!(range.survives(held, alone(range.strength(600.0))));
        assert!(!range.survives(held, alone(range.strength(450.0))));
    }
}
