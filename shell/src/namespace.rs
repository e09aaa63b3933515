//! Network namespaces: one a node, with a TUN device for each of its interfaces.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use anabranch_sim::Interface;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Uid, getgid, getuid};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::ShellError;

/// Names that the system does not give to devices: it uses them itself.
const RESERVED: [&str; 3] = ["lo", "all", "default"];

/// The longest name of a device.
const LONGEST_NAME: usize = 15;
/// Packets that a device holds for us.
const DEVICE_QUEUE: u32 = 5000;
/// The routing table of a node's first interface; the others follow.
const FIRST_TABLE: usize = 100;

/// A node's network namespace.
pub(crate) struct Namespace {
    file: File,
    /// What /proc/PID/ns/net of its processes says.
    pub(crate) id: String,
    devices: Vec<String>,
}

/// Moves this process into a user namespace in which it may make network namespaces, unless it is root.
pub(crate) fn become_able() -> Result<(), ShellError> {
    if Uid::effective().is_root() {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    let enter = || -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    enter().map_err(ShellError::Namespace)
}

impl Namespace {
    /// The namespace of `node`, and its devices by the numbers of their interfaces.
    pub(crate) fn new(
        node: &str,
        interfaces: &[Interface],
    ) -> Result<(Namespace, Vec<(usize, SyncDevice)>), ShellError> {
        let own: Vec<usize> = (0..interfaces.len()).filter(|i| interfaces[*i].node == node).collect();
        let devices = names(own.iter().map(|i| interfaces[*i].link.as_str()));
        let make = || -> Result<_, ShellError> {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| ShellError::Namespace(error.into()))?;
            let here = "/proc/thread-self/ns/net";
            let file = File::open(here).map_err(ShellError::Namespace)?;
            let id = fs::read_link(here).map_err(ShellError::Namespace)?.display().to_string();
            let made = own.iter().zip(&devices).map(|(interface, name)| Ok((*interface, device(name)?)));
            let made = made.collect::<Result<Vec<_>, ShellError>>()?;
            let commands = ["-4", "-6"].into_iter().zip(commands(&own, &devices, interfaces));
            for (family, commands) in commands.filter(|(_, commands)| !commands.is_empty()) {
                ip(family, &commands)
                    .map_err(|error| ShellError::Addresses { node: node.to_owned(), error })?;
            }
            Ok((file, id, made))
        };
        // A thread of its own: it stays in the namespace, and ends.
        let made = thread::scope(|scope| scope.spawn(make).join());
        let (file, id, made) = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((Namespace { file, id, devices }, made))
    }

    /// The namespace for a process that is started now: as long as that process lives, it exists.
    pub(crate) fn held(&self) -> io::Result<OwnedFd> {
        Ok(rustix::io::dup(&self.file)?)
    }

    /// Does something in the namespace.
    pub(crate) fn enter<T: Send>(&self, task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let within = || {
            setns(&self.file, CloneFlags::CLONE_NEWNET)?;
            task()
        };
        let done = thread::scope(|scope| scope.spawn(within).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Packets that programs sent and the devices dropped, because we did not read them in time.
    pub(crate) fn dropped(&self) -> u64 {
        let listing = || Command::new("ip").args(["-json", "-statistics", "link"]).output();
        let Ok(listing) = self.enter(listing) else { return 0 };
        let links: Vec<serde_json::Value> = serde_json::from_slice(&listing.stdout).unwrap_or_default();
        let ours = |link: &&serde_json::Value| {
            link["ifname"].as_str().is_some_and(|name| self.devices.iter().any(|device| device == name))
        };
        links.iter().filter(ours).filter_map(|link| link["stats64"]["tx"]["dropped"].as_u64()).sum()
    }
}

fn device(name: &str) -> Result<SyncDevice, ShellError> {
    let made = DeviceBuilder::new().name(name).build_sync();
    let made = made.and_then(|device| device.set_nonblocking(true).map(|()| device));
    made.map_err(|error| ShellError::Device { device: name.to_owned(), error })
}

/// Names of devices like those of the links, as far as the system allows them.
fn names<'a>(links: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::from(RESERVED.map(str::to_owned));
    let name = |(number, link): (usize, &str)| {
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut name: String = link.chars().filter(allowed).take(LONGEST_NAME).collect();
        if name.is_empty() || !taken.insert(name.clone()) {
            name = format!("link{number}");
            taken.insert(name.clone());
        }
        name
    };
    links.enumerate().map(name).collect()
}

/// The commands of `ip -4` and of `ip -6` for a namespace: addresses, and routes to every other host. A packet with the
/// source address of an interface leaves by that interface. A packet without a source address leaves by the interface
/// with the shortest way.
fn commands(own: &[usize], devices: &[String], interfaces: &[Interface]) -> [String; 2] {
    let mut both = [vec!["link set lo up".to_owned()], Vec::new()];
    for (number, (i, device)) in own.iter().zip(devices).enumerate() {
        let Interface { address, prefix, mtu, .. } = &interfaces[*i];
        let (whole, quiet) = if address.is_ipv6() { (128, " nodad") } else { (32, "") };
        let lines = &mut both[usize::from(address.is_ipv6())];
        lines.push(format!("link set dev {device} mtu {mtu} txqueuelen {DEVICE_QUEUE} up"));
        lines.push(format!("address add {address}/{prefix} dev {device}{quiet}"));
        let table = FIRST_TABLE + number;
        lines.push(format!("route add default dev {device} table {table}"));
        lines.push(format!("rule add from {address}/{whole} lookup {table}"));
        for (other, hops) in &interfaces[*i].reaches {
            let metric = 100 * hops + number;
            let there = interfaces[*other].address;
            lines.push(format!("route add {there}/{whole} dev {device} src {address} metric {metric}"));
        }
    }
    both.map(|lines| lines.join("\n"))
}

/// Runs `ip` with a list of commands of this family. The error is its message if it refused one.
fn ip(family: &str, commands: &str) -> Result<(), String> {
    let run = || {
        let mut child = Command::new("ip")
            .args([family, "-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(commands.as_bytes())?;
        }
        child.wait_with_output()
    };
    let output = run().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it failed").to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_like_links_as_far_as_the_system_allows() {
        let links = ["wifi", "a link / with a long name", "lo", "wifi", "…"];
        assert_eq!(names(links.into_iter()), ["wifi", "alinkwithalongn", "link2", "link3", "link4"]);
        assert_eq!(names(["default", "all"].into_iter()), ["link0", "link1"]);
    }
}
