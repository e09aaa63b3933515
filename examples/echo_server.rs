//! Sends back what it receives: `cargo run -p anabranch-examples --example echo_server -- 127.0.0.1`.

use std::error::Error;
use std::net::IpAddr;

use anabranch_net::{Association, Carrier, Endpoint, Message, Options, UDP_PORT};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let local: IpAddr = arguments.next().unwrap_or("127.0.0.1".to_owned()).parse()?;
    let udp: u16 = arguments.next().map_or(Ok(UDP_PORT), |port| port.parse())?;
    let options = Options { local: vec![local], carrier: Carrier::Udp(udp), ..Options::default() };
    let endpoint = Endpoint::bind(options)?;
    for (place, _) in endpoint.local() {
        println!("listening at {place}");
    }
    while let Some(association) = endpoint.accept().await {
        tokio::spawn(echo(association));
    }
    Ok(())
}

/// Until the peer has ended the association, or is lost.
async fn echo(association: Association) {
    while let Ok(Some(delivery)) = association.recv().await {
        // A message that is larger than the receive buffer comes, and goes back, in parts.
        let (stream, ppid) = (delivery.stream, delivery.ppid);
        let message = Message { stream, ppid, payload: delivery.into_bytes(), ..Message::default() };
        if association.send(message).await.is_err() {
            return;
        }
    }
}
