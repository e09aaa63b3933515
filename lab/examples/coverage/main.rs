//! How often a 95 % interval contains the mean: in many runs of a sweep, every so many consecutive ones are taken for a
//! sample, and the mean of all for the truth.
//!
//! ```console
//! $ anabranch sweep lab/examples/coverage/sweep.toml --out coverage/
//! $ cargo run --release -p anabranch-lab --example coverage -- coverage/runs.csv
//! ```

use std::collections::BTreeMap;
use std::error::Error;

use anabranch_lab::statistics::{Summary, student_t};

/// The sizes of samples.
const SIZES: [usize; 4] = [3, 10, 30, 120];
/// The precisions of `until`.
const PRECISIONS: [f64; 4] = [0.20, 0.10, 0.05, 0.02];
/// `until` is judged from so many seeds on.
const LEAST: [usize; 2] = [10, 30];
/// A sample for `until` has this many runs at most, and begins so many runs after the one before.
const MOST: usize = 3_000;
const STEP: usize = 27;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: coverage RUNS.CSV")?;
    let mut cells: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in std::fs::read_to_string(file)?.lines().skip(1) {
        let [cell, _, time] = line.split(',').collect::<Vec<_>>()[..] else {
            return Err(format!("expected three columns: {line}").into());
        };
        cells.entry(cell.to_owned()).or_default().push(time.parse()?);
    }
    let t: Vec<f64> = (0..=MOST as u64).map(|n| student_t(0.95, n.max(2) - 1)).collect();
    for (cell, times) in &cells {
        let truth = Summary::of(times);
        let mean = truth.mean.ok_or("no runs")?;
        println!("{cell}: {} runs, mean {mean:.4}, sd {:.4}", truth.n, truth.sd.unwrap_or(0.0));
        for size in SIZES {
            let hits: Vec<bool> = times.chunks_exact(size).map(|sample| contains(sample, mean)).collect();
            println!("  {size} seeds: {}", share(&hits));
        }
        for least in LEAST {
            for precision in PRECISIONS {
                let starts = (0..times.len().saturating_sub(MOST)).step_by(STEP);
                let samples = starts.filter_map(|start| {
                    let n = enough(&times[start..start + MOST], &t, precision, least)?;
                    Some((contains(&times[start..start + n], mean), n))
                });
                let (hits, sizes): (Vec<bool>, Vec<usize>) = samples.unzip();
                let seeds = sizes.iter().sum::<usize>() / sizes.len().max(1);
                let percent = precision * 100.0;
                println!(
                    "  until {percent:.0} %, from {least} seeds on: {}, {seeds} seeds on average",
                    share(&hits)
                );
            }
        }
    }
    Ok(())
}

/// Whether the 95 % interval of the sample contains this mean.
fn contains(sample: &[f64], mean: f64) -> bool {
    let summary = Summary::of(sample);
    summary.mean.zip(summary.ci95).is_some_and(|(own, half)| (own - mean).abs() <= half)
}

/// How many runs `until` takes: as many as make half of the interval at most this part of the mean.
fn enough(times: &[f64], t: &[f64], precision: f64, least: usize) -> Option<usize> {
    let (mut sum, mut squares) = (0.0, 0.0);
    for (i, time) in times.iter().enumerate() {
        let n = (i + 1) as f64;
        (sum, squares) = (sum + time, squares + time * time);
        let mean = sum / n;
        let variance = ((squares - n * mean * mean) / (n - 1.0).max(1.0)).max(0.0);
        if i + 1 >= least && t[i + 1] * (variance / n).sqrt() <= precision * mean {
            return Some(i + 1);
        }
    }
    None
}

fn share(hits: &[bool]) -> String {
    let hit = hits.iter().filter(|hit| **hit).count();
    format!("{:.1} % of {}", 100.0 * hit as f64 / hits.len().max(1) as f64, hits.len())
}
