//! Sends a message to `echo_server` and prints what comes back:
//! `cargo run -p anabranch-examples --example echo_client -- 127.0.0.1:9899 'a message'`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_net::{Endpoint, Message, Options};
use tokio::time::timeout;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let to: SocketAddr = arguments.next().unwrap_or("127.0.0.1:9899".to_owned()).parse()?;
    let text = arguments.next().unwrap_or("hello".to_owned());

    let endpoint = Endpoint::bind(Options::towards(&[to.ip()])?)?;
    // Without a limit an answer is waited for as long as RFC 9260 says: minutes.
    let association = timeout(Duration::from_secs(10), endpoint.connect(&[to], 5000)).await??;
    association.send(Message { payload: text.into(), ..Message::default() }).await?;
    let answer = association.recv().await?.ok_or("no answer")?.into_bytes();
    println!("{}", String::from_utf8_lossy(&answer));
    association.close().await?;
    endpoint.close().await;
    Ok(())
}
