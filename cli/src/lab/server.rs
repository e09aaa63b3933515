//! The connections to the server. Whoever is on this host can connect, also without the token, so their number and the
//! time for the head of a request are limited.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// The largest number of connections. Others wait until one ends.
const CONNECTIONS: usize = 256;
/// The time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// How long the server waits when the system gives it no connection, as when its descriptors are used up.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests for ever.
pub(super) async fn serve(listener: TcpListener, router: Router) -> Infallible {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&room).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            answer(stream, router).await;
            drop(place);
        });
    }
}

/// Answers the one request of a connection.
async fn answer(stream: TcpStream, router: Router) {
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false);
    // What goes wrong is the peer's business.
    let _ = connection.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}
