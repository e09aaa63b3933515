//! The same parameters as configurations of Linux, FreeBSD, usrsctp and Anabranch.

use super::Candidate;

/// Each system's name and its configuration.
pub fn configurations(candidate: &Candidate) -> Vec<(&'static str, String)> {
    vec![
        ("Linux, sysctl", linux(candidate)),
        ("Linux and FreeBSD, socket options (RFC 6458, RFC 7829)", socket_options(candidate)),
        ("FreeBSD, sysctl", freebsd(candidate)),
        ("usrsctp", usrsctp(candidate)),
        ("Anabranch, [flow.sctp], or --set of send and serve", candidate.keys()),
    ]
}

fn linux(c: &Candidate) -> String {
    let pf = match c.pf_max_retrans {
        // The kernel has no value for "off": a threshold at or above path_max_retrans is never reached first.
        None => format!("net.sctp.pf_enable = 0\nnet.sctp.pf_retrans = {}\n", c.path_max_retrans),
        Some(errors) => format!("net.sctp.pf_enable = 1\nnet.sctp.pf_retrans = {errors}\n"),
    };
    format!(
        "net.sctp.rto_min = {}\nnet.sctp.rto_max = {}\nnet.sctp.rto_initial = {}\nnet.sctp.path_max_retrans = {}\n{pf}net.sctp.hb_interval = {}\nnet.sctp.sack_timeout = {}\n",
        c.rto_min, c.rto_max, c.rto_initial, c.path_max_retrans, c.heartbeat_interval, c.sack_delay
    )
}

fn freebsd(c: &Candidate) -> String {
    // 65535 is what the stack takes for "no potentially failed paths".
    let pf = c.pf_max_retrans.unwrap_or(65_535);
    format!(
        "net.inet.sctp.rto_min={}\nnet.inet.sctp.rto_max={}\nnet.inet.sctp.rto_initial={}\nnet.inet.sctp.path_rtx_max={}\nnet.inet.sctp.path_pf_threshold={pf}\nnet.inet.sctp.heartbeat_interval={}\nnet.inet.sctp.delayed_sack_time={}\n",
        c.rto_min, c.rto_max, c.rto_initial, c.path_max_retrans, c.heartbeat_interval, c.sack_delay
    )
}

fn usrsctp(c: &Candidate) -> String {
    let pf = c.pf_max_retrans.unwrap_or(65_535);
    format!(
        "usrsctp_sysctl_set_sctp_rto_min_default({});\nusrsctp_sysctl_set_sctp_rto_max_default({});\nusrsctp_sysctl_set_sctp_rto_initial_default({});\nusrsctp_sysctl_set_sctp_path_rtx_max_default({});\nusrsctp_sysctl_set_sctp_path_pf_threshold({pf});\nusrsctp_sysctl_set_sctp_heartbeat_interval_default({});\nusrsctp_sysctl_set_sctp_delayed_sack_time_default({});\n",
        c.rto_min, c.rto_max, c.rto_initial, c.path_max_retrans, c.heartbeat_interval, c.sack_delay
    )
}

fn socket_options(c: &Candidate) -> String {
    let pf = c.pf_max_retrans.unwrap_or(65_535);
    format!(
        "SCTP_RTOINFO: srto_initial = {}, srto_max = {}, srto_min = {}\nSCTP_PEER_ADDR_PARAMS: spp_pathmaxrxt = {}, spp_hbinterval = {}, spp_flags = SPP_HB_ENABLE\nSCTP_PEER_ADDR_THLDS: spt_pathmaxrxt = {}, spt_pathpfthld = {pf} (FreeBSD also: spt_pathcpthld = 65535)\nSCTP_DELAYED_SACK: sack_delay = {}, sack_freq = 2\n",
        c.rto_initial,
        c.rto_max,
        c.rto_min,
        c.path_max_retrans,
        c.heartbeat_interval,
        c.path_max_retrans,
        c.sack_delay
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Task, read::tests::SIGNALLING};
    use super::*;

    #[test]
    fn every_parameter_is_in_every_configuration() {
        let candidate = Candidate {
            rto_min: 111,
            rto_max: 2_222,
            rto_initial: 333,
            path_max_retrans: 7,
            pf_max_retrans: Some(3),
            heartbeat_interval: 5_555,
            sack_delay: 66,
        };
        for (system, text) in configurations(&candidate) {
            for value in ["111", "2222", "333", "7", "3", "5555", "66"] {
                assert!(text.contains(value), "{system} lacks {value}: {text}");
            }
        }
        assert!(Task::read("t", SIGNALLING).is_ok());
    }
}
