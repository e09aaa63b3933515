//! Random questions, by which the advice itself is judged: does what it says hold on seeds that it has not seen?

use std::time::Duration;

use anabranch_sim::stream_seed;

use super::search::{Answer, Judged, Watch, check, search};
use super::{Budget, Candidate, PathTask, Task, Traffic};

/// A random question, and its answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Tried {
    /// The question.
    pub task: Task,
    /// The advice.
    pub answer: Answer,
    /// What the classical formula alone would advise, tried with the seeds of the check.
    pub formula: Option<Judged>,
}

impl Tried {
    /// Asks the random question of this number, and searches with so many outages at most (see [`search`]).
    pub fn random(number: u64, most: Option<u64>, watch: &Watch<'_>) -> Tried {
        let task = Task::random(number);
        let answer = search(&task, most, watch);
        let unbounded = Watch { spent: &|| 0.0, ..*watch };
        let formula = Candidate::by_formula(&task);
        let formula = formula.and_then(|candidate| check(&task, &candidate, &unbounded));
        Tried { task, answer, formula }
    }

    /// Whether the advice holds its budget on seeds that the search has not used; none without advice.
    pub fn holds(&self) -> Option<bool> {
        self.answer.checked.as_ref().map(|checked| checked.holds)
    }
}

/// A stream of random numbers of its own for each task.
struct Draw {
    number: u64,
    drawn: u64,
}

impl Draw {
    /// Uniform from 0 to 1.
    fn unit(&mut self) -> f64 {
        self.drawn += 1;
        let seed = stream_seed(self.number, &format!("advice/task/{}", self.drawn));
        let word = u64::from_le_bytes(seed[..8].try_into().expect("a seed has 32 bytes"));
        (word >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Between these two, uniform in the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[((self.unit() * all.len() as f64) as usize).min(all.len() - 1)]
    }
}

impl Task {
    /// The random task of this number: two paths of 256 kbit/s to 50 Mbit/s and 1 to 100 ms one way, with losses up to
    /// 1 %, signalling of 1 to 200 messages a second (one in four sends bulk data instead), and a budget of 3 to 20
    /// times what a SACK and the longest round trip take.
    pub fn random(number: u64) -> Task {
        let draw = &mut Draw { number, drawn: 0 };
        let paths: Vec<PathTask> = ["first", "second"].map(|name| path(name, draw)).to_vec();
        let slowest = paths.iter().map(|path| path.rate).min().unwrap_or_default() as f64;
        let message_size = draw.between(50.0, 1_000.0) as u64;
        let fastest = (slowest / 4.0 / (8 * (message_size + 48)) as f64).clamp(1.5, 200.0);
        let messages = draw.between(1.0, fastest);
        let traffic = match draw.unit() < 0.25 {
            true => Traffic { rate: None, message_size: 1_452 },
            false => Traffic { rate: Some((messages * (8 * message_size) as f64) as u64), message_size },
        };
        let budget = Budget {
            new_data: Duration::ZERO,
            outages: draw.one_of(&[0.9, 0.95, 0.99]),
            false_failovers: 1.0,
            per: Duration::from_secs(86_400 * draw.one_of(&[1, 7, 30])),
        };
        let mut task = Task { paths, traffic, budget };
        let least = task.round_trip() + Duration::from_millis(20);
        task.budget.new_data = whole(least.as_secs_f64() * draw.between(3.0, 20.0));
        task
    }

    /// The task as the file that [`Task::read`] reads.
    pub fn text(&self) -> String {
        let ms = |time: Duration| format!("\"{} ms\"", time.as_millis());
        let path = |path: &PathTask| {
            format!(
                "[[path]]\nname = \"{}\"\nrate = \"{} bit/s\"\ndelay = {}\njitter = {}\nloss = \"{} %\"\noutage = {}\n\n",
                path.name,
                path.rate,
                ms(path.delay),
                ms(path.jitter),
                path.loss * 100.0,
                ms(path.outage)
            )
        };
        let rate = self.traffic.rate.map_or(String::new(), |rate| format!("rate = \"{rate} bit/s\"\n"));
        format!(
            "{}[traffic]\n{rate}message_size = \"{} B\"\n\n[budget]\nnew_data = {}\noutages = \"{} %\"\nfalse_failovers = {}\nper = \"{} s\"\n",
            self.paths.iter().map(path).collect::<String>(),
            self.traffic.message_size,
            ms(self.budget.new_data),
            self.budget.outages * 100.0,
            self.budget.false_failovers,
            self.budget.per.as_secs()
        )
    }
}

fn path(name: &str, draw: &mut Draw) -> PathTask {
    let delay = whole(draw.between(0.001, 0.1));
    PathTask {
        name: name.to_owned(),
        rate: draw.between(256e3, 50e6) as u64,
        delay,
        jitter: whole(delay.as_secs_f64() * 0.3 * draw.unit()),
        // Millionths, so that the text says the same.
        loss: draw.one_of(&[0.0, 0.000_01, 0.000_1, 0.001, 0.01]),
        outage: Duration::from_secs(draw.between(2.0, 60.0) as u64),
    }
}

/// Whole milliseconds.
fn whole(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1000.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_task_is_the_same_read_from_its_text() {
        let tasks: Vec<Task> = (0..200).map(Task::random).collect();
        for task in &tasks {
            let mut read = Task::read("task.toml", &task.text()).unwrap();
            for (read, path) in read.paths.iter_mut().zip(&task.paths) {
                assert!((read.loss - path.loss).abs() < 1e-12);
                read.loss = path.loss;
            }
            assert_eq!(&read, task);
        }
        assert_eq!(tasks[7], Task::random(7));
        assert!(tasks.iter().filter(|task| task.traffic.rate.is_none()).count() > 20);
    }
}
