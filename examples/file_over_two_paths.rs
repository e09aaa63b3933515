//! A file from one endpoint to another over two paths, both on this host: 127.0.0.1 and 127.0.0.2. In the middle the
//! program makes the second path the primary, and says what each path has carried.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_net::service::{Inbox, send_file, serve};
use anabranch_net::{Carrier, Endpoint, Event, Options, PathState};

const SIZE: u64 = 20_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let file = from.path().join("a file");
    std::fs::write(&file, vec![7; SIZE as usize])?;

    let local = |hosts: [u8; 2]| hosts.map(|host| IpAddr::from([127, 0, 0, host])).to_vec();
    let server = Options { local: local([1, 2]), carrier: Carrier::Udp(0), ..Options::default() };
    let server = Endpoint::bind(server)?;
    let places: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
    let inbox = Inbox::new(to.path(), 2 * SIZE)?;
    let serving = tokio::spawn(async move {
        let association = server.accept().await.expect("nobody closes it before");
        serve(&association, Some(&inbox)).await
    });

    let options =
        Options { local: local([3, 4]), carrier: Carrier::Udp(0), listen: false, ..Options::default() };
    let client = Endpoint::bind(options)?;
    let association = client.connect(&places, 5000).await?;
    // The second path carries data once the peer has answered there.
    let mut events = association.events();
    while association.paths().iter().filter(|path| path.state == PathState::Active).count() < 2 {
        if let Event::Path(path, state) = events.recv().await? {
            println!("path {} is {state:?}", path.0);
        }
    }
    let switched = AtomicBool::new(false);
    let second = association.paths()[1].id;
    let progress = |given: u64, of: u64| {
        if given > of / 2 && !switched.swap(true, Ordering::Relaxed) {
            println!(
                "half is given: the second path is the primary now: {}",
                association.set_primary(second)
            );
        }
    };
    let sent = send_file(&association, &file, &progress).await?;
    for path in association.paths() {
        println!("{} → {}: {} bytes", path.local.ip, path.remote.ip, path.delivered);
    }
    association.close().await?;
    println!("{:?}", serving.await??);
    println!("{} bytes, SHA-256 {}", sent.size, sent.sha256);
    Ok(())
}
