//! Reception by power. Signals add up. A frame is readable while its power exceeds noise and all other signals by a
//! threshold. A new signal that exceeds all of these by the same threshold is received instead (capture).
//!
//! The rules are those of GloMoSim's radio with a sharp threshold. Strengths are in milliwatts.

use super::reception::{Beside, Reception, ratio};

/// Propagation, radios and thresholds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Power {
    pub(crate) propagation: Propagation,
    /// Transmit power in dBm.
    pub(crate) transmit: f64,
    /// Loss in antennas, cables and shadowing in dB, at any distance.
    pub(crate) loss: f64,
    /// Background noise in dBm.
    pub(crate) noise: f64,
    /// dB by which a frame must exceed noise and all other signals.
    pub(crate) sinr: f64,
    /// dB by which it must exceed them before the receiver notices its beginning.
    pub(crate) header: f64,
    /// Power of noise and signals, in dBm, above which the medium is busy.
    pub(crate) sense: f64,
    /// Signals below this power, in dBm, are ignored.
    pub(crate) cutoff: f64,
}

/// How power falls with distance.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Propagation {
    /// With the square of the distance.
    FreeSpace {
        /// Frequency in Hz.
        frequency: f64,
    },
    /// As in free space up to the crossover distance, then with the fourth power.
    TwoRay {
        /// Frequency in Hz.
        frequency: f64,
        /// Height of both antennas above the ground in metres.
        height: f64,
    },
    /// As in free space up to 1 m, then with this power of the distance.
    LogDistance {
        /// Frequency in Hz.
        frequency: f64,
        exponent: f64,
    },
}

/// Metres per second.
const LIGHT: f64 = 3e8;
const TURN: f64 = 2.0 * std::f64::consts::PI;

impl Propagation {
    /// Path loss in dB.
    pub(crate) fn loss(&self, metres: f64) -> f64 {
        match *self {
            Propagation::FreeSpace { frequency } => free_space(metres, frequency),
            Propagation::TwoRay { frequency, height } => {
                let crossover = 2.0 * TURN * height * height * frequency / LIGHT;
                match metres < crossover {
                    true => free_space(metres, frequency),
                    false => 40.0 * libm::log10(metres) - 40.0 * libm::log10(height),
                }
            }
            Propagation::LogDistance { frequency, exponent } => {
                free_space(metres.min(1.0), frequency) + 10.0 * exponent * libm::log10(metres.max(1.0))
            }
        }
    }

    /// The distance in metres up to which the loss is at most `decibels`.
    fn within(&self, decibels: f64) -> f64 {
        // The loss grows with distance. The interval is halved until its length is a centimetre.
        let (mut near, mut far) = (0.01, 1e7);
        while far - near > 0.01 {
            let middle = (near + far) / 2.0;
            if self.loss(middle) <= decibels { near = middle } else { far = middle }
        }
        far
    }
}

fn free_space(metres: f64, frequency: f64) -> f64 {
    20.0 * libm::log10(2.0 * TURN * metres * frequency / LIGHT)
}

/// The thresholds in ratios and milliwatts.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Receiving {
    power: Power,
    noise: f64,
    sinr: f64,
    header: f64,
    sense: f64,
}

impl Power {
    /// The model of reception for these parameters.
    pub(crate) fn receiving(self) -> Receiving {
        let [noise, sinr, header, sense] = [self.noise, self.sinr, self.header, self.sense].map(ratio);
        Receiving { power: self, noise, sinr, header, sense }
    }
}

impl Reception for Receiving {
    fn reach(&self) -> f64 {
        self.power.propagation.within(self.power.transmit - self.power.loss - self.power.cutoff)
    }

    fn strength(&self, metres: f64) -> f64 {
        ratio(self.power.transmit - self.power.loss - self.power.propagation.loss(metres))
    }

    fn decodes(&self, strength: f64) -> bool {
        self.locks(strength, Beside::default()) && self.survives(strength, Beside::default())
    }

    fn senses(&self, strength: f64) -> bool {
        self.noise + strength >= self.sense
    }

    fn locks(&self, new: f64, beside: Beside) -> bool {
        self.senses(new) && new >= self.header * (self.noise + beside.sum)
    }

    fn takes_over(&self, new: f64, held: f64, beside: Beside) -> bool {
        new >= self.sinr * (self.noise + beside.sum + held)
    }

    fn survives(&self, held: f64, beside: Beside) -> bool {
        held >= self.sinr * (self.noise + beside.sum)
    }

    fn busy(&self, heard: Beside) -> bool {
        self.noise + heard.sum >= self.sense
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The constants of the publication's radios.
    pub(in crate::medium::wireless) fn published() -> Receiving {
        let propagation = Propagation::TwoRay { frequency: 2.4e9, height: 1.5 };
        let (transmit, loss, noise, sinr) = (15.0, 6.94, -101.27, 13.65);
        let thresholds = Power {
            propagation,
            transmit,
            loss,
            noise,
            sinr,
            header: sinr - 6.0,
            sense: -93.0,
            cutoff: -111.0,
        };
        thresholds.receiving()
    }

    /// The largest distance, in tenths of a metre, at which `holds`.
    fn farthest(holds: impl Fn(f64) -> bool) -> f64 {
        (10..20_000)
            .map(|tenths| f64::from(tenths) / 10.0)
            .take_while(|metres| holds(*metres))
            .last()
            .unwrap()
    }

    #[test]
    fn powers_of_the_published_radio() {
        let radio = published();
        for (metres, dbm) in [(300.0, -83.98), (370.0, -87.62), (520.0, -93.54), (812.0, -101.28)] {
            assert!((10.0 * libm::log10(radio.strength(metres)) - dbm).abs() < 0.01, "{metres} m");
        }
    }

    #[test]
    fn the_published_ranges_follow_from_powers() {
        let radio = published();
        let within = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 0.03, "{found} for {expected}")
        };
        within(farthest(|metres| radio.decodes(radio.strength(metres))), 370.0);
        within(farthest(|metres| radio.senses(radio.strength(metres))), 520.0);
        let held = radio.strength(300.0);
        let spoils = |metres| !radio.survives(held, Beside::default().and(radio.strength(metres)));
        within(farthest(|metres| metres < 300.0 || spoils(metres)), 758.0);
        // At 812 m one interferer would just spoil a frame at the end of the decoding range if there were no noise.
        let ratio = radio.strength(370.0) / radio.strength(812.0);
        assert!((10.0 * libm::log10(ratio) - 13.65).abs() < 0.01);
    }

    #[test]
    fn what_is_not_sensed_or_whose_preamble_is_not_detected_cannot_be_read() {
        let radio = published();
        let strength = radio.strength(360.0);
        assert!(radio.decodes(strength));
        for deaf in [Power { sense: -80.0, ..radio.power }, Power { header: 20.0, ..radio.power }] {
            assert!(!deaf.receiving().decodes(strength));
        }
    }

    #[test]
    fn laws_of_propagation() {
        let two_ray = Propagation::TwoRay { frequency: 2.4e9, height: 1.5 };
        let free = Propagation::FreeSpace { frequency: 2.4e9 };
        assert!((two_ray.loss(226.1) - free.loss(226.1)).abs() < 0.01);
        assert_eq!(two_ray.loss(100.0), free.loss(100.0));
        let squared = Propagation::LogDistance { frequency: 2.4e9, exponent: 2.0 };
        assert!((squared.loss(250.0) - free.loss(250.0)).abs() < 1e-9);
        assert!((two_ray.within(two_ray.loss(400.0)) - 400.0).abs() < 0.02);
    }
}
