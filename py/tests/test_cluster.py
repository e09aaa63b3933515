"""Sweeps on Dask's workers: whatever is killed on the way, the tables have the bytes of those of one process."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import anabranch
import pytest

from test_sweep import TABLES, tables

distributed = pytest.importorskip("distributed")


class Cluster:
    """A scheduler and two workers, each a process that can be killed, at one address for all its life."""

    def __init__(self, place: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.place = place
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Cluster":
        self.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        scheduler = ["dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        worker = ["dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        for command in (scheduler, worker, worker):
            with (self.place / "cluster.log").open("ab") as log:
                self.processes.append(
                    subprocess.Popen([sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]], cwd=self.place, stdout=log, stderr=log)
                )

    def kill(self) -> None:
        """The scheduler first, so that nobody is told."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


def compared(place: Path, seeds: int, kill: Callable[[Cluster], None], client: Callable[[Cluster], object]) -> None:
    """Runs the sweep in one process and on a cluster of which `kill` ends a part in the middle."""
    text = (place / "sweep.toml").read_text().replace("seeds = 15", f"seeds = {seeds}").replace("until", "# until")
    (place / "sweep.toml").write_text(text)
    whole = anabranch.sweep(place / "sweep.toml", out=place / "whole")
    killed = []

    def watch(done: int, all: int) -> None:
        if done > all // 4 and not killed:
            killed.append(done)
            assert done < all * 3 // 4, "in mid-sweep"
            kill(cluster)

    with Cluster(place) as cluster, client(cluster) as asked:
        asked.wait_for_workers(2, timeout=120)
        spread = anabranch.sweep(place / "sweep.toml", out=place / "spread", client=asked, progress=watch, task_seconds=seeds / 2000)
        assert killed
        assert spread.complete and spread.runs.to_dict() == whole.runs.to_dict()
        assert tables(place / "spread") == tables(place / "whole")
        dataset = pytest.importorskip("pyarrow.dataset").dataset(place / "spread/runs", format="parquet")
        rows = sorted(dataset.to_table(columns=["cell", "seed"]).to_pylist(), key=lambda row: (row["cell"], row["seed"]))
        assert rows == [{"cell": cell, "seed": seed} for cell, seed in zip(whole.runs["cell"], whole.runs["seed"], strict=True)]
        # `until` decides as one process does.
        (place / "sweep.toml").write_text(text.replace("# until", "until").replace("3 %", "30 %"))
        spread = anabranch.sweep(place / "sweep.toml", out=place / "precise", client=asked)
        anabranch.sweep(place / "sweep.toml", out=place / "one")
        assert tables(place / "precise") == tables(place / "one")
        assert spread.cells[-1]["measures"]["time"]["n"] < seeds, "with losses, where values differ"


def client_of(cluster: Cluster) -> object:
    return distributed.Client(cluster.address, timeout=60)


def test_a_killed_worker_changes_nothing(place: Path, seeds: int) -> None:
    compared(place, seeds, lambda cluster: cluster.processes[1].send_signal(signal.SIGKILL), client_of)


def test_a_killed_scheduler_changes_nothing(place: Path, seeds: int) -> None:
    def again(cluster: Cluster) -> None:
        cluster.kill()
        cluster.start()

    compared(place, seeds, again, client_of)


def test_what_was_run_is_not_run_again(place: Path) -> None:
    """A cluster that ends for good ends the call; the same call on another cluster runs what is missing."""
    arguments = {"measure": {"time": "flows.upload.completion"}, "seeds": 200, "out": place / "out"}

    class Ended(Exception):
        pass

    def watch(done: int, all: int) -> None:
        if done > all // 4:
            raise Ended

    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        with pytest.raises(Ended):
            anabranch.sweep(place / "scenario.toml", client=client, progress=watch, task_seconds=0.01, **arguments)
        files = {file: file.stat().st_mtime_ns for file in (place / "out/runs").rglob("*.parquet")}
        assert files
        done = anabranch.sweep(place / "scenario.toml", client=client, **arguments)
    assert done.complete and len(done.runs) == 200
    assert all(file.stat().st_mtime_ns == changed for file, changed in files.items())


def test_every_reader_takes_the_runs_as_one_table(place: Path) -> None:
    """Also while a worker writes, or has left a file unfinished."""
    pandas, polars, parquet = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow.parquet"))
    arguments = {"vary": {"link.wifi.loss": ["0 %", "1 %"]}, "measure": {"time": "flows.upload.completion"}, "seeds": 20, "out": place / "out"}
    seen = []

    def watch(done: int, all: int) -> None:
        for left in (place / "out").rglob("*"):
            seen.append(left.relative_to(place / "out").parts[0])

    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        done = anabranch.sweep(place / "scenario.toml", client=client, progress=watch, **arguments)
    assert "new" in seen and not (place / "out/new").exists(), "files begin elsewhere"
    for table in (pandas.read_parquet(place / "out/runs"), polars.read_parquet(place / "out/runs"), parquet.read_table(place / "out/runs").to_pandas()):
        assert list(table.columns) == done.runs.columns
        rows = sorted(zip(table["cell"].to_list(), table["seed"].to_list(), table["time"].to_list(), strict=True))
        assert rows == list(zip(done.runs["cell"], done.runs["seed"], done.runs["time"], strict=True))


def test_a_scheduler_that_does_not_answer_is_named(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "anabranch", "sweep", "sweep.toml", "--out", "out", "--dask", f"tcp://127.0.0.1:{port}"]
    environment = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "Traceback" not in ran.stderr and str(port) in ran.stderr, ran.stderr


def test_a_scheduler_with_tls_needs_certificates(place: Path) -> None:
    def said(address: str, **variables: str) -> str:
        command = [sys.executable, "-m", "anabranch", "sweep", "sweep.toml", "--out", "out", "--dask", address]
        ran = subprocess.run(command, cwd=place, env=os.environ | variables, capture_output=True, text=True, check=False)
        assert ran.returncode == 2 and ran.stderr.count("\n") == 1, ran.stderr
        return ran.stderr

    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    needs = "error: --dask tls://127.0.0.1:9 needs certificates, in files that "
    alone = said("tls://127.0.0.1:9")
    assert alone.startswith(needs) and f"{tls}CA_FILE" in alone and "TypeError" not in alone, alone
    wrong = {f"{tls}{name}": "missing.pem" for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")}
    missing = said("tls://127.0.0.1:9", **wrong)
    assert missing.startswith(needs) and "No such file" in missing, missing
    (place / "empty.pem").write_text("")
    empty = said("tls://127.0.0.1:9", **dict.fromkeys(wrong, "empty.pem"))
    assert empty.startswith(needs), empty


def test_ctrl_c_ends_local_workers_in_a_line(place: Path) -> None:
    """A terminal sends Ctrl-C to the workers, too. The same command goes on from there. Another cluster has its dashboard where Dask puts it."""
    text = (place / "sweep.toml").read_text().replace("seeds = 15", "seeds = 100000").replace("until", "# until")
    (place / "long.toml").write_text(text)
    command = [sys.executable, "-m", "anabranch", "sweep", "long.toml", "--out", "out", "--dask", "2", "--task-seconds", "0.2", "--no-progress"]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_server(("127.0.0.1", 8787)))
        ran = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True, start_new_session=True)
        end = time.monotonic() + 120
        while not list((place / "out").glob("runs/*/*.parquet")) and time.monotonic() < end:
            time.sleep(0.1)
        os.killpg(ran.pid, signal.SIGINT)
        _, said = ran.communicate(timeout=120)
    assert ran.returncode == 130 and said.count("\n") == 1 and said.startswith("interrupted: "), said
    kept = int(said.split()[1])
    assert kept > 0 and len((place / "out/runs.csv").read_text().splitlines()) == kept + 1


def test_a_sweep_in_an_object_store(place: Path) -> None:
    """An address of fsspec instead of a directory: here in the memory of the process, which the workers' threads share."""
    fsspec = pytest.importorskip("fsspec")
    address = f"memory://study-{time.time_ns()}"
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        spread = anabranch.sweep(place / "sweep.toml", out=address, client=client)
    anabranch.sweep(place / "sweep.toml", out=place / "one")
    system, path = fsspec.core.url_to_fs(address)
    assert [system.cat_file(f"{path}/{name}") for name in TABLES] == tables(place / "one")
    assert spread.complete


def test_a_directory_may_have_any_name(place: Path) -> None:
    """Also one that a shell would take for a pattern."""
    arguments = {"measure": {"time": "flows.upload.completion"}, "seeds": 3, "out": place / "study[1]*"}
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        done = anabranch.sweep(place / "scenario.toml", client=client, **arguments)
    assert done.complete and len(done.runs) == 3


def test_a_damaged_file_of_a_dataset_is_named(place: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = place / "out"
    arguments = {"measure": {"time": "flows.upload.completion"}, "seeds": 4, "out": out}
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, distributed.Client(cluster) as client:

        def again() -> anabranch.SweepResult:
            return anabranch.sweep(place / "scenario.toml", client=client, **arguments)

        again()
        file = out / "runs/cell-0/0-1.parquet"
        whole, table = file.read_bytes(), parquet.read_table(file, partitioning=None)
        other_seed = table.set_column(1, "seed", [[table["seed"][0].as_py() + 1]]).cast(table.schema)
        other_cell = table.set_column(0, "cell", [[1]]).cast(table.schema)
        for wrong in [whole[:100], b"", table.slice(0, 0), other_seed, other_cell, table.drop(["time"])]:
            if isinstance(wrong, bytes):
                file.write_bytes(wrong)
            else:
                parquet.write_table(wrong, file)
            with pytest.raises(ValueError, match=r"runs/cell-0/0-1.parquet: .*remove it"):
                again()
        file.write_bytes(whole)
        for name in ["cell-0/copy.parquet", "cell-7/0-1.parquet"]:
            (out / "runs" / name).parent.mkdir(exist_ok=True)
            (out / "runs" / name).write_bytes(whole)
            with pytest.raises(ValueError, match=f"runs/{name}: .*remove it"):
                again()
            (out / "runs" / name).unlink()
        for note in ["{", "[]"]:
            known = (out / "sweep.json").read_text()
            (out / "sweep.json").write_text(note)
            with pytest.raises(ValueError, match="`sweep.json` is damaged"):
                again()
            (out / "sweep.json").write_text(known)
        assert again().complete


def test_a_worker_that_reads_another_recorded_link_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (place / "scenario.toml").read_text().replace('"10 Mbit/s"', '{ trace = "link.csv" }')
    (place / "traced.toml").write_text(text)
    (place / "link.csv").write_text("time,rate\n0,8000000\n1,8000000\n")
    (place / "elsewhere").mkdir()
    (place / "elsewhere/link.csv").write_text("time,rate\n0,1000000\n1,1000000\n")
    monkeypatch.chdir(place)
    arguments = {"measure": {"time": "flows.upload.completion"}, "seeds": 2}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        assert anabranch.sweep("traced.toml", out="same", client=client, **arguments).complete
        client.run(os.chdir, "elsewhere")
        with pytest.raises(ValueError, match="a recorded link"):
            anabranch.sweep("traced.toml", out="other", client=client, **arguments)
