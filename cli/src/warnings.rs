//! Settings of a scenario that can be used but are harmful, or change nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_lab::grid::Point;
use anabranch_proto::{ConfigWarning, Reliability};
use anabranch_sim::scenario::{Amount, Flow, Sctp, Traffic};

/// The warnings about these points, each once and with its place.
pub(crate) fn about(points: &[Point]) -> BTreeSet<String> {
    let same_network = |a: &Point, b: &Point| Arc::ptr_eq(&a.document, &b.document);
    let networks = points.chunk_by(same_network).map(|points| &points[0]);
    let of_networks = networks.flat_map(|point| single_paths(point).chain(small_queues(point)));
    points.iter().flat_map(harmful).chain(of_networks).collect()
}

/// The links of a point's scenario whose queue does not admit a full packet even if it is empty.
fn small_queues(point: &Point) -> impl Iterator<Item = String> {
    point.scenario.links.iter().filter_map(|link| {
        let limits = link.queue.iter().filter_map(|queue| match queue.limit() {
            Amount::Bytes(limit) => Some(limit),
            Amount::Packets(_) => None,
        });
        let limit = limits.min().filter(|limit| *limit < u64::from(link.mtu))?;
        let why = format!(
            "packets of more than {limit} bytes are always dropped here, because the queue includes the packet that is being sent; \
             make it {mtu} B or more, or lower `mtu`",
            mtu = link.mtu
        );
        Some(point.document.error(&format!("link.{}.queue", link.name), why).to_string())
    })
}

/// The flows of a point's scenario that use one link although there are several.
fn single_paths(point: &Point) -> impl Iterator<Item = String> {
    let flows = anabranch_sim::single_paths(&point.scenario).unwrap_or_default();
    flows.into_iter().map(|flow| {
        let why = "the association has one path, because one end has one address, although the other reaches it by \
                   several links; `pairs = \"all\"` in [flow.sctp] makes a path of each pair of addresses";
        point.document.error(&format!("flow.{}.to", flow.name), why).to_string()
    })
}

/// The harmful settings of the flows of a point's scenario.
fn harmful(point: &Point) -> impl Iterator<Item = String> {
    let at = |flow: &Flow, key: &str, why: String| {
        point.document.error(&format!("flow.{}.{key}", flow.name), why).to_string()
    };
    let flows = point.scenario.flows.iter().filter_map(|flow| Some((flow, flow.sctp()?)));
    flows.flat_map(move |(flow, sctp)| {
        let concerns = |warning: &ConfigWarning| warning.key != "rto_min" || !is_steady(flow, sctp);
        let config = sctp.config.warnings().into_iter().filter(concerns);
        let config = config.map(move |ConfigWarning { key, why }| at(flow, &format!("sctp.{key}"), why));
        config.chain(keeps_all(point, flow, sctp).map(|why| at(flow, "reliability", why)))
    })
}

/// Whether the packets of a flow follow each other so soon that none waits for SACK.Delay: those that have it
/// acknowledged (RFC 9260 section 6.2) leave within half of RTO.Min, and the round trip may take the other half. A chunk
/// that is sent again alone may still wait.
fn is_steady(flow: &Flow, sctp: &Sctp) -> bool {
    let Traffic::Constant { rate, .. } = &flow.traffic else { return false };
    let bits = f64::from(flow.message_size.unwrap_or(sctp.config.mtu)) * 8.0;
    let later = f64::from(sctp.config.sack_every.saturating_sub(1)) * bits / *rate as f64;
    !sctp.stripe && later <= sctp.config.rto_min.as_secs_f64() / 2.0
}

/// Why no message of a flow is abandoned although the flow says when. Whoever sets `partial_reliability = false` knows.
fn keeps_all(point: &Point, flow: &Flow, sctp: &Sctp) -> Option<String> {
    if matches!(sctp.reliability, Reliability::Priority(_)) {
        let why = "no message is abandoned, because all messages of a flow have the same priority: a message gives way \
                   to those of higher priority only; `lifetime` and `retransmissions` abandon messages";
        return Some(why.to_owned());
    }
    let unset = || point.document.get(&format!("flow.{}.sctp.partial_reliability", flow.name)).is_none();
    let in_vain =
        sctp.reliability != Reliability::Full && !sctp.config.extensions.partial_reliability && unset();
    in_vain.then(|| {
        "no message is abandoned, because the association does not use partial reliability; set \
         `partial_reliability = true` in [flow.sctp]"
            .to_owned()
    })
}
