//! `[flow.mptcp]` as TOML.

use toml::{Table, Value};

use super::{policy, put, size, time};
use crate::scenario::{Mptcp, PathManager, Priority, Reinjection};

/// The parameters of a connection, and those of its subflows.
pub(super) fn connection(mptcp: &Mptcp) -> Table {
    let mut table = super::connection(&mptcp.tcp);
    if let Some(primary) = &mptcp.primary {
        put(&mut table, "primary", primary.as_str());
    }
    put(&mut table, "receive_buffer", size(mptcp.receive_buffer));
    if let Some(bytes) = mptcp.send_buffer {
        put(&mut table, "send_buffer", size(bytes));
    }
    put(&mut table, "new", policy(&mptcp.new_data));
    let opportunistic = mptcp.reinjection == Reinjection::Opportunistic;
    put(&mut table, "reinjection", if opportunistic { "opportunistic" } else { "off" });
    put(&mut table, "penalise", mptcp.penalise);
    put(&mut table, "reinject_on_timeout", mptcp.reinject_on_timeout);
    let retrans = mptcp.pf_max_retrans.map_or(Value::from("off"), |count| i64::from(count).into());
    put(&mut table, "pf_max_retrans", retrans);
    let mesh = mptcp.path_manager == PathManager::FullMesh;
    put(&mut table, "path_manager", if mesh { "fullmesh" } else { "one-per-interface" });
    put(&mut table, "backup", mptcp.backup.clone());
    put(&mut table, "priorities", Value::Array(mptcp.priorities.iter().map(priority).collect()));
    put(&mut table, "server_multipath", mptcp.server_multipath);
    table
}

fn priority(priority: &Priority) -> Value {
    let mut table = Table::new();
    put(&mut table, "at", time(priority.at));
    put(&mut table, "path", priority.path.as_str());
    put(&mut table, "backup", priority.backup);
    table.into()
}
