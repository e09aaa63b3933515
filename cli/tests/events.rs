//! Twenty events in the publications: `--why` names the rule, the path and the history of each.

mod support;

use support::{anabranch, stderr};

/// An event: the scenario below `papers/`, the question, and parts of the answer.
type Event = (&'static str, &'static str, &'static [&'static str]);

/// The case study: fast retransmissions on a slow alternate path fill the receive buffer.
const BLOCKING: [Event; 6] = [
    (
        "receive-buffer-blocking/case-study",
        "--at 6.759751s --set stop=6.8s",
        &[
            "blocked by the congestion window since 5.825233 s",
            "[send_on = sack]",
            "Path primary-access: its congestion window is full",
            "Path secondary-access: it has room, and the policy primary (key `new`) names another path",
        ],
    ),
    (
        "receive-buffer-blocking/case-study",
        "--at 17.013545s --set stop=17.1s",
        &[
            "blocked by the peer's window since 7.694268 s: 292 bytes left (RFC 9260 section 6.1 A)",
            "[window_probe = at-once]",
            "638 chunks wait at the receiver behind TSN 1624781996",
            "lost at 6.966301 s on primary a>b (queue full)",
            "sent again at 7.130763 s on secondary-access chosen by alternate (retransmission after missing reports, \
             missing_reports = 4): on its way on secondary c>d",
        ],
    ),
    (
        "receive-buffer-blocking/case-study",
        "--at 26.438317s --set stop=26.5s",
        &[
            "blocked by its turn since 26.332822 s: data leaves only in answer to a SACK. [send_on = sack",
            "Path secondary-access: new data waits for its turn; cwnd 1468 bytes, in flight 0, RTO",
            "sent again at 26.332822 s on primary-access chosen by alternate (retransmission after T3-rtx)",
        ],
    ),
    (
        "receive-buffer-blocking/case-study",
        "--at 34.414312s --set stop=34.5s",
        &[
            "blocked by the congestion window since 26.547403 s",
            "the cwnd of primary-access was cut by a fast retransmission (RFC 9260 section 7.2.4) from 197073 to \
             98536 bytes at 31.429229 s",
        ],
    ),
    (
        "receive-buffer-blocking/case-study",
        "--packet 851 --set stop=8s",
        &[
            "RFC 9260 section 7.2.4",
            "lost at 6.899101 s on primary a>b (queue full)",
            "The policy alternate (key `fast`) chose the path secondary-access",
            "missing_reports = 4",
            "on_marking = one-packet",
        ],
    ),
    (
        "receive-buffer-blocking/case-study",
        "--packet 2314 --set stop=27s",
        &[
            "RFC 9260 section 6.3.3",
            "T3-rtx of secondary-access expired at 26.231503 s after an RTO of 1.87467204 s",
            "The policy alternate (key `timeout`) chose the path primary-access",
            "on_timeout = packet",
        ],
    ),
];

/// Independent losses on both paths of the policies' flaw.
const FLAW: [Event; 4] = [
    (
        "retransmission-policy-flaw/bernoulli",
        "--at 7.593176s --set stop=8s",
        &[
            "blocked by the congestion window since 4.231493 s",
            "the cwnd of s0 was cut by a fast retransmission (RFC 9260 section 7.2.4) from 7340 to 5872 bytes",
        ],
    ),
    (
        "retransmission-policy-flaw/bernoulli",
        "--at 36.316597s --set stop=37s",
        &[
            "blocked by the peer's window since 32.722867 s: 944 bytes left",
            "43 chunks wait at the receiver behind TSN 1624782948",
            "on s0 (new data): lost at 31.447185 s on core0 a0>b0 (lost on the link)",
            "on s1 chosen by alternate (retransmission after missing reports, missing_reports = 3): lost at 31.628961 s",
        ],
    ),
    (
        "retransmission-policy-flaw/bernoulli",
        "--packet 36 --set stop=1s",
        &[
            "retransmission after missing reports",
            "marked for retransmission by missing reports at 0.547373 s",
            "The policy alternate (key `fast`) chose the path s1",
            "missing_reports = 3",
        ],
    ),
    (
        "retransmission-policy-flaw/bernoulli",
        "--packet 1789 --set stop=20s",
        &[
            "TSN 1624782487 was sent 2 times before",
            "T3-rtx of s1 expired at 19.215297 s after an RTO of 1 s",
            "The policy alternate (key `timeout`) chose the path s0",
            "Window of s0, bytes before → after: cwnd 5872, ssthresh 5872, in flight 0 → 1468",
        ],
    ),
];

/// One lost chunk over a satellite.
const SATELLITE: [Event; 4] = [
    (
        "satellite-fairness/single-loss-sctp",
        "--packet 1",
        &["path access: INIT", "setup, control: RFC 9260 section 5.1", "confirmation = all-paths-first"],
    ),
    (
        "satellite-fairness/single-loss-sctp",
        "--packet 8",
        &[
            "new data, within cwnd: RFC 9260 section 6.1",
            "The policy primary (key `new`) chose the path access",
            "send_on = sack",
            "cwnd 4380, ssthresh 65536, in flight 1448 → 2896",
        ],
    ),
    (
        "satellite-fairness/single-loss-sctp",
        "--packet 12",
        &["from the server, path access: SACK", "RFC 9260 section 6.2", "window_updates = none"],
    ),
    (
        "satellite-fairness/single-loss-sctp",
        "--packet 39",
        &[
            "RFC 9260 section 7.2.4",
            "lost at 2.837094 s on satellite router>destination (lost on the link)",
            "missing_reports = 4",
            "marked 1448 → 0",
        ],
    ),
];

/// Concurrent multipath transfer: two publications, and coupled windows.
const CMT: [Event; 6] = [
    (
        "cmt-retransmission-policies/two-paths",
        "--at 0.51746s --set stop=1s",
        &[
            "blocked by the congestion window since 0.508128 s",
            "Path path1: its congestion window is full since 0.516590 s",
            "Path path2: its congestion window is full since 0.516590 s",
        ],
    ),
    (
        "cmt-retransmission-policies/two-paths",
        "--at 0.554272s --set stop=1s",
        &[
            "blocked by the peer's window since 0.532192 s: 944 bytes left",
            "26 chunks wait at the receiver behind TSN 218688968",
            "TSN 218688968 was sent at 0.528592 s on path1 (new data): on its way on path1 s>r",
        ],
    ),
    (
        "cmt-baseline/blocking",
        "--at 5.886943s --flow cmt",
        &[
            "blocked by the peer's window since 5.723848 s",
            "[window_probe = after-rto]",
            "17 chunks wait at the receiver behind TSN 2222941844",
            "on slow (new data): on its way on slow s>r",
        ],
    ),
    (
        "cmt-baseline/blocking",
        "--at 5.886943s --flow alone",
        &[
            "Flow alone: blocked by the peer's window since 5.077843 s",
            "nothing is missing, and the receiving application has left 65536 bytes of its buffer free",
        ],
    ),
    (
        "coupled-windows/shared",
        "--at 10s --flow both --set stop=11s --set measure=[\"1s\",\"11s\"]",
        &[
            "blocked by the congestion window since 2.818189 s",
            "[send_on = room]",
            "the cwnd of one was cut by a fast retransmission (RFC 9260 section 7.2.4) from 205061 to 102530 bytes",
            "the cwnd of two was cut by a fast retransmission (RFC 9260 section 7.2.4) from 60417 to 30208 bytes",
        ],
    ),
    (
        "coupled-windows/shared",
        "--at 10s --flow single --set stop=11s --set measure=[\"1s\",\"11s\"]",
        &["the cwnd of single was cut by a fast retransmission", "from 104503 to 52251 bytes at 9.708730 s"],
    ),
];

#[test]
fn twenty_events_are_explained() {
    let events: Vec<&Event> = BLOCKING.iter().chain(&FLAW).chain(&SATELLITE).chain(&CMT).collect();
    assert_eq!(events.len(), 20);
    for (scenario, question, parts) in events {
        let file = format!("{}/../papers/{scenario}.toml", env!("CARGO_MANIFEST_DIR"));
        let question: Vec<&str> = question.split(' ').collect();
        let output = anabranch(&[&["run", &file, "--why"], &question[..]].concat());
        assert!(output.status.success(), "{scenario}: {}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        for part in *parts {
            assert!(text.contains(part), "{scenario} {question:?} lacks {part:?}:\n{text}");
        }
    }
}
