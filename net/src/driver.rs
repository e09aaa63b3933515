//! The task that drives an endpoint.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tokio::time::sleep_until;

use crate::core::{Core, Shared};
use crate::interface::Watch;
use crate::socket::Buffers;

/// The number of system calls that read one socket before the other sockets get their turn.
const TURN: usize = 4;

/// The reason for which the driver woke.
enum Woken {
    /// A socket has packets, or accepts packets again.
    Sockets,
    /// A user has called, or a deadline has passed.
    Called,
    /// Interfaces, addresses or routes have changed.
    Interfaces,
}

/// Tells the users that are left that the driver has ended.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Drives the endpoint until no user and no association is left.
pub(crate) async fn drive(shared: Arc<Shared>) {
    let _running = Running(&shared);
    let watch = Watch::new().ok();
    let mut buffers = Buffers::new();
    loop {
        let woken = wait(&shared, watch.as_ref()).await;
        if work(&shared, &woken, &mut buffers) {
            return;
        }
        // Reading and writing alternate, even if the sockets are never empty.
        tokio::task::yield_now().await;
    }
}

/// Does everything that is due. Returns whether the driver should end.
fn work(shared: &Shared, woken: &Woken, buffers: &mut Buffers) -> bool {
    let mut core = shared.lock();
    let now = core.now();
    match woken {
        Woken::Interfaces => core.look_at_all(shared, false, now),
        _ if core.look_again().is_some_and(|at| at <= Instant::now()) => core.look_at_all(shared, true, now),
        _ => {}
    }
    if core.orphans_due().is_some_and(|at| at <= Instant::now()) {
        core.check_orphans(shared, now);
    }
    receive(shared, &mut core, buffers);
    core.take_errors(shared);
    let now = core.now();
    core.drain(shared, now);
    core.flush(shared, now);
    shared.is_closing() && core.is_idle()
}

/// Reads the packets that have arrived.
fn receive(shared: &Shared, core: &mut Core, buffers: &mut Buffers) {
    let now = core.now();
    for socket in &shared.sockets {
        for _ in 0..TURN {
            let taken = socket.receive(buffers, |datagram| core.arrived(shared, datagram, now));
            if taken.is_none() {
                break;
            }
            core.traffic.receives += 1;
        }
    }
}

/// Waits for the next reason to work.
async fn wait(shared: &Shared, watch: Option<&Watch>) -> Woken {
    let (wake, open, setting_up) = {
        let core = shared.lock();
        let timer = core.wake.map(|at| core.instant(at));
        let wake =
            [timer, core.look_again(), core.orphans_due(), core.ask_again()].into_iter().flatten().min();
        let sockets = shared.sockets.iter().enumerate();
        let open = sockets.map(|(index, socket)| (socket.open(), core.waits_for_room(index)));
        (wake, open.collect::<Vec<_>>(), core.is_setting_up())
    };
    let sockets = poll_fn(|context| {
        let mut ready = Poll::Pending;
        for (index, (socket, full)) in open.iter().enumerate() {
            if socket.poll_readable(context).is_ready() {
                ready = Poll::Ready(());
            }
            if *full && socket.poll_writable(context).is_ready() {
                let mut core = shared.lock();
                let now = core.now();
                core.writable(shared, index, now);
                ready = Poll::Ready(());
            }
        }
        ready
    });
    // While an association is being set up, errors matter at once. At other times they are read together with
    // packets.
    let mut errors: Vec<_> = match setting_up {
        true => open.iter().map(|(socket, _)| Box::pin(socket.failed())).collect(),
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
