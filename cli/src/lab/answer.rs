//! The answers to requests.

use std::fs::File;
use std::io::BufReader;
use std::path::Path as FilePath;
use std::sync::Arc;

use anabranch_sim::capture::{self, CaptureReader};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::process::{self, Ended, Printed};
use super::workshop::Workshop;
use crate::WRONG_INPUT;

/// The largest number of packets in one answer.
const PACKETS: usize = 200;
/// The file of a scenario without a name. Error messages name it.
const SCENARIO: &str = "scenario.toml";

type Shared = State<Arc<Workshop>>;

/// The scenarios that can be opened.
pub(super) async fn scenarios(State(workshop): Shared) -> Json<Value> {
    Json(json!(workshop.scenarios))
}

/// The publications that can be opened.
pub(super) async fn papers(State(workshop): Shared) -> Json<Value> {
    Json(json!(workshop.papers))
}

/// A scenario to run.
#[derive(Deserialize)]
pub(super) struct Run {
    text: String,
    /// The offered scenario with which its writer began.
    name: Option<String>,
}

/// Runs the scenario; the answer has the run's number and its table of results.
pub(super) async fn run(State(workshop): Shared, Json(run): Json<Run>) -> Result<Json<Value>, Problem> {
    let folder = workshop.scratch()?;
    let file = file_of(&workshop, run.name.as_deref().unwrap_or_default());
    std::fs::write(folder.path().join(&file), run.text)?;
    let arguments = ["run", &file, "--threads", "1", "--report", "report.html", "--pcap", "packets.pcapng"];
    let printed = execute(&workshop, folder.path(), &arguments).await?;
    let id = workshop.keep(folder);
    Ok(Json(json!({ "id": id, "table": printed.output, "warnings": printed.errors })))
}

/// The file of an offered scenario. A name that a command line could take for an option is not used.
fn file_of(workshop: &Workshop, name: &str) -> String {
    let known = workshop.scenarios.iter().any(|offered| offered.name == name);
    match known && name.starts_with(char::is_alphanumeric) {
        true => format!("{name}.toml"),
        false => SCENARIO.to_owned(),
    }
}

/// A moment of a run, or a packet, to be explained.
#[derive(Deserialize)]
pub(super) struct Why {
    text: String,
    /// Seconds from the beginning of the run.
    at: Option<f64>,
    /// The packet's number, as in `anabranch run --why --packet`.
    packet: Option<u64>,
}

/// The explanation in words.
pub(super) async fn why(State(workshop): Shared, Json(why): Json<Why>) -> Result<Json<Value>, Problem> {
    let folder = workshop.scratch()?;
    std::fs::write(folder.path().join(SCENARIO), why.text)?;
    let at = why.at.map(|at| format!("--at={at} s"));
    let packet = why.packet.map(|packet| format!("--packet={packet}"));
    let mut arguments = vec!["run", SCENARIO, "--threads", "1", "--why"];
    arguments.extend(at.as_deref().into_iter().chain(packet.as_deref()));
    let printed = execute(&workshop, folder.path(), &arguments).await?;
    Ok(Json(json!({ "text": printed.output + &printed.errors })))
}

/// Two scenarios to compare.
#[derive(Deserialize)]
pub(super) struct Compare {
    a: String,
    b: String,
}

/// Finds where the two runs differ.
pub(super) async fn compare(
    State(workshop): Shared,
    Json(two): Json<Compare>,
) -> Result<Json<Value>, Problem> {
    let folder = workshop.scratch()?;
    std::fs::write(folder.path().join("a.toml"), two.a)?;
    std::fs::write(folder.path().join("b.toml"), two.b)?;
    let printed = in_turn(&workshop, folder.path(), &["diff", "a.toml", "b.toml"]).await?;
    // Exit status 1 means that they differ.
    match printed.status {
        Some(0 | 1) if !printed.output.is_empty() => Ok(Json(json!({ "text": printed.output }))),
        _ => Err(Problem::of(printed)),
    }
}

/// Claims of a publication to judge.
#[derive(Deserialize)]
pub(super) struct Reproduce {
    paper: String,
    claim: String,
}

/// Judges the claims; the answer has the number of the page with the verdicts.
pub(super) async fn reproduce(
    State(workshop): Shared,
    Json(wanted): Json<Reproduce>,
) -> Result<Json<Value>, Problem> {
    let known = workshop.papers.iter().find(|paper| paper.name == wanted.paper);
    let known = known.is_some_and(|paper| paper.groups.iter().any(|(group, _)| *group == wanted.claim));
    let place = workshop.paper(&wanted.paper).filter(|_| known);
    let place = place.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there are no such claims"))?;
    let folder = workshop.scratch()?;
    let (place, claim) = (place.display().to_string(), format!("--claim={}", wanted.claim));
    let arguments = ["reproduce", &place, &claim, "--threads", "1", "--report", "report.html"];
    let printed = in_turn(&workshop, folder.path(), &arguments).await?;
    // Exit status 1 means that a claim came out otherwise than expected; the page shows which.
    match printed.status {
        Some(0 | 1) if folder.path().join("report.html").is_file() => {
            let id = workshop.keep(folder);
            Ok(Json(json!({ "id": id, "table": printed.output, "warnings": printed.errors })))
        }
        _ => Err(Problem::of(printed)),
    }
}

/// The page of a run or of judged claims.
pub(super) async fn report(State(workshop): Shared, Path(id): Path<u64>) -> Result<Response, Problem> {
    let folder = workshop.folder(id).ok_or_else(gone)?;
    let page = tokio::fs::read(folder.join("report.html")).await.map_err(|_| gone())?;
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    let policy = (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'self'");
    Ok(([kind, policy], page).into_response())
}

/// The packets of a run that are requested.
#[derive(Deserialize)]
pub(super) struct Wanted {
    /// The number of the first packet in the capture, from 1.
    from: u64,
}

/// Packets of a run in the format of `anabranch explain --json`.
pub(super) async fn packets(
    State(workshop): Shared,
    Path(id): Path<u64>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let file = workshop.folder(id).ok_or_else(gone)?.join("packets.pcapng");
    let read = tokio::task::spawn_blocking(move || lines(&file, wanted.from));
    let lines =
        read.await.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))?;
    lines.map(Json).map_err(|why| Problem::new(StatusCode::NOT_FOUND, &why))
}

fn lines(file: &FilePath, from: u64) -> Result<Value, String> {
    let input = File::open(file).map_err(|_| "this run is no longer kept".to_owned())?;
    let reader = CaptureReader::new(BufReader::new(input)).map_err(|error| error.to_string())?;
    let wanted =
        reader.map_while(Result::ok).skip(usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX));
    let shown = wanted.take(PACKETS).flat_map(|packet| capture::explain(&packet, &[9899]));
    let shown = shown.map(|line| json!({ "line": line, "text": format!("{line}") }));
    Ok(Value::Array(shown.collect()))
}

/// Runs a command when a slot is free. Every exit status but 0 is a problem.
async fn execute(workshop: &Workshop, folder: &FilePath, arguments: &[&str]) -> Result<Printed, Problem> {
    let printed = in_turn(workshop, folder, arguments).await?;
    if printed.status == Some(0) { Ok(printed) } else { Err(Problem::of(printed)) }
}

async fn in_turn(workshop: &Workshop, folder: &FilePath, arguments: &[&str]) -> Result<Printed, Problem> {
    let _turn = workshop.turns.acquire().await.map_err(|_| gone())?;
    Ok(process::run(folder, arguments, workshop.limits).await?)
}

/// The exit status that Linux's dynamic loader gives a program for which the memory does not suffice.
const NOT_LOADED: i32 = 127;

/// A failure: a status, a text, and the line of the scenario that it concerns.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    text: String,
    line: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, text: &str) -> Problem {
        Problem { status, text: text.to_owned(), line: None }
    }

    /// The messages of a command on standard error.
    fn of(printed: Printed) -> Problem {
        let (status, text) = match printed.status {
            Some(status) if status == i32::from(WRONG_INPUT) => {
                (StatusCode::UNPROCESSABLE_ENTITY, printed.errors)
            }
            Some(status) if status != NOT_LOADED => (StatusCode::INTERNAL_SERVER_ERROR, printed.errors),
            _ if printed.wrote_too_much => {
                let most = process::FILE >> 20;
                let why = format!(
                    "it was ended: a file became larger than {most} MiB, such as the capture with every packet; shorten the run, \
                     or give the scenario to `anabranch run`"
                );
                (StatusCode::INSUFFICIENT_STORAGE, format!("{}{why}\n", printed.errors))
            }
            _ => {
                let why =
                    "it was ended: it used more memory than it may; --memory of `anabranch lab` allows more";
                (StatusCode::INSUFFICIENT_STORAGE, format!("{}{why}\n", printed.errors))
            }
        };
        let line = place(&text);
        Problem { status, text, line }
    }
}

/// The line in an error message: `scenario.toml:12:3`.
fn place(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once(".toml:")?;
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn gone() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this run is no longer kept")
}

impl From<Ended> for Problem {
    fn from(ended: Ended) -> Self {
        let status = match ended {
            Ended::TooLong(_) => StatusCode::REQUEST_TIMEOUT,
            Ended::System(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, &ended.to_string())
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Problem::from(Ended::System(error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.text, "line": self.line }))).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::{Printed, Problem, place};

    /// A file that became too large needs other advice than a lack of memory.
    #[test]
    fn the_limit_that_ended_a_process_is_told() {
        let told = |wrote_too_much: bool| {
            let (output, errors) = (String::new(), String::new());
            Problem::of(Printed { status: None, wrote_too_much, output, errors }).text
        };
        assert!(told(true).contains("larger than 512 MiB") && !told(true).contains("--memory"));
        assert!(told(false).contains("--memory") && !told(false).contains("disk"));
    }

    #[test]
    fn the_line_of_an_error_is_found() {
        assert_eq!(place("error: no\n --> scenario.toml:12:3\n"), Some(12));
        assert_eq!(place("error: scenario.toml: gone"), None);
    }
}
