//! A file that is given to the wrong command is told which one takes it.

use anabranch_lab::kind::Kind;

/// What `file` is, and the command that takes it.
pub(crate) fn told(kind: Kind, file: &str) -> String {
    match kind {
        Kind::Scenario => format!("{file}: this is a scenario; `anabranch run {file}` runs it"),
        Kind::Sweep => {
            format!("{file}: this is the file of a sweep; `anabranch sweep {file} --out DIR` runs it")
        }
        Kind::Failover => {
            format!("{file}: this asks for a failover; `anabranch advise failover {file}` answers it")
        }
        Kind::Policy => {
            format!("{file}: this asks for a policy; `anabranch advise policy {file}` answers it")
        }
    }
}
