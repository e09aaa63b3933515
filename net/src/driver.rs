//! The task that drives an endpoint.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tokio::time::sleep_until;

use crate::core::{Core, Shared};
use crate::interface::Watch;
use crate::socket::Buffers;

/// System calls that read one socket before the others have their turn.
const TURN: usize = 4;

/// What the driver waited for.
enum Woken {
    /// Sockets have packets, or take packets again.
    Sockets,
    /// A user has called, or the time has come.
    Called,
    /// Interfaces, addresses or routes have changed.
    Interfaces,
}

/// Drives the endpoint until no user and no association is left.
pub(crate) async fn drive(shared: Arc<Shared>) {
    let watch = Watch::new().ok();
    let mut buffers = Buffers::new();
    loop {
        let woken = wait(&shared, watch.as_ref()).await;
        if work(&shared, &woken, &mut buffers) {
            return;
        }
        // Readers and writers have their turn, also while the sockets are never empty.
        tokio::task::yield_now().await;
    }
}

/// Does all that there is to do; whether that was the last of it.
fn work(shared: &Shared, woken: &Woken, buffers: &mut Buffers) -> bool {
    let mut core = shared.lock();
    let now = core.now();
    match woken {
        Woken::Interfaces => core.look_at_all(shared, false, now),
        _ if core.look_again().is_some_and(|at| at <= Instant::now()) => core.look_at_all(shared, true, now),
        _ => {}
    }
    receive(shared, &mut core, buffers);
    core.take_errors(shared);
    let now = core.now();
    core.drain(shared, now);
    core.flush(shared, now);
    shared.is_closing() && core.is_idle()
}

/// Takes what has arrived.
fn receive(shared: &Shared, core: &mut Core, buffers: &mut Buffers) {
    let now = core.now();
    for socket in &shared.sockets {
        for _ in 0..TURN {
            let taken = socket.receive(buffers, |packet| core.arrived(shared, packet, now));
            if taken.is_none() {
                break;
            }
            core.traffic.receives += 1;
        }
    }
}

/// Waits for something to do.
async fn wait(shared: &Shared, watch: Option<&Watch>) -> Woken {
    let (wake, full, setting_up) = {
        let core = shared.lock();
        let timer = core.wake.map(|at| core.instant(at));
        let wake = [timer, core.look_again()].into_iter().flatten().min();
        let full: Vec<bool> = (0..shared.sockets.len()).map(|index| core.is_full(index)).collect();
        (wake, full, core.is_setting_up())
    };
    let sockets = poll_fn(|context| {
        let mut ready = Poll::Pending;
        for (index, socket) in shared.sockets.iter().enumerate() {
            if socket.poll_readable(context).is_ready() {
                ready = Poll::Ready(());
            }
            if full[index] && socket.poll_writable(context).is_ready() {
                let mut core = shared.lock();
                let now = core.now();
                core.writable(shared, index, now);
                ready = Poll::Ready(());
            }
        }
        ready
    });
    // Errors matter at once while somebody waits for an association; at other times they are taken with what arrives.
    let mut errors: Vec<_> = match setting_up {
        true => shared.sockets.iter().map(|socket| Box::pin(socket.failed())).collect(),
        false => Vec::new(),
    };
    let failed = poll_fn(|context| {
        let failed = errors.iter_mut().any(|error| error.as_mut().poll(context).is_ready());
        if failed { Poll::Ready(()) } else { Poll::Pending }
    });
    let timer = async {
        match wake {
            Some(at) => sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    };
    let changed = async {
        match watch {
            Some(watch) => watch.changed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = changed => Woken::Interfaces,
        () = sockets => Woken::Sockets,
        () = failed => Woken::Sockets,
        () = shared.driver.notified() => Woken::Called,
        () = timer => Woken::Called,
    }
}
