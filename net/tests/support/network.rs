//! Networks in a box: namespaces joined by veth pairs, made for one test and removed after it. For root only.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real networks have real clocks")]

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Two hosts, `a` and `b`, joined by two links of 20 Mbit/s: 10.77.1.0/24 and 10.77.2.0/24; or each joined by
/// two links to a router.
pub struct Network {
    names: Vec<String>,
    /// For the names of interfaces, which have no room for more.
    number: String,
}

static MADE: AtomicU32 = AtomicU32::new(0);

/// Bit/s of each link, and bytes of the queue before it. A token bucket counts the Ethernet header of 14 bytes.
pub const RATE: u64 = 20_000_000;
pub const QUEUE: u64 = 75_000;
/// Bytes of the queue that a link which rested takes at once. The kernel looks at a bucket when a timer wakes it:
/// what comes later than the 6 ms in which these are sent would make the link slower than `RATE`.
const BUCKET: u64 = 15_000;

impl Network {
    /// `None`, after a line that says why, where such a network cannot be made.
    pub fn new(test: &str) -> Option<Arc<Network>> {
        let network = Network::hosts(test, &["a", "b"])?;
        (0..2).for_each(|link| network.link(link));
        network.limit_rates();
        Some(network)
    }

    /// Joins the two hosts by a link.
    fn link(&self, link: usize) {
        self.join([0, 1], [self.interface(0, link), self.interface(1, link)]);
        for host in 0..2 {
            self.address(host, &self.interface(host, link), &address(host, link).to_string());
        }
    }

    /// The same two hosts with a router, host 2, between them: its links to `a` are 10.77.1.0/24 and 10.77.2.0/24,
    /// to `b` 10.77.11.0/24 and 10.77.12.0/24. Each host has one default route, by its first link; on the second
    /// the router answers ARP for all.
    pub fn routed(test: &str) -> Option<Arc<Network>> {
        let network = Network::hosts(test, &["a", "b", "r"])?;
        network.on(2, "sysctl -q -w net.ipv4.ip_forward=1");
        for (host, link) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (here, there) = (network.interface(host, link), network.router_side(host, link));
            network.join([host, 2], [here.clone(), there.clone()]);
            network.address(host, &here, &routed_address(host, link).to_string());
            network.address(2, &there, &format!("10.77.{}.254", host * 10 + link + 1));
            network.on(2, &format!("sysctl -q -w net.ipv4.conf.{there}.proxy_arp=1"));
            network.on(2, &format!("sysctl -q -w net.ipv4.neigh.{there}.proxy_delay=0"));
        }
        for host in 0..2 {
            let (device, router) = (network.interface(host, 0), format!("10.77.{}.254", host * 10 + 1));
            network.on(host, &format!("ip route add default via {router} dev {device}"));
        }
        network.limit_rates();
        Some(network)
    }

    fn hosts(test: &str, hosts: &[&str]) -> Option<Arc<Network>> {
        if let Err(why) = possible() {
            skip(test, &why);
            return None;
        }
        let number = format!("{:x}{:x}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = hosts.iter().map(|host| format!("anabranch-{number}-{host}")).collect();
        let network = Network { names, number };
        for host in 0..hosts.len() {
            run(&format!("ip netns add {}", network.names[host]));
            network.on(host, "ip link set lo up");
        }
        Some(Arc::new(network))
    }

    fn join(&self, hosts: [usize; 2], devices: [String; 2]) {
        let [here, there] = hosts.map(|host| &self.names[host]);
        run(&format!(
            "ip -n {here} link add {} type veth peer name {} netns {there}",
            devices[0], devices[1]
        ));
    }

    fn address(&self, host: usize, device: &str, address: &str) {
        self.on(host, &format!("ip address add {address}/24 dev {device}"));
        self.on(host, &format!("ip link set {device} up"));
    }

    /// The router's interface to a host's link.
    pub fn router_side(&self, host: usize, link: usize) -> String {
        format!("r{}{link}x{}", ["a", "b"][host], self.number)
    }

    pub fn interface(&self, host: usize, link: usize) -> String {
        format!("{}{link}x{}", ["a", "b"][host], self.number)
    }

    /// Both hosts' links carry `RATE`, and hold `QUEUE` bytes that wait.
    fn limit_rates(&self) {
        for (host, link) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let device = self.interface(host, link);
            self.on(
                host,
                &format!(
                    "tc qdisc add dev {device} root tbf rate {RATE}bit burst {BUCKET} limit {}",
                    QUEUE - BUCKET
                ),
            );
        }
    }

    /// Runs a command on a host.
    pub fn on(&self, host: usize, command: &str) -> String {
        run(&format!("ip netns exec {} {command}", self.names[host]))
    }

    /// A command that runs on a host, not started yet.
    pub fn command(&self, host: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[host], program]);
        command
    }

    /// Moves the calling thread, and the sockets that it opens, to a host.
    pub fn enter(&self, host: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[host])).expect("the namespace is there");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter");
    }

    /// Cuts a link, or mends it; when that took effect.
    pub fn cut(&self, link: usize, how: Cut, mended: bool) -> Instant {
        let state = if mended { "up" } else { "down" };
        let before = Instant::now();
        match how {
            Cut::Dropped => {
                self.drop_all(1, link, mended);
                let effect = before + before.elapsed() / 2;
                // What arrived before is acknowledged before the way back is cut as well: an acknowledgement
                // that comes late, by the other link, would clear the error count.
                if !mended {
                    std::thread::sleep(Duration::from_millis(50));
                }
                self.drop_all(0, link, mended);
                return effect;
            }
            Cut::AtOnce => self.drop_both_ways(link, mended),
            Cut::FarEnd => self.on(1, &format!("ip link set {} {state}", self.interface(1, link))),
            Cut::OwnEnd => self.on(0, &format!("ip link set {} {state}", self.interface(0, link))),
            Cut::Mtu(most) => {
                let mtu = if mended { 1500 } else { most };
                self.on(0, &format!("ip link set {} mtu {mtu}", self.interface(0, link)))
            }
            // The other end of the pair goes with it.
            Cut::Removed if !mended => self.on(0, &format!("ip link delete {}", self.interface(0, link))),
            Cut::Removed => {
                self.link(link);
                String::new()
            }
        };
        before + before.elapsed() / 2
    }

    /// Drops every `every`-th packet that comes to the second host by a link.
    #[allow(dead_code, reason = "not every test file loses packets")]
    pub fn lose(&self, link: usize, every: u32) {
        let (name, last) = (self.interface(1, link), every - 1);
        let drop =
            format!("add rule inet loss in iifname {name} numgen inc mod {every} == {last} counter drop");
        let chain = "add chain inet loss in { type filter hook input priority 0; }";
        let commands = format!("add table inet loss; {chain}; {drop}");
        let output = self.command(1, "nft").arg(&commands).output().expect("nft is installed");
        assert!(output.status.success(), "{commands}: {output:?}");
    }

    /// Drops all that comes to a host by a link, or no longer.
    fn drop_all(&self, host: usize, link: usize, mended: bool) {
        let drop = format!("add rule inet cut in iifname {} counter drop", self.interface(host, link));
        let chain = "add chain inet cut in { type filter hook input priority 0; }";
        self.change_cut(host, mended, &format!("add table inet cut; {chain}; {drop}"));
    }

    /// Drops all that comes to the second host by a link or leaves it there, from the same moment on, or no longer.
    fn drop_both_ways(&self, link: usize, mended: bool) -> String {
        let name = self.interface(1, link);
        let chains = [("in", "input", "iifname"), ("out", "output", "oifname")].map(|(chain, hook, side)| {
            format!("add chain inet cut {chain} {{ type filter hook {hook} priority 0; }}; add rule inet cut {chain} {side} {name} drop")
        });
        self.change_cut(1, mended, &format!("add table inet cut; {}", chains.join("; ")));
        String::new()
    }

    fn change_cut(&self, host: usize, mended: bool, cut: &str) {
        let commands = if mended { "delete table inet cut" } else { cut };
        let output = self.command(host, "nft").arg(commands).output().expect("nft is installed");
        assert!(output.status.success(), "{commands}: {output:?}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// How a link fails, as host `a` sees it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Silently: something in between drops all. What arrived before is acknowledged.
    Dropped,
    /// Silently, both ways from the same moment on: what arrived before may never be acknowledged by this link.
    AtOnce,
    /// Silently: the interface at the other end is down.
    FarEnd,
    /// Its own interface is down.
    OwnEnd,
    /// Its own interface carries packets of at most so many bytes.
    Mtu(u32),
    /// The interfaces at both ends are removed, and made again under the same names, without a limit of their rate.
    Removed,
}

pub fn address(host: usize, link: usize) -> IpAddr {
    [10, 77, link as u8 + 1, host as u8 + 1].into()
}

pub fn routed_address(host: usize, link: usize) -> IpAddr {
    [10, 77, (host * 10 + link + 1) as u8, host as u8 + 1].into()
}

/// Whether this machine lets us make networks; else why not.
fn possible() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can make network namespaces".to_owned());
    }
    for tool in ["ip", "tc", "nft"] {
        Command::new(tool).arg("-V").output().map_err(|_| format!("{tool} is not installed"))?;
    }
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let probe = format!("anabranch-{:x}{number:x}-probe", std::process::id());
    let made = Command::new("ip").args(["netns", "add", &probe]).output();
    let _ = Command::new("ip").args(["netns", "delete", &probe]).output();
    match made {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("no network namespace can be made here".to_owned()),
    }
}

fn run(command: &str) -> String {
    let mut words = command.split(' ');
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).output().expect("it is installed");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Says that the test `name` is not run, and why. With ANABRANCH_REQUIRE=all that is a failure.
pub fn skip(name: &str, why: &str) {
    assert!(std::env::var("ANABRANCH_REQUIRE").as_deref() != Ok("all"), "skipped: {name}: {why}");
    // Not `eprintln!`, which is captured while a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}
