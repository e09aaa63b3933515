//! The runner is judged here: what must pass passes, and what must fail does.

mod messages;

use std::collections::BTreeSet;

use anabranch_sim::scenario;
use proptest::prelude::*;

use super::form::FORMS;
use super::{BadParameter, Failure, Options, Verdict, check, run};

/// The peer sets up an association; handle 4.
const UP: &str = "--sctp=first_data=delayed
 0.0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3
+0.0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0.0 bind(3, ..., ...) = 0
+0.0 listen(3, 1) = 0
+0.0 < sctp: INIT[flgs=0, tag=1, a_rwnd=15000, os=1, is=1, tsn=1]
+0.0 > sctp: INIT_ACK[flgs=0, tag=2, a_rwnd=..., os=..., is=..., tsn=1, ...]
+0.0 < sctp: COOKIE_ECHO[flgs=0, len=..., val=...]
+0.0 > sctp: COOKIE_ACK[flgs=0]
+0.0 accept(3, ..., ...) = 4
";

const ASK: &str = "+0.1 < sctp: HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[len=8, val=...]]\n";
const ANSWER: &str = "+0.0 > sctp: HEARTBEAT_ACK[flgs=0, HEARTBEAT_INFORMATION[len=8, val=[0, 0, 0, 0]]]\n";

/// With the reader of scenarios, as in `anabranch script`.
fn options() -> Options {
    Options::new(|assignments| {
        let read = scenario::protocol("--sctp", assignments);
        read.map_err(|error| BadParameter { key: error.key().to_owned(), message: error.advice() })
    })
}

fn verdict(script: &str) -> Verdict {
    run(script, &options())
}

fn passes(script: &str) {
    assert_eq!(verdict(script), Verdict::Pass, "{script}");
}

fn fails(script: &str) -> Failure {
    match verdict(script) {
        Verdict::Fail(failure) => *failure,
        other => panic!("{other:?}: {script}"),
    }
}

fn up(rest: &str) -> String {
    format!("{UP}{rest}")
}

#[test]
fn an_association_comes_up_and_talks() {
    passes(&up(&format!("{ASK}{ANSWER}+0.0 state(4) = ESTABLISHED")));
}

#[test]
fn chunks_in_another_order_fail() {
    // What asks for an ERROR comes before the HEARTBEAT: the answers go in this order.
    let ask = "+0.1 < sctp: CHUNK[type=0xf0, flgs=0, len=4, val=[]]; HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[len=4, val=...]]\n";
    let error = "ERROR[flgs=0, UNRECOGNIZED_CHUNK_TYPE[chk=CHUNK[type=0xf0, flgs=0, len=4, val=[]]]]";
    let answer = "HEARTBEAT_ACK[flgs=0, HEARTBEAT_INFORMATION[len=4, val=[]]]";
    passes(&up(&format!("{ask}+0.0 > sctp: {error}; {answer}")));
    let failure = fails(&up(&format!("{ask}+0.0 > sctp: {answer}; {error}")));
    assert!(failure.fields.iter().any(|row| row.starts_with('!')), "{failure:?}");
    // One more than expected, and one less.
    fails(&up(&format!("{ask}+0.0 > sctp: {error}")));
    fails(&up(&format!("{ask}+0.0 > sctp: {error}; {answer}; {answer}")));
}

#[test]
fn a_field_that_differs_is_marked() {
    let failure = fails(&up(&format!("{ASK}{}", ANSWER.replace("[0, 0, 0, 0]", "[0, 0, 0, 1]"))));
    assert_eq!(failure.line, 12);
    assert_eq!(failure.at.as_nanos(), 100_000_000);
    let marked: Vec<_> = failure.fields.iter().filter(|row| row.starts_with('!')).collect();
    assert_eq!(marked.len(), 1, "{failure:?}");
    let last = failure.log.last().expect("a log");
    assert_eq!(
        last,
        "0.1 > sctp: HEARTBEAT_ACK[flgs=0, HEARTBEAT_INFORMATION[len=8, val=[0x00, 0x00, 0x00, 0x00]]]"
    );
    // The log is in script notation: what is printed is what passes.
    let line = format!("+0.0 {}", &last[4..]);
    passes(&up(&format!("{ASK}{line}")));
}

/// What the script says beside the chunks stands in the log too: without it, the same packet would be accepted.
#[test]
fn the_log_has_packets_of_the_peer_as_they_were_written() {
    let packets = [
        "sctp(bad_crc32c): SHUTDOWN[flgs=0, cum_tsn=0]",
        "sctp(tag=7): SHUTDOWN[flgs=0, cum_tsn=0]",
        "192.0.2.1 > 192.168.0.1 (ce) 9000 > 9001 sctp(zero_checksum, tag=7): SHUTDOWN[flgs=0, cum_tsn=0]",
        "sctp: [1, 2, 255]",
    ];
    let sent: String = packets.iter().map(|packet| format!("+0.0 < {packet}\n")).collect();
    let failure = fails(&up(&format!("{sent}+0.0 > sctp: SHUTDOWN_ACK[flgs=0]\n")));
    let logged: Vec<_> = failure.log.iter().rev().take(packets.len()).rev().collect();
    let at = |line: &&String| line.split_once(" < ").map(|(_, packet)| packet.to_owned());
    assert_eq!(logged.iter().filter_map(at).collect::<Vec<_>>(), packets, "{:?}", failure.log);
}

/// An INIT with a parameter that is reported; a closed list says so or fails, an open one does not care.
#[test]
fn a_closed_list_is_the_whole_list() {
    let script = |params: &str| {
        format!(
            " 0.0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+0.0 bind(3, ..., ...) = 0\n+0.0 listen(3, 1) = 0\n\
             +0.0 < sctp: INIT[flgs=0, tag=1, a_rwnd=1500, os=1, is=1, tsn=1, PARAMETER[type=0xc0ff, len=5, val=[7]]]\n\
             +0.0 > sctp: INIT_ACK[flgs=0, tag=2, a_rwnd=..., os=..., is=..., tsn=1{params}]"
        )
    };
    let cookie = ", STATE_COOKIE[...]";
    let report = ", UNRECOGNIZED_PARAMETER[params=[PARAMETER[type=0xc0ff, len=5, val=[7]]]]";
    passes(&script(&format!("{report}{cookie}")));
    passes(&script(", ..."));
    fails(&script(cookie));
    fails(&script(&format!("{cookie}{report}")));
    fails(&script(""));
}

/// A SACK is delayed by 200 ms; the interval of the event before is 0, so that 4 ms are tolerated.
#[test]
fn tolerance_is_kept_to_the_microsecond() {
    let data = "+0.0 < sctp: DATA[flgs=BE, len=20, tsn=1, sid=0, ssn=0, ppid=0]\n";
    let sack = |time: &str| {
        up(&format!("{data}{time} > sctp: SACK[flgs=0, cum_tsn=1, a_rwnd=..., gaps=[], dups=[]]"))
    };
    let strict = |time: &str| format!("--tolerance_usecs=4000 --tolerance_percent=0\n{}", sack(time));
    passes(&strict("+0.196"));
    passes(&strict("+0.204"));
    let late = fails(&strict("+0.195999"));
    assert!(late.what.contains("no packet was sent by"), "{}", late.what);
    let early = fails(&strict("+0.204001"));
    assert!(early.what.contains("it was sent at 0.2"), "{}", early.what);
    // 5 per cent of 210 ms are more.
    passes(&sack("+0.210"));
    fails(&sack("+0.2106"));
    passes(&sack("+0.1~+0.3"));
    fails(&sack("+0.01~+0.1"));
    passes(&sack("*"));
    let exact = Options { exact: true, ..options() };
    assert_eq!(run(&sack("+0.2"), &exact), Verdict::Pass);
    assert!(matches!(run(&sack("+0.201"), &exact), Verdict::Fail(_)));
}

/// Each SACK comes 3 ms before its time: what follows counts from when it came.
#[test]
fn relative_times_do_not_add_up() {
    let mut script = "--tolerance_percent=0\n".to_owned() + UP;
    for tsn in 1..20 {
        let ssn = tsn - 1;
        script += &format!("+0.0 < sctp: DATA[flgs=BE, len=20, tsn={tsn}, sid=0, ssn={ssn}, ppid=0]\n");
        script += &format!("+0.203 > sctp: SACK[flgs=0, cum_tsn={tsn}, a_rwnd=..., gaps=[], dups=[]]\n");
    }
    passes(&script);
}

#[test]
fn a_packet_that_never_comes_fails_and_does_not_hang() {
    let failure = fails(&up("+0.0 > sctp: COOKIE_ACK[flgs=0]"));
    assert!(failure.what.contains("no packet was sent by"), "{}", failure.what);
    // With heartbeats off nothing is pending.
    let off = "--sctp=heartbeat_interval=off\n";
    let failure = fails(&format!("{off}{}", up("* > sctp: COOKIE_ACK[flgs=0]")));
    assert!(failure.what.ends_with("and no packet was sent"), "{}", failure.what);
    assert_eq!(failure.line, 12);
}

#[test]
fn ifdef_hides_what_cannot_be_read() {
    let script = up("#ifdef OTHER\n ~~ not \u{1} a script\n#endif\n+0.0 close(4) = 0");
    passes(&script);
    let other = Options { defines: BTreeSet::from(["OTHER".to_owned()]), ..options() };
    assert!(matches!(run(&script, &other), Verdict::Error(_)));
}

/// The stack's numbers and the script's are both taken across 2^32.
#[test]
fn numbers_are_translated_across_the_wrap() {
    for (live, written) in [(4_294_967_294_u32, 1_u32), (5, 4_294_967_294), (4_294_967_295, 4_294_967_295)] {
        let tsn = |n: u32| written.wrapping_add(n);
        let setup =
            UP.replace("tag=2", "tag=4294967295").replace("tsn=1, ...]", &format!("tsn={written}, ...]"));
        let mut script = format!("--sctp=first_tsn={live}\n{setup}");
        for n in 0..4 {
            script += &format!(
                "+0.1 write(4, ..., 100) = 100\n\
                 +0.0 > sctp: DATA[flgs=BE, len=116, tsn={}, sid=0, ssn={n}, ppid=0]\n\
                 +0.0 < sctp(tag=4294967295): SACK[flgs=0, cum_tsn={}, a_rwnd=15000, gaps=[], dups=[]]\n",
                tsn(n),
                tsn(n)
            );
        }
        script += "+0.0 close(4) = 0\n+0.0 > sctp: SHUTDOWN[flgs=0, cum_tsn=0]";
        passes(&script);
    }
}

/// A time cannot lie before that of the event above it, whether this was stated or is that of a packet. The tolerance
/// counts.
#[test]
fn times_do_not_go_back() {
    let back = |rest: &str| match verdict(&up(rest)) {
        Verdict::Error(error) => error.message.contains("lies before"),
        other => panic!("{other:?}"),
    };
    assert!(back("+0.2 state(4) = ESTABLISHED\n0.1 state(4) = ESTABLISHED"));
    assert!(back(&format!("{ASK}* {}0.05 state(4) = ESTABLISHED", &ANSWER[4..])));
    assert!(back(&format!("{ASK}+0.0~+0.5 {}0.05 state(4) = ESTABLISHED", &ANSWER[4..])));
    assert!(back("+0.2 state(4) = ESTABLISHED\n0.1~0.3 > sctp: COOKIE_ACK[flgs=0]"));
    passes(&up("+0.2 state(4) = ESTABLISHED\n0.2 state(4) = ESTABLISHED\n0.3 state(4) = ESTABLISHED"));
    passes(&up(&format!("{ASK}* {}0.097 state(4) = ESTABLISHED", &ANSWER[4..])));
}

#[test]
fn the_cookie_comes_back_byte_for_byte() {
    // The same cookie again is answered; none before an INIT ACK has brought one.
    passes(&up("+0.1 < sctp: COOKIE_ECHO[flgs=0, len=..., val=...]\n+0.0 > sctp: COOKIE_ACK[flgs=0]"));
    let early = " 0.0 < sctp: COOKIE_ECHO[flgs=0, len=..., val=...]";
    assert!(matches!(verdict(early), Verdict::Error(error) if error.message.contains("cookie")));
    // Another cookie of the same length is dropped.
    let nothing =
        "+0.1 < sctp: COOKIE_ECHO[flgs=0, len=8, val=[1, 2, 3, 4]]\n+0.1 > sctp: COOKIE_ACK[flgs=0]";
    fails(&up(nothing));
}

#[test]
fn a_wrong_tag_is_wrong_and_the_right_one_right() {
    for (tag, right) in
        [("", true), ("(tag=2)", true), ("(tag=1)", false), ("(tag=3)", false), ("(tag=0)", false)]
    {
        let ask = ASK.replace("sctp", &format!("sctp{tag}"));
        let script = up(&format!("{ask}{ANSWER}"));
        assert_eq!(verdict(&script) == Verdict::Pass, right, "{tag}");
    }
}

#[test]
fn a_bad_checksum_is_dropped() {
    fails(&up(&format!("{}{ANSWER}", ASK.replace("sctp", "sctp(bad_crc32c)"))));
}

#[test]
fn a_checksum_of_zero_is_for_those_who_have_agreed_to_it() {
    let agreed = |offer: &str| {
        let setup = UP.replace("is=1, tsn=1]", &format!("is=1, tsn=1{offer}]"));
        format!("--sctp=zero_checksum=true\n{setup}")
    };
    let zero = |line: &str| line.replacen("sctp:", "sctp(zero_checksum):", 1);
    let offer = ", ZERO_CHECKSUM_ACCEPTABLE[edmid=1]";
    passes(&format!("{}{}{}", agreed(offer), zero(ASK), zero(ANSWER)));
    passes(&format!("{}{}{ANSWER}", agreed(offer), zero(ASK)));
    // The peer takes none; or we do not, and then there is no answer.
    fails(&format!("{}{}{}", agreed(""), zero(ASK), zero(ANSWER)));
    passes(&format!("{}{}{ANSWER}", agreed(""), zero(ASK)));
    fails(&up(&format!("{}{ANSWER}", zero(ASK))));
}

#[test]
fn packets_go_in_udp_and_answers_come_back_where_they_came_from() {
    let encapsulated = |rest: &str| format!("--udp_encaps=sctp\n{}", up(rest));
    let in_udp = |line: &str, ports: &str| line.replacen("sctp:", &format!("sctp/udp({ports}):"), 1);
    passes(&encapsulated(&format!("{ASK}{}", in_udp(ANSWER, "9899 > 9899"))));
    fails(&encapsulated(&format!("{ASK}{}", in_udp(ANSWER, "9899 > 9900"))));
    passes(&encapsulated(&format!("{}{}", in_udp(ASK, "7000 > 9899"), in_udp(ANSWER, "9899 > 7000"))));
    fails(&up(&format!("{ASK}{}", in_udp(ANSWER, "9899 > 9899"))));
    // A packet of 1,500 bytes has room for 8 less.
    passes(&encapsulated(
        "+0.1 write(4, ..., 1444) = 1444\n+0.0 > sctp: DATA[flgs=BE, len=1460, tsn=1, sid=0, ssn=0, ppid=0]",
    ));
    passes(&encapsulated(
        "+0.1 write(4, ..., 1445) = 1445\n+0.0 > sctp: DATA[flgs=B, len=1460, tsn=1, sid=0, ssn=0, ppid=0]",
    ));
}

#[test]
fn packets_to_others_are_passed_over() {
    // The INIT names an address that is not the script's: its heartbeat is not seen, that of a declared one is.
    let named = UP.replace("tsn=1]", "tsn=1, IPV4_ADDRESS[addr=198.51.100.1]]");
    passes(&format!("{named}{ASK}{ANSWER}"));
    let declared = format!("--peer=192.0.2.1 --peer=198.51.100.1\n{named}{ASK}{ANSWER}");
    fails(&declared);
    let heartbeat = "+0.0 > 192.168.0.1 > 198.51.100.1 sctp: HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[...]]\n";
    let accept = "+0.0 accept(3, ..., ...) = 4\n";
    let before = declared.replace(accept, &format!("{heartbeat}{accept}"));
    passes(&before);
    fails(&before.replace("> 198.51.100.1 sctp: HEARTBEAT", "> 192.0.2.1 sctp: HEARTBEAT"));
    // An answer to a stranger is not seen either.
    let stranger = "+0.0 < 203.0.113.5 > 192.168.0.1 sctp: COOKIE_ACK[flgs=0]; SACK[flgs=0, cum_tsn=0, a_rwnd=1, gaps=[], dups=[]]\n";
    passes(&up(&format!("{stranger}{ASK}{ANSWER}")));
}

#[test]
fn a_call_that_blocks_fails_and_one_that_need_not_does_not() {
    let failure = fails(&up("+0.0 fcntl(4, F_SETFL, O_RDWR) = 0\n+0.0 read(4, ..., 100) = -1 EAGAIN"));
    assert!(failure.what.contains("it blocks"), "{}", failure.what);
    fails(&up("+0.0 fcntl(3, F_SETFL, O_RDWR) = 0\n+0.0 accept(3, ..., ...) = 5"));
    for errno in ["EAGAIN", "EWOULDBLOCK", "EAGAIN (try again)", "(any errno)", ""] {
        passes(&up(&format!("+0.0 read(4, ..., 100) = -1 {errno}")));
    }
    fails(&up("+0.0 read(4, ..., 100) = -1 ENOTCONN (another)"));
    fails(&up("+0.0 read(4, ..., 100) = 0"));
}

#[test]
fn what_the_stack_has_not_is_skipped() {
    for what in [
        "+0.0 > sctp/tcp(9899 > 9899): COOKIE_ACK[flgs=0]",
        "+0.0 < tcp: 1",
        "+0.0 ...1.0 read(4, ..., 10) = 10",
        "+0.0 `ip route add 10.0.0.0/8 dev lo`",
        "+0.0 sctp_peeloff(4, 1) = 5",
        "+0.0 socket(..., SOCK_SEQPACKET, IPPROTO_SCTP) = 5",
        "+0.0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5",
        "+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_AUTH_CHUNK, {sauth_chunk=1}, 1) = 0",
    ] {
        assert!(matches!(verdict(&up(what)), Verdict::Skip(_)), "{what}: {:?}", verdict(&up(what)));
    }
}

#[test]
fn a_call_that_nobody_has_is_an_error() {
    let verdict = verdict(&up("+0.0 sctp_sendmgs(4, ..., 100, ..., ..., 0, 0, 0, 0, 0) = 100"));
    assert!(
        matches!(&verdict, Verdict::Error(error) if error.message.contains("did you mean `sctp_sendmsg`?")),
        "{verdict:?}"
    );
}

#[test]
fn chunks_of_extensions_are_read_compared_and_printed() {
    let up = |rest: &str| format!("--sctp=partial_reliability=true\n{}", up(rest));
    let asked = "+0.1 < sctp: RECONFIG[flgs=0, OUTGOING_SSN_RESET[req_sn=1, resp_sn=1, last_tsn=0, sids=[]]]; \
        I_DATA[flgs=E, len=24, tsn=1, sid=0, mid=0, fsn=1]; PAD[flgs=0, len=6, val=[1, 2]]; \
        FORWARD_TSN[cum_tsn=1, ids=[{sid=0, ssn=1}]]; ECNE[flgs=0, tsn=1]; CWR[flgs=0, tsn=1]\n";
    let failure =
        fails(&up(&format!("{asked}+0.0 > sctp: I_FORWARD_TSN[cum_tsn=1, ids=[{{1, 0, 2}}, {{3, 1, 4}}]]")));
    assert!(
        failure.what.contains("expected sctp: I_FORWARD_TSN[cum_tsn=1, ids=[{1, 0, 2}, {3, 1, 4}]]"),
        "{failure:?}"
    );
    // What the peer sent stands in the log as it could be written; the chunks are unknown here, and reported.
    let sent = &failure.log.iter().find(|line| line.contains("RECONFIG")).expect("it was sent");
    for shown in ["sids=[]", "mid=0, fsn=1", "PAD[flgs=0, len=6", "ids=[{0, 1}]", "ECNE[flgs=0, tsn=1]"] {
        assert!(sent.contains(shown), "{shown}: {sent}");
    }
}

#[test]
fn a_tsn_is_learned_alone_while_nothing_is_known() {
    let setup =
        UP.replace("tag=2, a_rwnd=..., os=..., is=..., tsn=1", "tag=..., a_rwnd=..., os=..., is=..., tsn=7");
    let data =
        "+0.1 write(4, ..., 10) = 10\n+0.0 > sctp: DATA[flgs=BE, len=26, tsn=7, sid=0, ssn=0, ppid=0]\n";
    passes(&format!("{setup}{data}"));
    // Then not any more: the association that is lives on.
    let again = "+0.1 < sctp: INIT[flgs=0, tag=9, a_rwnd=15000, os=1, is=1, tsn=1]\n\
        +0.0 > sctp: INIT_ACK[flgs=0, tag=..., a_rwnd=..., os=..., is=..., tsn=..., ...]\n";
    passes(&format!("{setup}{again}{data}"));
}

#[test]
fn parameters_given_from_outside_hold_where_the_script_says_nothing() {
    let given = |value: &str| Options { sctp: vec![format!("outbound_streams={value}")], ..options() };
    let script = |own: &str| {
        format!(
            "{own} 0.0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+0.0 bind(3, ..., ...) = 0\n\
            +0.0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n+0.0 connect(3, ..., ...) = -1 EINPROGRESS\n\
            +0.0 > sctp: INIT[flgs=0, tag=1, a_rwnd=..., os=9, is=..., tsn=1, ...]"
        )
    };
    assert_eq!(run(&script(""), &given("9")), Verdict::Pass);
    assert_eq!(run(&script("--sctp=outbound_streams=9\n"), &given("4")), Verdict::Pass);
    let wrong = Options { sctp: vec!["rto_mim=5".to_owned()], ..options() };
    assert!(check(&script(""), &wrong).unwrap_err().message.contains("rto_min"));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let cases = [
        ("+0.0 < sctp: FORWARD_TSN[cum_tsn=1, ids=[{1}]]", "{sid, ssn}"),
        ("+0.0 < sctp: FORWARD_TSN[cum_tsn=1, ids=[{ssn=1, sid=1}]]", "{sid, ssn}"),
        ("+0.0 < sctp: FORWARD_TSN[cum_tsn=1, ids=...]", "says not what"),
        ("+0.0 < sctp: I_DATA[flgs=BE, len=24, tsn=1, sid=0, mid=0, fsn=1]", "expected `ppid=`"),
        ("+0.0 < sctp: I_DATA[flgs=E, len=18, tsn=1, sid=0, mid=0, fsn=1]", "at least 20"),
        ("+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_RESET_STREAMS, {srs_stream_list=5}, 1) = 0", "takes a list"),
        ("+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_DEFAULT_PRINFO, {pr_policy=SOON}, 1) = 0", "pr_policy=SOON"),
        ("+0.0 < sctp: SACK[flgs=0, cum_tsn=..., a_rwnd=1, gaps=[], dups=[]]", "says not what"),
        ("+0.0 < sctp: SAK[flgs=0]", "did you mean"),
        ("+0.0 > sctp(bad_crc32c): COOKIE_ACK[flgs=0]", "bad_crc32c"),
        ("+0.0 > sctp: [1, 2]", "raw bytes"),
        ("* close(4) = 0", "expected"),
        ("+0.0 < sctp: COOKIE_ECHO[flgs=0, len=7, val=[1, 2]]", "does not go with"),
        ("+0.0 < sctp: DATA[flgs=X, len=20, tsn=1, sid=0, ssn=0, ppid=0]", "no flags"),
        ("+0.0 < sctp: DATA[flgs=0, len=70000, tsn=1, sid=0, ssn=0, ppid=0]", "out of range"),
        ("+0.0 < sctp: SHUTDOWN[cum_tsn=1, flgs=0]", "expected `flgs=`"),
        ("+0.0 close(9) = 0", "no socket"),
        ("0.0 close(4) = 0\n-1 close(4) = 0", "no time"),
        ("+0.0 `too-big 192.0.2.9 1000`", "192.0.2.9 is no address of the peer (--peer)"),
    ];
    for (line, message) in cases {
        match verdict(&up(line)) {
            Verdict::Error(error) => {
                assert!(error.message.contains(message), "{line}: {}", error.message);
                assert!(error.line >= 11, "{line}: {}", error.line);
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    assert!(check("--sctp=rto_mim=5", &options()).unwrap_err().message.contains("rto_min"));
    assert!(check("+1.0 close(3) = 0", &options()).is_err());
}

/// No script takes all memory, the whole call stack or hours.
#[test]
fn hostile_scripts_end() {
    for (opening, closing) in [("htonl(", ")"), ("{a(", ")=0}"), ("[", "]"), ("{", "}")] {
        let nested = format!("{}1{}", opening.repeat(100_000), closing.repeat(100_000));
        let Verdict::Error(error) = verdict(&format!("0.0 close({nested}) = 0")) else { panic!("{opening}") };
        assert!(error.message.contains("too deep"), "{opening}: {}", error.message);
    }
    let data = "DATA[flgs=BE, len=65535, tsn=1, sid=0, ssn=0, ppid=0]; ".repeat(20_000);
    let error = match verdict(&up(&format!("+0.0 < sctp: {data}"))) {
        Verdict::Error(error) => error.message,
        other => panic!("{other:?}"),
    };
    assert!(error.contains("at most 65535 bytes"), "{error}");
    // A packet of the largest size is one.
    passes(&up("+0.0 < sctp: CHUNK[type=0x80, flgs=0, len=65520, val=[]]"));
    let long = up(&"+999999.0 state(4) = ESTABLISHED\n".repeat(20_000));
    let Verdict::Error(error) = verdict(&format!("--sctp=heartbeat_interval=off\n{long}")) else {
        panic!("a script of six hundred years")
    };
    assert_eq!((error.line, error.message.as_str()), (13, "a script lasts eleven days at most"));
    let often = |rest: &str| {
        let settings = "--sctp=heartbeat_interval=\"1 ms\"\n--sctp=rto_min=\"1 ms\"\n--sctp=rto_initial=\"1 ms\"\n--sctp=rto_max=\"1 ms\"\n\
            --sctp=association_max_retrans=4000000000\n--sctp=path_max_retrans=4000000000\n";
        fails(&format!("{settings}{}", up(rest))).what
    };
    let what = often("+999999.0 state(4) = ESTABLISHED");
    assert!(what.contains("100000 packets that the script has not expected"), "{what}");
}

/// What can be written stands in the guide.
#[test]
fn the_guide_names_every_chunk_parameter_and_cause() {
    let guide = include_str!("../../../docs/packet-scripts.md");
    for form in FORMS {
        let named = [format!("`{}`", form.name), format!("`{}[", form.name)];
        assert!(named.iter().any(|name| guide.contains(name.as_str())), "{}", form.name);
    }
}

#[test]
fn checks_beyond_the_script_can_be_switched_off() {
    // The stack's answer to a packet with tag 2 has the peer's tag; claiming that the peer's is 9 is seen.
    let script = up("+0.0 > sctp(tag=9): COOKIE_ACK[flgs=0]");
    fails(&script);
    let left = up(ASK);
    passes(&left);
    let options = Options { nothing_left: true, ..options() };
    assert!(matches!(run(&left, &options), Verdict::Fail(_)));
    assert_eq!(run(&up(&format!("{ASK}{ANSWER}")), &options), Verdict::Pass);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = check(&text, &options());
    }

    /// Scripts with a few characters changed come much farther.
    #[test]
    fn no_changed_script_makes_the_runner_panic(at in 0..900_usize, put in "[-+*~<>.0-9a-z=,;\\[\\]{}(|\"#/ ]{0,4}", cut in 0..8_usize) {
        let script = up(&format!("{ASK}{ANSWER}+0.1 write(4, ..., 10) = 10\n+0.0 close(4) = 0"));
        let at = at.min(script.len());
        let end = (at + cut).min(script.len());
        let changed = format!("{}{put}{}", &script[..at], &script[end..]);
        let _ = run(&changed, &options());
    }
}
