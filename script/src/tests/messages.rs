//! Messages with what goes and comes with them, and notifications.

use super::super::Verdict;
use super::{UP, fails, passes, up, verdict};

/// One stream each way is not enough here.
fn wide(rest: &str) -> String {
    format!("{}{rest}", UP.replace("os=1, is=1", "os=4, is=4"))
}

const INFO: &str = "snd_sid=2, snd_flags=SCTP_UNORDERED, snd_ppid=htonl(7), snd_context=0, snd_assoc_id=...";

/// Every way to send 1,000 bytes, unordered, on stream 2, with PPID 7.
fn sends() -> [String; 6] {
    let old = "{sinfo_stream=2, sinfo_ssn=9, sinfo_flags=SCTP_UNORDERED, sinfo_ppid=htonl(7)}";
    let to = "{sa_family=AF_INET, sin_port=htons(40000), sin_addr=inet_addr(\"192.0.2.1\")}";
    [
        "sctp_sendmsg(4, ..., 1000, ..., ..., htonl(7), SCTP_UNORDERED, 2, 0, 0)".to_owned(),
        format!("sctp_send(4, ..., 1000, {old}, 0)"),
        format!("sctp_sendx(4, ..., 1000, {to}, 1, {old}, 0)"),
        format!(
            "sctp_sendv(4, [{{..., 400}}, {{..., 600}}], 2, [{to}], 1, {{{INFO}}}, 16, SCTP_SENDV_SNDINFO, 0)"
        ),
        format!(
            "sctp_sendv(4, [{{iov_base=..., iov_len=1000}}], 1, NULL, 0, {{sendv_flags=SCTP_SEND_SNDINFO_VALID, \
            sendv_sndinfo={{{INFO}}}, sendv_prinfo={{pr_policy=SCTP_PR_SCTP_TTL, pr_value=1}}}}, 32, SCTP_SENDV_SPA, 0)"
        ),
        format!(
            "sendmsg(4, {{msg_name(16)={to}, msg_iov(1)=[{{..., 1000}}], msg_control(32)=[{{cmsg_len=32, \
            cmsg_level=IPPROTO_SCTP, cmsg_type=SCTP_SNDINFO, cmsg_data={{{INFO}}}}}], msg_flags=0}}, 0)"
        ),
    ]
}

#[test]
fn a_message_can_be_sent_in_six_ways() {
    for call in sends() {
        let sent = "DATA[flgs=UBE, len=1016, tsn=1, sid=2, ssn=0, ppid=7]";
        passes(&wide(&format!("+0.1 {call} = 1000\n+0.0 > sctp: {sent}")));
        fails(&wide(&format!("+0.1 {call} = 1000\n+0.0 > sctp: {}", sent.replace("sid=2", "sid=1"))));
        // On a stream that there is not.
        fails(&up(&format!("+0.1 {call} = 1000")));
        passes(&up(&format!("+0.1 {call} = -1 EINVAL")));
    }
    let elsewhere = "+0.1 sctp_sendx(4, ..., 10, 192.0.2.2, 1, ..., 0) = 10";
    assert!(matches!(verdict(&up(elsewhere)), Verdict::Skip(_)));
}

#[test]
fn flags_of_a_message_end_the_association() {
    let order = |flags| format!("+0.1 sctp_sendmsg(4, ..., 10, ..., ..., 0, {flags}, 0, 0, 0) = ...\n");
    let data = "+0.0 > sctp: DATA[flgs=IBE, len=26, tsn=1, sid=0, ssn=0, ppid=0]\n";
    passes(&up(&format!("{}{data}+0.0 state(4) = SHUTDOWN_PENDING", order("SCTP_EOF"))));
    passes(&up(&format!("{}+0.0 > sctp: ABORT[flgs=0, ...]", order("SCTP_ABORT"))));
}

const DATA: &str = "+0.1 < sctp: DATA[flgs=UBE, len=1016, tsn=1, sid=3, ssn=0, ppid=7]\n";

#[test]
fn a_message_is_received_with_what_is_known_of_it() {
    let wide = |rest: &str| {
        wide(&format!("+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_RECVRCVINFO, [1], 4) = 0\n{DATA}{rest}"))
    };
    let info = "rcv_sid=3, rcv_ssn=..., rcv_flags=SCTP_UNORDERED, rcv_ppid=htonl(7), rcv_assoc_id=...";
    let calls = |info: &str, flags: &str| {
        [
            format!(
                "recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., 2000}}], msg_control(40)=[{{cmsg_len=40, \
                cmsg_level=IPPROTO_SCTP, cmsg_type=SCTP_RCVINFO, cmsg_data={{{info}}}}}], msg_flags={flags}}}, 0) = 1000"
            ),
            format!(
                "sctp_recvv(4, [{{iov_base=..., iov_len=2000}}], 1, ..., 16, {{{info}}}, [28], \
                [SCTP_RECVV_RCVINFO], [{flags}]) = 1000"
            ),
            format!(
                "sctp_recvmsg(4, ..., 2000, ..., ..., {{{}}}, {flags}) = 1000",
                info.replace("rcv_sid", "sinfo_stream").replace("rcv_", "sinfo_")
            ),
        ]
    };
    for call in calls(info, "MSG_EOR") {
        passes(&wide(&format!("+0.0 {call}")));
    }
    let wrong =
        [info.replace("sid=3", "sid=2"), info.replace("htonl(7)", "8"), info.replace("SCTP_UNORDERED", "0")];
    for call in wrong.iter().flat_map(|info| calls(info, "MSG_EOR")).chain(calls(info, "0")) {
        let failure = fails(&wide(&format!("+0.0 {call}")));
        assert!(failure.what.contains("expected"), "{failure:?}");
    }
    for call in calls(&info.replace("rcv_ssn=...", "rcv_ssn=0"), "MSG_EOR") {
        assert!(matches!(verdict(&wide(&format!("+0.0 {call}"))), Verdict::Skip(_)), "{call}");
    }
}

#[test]
fn a_message_read_in_parts_ends_with_the_last() {
    let read =
        |length, flags| format!("+0.0 sctp_recvmsg(4, ..., {length}, ..., ..., ..., {flags}) = {length}\n");
    passes(&wide(&format!(
        "{DATA}{}{}+0.0 read(4, ..., 10) = -1 EAGAIN",
        read(600, "0"),
        read(400, "MSG_EOR")
    )));
    fails(&wide(&format!("{DATA}{}", read(600, "MSG_EOR"))));
    // Not asked for, no information comes.
    let call = |kind| {
        format!(
            "{DATA}+0.0 sctp_recvv(4, [{{..., 1000}}], 1, ..., 16, NULL, [0], [{kind}], [MSG_EOR]) = 1000"
        )
    };
    passes(&wide(&call("SCTP_RECVV_NOINFO")));
    fails(&wide(&call("SCTP_RECVV_RCVINFO")));
}

/// The next thing to read is a notification that says so.
fn told(fields: &str, length: usize) -> String {
    format!(
        "+0.0 sctp_recvv(4, [{{iov_base={{{fields}}}, iov_len=2000}}], 1, ..., 16, NULL, [0], [SCTP_RECVV_NOINFO], \
        [MSG_NOTIFICATION|MSG_EOR]) = {length}\n"
    )
}

fn subscribed(kind: &str) -> String {
    let event = format!("{{se_assoc_id=0, se_type={kind}, se_on=1}}");
    format!(
        "+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_EVENT, {event}, 8) = 0\n\
        +0.0 getsockopt(4, IPPROTO_SCTP, SCTP_EVENT, {event}, [8]) = 0\n"
    )
}

#[test]
fn a_socket_is_told_what_it_has_subscribed_to() {
    let shutdown = "+0.1 < sctp: SHUTDOWN[flgs=0, cum_tsn=0]\n+0.0 > sctp: SHUTDOWN_ACK[flgs=0]\n";
    let complete = "+0.0 < sctp: SHUTDOWN_COMPLETE[flgs=0]\n";
    let over = "sac_type=SCTP_ASSOC_CHANGE, sac_flags=0, sac_length=20, sac_state=SCTP_SHUTDOWN_COMP, sac_error=0, \
        sac_outbound_streams=1, sac_inbound_streams=1, sac_assoc_id=..., sac_info=[]";
    let lost = over.replace("SHUTDOWN_COMP", "COMM_LOST");
    let error = "+0.1 < sctp: ERROR[flgs=0, INVALID_STREAM_IDENTIFIER[sid=1]]\n";
    let remote = "sre_type=SCTP_REMOTE_ERROR, sre_flags=0, sre_length=24, sre_error=1";
    let abort = "+0.1 < sctp: ABORT[flgs=0]\n";
    let cases = [
        ("SCTP_ASSOC_CHANGE", format!("{shutdown}{complete}"), over, 20),
        ("SCTP_ASSOC_CHANGE", abort.to_owned(), &lost, 20),
        (
            "SCTP_SHUTDOWN_EVENT",
            shutdown.to_owned(),
            "sse_type=SCTP_SHUTDOWN_EVENT, sse_flags=0, sse_length=12",
            12,
        ),
        ("SCTP_REMOTE_ERROR", error.to_owned(), remote, 24),
    ];
    for (kind, happens, fields, length) in cases {
        passes(&up(&format!("{}{happens}{}", subscribed(kind), told(fields, length))));
        // Another does not hear of it, and what is said of it has to be right.
        fails(&up(&format!("{}{happens}{}", subscribed("SCTP_PEER_ADDR_CHANGE"), told(fields, length))));
        let wrong = fields.replace("flags=0", "flags=1").replace("state=SCTP", "state=NOT");
        fails(&up(&format!("{}{happens}{}", subscribed(kind), told(&wrong, length))));
    }
}

#[test]
fn what_was_not_delivered_comes_back() {
    let failed = "ssfe_type=SCTP_SEND_FAILED_EVENT, ssfe_flags=SCTP_DATA_SENT, ssfe_length=1032, ssfe_error=0, \
        ssfe_info={snd_sid=0, snd_ppid=htonl(0), snd_assoc_id=...}, ssfe_assoc_id=..., ssfe_data=...";
    let script = |fields: &str| {
        up(&format!(
            "{}+0.1 write(4, ..., 1000) = 1000\n+0.0 > sctp: DATA[flgs=BE, len=1016, tsn=1, sid=0, ssn=0, ppid=0]\n\
            +0.1 < sctp: ABORT[flgs=0]\n{}",
            subscribed("SCTP_SEND_FAILED_EVENT"),
            told(fields, 1032)
        ))
    };
    passes(&script(failed));
    fails(&script(&failed.replace("SCTP_DATA_SENT", "SCTP_DATA_UNSENT")));
    fails(&script(&failed.replace("snd_sid=0", "snd_sid=1")));
}

#[test]
fn a_listener_hands_its_subscriptions_down() {
    let events = "{sctp_association_event=1, sctp_shutdown_event=0}";
    let listens =
        format!("+0.0 setsockopt(3, IPPROTO_SCTP, SCTP_EVENTS, {events}, 2) = 0\n+0.0 listen(3, 1) = 0");
    let setup = UP.replace("+0.0 listen(3, 1) = 0", &listens);
    let comes_up = told("sac_state=SCTP_COMM_UP, sac_length=20", 20);
    passes(&format!("{setup}{comes_up}+0.0 read(4, ..., 10) = -1 EAGAIN"));
    fails(&up(&comes_up));
    let unknown =
        "+0.0 setsockopt(4, IPPROTO_SCTP, SCTP_EVENT, {se_type=SCTP_SENDER_DRY_EVENT, se_on=1}, 8) = 0";
    assert!(matches!(verdict(&up(unknown)), Verdict::Skip(_)));
}

#[test]
fn paths_tell_of_themselves() {
    let addresses = "--local=192.168.0.1\n--local=192.168.1.1\n--peer=192.0.2.1\n--peer=198.51.100.1";
    let listed =
        "tsn=1, IPV4_ADDRESS[addr=192.0.2.1], IPV4_ADDRESS[addr=198.51.100.1]]\n+0.0 > sctp: INIT_ACK";
    let setup = UP
        .replace(
            "=delayed",
            &format!("=delayed\n--sctp=path_max_retrans=0\n--sctp=heartbeat_interval=\"off\"\n{addresses}"),
        )
        .replace("tsn=1]\n+0.0 > sctp: INIT_ACK", listed);
    let told = |state: &str| {
        let address = "{sa_family=AF_INET, sin_port=htons(40000), sin_addr=inet_addr(\"192.0.2.1\")}";
        told(
            &format!(
                "spc_type=SCTP_PEER_ADDR_CHANGE, spc_length=148, spc_aaddr={address}, spc_state={state}"
            ),
            148,
        )
    };
    let silence = |told: &str| {
        let data = "sctp: DATA[flgs=BE, len=26, tsn=1, sid=0, ssn=0, ppid=0]";
        format!(
            "{setup}+0.0 > 192.168.1.1 > 198.51.100.1 sctp: HEARTBEAT[flgs=0, HEARTBEAT_INFORMATION[...]]\n\
            +0.0 < 198.51.100.1 > 192.168.1.1 sctp: HEARTBEAT_ACK[flgs=0, HEARTBEAT_INFORMATION[...]]\n{}\
            +0.1 write(4, ..., 10) = 10\n*    > 192.168.0.1 > 192.0.2.1 {data}\n\
            *    > 192.168.1.1 > 198.51.100.1 {data}\n{told}",
            subscribed("SCTP_PEER_ADDR_CHANGE"),
        )
    };
    passes(&silence(&told("SCTP_ADDR_UNREACHABLE")));
    fails(&silence(&told("SCTP_ADDR_AVAILABLE")));
}

#[test]
fn streams_tell_of_themselves() {
    let setup = UP
        .replace("=delayed", "=delayed\n--sctp=reconfiguration=true")
        .replace("os=1, is=1, tsn=1]", "os=4, is=4, tsn=1, SUPPORTED_EXTENSIONS[types=[130]]]");
    let reset = "+0.1 < sctp: RECONFIG[flgs=0, OUTGOING_SSN_RESET[req_sn=1, resp_sn=0, last_tsn=0, sids=[1, 3]]]\n\
        +0.0 > sctp: RECONFIG[flgs=0, RECONFIG_RESPONSE[resp_sn=1, result=1]]; SACK[flgs=0, cum_tsn=0, a_rwnd=..., gaps=[], dups=[]]\n";
    let more = "+0.1 < sctp: RECONFIG[flgs=0, ADD_OUTGOING_STREAMS[req_sn=1, number_of_new_streams=2]]\n\
        +0.0 > sctp: RECONFIG[flgs=0, RECONFIG_RESPONSE[resp_sn=1, result=1]]; SACK[flgs=0, cum_tsn=0, a_rwnd=..., gaps=[], dups=[]]\n";
    let refused = "+0.1 setsockopt(4, IPPROTO_SCTP, SCTP_ADD_STREAMS, {sas_outstrms=2}, 8) = 0\n\
        +0.0 > sctp: RECONFIG[flgs=0, ADD_OUTGOING_STREAMS[req_sn=1, number_of_new_streams=2]]\n\
        +0.1 < sctp: RECONFIG[flgs=0, RECONFIG_RESPONSE[resp_sn=1, result=2]]\n";
    let cases = [
        (
            "SCTP_STREAM_RESET_EVENT",
            reset,
            "strreset_flags=SCTP_STREAM_RESET_INCOMING_SSN, strreset_length=16, strreset_stream_list=[1, 3]",
            16,
        ),
        (
            "SCTP_STREAM_CHANGE_EVENT",
            more,
            "strchange_flags=0, strchange_instrms=6, strchange_outstrms=4",
            16,
        ),
        (
            "SCTP_STREAM_CHANGE_EVENT",
            refused,
            "strchange_flags=SCTP_STREAM_CHANGE_DENIED, strchange_outstrms=4",
            16,
        ),
    ];
    for (kind, happens, fields, length) in cases {
        let told = |fields: &str| format!("{setup}{}{happens}{}", subscribed(kind), told(fields, length));
        passes(&told(fields));
        fails(&told(&fields.replace("flags=", "flags=5|")));
        fails(&told(&fields.replace("strms=4", "strms=5").replace("[1, 3]", "[1, 2]")));
    }
}
