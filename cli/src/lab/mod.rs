//! `anabranch lab`: a playground in the browser, served on loopback only.
//!
//! The page edits scenarios. Every run, explanation and comparison is a process of this same program with limits on
//! time, memory and disk. So its errors are those of the command line, and no run can harm the server. The address
//! has a random token. Requests for another host name are refused, so that a page of another site cannot reach the
//! server through DNS. Nothing but scenarios can be run.

mod answer;
mod process;
mod server;
mod workshop;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sim::scenario::{duration, size};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::FAILED;
use crate::output::{fail, print};
use crate::runtime::{Interrupts, in_runtime};
use process::Limits;
use workshop::Workshop;

/// The largest request in bytes: two scenarios, and what JSON adds to them.
const REQUEST: usize = 1 << 20;

/// The arguments of `anabranch lab`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Scenarios to offer in addition to the built-in ones
    file: Vec<PathBuf>,
    /// The TCP port on 127.0.0.1 [default: any free one]
    #[arg(
        long,
        value_name = "PORT",
        allow_negative_numbers = true,
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
    /// The time limit of a run
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "60 s", value_parser = duration)]
    time: Duration,
    /// The memory limit of a run (Linux only)
    #[arg(long, value_name = "SIZE", default_value = "4 GB", value_parser = size)]
    memory: u64,
    /// Print the address as a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
The page edits scenarios, runs them, shows their charts and packets, compares two runs, and opens the publications. It is
served on 127.0.0.1 only, and needs no network and no installation. It keeps the last eight runs until it ends. Scenarios
can use the built-in recorded links as traces/NAME.

Examples:
  anabranch lab
  anabranch lab my.toml --port 8080
  anabranch lab --time '10 s' --memory '1 GB'

Ctrl-C ends it, and the runs that are under way.

Exit status: 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP, 2 the input was wrong, 1 anything else.";

/// Serves until it is interrupted, and returns the exit status.
pub(crate) fn lab(arguments: &Arguments) -> u8 {
    let limits = Limits { time: arguments.time, memory: arguments.memory };
    let workshop = match Workshop::open(&arguments.file, limits) {
        Ok(workshop) => Arc::new(workshop),
        Err(status) => return status,
    };
    in_runtime(async |interrupts: &mut Interrupts| {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
        let listening = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = match listening {
            Ok(listening) => listening,
            Err(error) => {
                let port = arguments.port;
                return fail(format!(
                    "cannot listen on port {port} of 127.0.0.1: {error}; try another --port"
                ));
            }
        };
        let token = match token() {
            Ok(token) => token,
            Err(status) => return status,
        };
        if announce(arguments, address, &token) != crate::DONE {
            return FAILED;
        }
        tokio::select! {
            never = server::serve(listener, router(workshop, address, &token)) => match never {},
            signal = interrupts.next() => signal,
        }
    })
}

/// 128 random bits in hexadecimal digits.
fn token() -> Result<String, u8> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| fail(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn announce(arguments: &Arguments, address: SocketAddr, token: &str) -> u8 {
    let url = format!("http://{address}/{token}/");
    match arguments.json {
        true => crate::output::print_json_line(&serde_json::json!({ "url": url })),
        false => print(&format!("The lab is open at {url}\nCtrl-C ends it.")),
    }
}

fn router(workshop: Arc<Workshop>, address: SocketAddr, token: &str) -> Router {
    let asset = |kind: &'static str, text: &'static str| get(([(header::CONTENT_TYPE, kind)], text));
    let at = |place: &str| format!("/{token}{place}");
    Router::new()
        .route(&at("/"), asset("text/html; charset=utf-8", include_str!("page.html")))
        .route(&at("/page.js"), asset("text/javascript; charset=utf-8", include_str!("page.js")))
        .route(&at("/page.css"), asset("text/css; charset=utf-8", include_str!("page.css")))
        .route(&at("/scenarios"), get(answer::scenarios))
        .route(&at("/papers"), get(answer::papers))
        .route(&at("/runs"), post(answer::run))
        .route(&at("/why"), post(answer::why))
        .route(&at("/compare"), post(answer::compare))
        .route(&at("/reproduce"), post(answer::reproduce))
        .route(&at("/runs/{id}/report"), get(answer::report))
        .route(&at("/runs/{id}/packets"), get(answer::packets))
        .with_state(workshop)
        .layer(DefaultBodyLimit::max(REQUEST))
        .layer(from_fn(protected))
        .layer(from_fn_with_state(address, checked))
}

/// Refuses requests that are too long, that name another host, or that a page of another site made.
async fn checked(State(address): State<SocketAddr>, request: Request, next: Next) -> Response {
    if !is_own(&request, address.port()) {
        return (StatusCode::MISDIRECTED_REQUEST, "This server answers 127.0.0.1 only.\n").into_response();
    }
    if announced(&request).is_some_and(|length| length > REQUEST) {
        return (StatusCode::PAYLOAD_TOO_LARGE, "A request has a megabyte at most.\n").into_response();
    }
    next.run(request).await
}

/// The length of the body, if the request states it.
fn announced(request: &Request) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_own(request: &Request, port: u16) -> bool {
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let is_host = |host: &HeaderValue| own.iter().any(|own| own.as_bytes() == host.as_bytes());
    let is_page =
        |origin: &HeaderValue| own.iter().any(|own| format!("http://{own}").as_bytes() == origin.as_bytes());
    let headers = request.headers();
    headers.get(header::HOST).is_some_and(is_host) && headers.get(header::ORIGIN).is_none_or(is_page)
}

/// Headers of every answer. They tell the browser to load nothing from elsewhere, to keep nothing, and to send the
/// address to nobody.
async fn protected(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Reports have a policy of their own, which allows their embedded script.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    ));
    response
}
