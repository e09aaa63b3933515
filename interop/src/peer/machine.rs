//! The Linux kernel as a peer: Debian's user-mode-linux, an ordinary process that boots in two seconds on the host's
//! files, with `kernel.c` on its console. Two interfaces join it to a network namespace in which our end is.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::foreign::Process;

/// Our address on the first link, and the machine's.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
/// The machine's UDP port.
pub const UDP: u16 = 9899;

/// How long it may take to boot.
const BOOT: Duration = Duration::from_secs(180);
/// Where Debian's package has the modules of its kernel.
const MODULES: &str = "/usr/lib/uml/modules";

type Line = Box<dyn Fn(String) + Send>;

/// Running; it ends when it is dropped.
pub struct Machine {
    process: Mutex<Process>,
    /// Takes what the peer says.
    listener: Arc<Mutex<Option<Line>>>,
    network: Namespace,
}

impl Machine {
    /// Boots it with the peer `program`; says why that is not possible here.
    pub fn boot(program: &Path) -> Result<Machine, String> {
        if !Path::new(MODULES).is_dir() {
            return Err("linux.uml is missing (Debian: user-mode-linux)".to_owned());
        }
        let network = Namespace::new()?;
        let (ready, booted) = channel();
        let listener: Arc<Mutex<Option<Line>>> = Arc::new(Mutex::new(Some(Box::new(move |line| {
            // Once it has booted, nobody listens here any more.
            let _ = ready.send(line);
        }))));
        let to = Arc::clone(&listener);
        let line = move |line: String| {
            // The console says other things too.
            let said = line.strip_prefix('@').map(|said| said.trim_end().to_owned());
            let to = to.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(said), Some(to)) = (said, to.as_ref()) {
                to(said);
            }
        };
        let process = Process::start(&mut network.command(program), line)?;
        let machine = Machine { process: Mutex::new(process), listener, network };
        match booted.recv_timeout(BOOT) {
            Ok(said) if said == "ready" => Ok(machine),
            _ => Err("linux.uml does not boot here".to_owned()),
        }
    }

    /// Gives the peer a command.
    pub fn say(&self, command: &str) -> Result<(), String> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).say(command)
    }

    /// From now on, what the peer says goes to `line`.
    pub fn tell(&self, line: impl Fn(String) + Send + 'static) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(line));
    }

    /// Moves the calling thread, and the sockets that it opens, to the machine's network.
    pub fn enter(&self) {
        let file = File::open(format!("/run/netns/{}", self.network.name)).expect("the namespace is there");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter");
    }

    /// The links to the machine carry 20 Mbit/s, or what they can.
    pub fn limit(&self, limited: bool) -> Result<(), String> {
        for link in 0..2 {
            let name = &self.network.name;
            run(&match limited {
                true => format!(
                    "tc -n {name} qdisc add dev tap{link} root tbf rate 20mbit burst 15000 limit 60000"
                ),
                false => format!("tc -n {name} qdisc delete dev tap{link} root"),
            })?;
        }
        Ok(())
    }

    /// Drops all that goes or comes by a link.
    pub fn cut(&self, link: usize) {
        let device = format!("tap{link}");
        let chain = |hook| format!("add chain inet cut {hook} {{ type filter hook {hook} priority 0; }}");
        let drop = |hook, which| format!("add rule inet cut {hook} {which} {device} counter drop");
        let cut = [
            "add table inet cut".to_owned(),
            chain("input"),
            chain("output"),
            drop("input", "iifname"),
            drop("output", "oifname"),
        ];
        let output = self.nft(&cut.join("; "));
        assert!(output.status.success(), "{cut:?}: {output:?}");
    }

    /// The link that is cut carries packets again, if there is one.
    pub fn mend(&self) {
        self.nft("delete table inet cut");
    }

    fn nft(&self, commands: &str) -> std::process::Output {
        let mut nft = Command::new("ip");
        let output = nft.args(["netns", "exec", &self.network.name, "nft"]).arg(commands).output();
        output.expect("ip can be run")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.say("quit");
        // It powers off by itself, or is killed with its process.
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A network namespace with two interfaces for the machine.
struct Namespace {
    name: String,
}

impl Namespace {
    fn new() -> Result<Namespace, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make network namespaces".to_owned());
        }
        let made = Namespace { name: format!("anabranch-{:x}-linux", std::process::id()) };
        run(&format!("ip netns add {}", made.name))?;
        let on = |command: &str| run(&format!("ip -n {} {command}", made.name));
        on("link set lo up")?;
        for link in 0..2 {
            on(&format!("tuntap add tap{link} mode tap"))?;
            on(&format!("address add 10.77.{}.1/24 dev tap{link}", link + 1))?;
            on(&format!("link set tap{link} up"))?;
        }
        Ok(made)
    }

    /// The machine, not started yet.
    fn command(&self, program: &Path) -> Command {
        let init = concat!(env!("CARGO_MANIFEST_DIR"), "/machine.sh");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "linux.uml", "mem=256M", "root=/dev/root"]);
        command.args(["rootfstype=hostfs", "ro", "quiet", "con=null", "con0=fd:0,fd:1"]);
        command.arg(format!("init={init}")).arg(format!("program={}", program.display()));
        for link in 0..2 {
            command.arg(format!("vec{link}:transport=tap,ifname=tap{link},depth=64"));
        }
        command.stderr(std::process::Stdio::null());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = run(&format!("ip netns delete {}", self.name));
    }
}

fn run(command: &str) -> Result<(), String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
