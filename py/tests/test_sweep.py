"""Sweeps: the same on any number of threads and workers."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
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


def test_a_sweep_is_read_strictly(place: Path) -> None:
    with pytest.raises(anabranch.ScenarioError) as raised:
        anabranch.sweep(place / "scenario.toml", vary={"link.wifi.loss": ["x"]}, measure={"time": "flows.upload.completion"})
    assert "link.wifi.loss" in str(raised.value)
    with pytest.raises(anabranch.ScenarioError, match="seeds"):
        anabranch.sweep({"scenario": SCENARIO, "sedes": 2, "measure": {"time": "flows.upload.completion"}})
    with pytest.raises(TypeError):
        anabranch.sweep(place / "sweep.toml", seeds=3)


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


def test_a_killed_worker_changes_nothing(place: Path) -> None:
    distributed = pytest.importorskip("distributed")
    text = (place / "sweep.toml").read_text().replace("seeds = 15", "seeds = 400").replace("until", "# until")
    (place / "sweep.toml").write_text(text)
    whole = anabranch.sweep(place / "sweep.toml", out=place / "whole")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = []

        def watch(done: int, all: int) -> None:
            if done > all // 4 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        spread = anabranch.sweep(place / "sweep.toml", out=place / "spread", client=client, progress=watch, task_seconds=0.2)
        assert killed, "a worker was killed in mid-sweep"
        assert spread.runs.to_dict() == whole.runs.to_dict()
        assert tables(place / "spread") == tables(place / "whole")
        dataset = pytest.importorskip("pyarrow.dataset").dataset(place / "spread/runs", format="parquet")
        rows = sorted(dataset.to_table(columns=["cell", "seed"]).to_pylist(), key=lambda row: (row["cell"], row["seed"]))
        assert rows == [{"cell": cell, "seed": seed} for cell, seed in zip(whole.runs["cell"], whole.runs["seed"])]
        # What is there is not run again, and `until` decides as one process does.
        begun = time.monotonic()
        anabranch.sweep(place / "sweep.toml", out=place / "spread", client=client)
        (place / "sweep.toml").write_text(text.replace("# until", "until"))
        spread = anabranch.sweep(place / "sweep.toml", out=place / "precise", client=client)
        whole = anabranch.sweep(place / "sweep.toml", out=place / "one")
        assert begun and tables(place / "precise") == tables(place / "one")
        assert spread.cells[0]["measures"]["time"]["n"] < 400
