//! Policies that are Python classes: their arguments and their calls.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use anabranch_proto::control::window::Estimated;
use anabranch_proto::path::estimate::Needs;
use anabranch_proto::policy::{
    self, Choice, Congestion, Loss, Lost, PathId, PathView, PolicyError, PolicySpec, Route, Setting, Start,
    Why,
};
use anabranch_proto::{Config, Duration, Policies};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::path::Path;

/// A chunk that is to be sent.
#[pyclass(frozen, get_all, module = "anabranch")]
pub(crate) struct Ask {
    /// "new", "missing", "timeout" or "window-probe".
    why: &'static str,
    tsn: u32,
    size: u32,
    stream: u16,
    last: Option<u16>,
    transmissions: u32,
    queued: u64,
    peer_window: u64,
    peer_buffer: u64,
    tie: u64,
    event: u64,
}

/// The data that an acknowledgement newly acknowledged on a path.
#[pyclass(frozen, get_all, module = "anabranch")]
pub(crate) struct Acked {
    now: f64,
    cumulative: u64,
    gap: u64,
    gap_behind_point: u64,
    advanced: bool,
    recovery: bool,
    flight_before: u64,
    unacknowledged_before: u64,
    flight: u64,
    rtt: Option<f64>,
}

/// The facts of a path that a window sees.
#[pyclass(frozen, get_all, module = "anabranch")]
pub(crate) struct Sibling {
    own: bool,
    window: u64,
    ssthresh: u64,
    flight: u64,
    srtt: Option<f64>,
    loss_distance: u64,
}

/// The table of policies: those built in, and those of the dict `own`, by name. A class with `choose` is a route,
/// another one with `acked` a window.
pub(crate) fn table(own: Option<&Bound<'_, PyDict>>) -> PyResult<Policies> {
    let mut policies = Policies::default();
    for (name, class) in own.into_iter().flat_map(|own| own.iter()) {
        let name: String = name.extract()?;
        // Routes have `acked` too if they want to.
        let route = class.hasattr("choose")?;
        let window = class.hasattr("window")? || (!route && class.hasattr("acked")?);
        let class = class.unbind();
        match (route, window) {
            (true, false) => policies.add_route(name, move |spec: &PolicySpec, _: &Config| {
                let route = Python::attach(|py| PythonRoute::new(py, made(py, &class, spec, None)?));
                let route = route.map_err(|error| setting(spec, &error))?;
                Ok(Box::new(route) as Box<dyn Route>)
            }),
            (false, true) => policies.add_window(name, move |spec: &PolicySpec, _: &Config| {
                let class = Python::attach(|py| class.clone_ref(py));
                Python::attach(|py| takes(py, &class, spec)).map_err(|error| setting(spec, &error))?;
                let spec = spec.clone();
                Ok(Arc::new(move |start: Start| {
                    let window =
                        Python::attach(|py| PythonWindow::new(py, made(py, &class, &spec, Some(start))?));
                    Box::new(window.unwrap_or_else(raised)) as Box<dyn Congestion>
                }))
            }),
            _ => {
                let why = "is no policy: a route has `choose`, a window has `window` and `acked`, and nothing has `choose` and `window`";
                return Err(PyTypeError::new_err(format!("`{name}` {why}")));
            }
        }
    }
    Ok(policies)
}

fn setting(spec: &PolicySpec, error: &PyErr) -> PolicyError {
    PolicyError::Setting { name: spec.name.clone(), why: error.to_string() }
}

/// An instance of the class. Its keyword arguments are the settings and, for a window, the initial values.
fn made(py: Python<'_>, class: &Py<PyAny>, spec: &PolicySpec, start: Option<Start>) -> PyResult<Py<PyAny>> {
    class.call(py, (), Some(&arguments(py, spec, start)?))
}

/// Whether the class of a window takes the settings: windows are made during the run, where an error has no line.
fn takes(py: Python<'_>, class: &Py<PyAny>, spec: &PolicySpec) -> PyResult<()> {
    let arguments = arguments(py, spec, Some(Start { unit: 0, window: 0, ssthresh: 0 }))?;
    match py.import("inspect")?.call_method1("signature", (class,)) {
        Ok(signature) => signature.call_method("bind", (), Some(&arguments)).map(drop),
        // Some classes of C have no signature.
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The keyword arguments of a class.
fn arguments<'py>(py: Python<'py>, spec: &PolicySpec, start: Option<Start>) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    for (name, value) in &spec.settings {
        match value {
            Setting::Number(number) => arguments.set_item(name, number)?,
            Setting::Text(text) => arguments.set_item(name, text)?,
            Setting::Duration(time) => arguments.set_item(name, time.as_secs_f64())?,
            Setting::Boolean(flag) => arguments.set_item(name, flag)?,
            Setting::List(_) => {
                return Err(PyTypeError::new_err(format!(
                    "`{name}`: a policy in Python has no setting with a list"
                )));
            }
        }
    }
    if let Some(Start { unit, window, ssthresh }) = start {
        arguments.set_item("unit", unit)?;
        arguments.set_item("initial", window)?;
        arguments.set_item("threshold", ssthresh)?;
    }
    Ok(arguments)
}

thread_local! {
    /// The exception that ends the run of this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// An exception ends the run: it travels as a panic that prints nothing, to whoever began the run. A sweep keeps its
/// text; [`error_of`] gives the exception itself.
fn raised<T>(error: PyErr) -> T {
    let text = error.to_string();
    RAISED.set(Some(error));
    std::panic::resume_unwind(Box::new(text))
}

/// The exception that ended a run of this thread.
pub(crate) fn error_of(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("the run panicked");
    RAISED.take().unwrap_or_else(|| PyRuntimeError::new_err(text.to_owned()))
}

/// Whether a policy of this thread has raised an exception that nobody has taken.
pub(crate) fn has_error() -> bool {
    RAISED.with_borrow(Option::is_some)
}

/// The exception that a policy of this thread has raised.
pub(crate) fn take_error() -> Option<PyErr> {
    RAISED.take()
}

/// Whether an exception is ending what goes on. An endpoint that is dropped meanwhile says goodbye, and no policy is
/// asked for that: a second exception would end the process.
fn is_ending() -> bool {
    std::thread::panicking()
}

/// A route that is a Python object.
#[derive(Debug)]
struct PythonRoute {
    route: Py<PyAny>,
    choose: Py<PyAny>,
    sent: Option<Py<PyAny>>,
    acked: Option<Py<PyAny>>,
    lost: Option<Py<PyAny>>,
    needs: Needs,
}

impl PythonRoute {
    fn new(py: Python<'_>, object: Py<PyAny>) -> PyResult<Self> {
        let route = object.bind(py).clone();
        let method = |name| Ok::<_, PyErr>(route.getattr_opt(name)?.map(Bound::unbind));
        Ok(PythonRoute {
            choose: route.getattr("choose")?.unbind(),
            sent: method("sent")?,
            acked: method("acked")?,
            lost: method("lost")?,
            needs: needs(&route)?,
            route: object,
        })
    }
}

impl Clone for PythonRoute {
    fn clone(&self) -> Self {
        Python::attach(|py| PythonRoute::new(py, copied(py, &self.route)?)).unwrap_or_else(raised)
    }
}

/// A copy of a policy with all that it holds (`copy.deepcopy`): an endpoint that is copied has policies of its own.
fn copied(py: Python<'_>, object: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    Ok(py.import("copy")?.getattr("deepcopy")?.call1((object,))?.unbind())
}

impl Route for PythonRoute {
    fn choose(&self, ask: &policy::Ask, paths: &[PathView]) -> Choice {
        if is_ending() {
            return Choice::Wait;
        }
        let chosen = Python::attach(|py| -> PyResult<Choice> {
            let all = paths.iter().map(|path| Py::new(py, Path(path.clone())));
            let all = PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)?;
            choice(&self.choose.bind(py).call1((Ask::of(ask), all))?, paths)
        });
        chosen.unwrap_or_else(raised)
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn sent(&mut self, ask: &policy::Ask, path: PathId) {
        notify(self.sent.as_ref(), |py, method| method.call1(py, (Ask::of(ask), path.0)));
    }

    fn acked(&mut self, path: &PathView, acked: &policy::Acked) {
        notify(self.acked.as_ref(), |py, method| method.call1(py, (Path(path.clone()), Acked::of(acked))));
    }

    fn lost(&mut self, path: PathId, loss: Loss) {
        notify(self.lost.as_ref(), |py, method| method.call1(py, (path.0, how(loss))));
    }
}

/// What the attribute `needs` of a route names.
fn needs(route: &Bound<'_, PyAny>) -> PyResult<Needs> {
    let mut needs = Needs::NONE;
    let Some(named) = route.getattr_opt("needs")? else { return Ok(needs) };
    if named.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("`needs` is a tuple of names, such as (\"bandwidth\",)"));
    }
    for name in named.try_iter()? {
        let name: String = name?.extract()?;
        match name.as_str() {
            "bandwidth" => needs.bandwidth = true,
            "packet_pair" => needs.packet_pair = true,
            "round_trip" => needs.round_trip = true,
            _ => {
                let known = "bandwidth, packet_pair, round_trip";
                return Err(PyTypeError::new_err(format!("`needs` names `{name}`; there are {known}")));
            }
        }
    }
    Ok(needs)
}

/// Calls a method that a policy may leave out.
fn notify(method: Option<&Py<PyAny>>, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) {
    if let Some(method) = method.filter(|_| !is_ending()) {
        Python::attach(|py| call(py, method).map(drop)).unwrap_or_else(raised);
    }
}

/// A path, the number of one, or None to wait.
fn choice(answer: &Bound<'_, PyAny>, paths: &[PathView]) -> PyResult<Choice> {
    if answer.is_none() {
        return Ok(Choice::Wait);
    }
    let id = match answer.cast::<Path>() {
        Ok(path) => path.get().0.id,
        Err(_) => PathId(answer.extract().map_err(|_| {
            PyTypeError::new_err("`choose` returns a path, the `id` of a path, or None to send nothing now")
        })?),
    };
    match paths.iter().any(|path| path.id == id) {
        true => Ok(Choice::Send(id)),
        false => Err(PyTypeError::new_err(format!("`choose` returned {}, and there is no such path", id.0))),
    }
}

/// The attribute `name` of a window. A number that is none (NaN) or negative would stop the flow without a word.
fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.extract::<f64>() {
        Ok(bytes) if bytes >= 0.0 => Ok(bytes as u64),
        Ok(bytes) => Err(PyValueError::new_err(format!("`{name}` is {bytes}: expected bytes, zero or more"))),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!("`{name}` is a number of bytes, and was given as {kind}")))
        }
    }
}

/// A window that is a Python object. Its numbers are read once after each call, not at each question.
#[derive(Debug)]
struct PythonWindow {
    window: Py<PyAny>,
    bytes: u64,
    ssthresh: u64,
}

impl PythonWindow {
    fn new(py: Python<'_>, window: Py<PyAny>) -> PyResult<Self> {
        let mut made = PythonWindow { window, bytes: 0, ssthresh: u64::MAX };
        made.read(py)?;
        Ok(made)
    }

    /// Reads the attributes `window` and `ssthresh`, in bytes.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let window = self.window.bind(py);
        self.bytes = bytes("window", &window.getattr(intern!(py, "window"))?)?;
        self.ssthresh = match window.getattr_opt(intern!(py, "ssthresh"))? {
            Some(ssthresh) if !ssthresh.is_none() => bytes("ssthresh", &ssthresh)?,
            _ => u64::MAX,
        };
        Ok(())
    }

    /// Calls the method `name`, if there is one, and reads the numbers.
    fn call<'py, A>(
        &mut self,
        py: Python<'py>,
        name: &str,
        arguments: A,
    ) -> PyResult<Option<Bound<'py, PyAny>>>
    where
        A: pyo3::call::PyCallArgs<'py>,
    {
        if is_ending() {
            return Ok(None);
        }
        let Some(method) = self.window.bind(py).getattr_opt(name)? else { return Ok(None) };
        let answer = method.call1(arguments)?;
        self.read(py)?;
        Ok(Some(answer))
    }
}

impl Clone for PythonWindow {
    fn clone(&self) -> Self {
        Python::attach(|py| PythonWindow::new(py, copied(py, &self.window)?)).unwrap_or_else(raised)
    }
}

impl Congestion for PythonWindow {
    fn window(&self) -> u64 {
        self.bytes
    }

    fn wants_estimates(&self) -> bool {
        Python::attach(|py| self.window.bind(py).hasattr("estimated")).unwrap_or_else(raised)
    }

    fn estimated(&mut self, estimated: &Estimated) {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let values = (estimated.rate, seconds(estimated.base_rtt), seconds(estimated.queueing));
        Python::attach(|py| self.call(py, "estimated", values).map(drop)).unwrap_or_else(raised);
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn acked(&mut self, acked: &policy::Acked, all: &[policy::Sibling]) {
        let called = Python::attach(|py| {
            let all = siblings(py, all)?;
            self.call(py, "acked", (Acked::of(acked), all)).map(drop)
        });
        called.unwrap_or_else(raised);
    }

    fn lost(&mut self, lost: &Lost, all: &[policy::Sibling]) {
        let called = Python::attach(|py| {
            let all = siblings(py, all)?;
            self.call(py, "lost", (how(lost.how), lost.outstanding, all)).map(drop)
        });
        called.unwrap_or_else(raised);
    }

    fn restart(&mut self, most: u64) {
        Python::attach(|py| self.call(py, "restart", (most,)).map(drop)).unwrap_or_else(raised);
    }

    fn set_unit(&mut self, unit: u64) {
        Python::attach(|py| self.call(py, "set_unit", (unit,)).map(drop)).unwrap_or_else(raised);
    }

    fn reopen(&mut self, packets: u32) {
        Python::attach(|py| self.call(py, "reopen", (packets,)).map(drop)).unwrap_or_else(raised);
    }

    fn idle(&mut self, times: u32) -> bool {
        let answer = Python::attach(|py| match self.call(py, "idle", (times,))? {
            Some(answer) => answer.is_truthy(),
            None => Ok(false),
        });
        answer.unwrap_or_else(raised)
    }
}

fn siblings<'py>(py: Python<'py>, all: &[policy::Sibling]) -> PyResult<Bound<'py, PyList>> {
    let all = all.iter().map(|sibling| {
        let policy::Sibling { own, window, ssthresh, flight, srtt, loss_distance } = *sibling;
        let srtt = srtt.map(|srtt| srtt.as_secs_f64());
        Py::new(py, Sibling { own, window, ssthresh, flight, srtt, loss_distance })
    });
    PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
}

fn how(loss: Loss) -> &'static str {
    match loss {
        Loss::Missing => "missing",
        Loss::Timeout => "timeout",
    }
}

impl Ask {
    fn of(ask: &policy::Ask) -> Ask {
        let why = match ask.why {
            Why::New => "new",
            Why::Missing => "missing",
            Why::Timeout => "timeout",
            Why::WindowProbe => "window-probe",
            Why::TailProbe => "tail-probe",
            #[allow(unreachable_patterns, reason = "a reason that a newer core adds has a name too")]
            _ => "other",
        };
        let policy::Ask { size, stream, transmissions, queued, peer_window, peer_buffer, tie, event, .. } =
            *ask;
        let (tsn, last) = (ask.tsn.0, ask.last.map(|last| last.0));
        Ask { why, tsn, size, stream, last, transmissions, queued, peer_window, peer_buffer, tie, event }
    }
}

impl Acked {
    fn of(acked: &policy::Acked) -> Acked {
        let policy::Acked { cumulative, gap, gap_behind_point, advanced, recovery, .. } = *acked;
        let policy::Acked { flight_before, unacknowledged_before, flight, .. } = *acked;
        let (now, rtt) = (acked.now.as_secs_f64(), acked.rtt.map(|rtt| rtt.as_secs_f64()));
        Acked {
            now,
            cumulative,
            gap,
            gap_behind_point,
            advanced,
            recovery,
            flight_before,
            unacknowledged_before,
            flight,
            rtt,
        }
    }
}
