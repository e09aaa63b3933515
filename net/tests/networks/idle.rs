//! Endpoints whose interfaces are down: they sleep, and notice that an interface is back.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anabranch_net::{Association, Carrier, Endpoint, Message, Options, PathReport, PathState};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

use crate::network::{Network, address};
use crate::{ms, transfer::in_runtime};

const PORT: u16 = 5000;
const UDP: u16 = 9899;

fn endpoint(host: usize) -> Endpoint {
    let local = (0..2).map(|link| address(host, link)).collect();
    let carrier = Carrier::Udp(if host == 1 { UDP } else { 0 });
    Endpoint::bind(Options { local, carrier, ..Options::default() }).expect("sockets")
}

/// Runs `client` on the first host with an association to the second one, which reads all and closes.
fn with_association(network: &Network, client: impl AsyncFnOnce(Endpoint, Association) + Send) {
    let (ready, listening) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            network.enter(1);
            in_runtime(async {
                let endpoint = endpoint(1);
                ready.send(()).expect("the client waits");
                let association = endpoint.accept().await.expect("it is open");
                while association.recv().await.expect("it lives").is_some() {}
                endpoint.close().await;
            });
        });
        scope.spawn(move || {
            network.enter(0);
            listening.recv().expect("the listener is there");
            in_runtime(async {
                let endpoint = endpoint(0);
                let to = [0, 1].map(|link| (address(1, link), UDP).into());
                let association = endpoint.connect(&to, PORT).await.expect("it comes up");
                client(endpoint, association).await;
            });
        });
    });
}

async fn until(association: &Association, so: impl Fn(&PathReport) -> bool) {
    while !association.paths().iter().all(&so) {
        sleep(ms(10)).await;
    }
}

/// The processor's time that this thread takes in a second in which its user waits.
async fn work_in_a_second() -> Duration {
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = used();
    sleep(Duration::from_secs(1)).await;
    used() - before
}

/// An interface is down when the last association ends: nobody has to be told when it is back.
#[test]
fn an_endpoint_without_associations_does_not_wait_for_its_interface() {
    let name = "an_endpoint_without_associations_does_not_wait_for_its_interface";
    let Some(network) = Network::new(name) else { return };
    with_association(&network, async |endpoint, association| {
        until(&association, |path| path.state == PathState::Active).await;
        network.on(0, &format!("ip link set {} down", network.interface(0, 0)));
        until(&association, |path| path.up == (path.local.ip == address(0, 1))).await;
        association.close().await.expect("by the other link");
        drop(association);
        let work = work_in_a_second().await;
        assert!(work < ms(100), "{work:?}");
        endpoint.close().await;
    });
}

/// Both interfaces go down, and the second path could not be verified, so both paths leave from the second address when
/// it goes down too.
#[test]
fn an_endpoint_without_a_network_sleeps_until_one_is_back() {
    let name = "an_endpoint_without_a_network_sleeps_until_one_is_back";
    let Some(network) = Network::new(name) else { return };
    network.lose(1, 1);
    with_association(&network, async |endpoint, association| {
        let set = |state: &str| {
            for link in 0..2 {
                network.on(0, &format!("ip link set {} {state}", network.interface(0, link)));
            }
        };
        set("down");
        until(&association, |path| !path.up).await;
        let work = work_in_a_second().await;
        assert!(work < ms(100), "{work:?}");
        set("up");
        until(&association, |path| path.up).await;
        let payload = b"here again".as_slice().into();
        association.send(Message { payload, ..Message::default() }).await.expect("it lives");
        association.close().await.expect("it ends gracefully");
        endpoint.close().await;
    });
}
