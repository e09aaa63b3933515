//! How a network is shared: the metrics of "Effect of Congestion Control on the Performance of TCP and SCTP over
//! Satellite Networks".

use crate::results::FlowResult;
use crate::transport::Protocol;

/// Eq. 1, Jain's index of throughputs. `None` if all are zero. Shares of one link's rate instead of throughputs give
/// the same index.
pub(super) fn fairness(throughputs: &[f64]) -> Option<f64> {
    let sum: f64 = throughputs.iter().sum();
    let squares: f64 = throughputs.iter().map(|throughput| throughput * throughput).sum();
    (squares > 0.0).then(|| sum * sum / (throughputs.len() as f64 * squares))
}

/// Eq. 2, in per cent: how much higher the mean throughput of the SCTP flows is than that of the TCP flows.
pub(super) fn increase(flows: &[FlowResult], throughputs: &[f64]) -> Option<f64> {
    let mean = |protocol| {
        let of = flows.iter().zip(throughputs).filter(|(flow, _)| flow.protocol == protocol);
        let (sum, count) = of.fold((0.0, 0), |(sum, count), (_, throughput)| (sum + throughput, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let (sctp, tcp) = (mean(Protocol::Sctp)?, mean(Protocol::Tcp)?);
    (tcp > 0.0).then(|| (sctp - tcp) / tcp * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_one_alone() {
        assert_eq!(fairness(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(fairness(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!([fairness(&[]), fairness(&[0.0])], [None, None]);
    }

    #[test]
    fn increase_compares_means() {
        let flow = |protocol| FlowResult { protocol, ..FlowResult::default() };
        let flows = [Protocol::Sctp, Protocol::Tcp, Protocol::Udp, Protocol::Sctp].map(flow);
        assert_eq!(increase(&flows, &[5.0, 4.0, 100.0, 7.0]), Some(50.0));
        assert_eq!(increase(&flows, &[5.0, 0.0, 0.0, 0.0]), None);
        assert_eq!(increase(&flows[2..], &[5.0, 5.0]), None);
    }
}
