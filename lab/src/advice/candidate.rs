//! What is tried: the parameters of a failover, and the grid of them.

use std::time::Duration;

use serde::Serialize;

use super::Task;

/// Failover parameters.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// RTO.Min, milliseconds.
    pub rto_min: u64,
    /// RTO.Max, milliseconds.
    pub rto_max: u64,
    /// RTO.Initial, milliseconds.
    pub rto_initial: u64,
    /// Path.Max.Retrans.
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans; `None`: there are no potentially failed paths.
    pub pf_max_retrans: Option<u32>,
    /// HB.interval, milliseconds.
    pub heartbeat_interval: u64,
    /// The delay of a SACK, milliseconds, at both ends.
    pub sack_delay: u64,
}

/// Delays of a SACK that are tried, in milliseconds; RFC 9260 allows at most 500.
const SACK_DELAYS: [u64; 4] = [20, 50, 100, 200];
/// RTO.Min is this above the largest SACK delay and round trip together, in steps.
const MARGINS: [f64; 6] = [1.15, 1.5, 2.0, 3.0, 4.5, 7.0];
/// Errors in a row after which a path is left.
const ERRORS: [u32; 4] = [1, 2, 3, 4];
/// Path.Max.Retrans of RFC 9260, kept where potentially failed paths decide the failover.
const PATH_MAX_RETRANS: u32 = 5;

impl Candidate {
    /// Errors in a row after which new data takes another path.
    pub fn errors(&self) -> u32 {
        1 + self.pf_max_retrans.unwrap_or(self.path_max_retrans).min(self.path_max_retrans)
    }

    /// The classical formula: the sum of the timeouts that run until then, each twice the one before and at most
    /// RTO.Max, if the first is RTO.Min. Milliseconds.
    pub fn classical(&self) -> u64 {
        (0..self.errors()).map(|i| (self.rto_min << i).min(self.rto_max)).sum()
    }

    /// Every candidate for this task, the most patient last. RTO.Min is always larger than SACK delay and round trip
    /// together: otherwise a chunk whose SACK is only delayed would time out.
    pub fn grid(task: &Task) -> Vec<Candidate> {
        let round_trip = task.round_trip();
        let mut all = Vec::new();
        for sack_delay in SACK_DELAYS {
            let least = Duration::from_millis(sack_delay) + round_trip;
            for margin in MARGINS {
                let rto_min = (least.as_secs_f64() * margin * 100.0) as u64 * 10 + 10;
                for errors in ERRORS {
                    for pf in [true, false] {
                        all.push(Candidate::with(rto_min, sack_delay, errors, pf, task));
                    }
                }
            }
        }
        let budget = task.budget.new_data.as_millis() as u64;
        all.retain(|candidate| candidate.classical() <= budget);
        all.sort_by_key(|candidate| (candidate.classical(), candidate.sack_delay));
        all
    }

    /// What the classical formula alone advises: of the grid the candidate whose sum of timeouts comes nearest to the
    /// budget from below.
    pub fn by_formula(task: &Task) -> Option<Candidate> {
        Candidate::grid(task).pop()
    }

    fn with(rto_min: u64, sack_delay: u64, errors: u32, pf: bool, task: &Task) -> Candidate {
        let longest = rto_min << (errors - 1);
        Candidate {
            rto_min,
            // Twice the longest timeout that the failover needs: larger ones only delay the return.
            rto_max: (longest * 2).max(1_000),
            rto_initial: (rto_min * 2).min(longest.max(rto_min * 2)),
            path_max_retrans: if pf { PATH_MAX_RETRANS.max(errors) } else { errors - 1 },
            pf_max_retrans: pf.then_some(errors - 1),
            heartbeat_interval: heartbeat_interval(task),
            sack_delay,
        }
    }

    /// Its keys of `[flow.sctp]`, one a line.
    pub fn keys(&self) -> String {
        let pf = self.pf_max_retrans.map_or("\"off\"".to_owned(), |errors| errors.to_string());
        format!(
            "rto_min = \"{} ms\"\nrto_max = \"{} ms\"\nrto_initial = \"{} ms\"\npath_max_retrans = {}\npf_max_retrans = {pf}\nheartbeat_interval = \"{} ms\"\nsack_delay = \"{} ms\"\n",
            self.rto_min,
            self.rto_max,
            self.rto_initial,
            self.path_max_retrans,
            self.heartbeat_interval,
            self.sack_delay
        )
    }
}

/// HB.interval decides how soon the failure of an idle path is noticed: within the time in which an outage is likely to
/// be over, but not more often than once a second, and not less often than RFC 9260 has it.
fn heartbeat_interval(task: &Task) -> u64 {
    let outage = task.paths.iter().map(|path| path.outage).min().unwrap_or_default();
    ((outage / 2).as_millis() as u64).clamp(1_000, 30_000)
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::SIGNALLING;
    use super::*;

    #[test]
    fn the_classical_formula_is_the_sum_of_doublings() {
        let task = Task::read("t", SIGNALLING).unwrap();
        let candidate = Candidate { rto_max: 500, ..Candidate::with(200, 50, 3, true, &task) };
        assert_eq!(candidate.errors(), 3);
        assert_eq!(candidate.classical(), 200 + 400 + 500);
        assert_eq!(Candidate::with(200, 50, 3, false, &task).errors(), 3);
    }

    #[test]
    fn rto_min_is_larger_than_sack_delay_and_round_trip() {
        let task = Task::read("t", SIGNALLING).unwrap();
        let grid = Candidate::grid(&task);
        assert!(!grid.is_empty());
        let least = |candidate: &Candidate| candidate.sack_delay as u128 + task.round_trip().as_millis();
        assert!(grid.iter().all(|candidate| u128::from(candidate.rto_min) > least(candidate)));
    }
}
