//! The names in the configurations that `advise failover` prints, in the headers and modules of the systems themselves.

use std::io::Write;
use std::path::{Path, PathBuf};

use anabranch_lab::advice::{Candidate, configurations};

/// The configurations with potentially failed paths and without.
fn printed(system: &str) -> String {
    let candidate = |pf_max_retrans| Candidate {
        rto_min: 90,
        rto_max: 1_000,
        rto_initial: 180,
        path_max_retrans: 5,
        pf_max_retrans,
        heartbeat_interval: 5_000,
        sack_delay: 20,
    };
    let all = [Some(2), None].map(|pf| configurations(&candidate(pf)));
    let of = all.iter().flatten().filter(|(name, _)| name.starts_with(system));
    of.map(|(_, text)| text.as_str()).collect()
}

/// The words of a text in which these characters can stand.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).filter(|word| !word.is_empty())
}

/// Says that a part is not checked, and why. With ANABRANCH_REQUIRE=all that is a failure.
fn skip(why: &str) {
    assert!(std::env::var("ANABRANCH_REQUIRE").as_deref() != Ok("all"), "skipped: configurations: {why}");
    let _ = writeln!(std::io::stderr(), "skipped: configurations: {why}");
}

#[test]
fn the_socket_options_are_those_of_the_headers() {
    let header = Path::new("/usr/include/linux/sctp.h");
    let Ok(header) = std::fs::read_to_string(header) else { return skip("there are no kernel headers") };
    let text = printed("Linux and FreeBSD");
    let names: Vec<_> = words(&text)
        .filter(|word| {
            ["SCTP_", "SPP_", "srto_", "spp_", "spt_", "sack_"].iter().any(|p| word.starts_with(p))
        })
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !words(&header).any(|word| word == **name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_functions_of_usrsctp_are_those_of_its_header() {
    let Ok(header) = std::fs::read_to_string("/usr/include/usrsctp.h") else {
        return skip("there is no usrsctp");
    };
    let text = printed("usrsctp");
    let names: Vec<_> = words(&text).filter_map(|word| word.strip_prefix("usrsctp_sysctl_set_")).collect();
    assert_eq!(names.len(), 14);
    let declared = |name: &&&str| !header.contains(&format!("USRSCTP_SYSCTL_DECL({name})"));
    let missing: Vec<_> = names.iter().filter(declared).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// usrsctp is FreeBSD's stack: in `sctp_sysctl.c` each of these sysctls stands beside the variable of which the header
/// of usrsctp declares a setter.
#[test]
fn the_sysctls_of_freebsd_stand_for_variables_of_its_stack() {
    let Ok(header) = std::fs::read_to_string("/usr/include/usrsctp.h") else {
        return skip("there is no usrsctp");
    };
    let text = printed("FreeBSD");
    let names: Vec<_> = words(&text).filter_map(|word| word.strip_prefix("net.inet.sctp.")).collect();
    assert_eq!(names.len(), 14);
    let declared = |name: &&&str| {
        ["", "_default"].iter().any(|end| header.contains(&format!("USRSCTP_SYSCTL_DECL(sctp_{name}{end})")))
    };
    let missing: Vec<_> = names.iter().filter(|name| !declared(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The kernel's module has the names of its sysctls as strings.
#[test]
fn the_sysctls_are_those_of_the_kernels_module() {
    let versions =
        ["/usr/lib/uml/modules", "/lib/modules"].iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let module = |entry: std::fs::DirEntry| -> PathBuf { entry.path().join("kernel/net/sctp/sctp.ko") };
    let module = versions.flatten().flatten().map(module).find_map(|file| std::fs::read(file).ok());
    let Some(module) = module else { return skip("there is no SCTP module of a kernel") };
    let text = printed("Linux, sysctl");
    let names: Vec<_> = words(&text).filter_map(|word| word.strip_prefix("net.sctp.")).collect();
    assert_eq!(names.len(), 16);
    let holds = |name: &str| {
        let text = [b"\0", name.as_bytes(), b"\0"].concat();
        module.windows(text.len()).any(|bytes| bytes == text)
    };
    let missing: Vec<_> = names.iter().filter(|name| !holds(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
