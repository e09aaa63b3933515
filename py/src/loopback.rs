//! A transfer in real time over the loopback interface: policies that are Python objects in the endpoints of real
//! networks.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anabranch_net::{Carrier, Endpoint, Message, Options};
use anabranch_proto::{Config, Policies, PolicySpec};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::policies;

/// Two addresses for each end. The paths are 127.0.0.3 to 127.0.0.1, and 127.0.0.4 to 127.0.0.2.
const ENDS: [[&str; 2]; 2] = [["127.0.0.1", "127.0.0.2"], ["127.0.0.3", "127.0.0.4"]];
const PORT: u16 = 5000;
/// Bytes of user data in a message.
const MESSAGE: u64 = 16_384;
/// How often signals of Python are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Sends `size` bytes of user data between two endpoints of this process. Returns the bytes that were acknowledged on
/// each path.
#[pyfunction]
pub(crate) fn loopback(
    py: Python<'_>,
    size: u64,
    own: Option<&Bound<'_, PyDict>>,
    new: &str,
    retransmit: &str,
    window: &str,
    within: f64,
) -> PyResult<Vec<u64>> {
    let within = Duration::try_from_secs_f64(within)
        .map_err(|_| PyValueError::new_err(format!("within: {within} is no number of seconds")))?;
    let config = Config {
        new_data: PolicySpec::named(new),
        fast: PolicySpec::named(retransmit),
        timeout: PolicySpec::named(retransmit),
        window: PolicySpec::named(window),
        ..Config::default()
    };
    let policies = policies::table(own)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| runtime.block_on(bounded(transfer(size, config, policies), within))))
    });
    match ended {
        // An exception may have ended only the task that drives the endpoint: it is the cause of what followed.
        Ok(ended) => policies::take_error().map_or(ended, Err),
        Err(panic) => Err(policies::error_of(panic.as_ref())),
    }
}

/// What comes out, unless Python has a signal or an exception, or time is up.
async fn bounded(
    transfer: impl Future<Output = Result<Vec<u64>, String>>,
    within: Duration,
) -> PyResult<Vec<u64>> {
    let watch = async {
        loop {
            tokio::time::sleep(GLANCE).await;
            Python::attach(|py| py.check_signals())?;
            if policies::has_error() {
                return Err::<Vec<u64>, _>(PyRuntimeError::new_err("a policy has failed"));
            }
        }
    };
    tokio::select! {
        ended = transfer => ended.map_err(PyRuntimeError::new_err),
        watched = watch => watched,
        () = tokio::time::sleep(within) => {
            Err(PyTimeoutError::new_err(format!("not delivered within {} seconds", within.as_secs_f64())))
        }
    }
}

async fn transfer(size: u64, config: Config, policies: Policies) -> Result<Vec<u64>, String> {
    let bind = |end: usize, config: Config, policies: Policies| {
        let local = ENDS[end].iter().map(|ip| ip.parse().expect("it is an address")).collect();
        let options = Options {
            config,
            policies,
            local,
            listen: end == 0,
            carrier: Carrier::Udp(0),
            ..Options::default()
        };
        Endpoint::bind(options).map_err(|error| error.to_string())
    };
    let receiver = bind(0, Config::default(), Policies::default())?;
    let sender = bind(1, config, policies)?;
    let places: Vec<SocketAddr> = receiver.local().into_iter().map(|(place, _)| place).collect();
    let (ours, theirs) = tokio::join!(sender.connect(&places, PORT), receiver.accept());
    let ours = ours.map_err(|error| error.to_string())?;
    let theirs = theirs.ok_or("the receiver is closed")?;
    let send = async {
        for begin in (0..size).step_by(MESSAGE as usize) {
            let payload = vec![0; MESSAGE.min(size - begin) as usize].into();
            ours.send(Message { payload, ..Message::default() }).await.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    };
    let receive = async {
        let mut received = 0;
        while received < size {
            match theirs.recv().await.map_err(|error| error.to_string())? {
                Some(delivery) => received += delivery.len() as u64,
                None => return Err("the association ended before the data".to_owned()),
            }
        }
        Ok(())
    };
    tokio::try_join!(send, receive)?;
    // All is acknowledged when the association has shut down.
    let (closed, _) = tokio::join!(ours.close(), theirs.recv());
    closed.map_err(|error| error.to_string())?;
    Ok(ours.paths().iter().map(|path| path.delivered).collect())
}
