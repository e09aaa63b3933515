//! What theory says. Times in seconds, sizes in bytes or segments, rates in segments a second unless said otherwise.

/// Mathis, Semke, Mahdavi, Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997), equation 3
/// with random losses replaced by periodic ones: segments a second, with `b` segments to an acknowledgement.
pub(crate) fn mathis(p: f64, rtt: f64, b: f64) -> f64 {
    (1.5 / (b * p)).sqrt() / rtt
}

/// Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Reno performance" (2000), equation 30: segments a second. `timeout`
/// is the first retransmission timeout of a series.
pub(crate) fn pftk(p: f64, rtt: f64, timeout: f64, b: f64) -> f64 {
    let share = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
    1.0 / (rtt * (2.0 * b * p / 3.0).sqrt() + timeout * share * p * (1.0 + 32.0 * p * p))
}

/// Round trips of slow start until `segments` were sent in all, which begins with `initial` and doubles.
pub(crate) fn slow_start_rounds(segments: f64, initial: f64) -> u32 {
    libm::ceil(libm::log2(segments / initial + 1.0)) as u32
}

/// The share of a link that one flow fills whose window saws between half and all of `1 + buffer` bandwidth-delay
/// products, growing by one segment a round trip.
pub(crate) fn sawtooth(buffer: f64) -> f64 {
    let top = 1.0 + buffer;
    let bottom = (top / 2.0).max(1.0).min(top);
    if top / 2.0 >= 1.0 {
        return 1.0;
    }
    // While the window is below one product a round trip is as long as without a queue; above, the link is full.
    let sent = (top * top - top * top / 4.0) / 2.0;
    let time = (bottom - top / 2.0) + (top * top - 1.0) / 2.0;
    sent / time
}

/// The timeouts in a row that a path needs before it is inactive, each twice the one before: their sum.
pub(crate) fn failover(rto: f64, rto_max: f64, path_max_retrans: u32) -> f64 {
    (0..=path_max_retrans).map(|n| (rto * f64::from(1 << n)).min(rto_max)).sum()
}
