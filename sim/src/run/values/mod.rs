//! Checks the values of a scenario. The reader of documents refuses most wrong values earlier and names their line;
//! this check is for scenarios built in Rust.

mod air;

use anabranch_proto::{Config, Reliability};

use crate::error::{Item, RunError};
use crate::scenario::{
    Amount, Change, Codel, CrossTraffic, Flow, Link, Loss, Queue, Red, Scenario, Start, Times, Trace, Traffic,
};

/// Checks every value of the scenario.
pub(super) fn check(scenario: &Scenario) -> Result<(), RunError> {
    distinct(scenario.links.iter().map(|link| link.name.as_str()), Item::Link)?;
    air::check(scenario)?;
    let flows = scenario.flows.iter().map(|flow| flow.name.as_str());
    distinct(flows.chain(scenario.traffic.iter().map(|traffic| traffic.name.as_str())), Item::Flow)?;
    scenario.traffic.iter().try_for_each(|t| traffic(t, scenario))?;
    if Config::era(&scenario.era).is_none() {
        at(Item::Scenario, Err(("era", "is none of the eras that `Rules::ERAS` lists")))?;
    }
    header(Item::Scenario, Some(scenario.ip_header))?;
    if scenario.measure.is_some_and(|[from, until]| until <= from) {
        at(Item::Scenario, Err(("measure", "must end after it begins")))?;
    }
    scenario.links.iter().try_for_each(link)?;
    scenario.flows.iter().try_for_each(|f| flow(f, scenario))?;
    scenario.changes.iter().enumerate().try_for_each(|(number, c)| change(number, c, scenario))
}

type Judgement = Result<(), (&'static str, &'static str)>;

fn distinct<'a>(names: impl Iterator<Item = &'a str>, item: fn(String) -> Item) -> Result<(), RunError> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => at(item(pair[0].to_owned()), Err(("name", "there are two of this name"))),
        None => Ok(()),
    }
}

fn at(item: Item, judgement: Judgement) -> Result<(), RunError> {
    judgement.map_err(|(key, why)| RunError::Value { item, key, why })
}

fn link(link: &Link) -> Result<(), RunError> {
    let empty = |queue: &Queue| match queue {
        Queue::BandwidthDelay(thousandths) => *thousandths == 0,
        queue => matches!(queue.limit(), Amount::Packets(0) | Amount::Bytes(0)),
    };
    let judgement = match () {
        _ if link.between[0] == link.between[1] => Err(("between", "a link joins two different nodes")),
        _ if link.queue.iter().any(empty) => Err(("queue", "must hold at least one packet")),
        _ if !(528..=65_535).contains(&link.mtu) => Err(("mtu", "must be from 528 to 65535 bytes")),
        _ if link.random_delay.is_some_and(|[low, high]| low > high) => {
            Err(("delay", "the ends of its range are exchanged"))
        }
        _ => rates(&link.rate).and_then(|()| losses(&link.loss)).and_then(|()| queues(&link.queue)),
    };
    at(Item::Link(link.name.clone()), judgement)
}

fn rates(rates: &[u64; 2]) -> Judgement {
    if rates.contains(&0) { Err(("rate", "must be at least 1 bit/s")) } else { Ok(()) }
}

fn losses(losses: &[Loss; 2]) -> Judgement {
    losses.iter().try_for_each(|loss| match loss {
        Loss::Random(p) if !(0.0..=1.0).contains(p) => Err(("loss", "a probability is from 0 to 1")),
        Loss::Bits(p) if !(0.0..=1.0).contains(p) => Err(("loss", "a probability is from 0 to 1")),
        Loss::Gilbert { good, bad, to_bad, to_good }
            if ![good, bad, to_bad, to_good].iter().all(|p| (0.0..=1.0).contains(*p)) =>
        {
            Err(("loss", "a probability is from 0 to 1"))
        }
        Loss::Every(0) => Err(("loss", "packets are counted from 1")),
        Loss::Listed(numbers) | Loss::Data { numbers, .. } if numbers.first() == Some(&0) => {
            Err(("loss", "packets are counted from 1"))
        }
        Loss::Listed(numbers) | Loss::Data { numbers, .. } if !numbers.is_sorted_by(|a, b| a < b) => {
            Err(("loss", "packet numbers ascend"))
        }
        _ => Ok(()),
    })
}

fn queues(queues: &[Queue; 2]) -> Judgement {
    queues.iter().try_for_each(|queue| match queue {
        Queue::Red(Red { min, max, .. }) if min.number() >= max.number() => {
            Err(("queue", "the upper threshold of RED is above the lower one"))
        }
        Queue::Red(Red { probability, weight, .. })
            if ![probability, weight].iter().all(|share| (0.0..=1.0).contains(*share)) =>
        {
            Err(("queue", "the probability and the weight of RED are from 0 to 1"))
        }
        Queue::Codel(Codel { interval, .. }) if interval.is_zero() => {
            Err(("queue", "the interval of CoDel is longer than zero"))
        }
        _ => Ok(()),
    })
}

fn header(item: Item, bytes: Option<u32>) -> Result<(), RunError> {
    let long = bytes.is_some_and(|bytes| bytes > 255);
    at(item, if long { Err(("ip_header", "must not exceed 255 bytes")) } else { Ok(()) })
}

fn flow(flow: &Flow, scenario: &Scenario) -> Result<(), RunError> {
    header(Item::Flow(flow.name.clone()), flow.ip_header)?;
    let rate = |rate: Option<u64>| rate == Some(0);
    let judgement = match (&flow.traffic, flow.traffic.amount()) {
        (_, Some(0)) => Err(("send", "must be at least 1 byte")),
        (_, None) if scenario.stop.is_none() => {
            Err(("send", "a flow without an amount needs a `stop` of the scenario"))
        }
        (
            Traffic::Constant { rate: 0, .. }
            | Traffic::Poisson { rate: 0, .. }
            | Traffic::Bursts { rate: 0, .. },
            _,
        ) => Err(("rate", "must be at least 1 bit/s")),
        (Traffic::Bursts { times: [on, off], .. }, _) if !(usable(on) && usable(off)) => {
            Err(("on", UNUSABLE))
        }
        _ if flow.random_start.is_some_and(|[low, high]| low > high) => {
            Err(("start", "the ends of its range are exchanged"))
        }
        _ if flow.message_size == Some(0) => Err(("message_size", "must be at least 1 byte")),
        _ if rate(flow.read_rate) => Err(("read_rate", "must be at least 1 bit/s")),
        _ if flow.sctp().is_some_and(|sctp| sctp.streams == 0) => Err(("streams", "must be at least 1")),
        _ if flow.sctp().is_some_and(|sctp| sctp.reliability == Reliability::Lifetime(0)) => {
            Err(("reliability", "a lifetime cannot be zero"))
        }
        _ if flow.sctp().is_some_and(|sctp| sctp.stop_reading_after.is_some()) && scenario.stop.is_none() => {
            Err(("stop_reading_after", "a reader that stops needs a `stop` of the scenario"))
        }
        _ if flow.from == flow.to => Err(("to", "a flow goes from one node to another")),
        _ => Ok(()),
    };
    at(Item::Flow(flow.name.clone()), judgement)
}

const UNUSABLE: &str = "a shape must be above 1";

fn usable(times: &Times) -> bool {
    !matches!(times, Times::Pareto { shape, .. } if !(*shape > 1.0 && *shape <= 100.0))
}

fn traffic(traffic: &CrossTraffic, scenario: &Scenario) -> Result<(), RunError> {
    let shares: u64 = traffic.sizes.iter().map(|(_, share)| u64::from(*share)).sum();
    let judgement = match () {
        _ if traffic.pairs.is_empty() => Err(("pairs", "there must be one")),
        _ if traffic.pairs.iter().any(|[from, to]| from == to) => Err(("pairs", "a pair has two nodes")),
        _ if traffic.load == 0 => Err(("load", "must be at least 1 bit/s")),
        _ if shares == 0 => Err(("sizes", "there must be one")),
        _ if traffic.sources == 0 || !u64::from(traffic.sources).is_multiple_of(shares) => {
            Err(("sources", "must be a multiple of the shares of the sizes"))
        }
        _ if !usable(&traffic.on) => Err(("on", UNUSABLE)),
        _ if !usable(&traffic.off) => Err(("off", UNUSABLE)),
        _ if matches!(traffic.start, Start::Uniform([low, high]) if low > high) => {
            Err(("start", "the ends of its range are exchanged"))
        }
        _ if scenario.flows.is_empty() && scenario.stop.is_none() => {
            Err(("name", "traffic without flows needs a `stop` of the scenario"))
        }
        _ => Ok(()),
    };
    at(Item::Traffic(traffic.name.clone()), judgement)
}

fn change(number: usize, change: &Change, scenario: &Scenario) -> Result<(), RunError> {
    if !scenario.links.iter().any(|link| link.name == change.link) {
        let mut known: Vec<_> = scenario.links.iter().map(|link| link.name.clone()).collect();
        known.sort_unstable();
        return Err(RunError::UnknownLink { change: number, link: change.link.clone(), known });
    }
    let product = |queue: &Queue| matches!(queue, Queue::BandwidthDelay(_));
    if change.queue.iter().flatten().any(product) {
        let why = "only a link's own queue is said in bandwidth-delay products";
        return at(Item::Change(number), Err(("queue", why)));
    }
    let link = scenario.links.iter().find(|link| link.name == change.link);
    let judgement = link.map_or(Ok(()), |link| traced(change, link));
    let judgement = judgement.and_then(|()| change.rate.as_ref().map_or(Ok(()), rates));
    at(Item::Change(number), judgement.and_then(|()| change.loss.as_ref().map_or(Ok(()), losses)))
}

/// Nothing else changes what the trace of a link says.
fn traced(change: &Change, link: &Link) -> Judgement {
    let has = |column: fn(&Trace) -> bool| link.traced.iter().flatten().any(|traced| column(&traced.trace));
    match () {
        _ if change.rate.is_some() && has(|_| true) => {
            Err(("rate", "the rate of this link is a trace, which nothing else changes"))
        }
        _ if change.delay.is_some() && has(Trace::has_delay) => {
            Err(("delay", "the trace of this link has a column `delay`, which nothing else changes"))
        }
        _ if change.loss.is_some() && has(Trace::has_loss) => {
            Err(("loss", "the trace of this link has a column `loss`, which nothing else changes"))
        }
        _ => Ok(()),
    }
}
