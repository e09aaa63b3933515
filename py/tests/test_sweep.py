"""Sweeps: the same on any number of threads and workers."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anabranch
import pytest

from conftest import SCENARIO

TABLES = ["runs.csv", "summary.csv", "summary.json"]


def tables(directory: Path) -> list[bytes]:
    return [(directory / name).read_bytes() for name in TABLES]


def test_a_sweep_is_a_file_or_arguments(place: Path) -> None:
    file = anabranch.sweep(place / "sweep.toml", out=place / "out", threads=1)
    assert file.complete and file.cells == json.loads((place / "out/summary.json").read_text())
    arguments = anabranch.sweep(
        place / "scenario.toml",
        vary={"link.wifi.loss": ["0 %", "1 %", "5 %"], "era": ["rfc4960", "rfc9260"]},
        measure={"time": "flows.upload.completion", "lost": "links.wifi s>r.drops.loss"},
        seeds=15,
        until={"time": "3 %"},
        compare="era",
        threads=2,
    )
    assert arguments.cells == file.cells
    assert arguments.runs.to_dict() == file.runs.to_dict()
    assert file.runs.columns == ["cell", "seed", "link.wifi.loss", "era", "time", "lost", "error"]
    assert "±" in file._repr_html_()
    inline = anabranch.sweep({"scenario": SCENARIO, "seeds": 2, "measure": {"time": "flows.upload.completion"}})
    assert len(inline.runs) == 2


def test_names_in_a_notebook_are_texts(place: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    study = anabranch.sweep(
        place / "scenario.toml",
        vary={"title": [name, "other"]},
        measure={f"{name}_n": "flows.upload.completion", "time": "flows.upload.completion"},
    )
    page = study._repr_html_()
    assert "<img" not in page and page.count("&lt;img") == 2, page
    assert page.count("<th>") == 3 and page.count("<td>") == 6, "no column is left out"


def test_means_have_no_column_twice(place: Path) -> None:
    entry = "flows.upload.completion"
    study = anabranch.sweep(place / "scenario.toml", vary={"era": ["rfc9260"]}, measure={"a": entry, "b": entry}, seeds=2)
    assert list(study.means()[0]) == ["era", "a", "a_ci95", "a_n", "b", "b_ci95", "b_n"]
    clash = anabranch.sweep(place / "scenario.toml", measure={"a": entry, "a_n": entry}, seeds=2)
    with pytest.raises(TypeError, match="`measure` is a dict"):
        anabranch.sweep(place / "scenario.toml", measure=["flows.upload.completion"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`a_n`"):
        clash.means()
    pytest.importorskip("plotly")
    assert clash.plot("a").data[0].y[0] == clash.cells[0]["measures"]["a"]["mean"]


def test_charts_have_units_and_the_colours_of_the_pages(place: Path) -> None:
    pytest.importorskip("plotly")
    study = anabranch.sweep(
        place / "scenario.toml",
        vary={"link.wifi.loss": ["0 %", "2 %"], "era": ["rfc4960", "rfc9260"]},
        measure={"time": "flows.upload.completion"},
    )
    figure = study.plot()
    assert list(figure.data[0].x) == [0.0, 2.0] and [line.name for line in figure.data] == ["era = rfc4960", "era = rfc9260"]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("link.wifi.loss, %", "time, s")
    assert figure.layout.colorway[0] == "#0072b2"
    words = anabranch.sweep(place / "scenario.toml", vary={"era": ["rfc4960", "rfc9260"]}, measure={"time": "flows.upload.completion"})
    assert list(words.plot().data[0].x) == ["rfc4960", "rfc9260"] and words.plot().layout.xaxis.type == "category"
    assert "time, s" in words._repr_html_()
    lists = {"link.wifi.loss": [["0 %", "1 %"], ["1 %", "0 %"]], "flow.upload.sctp.cmt": [True, False]}
    pairs = anabranch.sweep(place / "scenario.toml", vary=lists, measure={"time": "flows.upload.completion"}).plot()
    assert list(pairs.data[0].x) == ['["0 %","1 %"]', '["1 %","0 %"]'] and pairs.data[0].name == "flow.upload.sctp.cmt = true"
    with pytest.raises(KeyError, match="there are: time"):
        study.plot("tiem")


@pytest.mark.parametrize("name", ["cell", "error"])
def test_columns_of_runs_have_one_meaning(place: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        anabranch.sweep(place / "scenario.toml", measure={name: "flows.upload.completion"})


def test_the_command_says_what_is_wrong_in_a_line(place: Path) -> None:
    def message(*more: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "anabranch", "sweep", "sweep.toml", "--no-progress", *more]
        ran = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran.returncode, ran.stderr

    (place / "file").write_text("")
    assert message("--out", "file/below")[0] == 1
    for option, wrong in [("--threads", "0"), ("--threads", "-1"), ("--dask", "0"), ("--dask", ""), ("--task-seconds", "nan"), ("--task-seconds", "-5")]:
        status, said = message("--out", "out", option, wrong)
        assert status == 2 and f"argument {option}: `{wrong}` is" in said, said
    assert not (place / "out").exists()
    # Every error begins as those of the program `anabranch` do.
    (place / "full").mkdir()
    (place / "full/other").write_text("")
    for out in ("file/below", "file", "full"):
        assert message("--out", out)[1].startswith("error: "), out
    hidden = place / "hidden"
    hidden.mkdir()
    (hidden / "distributed.py").write_text("raise ModuleNotFoundError(\"No module named 'distributed'\", name='distributed')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(hidden))
        status, said = message("--out", "out", "--dask", "2")
    assert status == 2 and "--dask needs the package `distributed`" in said, said


def test_the_command_shows_no_interval_of_one_run(place: Path) -> None:
    (place / "one.toml").write_text("scenario = 'scenario.toml'\nseeds = 1\nmeasure = { time = 'flows.upload.completion' }\n")
    command = [sys.executable, "-m", "anabranch", "sweep", "one.toml", "--out", "one", "--no-progress"]
    printed = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("all: time=0.") and "±" not in printed, printed
    (place / "two.toml").write_text('scenario = "scenario.toml"\nseeds = 2\n[vary]\ntitle = ["\\u001b[2J"]\n[measure]\ntime = "flows.upload.completion"\n')
    command[4:7] = ["two.toml", "--out", "two"]
    printed = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("title=\\x1b[2J: time=0.") and "±" in printed, printed


def test_equal_values_have_no_interval(place: Path) -> None:
    (place / "equal.toml").write_text("scenario = 'scenario.toml'\nseeds = 60\nmeasure = { goodput = 'flows.upload.goodput' }\n")
    command = [sys.executable, "-m", "anabranch", "sweep", "equal.toml", "--out", "equal", "--no-progress"]
    printed = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    result = anabranch.sweep(place / "equal.toml", out=place / "equal")
    assert 0 < result.cells[0]["measures"]["goodput"]["ci95"] < 1e-3, "an error of rounding"
    assert printed.endswith("±0\n") and "±" not in result._repr_html_(), printed


def test_an_address_needs_a_client(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(ValueError, match="`out`: memory://xx is an address; without a client of Dask a sweep writes to a directory"):
        anabranch.sweep("sweep.toml", out="memory://xx")
    command = [sys.executable, "-m", "anabranch", "sweep", "sweep.toml", "--out", "s3://bucket/x"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and ran.stderr.startswith("error: `out`: s3://bucket/x is an address"), ran.stderr
    assert ran.stderr.count("\n") == 1 and "--dask" in ran.stderr, ran.stderr
    assert sorted(path.name for path in place.iterdir()) == ["scenario.toml", "sweep.toml"]


def test_a_sweep_is_read_strictly(place: Path) -> None:
    with pytest.raises(anabranch.ScenarioError) as raised:
        anabranch.sweep(place / "scenario.toml", vary={"link.wifi.loss": ["x"]}, measure={"time": "flows.upload.completion"})
    assert "link.wifi.loss" in str(raised.value)
    with pytest.raises(anabranch.ScenarioError, match="seeds"):
        anabranch.sweep({"scenario": SCENARIO, "sedes": 2, "measure": {"time": "flows.upload.completion"}})
    with pytest.raises(TypeError):
        anabranch.sweep(place / "sweep.toml", seeds=3)
    measure = {"time": "flows.upload.completion"}
    for wrong, key in [({"seeds": 0}, "seeds"), ({"compare": ""}, "compare")]:
        with pytest.raises(anabranch.ScenarioError, match=key):
            anabranch.sweep(place / "scenario.toml", measure=measure, **wrong)
        with pytest.raises(TypeError):
            anabranch.sweep(place / "sweep.toml", **wrong)
    assert anabranch.sweep(place / "scenario.toml", measure=measure, vary={}, until={}, seeds=2).complete


def test_ctrl_c_keeps_what_is_finished(place: Path) -> None:
    arguments = {"measure": {"time": "flows.upload.completion"}, "seeds": 100_000, "out": place / "out"}
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(anabranch.Interrupted) as raised:
        anabranch.sweep(place / "scenario.toml", **arguments)
    kept = len(raised.value.result.runs)
    assert 0 < kept < 100_000 and not raised.value.result.complete
    again = anabranch.sweep(place / "scenario.toml", **(arguments | {"seeds": kept}))
    assert len(again.runs) == kept


class Picky:
    """A route that fails in some runs."""

    def choose(self, ask: anabranch.Ask, paths: list[anabranch.Path]) -> anabranch.Path:
        if ask.why != "new":
            raise RuntimeError("a loss is not foreseen")
        return paths[0]


def test_a_run_that_fails_is_kept_with_its_scenario_and_seed(place: Path) -> None:
    scenario = SCENARIO + '[flow.sctp]\nretransmit = "picky"\n'
    result = anabranch.sweep(
        scenario,
        vary={"link.wifi.loss": ["0 %", "2 %"]},
        measure={"time": "flows.upload.completion"},
        seeds=8,
        policies={"picky": Picky},
    )
    assert result.complete and len(result.runs) == 16
    errors = [error for error in result.runs["error"] if error]
    assert errors and len(errors) == len(result.failed) and "not foreseen" in errors[0]
    failed = result.failed[0]
    assert failed["varied"] == {"link.wifi.loss": "2 %"} and f"seed = {failed['seed']}" in failed["scenario"]
    with pytest.raises(RuntimeError, match="not foreseen"):
        anabranch.run(failed["scenario"], policies={"picky": Picky})


def test_the_command(place: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "anabranch", "sweep", place / "sweep.toml", "--out", place / "out", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == json.loads((place / "out/summary.json").read_text())
    bad = subprocess.run(
        [sys.executable, "-m", "anabranch", "sweep", place / "nothing.toml", "--out", place / "x"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode == 2 and "nothing.toml" in bad.stderr
