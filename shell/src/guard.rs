//! Ends the programs of a session that cannot end them itself, because it was killed.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::namespace::Namespace;

/// It waits for a line from the session. If its input ends without one, it kills every process in the session's network
/// namespaces.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r over && exit
found=yes
while [ "$found" ]; do
    found=
    for process in /proc/[0-9]*; do
        namespace=$(readlink "$process/ns/net") || continue
        case " $* " in
        *" $namespace "*) found=yes; kill -KILL "${process#/proc/}" ;;
        esac
    done
    sleep 0.1
done
"#;

/// A process that outlives the session. It holds the namespaces open: the system gives their numbers to new ones when
/// they are gone, and then the script would kill the programs of another session. Where it cannot be started, a killed
/// session leaves its programs.
pub(crate) struct Guard(Option<Child>);

impl Guard {
    pub(crate) fn begin(namespaces: &[Namespace]) -> Guard {
        // These are inherited, unlike the files themselves. They are closed here before another program starts.
        let held: Vec<_> = namespaces.iter().map(Namespace::held).collect();
        let guard = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args(namespaces.iter().map(|namespace| &namespace.id))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are for the session.
            .process_group(0)
            .spawn();
        drop(held);
        Guard(guard.ok())
    }
}

impl Drop for Guard {
    /// The session has ended its programs.
    fn drop(&mut self) {
        if let Some(guard) = &mut self.0 {
            let _ = guard.stdin.take().map(|mut input| input.write_all(b"over\n"));
            let _ = guard.wait();
        }
    }
}
