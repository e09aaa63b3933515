//! The commands that need Linux, on every other system: each says so.

use std::ffi::OsString;

use crate::output::fail;

/// Whatever follows the command; the answer is the same.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

fn refused(command: &str) -> u8 {
    fail(format!(
        "`anabranch {command}` needs Linux: it uses what other systems do not have (netlink, network namespaces, the error queue of a socket). \
         Scenarios, sweeps, publications, packet scripts, captures and the lab run here"
    ))
}

macro_rules! commands {
    ($($command:ident),*) => {
        $(
            pub(crate) mod $command {
                pub(crate) use super::Arguments;

                pub(crate) fn $command(_: &Arguments) -> u8 {
                    super::refused(stringify!($command))
                }
            }
        )*
    };
}
commands!(shell, serve, send, replay, perf);

/// The commands for real networks.
pub(crate) mod net {
    pub(crate) use super::{perf, replay, send, serve};
}
