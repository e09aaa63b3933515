"""Sweeps on the workers of Dask.

The workers write what they have run to one dataset of Parquet files, a file a task, and return only how long it took
(and, with `until`, the measures). A file's name says which runs it has, so that a sweep goes on where it was ended,
whatever became of the scheduler and the workers. Queues, retries and the search for lost workers are Dask's.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from anabranch import _core, _progress
from anabranch._results import Interrupted, SweepResult

SECONDS = 2.0
"""How long a task takes, about, if nothing else is said: long beside the scheduler's part of it (milliseconds), short beside
the loss of a worker."""
AHEAD = 3
"""Tasks that wait or run for each thread of the workers: back-pressure, and never an idle thread."""
MOST = 10_000
"""Runs of a task, at most."""

Chunk = tuple[int, int, int]
"""Cell, number of the first seed, and of the first that is not in it."""


NAMED = re.compile(r"/cell-(\d{1,8})/(\d{1,8})-(\d{1,8})\.parquet$")
"""The end of the path of a chunk's file."""


def file_of(chunk: Chunk) -> str:
    """The file of a chunk in a dataset."""
    cell, first, end = chunk
    # Not `cell=0`: readers make a column of such a name, which is at odds with the column of the same name in the file.
    return f"runs/cell-{cell}/{first}-{end}.parquet"


@dataclass(frozen=True)
class Dataset:
    """Where the runs are: an address of fsspec."""

    address: str

    def open(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        import fsspec

        system, path = fsspec.core.url_to_fs(self.address)
        return system, path

    def begin(self, sweep: _core.Sweep) -> None:
        """Notes which sweep this is, or raises ValueError if the dataset is of another."""
        system, path = self.open()
        system.makedirs(f"{path}/runs", exist_ok=True)
        mine = {"identity": sweep.identity(), "sweep": sweep.description()}
        if system.exists(f"{path}/sweep.json"):
            try:
                known = json.loads(system.cat_file(f"{path}/sweep.json"))["identity"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.address}: `sweep.json` is damaged; choose another directory, or remove this one to begin again") from error
            if known != mine["identity"]:
                raise ValueError(f"{self.address}: holds another sweep; choose another directory")
        self.put("sweep.json", json.dumps(mine).encode())

    def sweep(self, policies: dict[str, Any] | None) -> _core.Sweep:
        """The sweep that `begin` noted, whose scenario can name these policies."""
        system, path = self.open()
        return _core.Sweep.described(json.loads(system.cat_file(f"{path}/sweep.json"))["sweep"], policies)

    def write(self, chunk: Chunk, table: Any) -> None:
        """Writes the runs of a chunk as one file, which appears whole or not at all."""
        import pyarrow
        import pyarrow.parquet

        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, sink)
        self.put(file_of(chunk), sink.getvalue().to_pybytes())

    def put(self, file: str, content: bytes) -> None:
        """Writes a file, which appears whole or not at all."""
        system, path = self.open()
        folder, _, name = f"{path}/{file}".rpartition("/")
        system.makedirs(folder, exist_ok=True)
        # A file that is not finished is not in `runs`: readers of the dataset take every file there, whatever its name ends in.
        system.makedirs(f"{path}/new", exist_ok=True)
        new = f"{path}/new/{name}.{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
        system.pipe_file(new, content)
        system.mv(new, f"{folder}/{name}")

    def clean(self) -> None:
        """Removes what workers that ended have left unfinished."""
        system, path = self.open()
        if system.exists(f"{path}/new"):
            system.rm(f"{path}/new", recursive=True)

    def chunks(self) -> list[Chunk]:
        """What has been run, by cell and seed."""
        system, path = self.open()
        system.invalidate_cache()
        chunks = []
        for file in system.find(f"{path}/runs"):
            named = NAMED.search(file)
            if named:
                cell, first, end = map(int, named.groups())
                chunks.append((cell, first, end))
            elif file.endswith(".parquet"):
                raise ValueError(f"{file}: this is not called as the runs of a sweep are (cell-0/0-10.parquet); remove it")
        return sorted(chunks)

    def read(self, sweep: _core.Sweep, chunks: list[Chunk]) -> Iterator[_core.Runs]:
        """The runs of these chunks."""
        import pyarrow.parquet

        system, path = self.open()
        for chunk in chunks:
            cell, first, end = chunk
            try:
                with system.open(f"{path}/{file_of(chunk)}", "rb") as file:
                    table = pyarrow.parquet.read_table(file, partitioning=None)
                runs = sweep.runs_from(table, cell, first)
                if len(runs) != end - first:
                    raise ValueError(f"these are {len(runs)} runs, not {end - first}")
            except (ValueError, OSError) as error:
                raise ValueError(f"{path}/{file_of(chunk)}: {error}; if it is damaged, remove it: its runs are then run again") from error
            yield runs


@lru_cache(maxsize=8)
def known_sweep(address: str, identity: str) -> _core.Sweep:
    """A worker reads and checks the sweep once, not for each task."""
    return same_sweep(address, identity, None)


def same_sweep(address: str, identity: str, policies: dict[str, Any] | None) -> _core.Sweep:
    """The sweep as this worker reads it, which must be that of the client."""
    sweep = Dataset(address).sweep(policies)
    if sweep.identity() != identity:
        why = "the worker's version of anabranch, or a recorded link that it reads, differs from the client's"
        raise ValueError(f"{address}: a worker on {socket.gethostname()} would run another sweep: {why}")
    return sweep


def work(address: str, identity: str, chunk: Chunk, values: bool, policies: dict[str, Any] | None) -> tuple[float, Any]:
    """What a worker does: runs the chunk and writes its file. Returns the seconds that it took, and the table of the
    runs if `values`."""
    import pyarrow

    begun = time.perf_counter()
    dataset = Dataset(address)
    sweep = same_sweep(address, identity, policies) if policies else known_sweep(address, identity)
    table = pyarrow.table(sweep.table(sweep.runs_of(*chunk)))
    dataset.write(chunk, table)
    return time.perf_counter() - begun, table if values else None


@dataclass
class Plan:
    """Which runs are to be handed out: those of the first cells first."""

    sweep: _core.Sweep
    judge: _core.Judge | None
    left: dict[int, list[tuple[int, int]]]
    target: float = SECONDS
    """Seconds that a task is to take."""
    again: list[Chunk] = field(default_factory=list)
    seconds: float | None = None
    """Of a run, as measured lately."""

    @classmethod
    def of(cls, sweep: _core.Sweep, judge: _core.Judge | None, done: list[Chunk], target: float) -> Plan:
        """All runs but those that are done."""
        left = {cell: [(0, sweep.seeds)] for cell in range(sweep.cells)}
        for cell, first, end in done:
            if cell in left:
                left[cell] = [part for known in left[cell] for part in without(known, (first, end))]
        return cls(sweep, judge, left, target)

    def measured(self, chunk: Chunk, seconds: float) -> None:
        """A chunk took so long."""
        each = seconds / (chunk[2] - chunk[1])
        self.seconds = each if self.seconds is None else 0.7 * self.seconds + 0.3 * each

    def next(self, waiting: int) -> Chunk | None:
        """The next chunk; None if there is none left. `waiting`: the tasks that share what is left."""
        if self.again:
            return self.again.pop()
        size = 1 if self.seconds is None else int(min(MOST, max(1.0, self.target / max(self.seconds, 1e-9))))
        while self.left:
            cell = next(iter(self.left))
            enough = self.judge.enough(cell) if self.judge else None
            if enough is not None or not self.left[cell]:
                del self.left[cell]
                continue
            first, end = self.left[cell].pop(0)
            # Towards the end chunks become smaller, so that all threads end together.
            rest = sum(b - a for parts in self.left.values() for a, b in parts) if len(self.left) == 1 else 0
            fair = -(-(rest + end - first) // max(1, waiting)) if len(self.left) == 1 else size
            stop = min(end, first + max(1, min(size, fair)))
            if stop < end:
                self.left[cell].insert(0, (stop, end))
            return cell, first, stop
        return None


def without(whole: tuple[int, int], part: tuple[int, int]) -> list[tuple[int, int]]:
    """What a range has before and after a part of it."""
    sides = [(whole[0], min(whole[1], part[0])), (max(whole[0], part[1]), whole[1])]
    return [side for side in sides if side[0] < side[1]]


def sweep(
    checked: _core.Sweep,
    client: Any,
    out: str | Path | None,
    policies: dict[str, Any],
    progress: Any,
    task_seconds: float,
) -> SweepResult:
    """Runs the sweep on the workers of `client`, in tasks of about `task_seconds`."""
    with tempfile.TemporaryDirectory(prefix="anabranch-") as place:
        address = str(out) if out is not None else f"{place}/sweep"
        tables = Path(address) if "://" not in address else Path(place) / "tables"
        if "://" not in address:
            address = os.path.abspath(address)
        # The journal comes first: it refuses a directory that holds something else.
        checked.add(tables, [])
        dataset = Dataset(address)
        dataset.begin(checked)
        try:
            with _progress.bar(progress, "sweep") as watcher:
                distribute(checked, client, dataset, policies, watcher, task_seconds)
        except KeyboardInterrupt as interrupt:
            collect(checked, dataset, tables)
            raise Interrupted(SweepResult(checked, tables, False)) from interrupt
        complete = collect(checked, dataset, tables)
        if complete:
            dataset.clean()
        if "://" in address:
            system, path = dataset.open()
            system.put([str(file) for file in sorted(tables.iterdir())], f"{path}/")
        return SweepResult(checked, tables, complete)


def collect(sweep: _core.Sweep, dataset: Dataset, tables: Path) -> bool:
    """Makes the tables of the dataset's runs; whether none is missing."""
    return sweep.add(tables, list(dataset.read(sweep, dataset.chunks())))


def distribute(
    sweep: _core.Sweep,
    client: Any,
    dataset: Dataset,
    policies: dict[str, Any],
    watcher: Any,
    task_seconds: float,
) -> None:
    """Hands out what is missing, until nothing is."""
    from distributed import as_completed

    until = sweep.judges
    judge = _core.Judge(sweep) if until else None
    done = dataset.chunks()
    if judge:
        for runs in dataset.read(sweep, done):
            judge.finish(runs)
    plan = Plan.of(sweep, judge, done, task_seconds)
    finished = sum(end - first for _, first, end in done)
    identity = sweep.identity()
    tasks: dict[Any, Chunk] = {}
    stream = as_completed(with_results=False, raise_errors=False)

    def hand_out() -> None:
        threads = threads_of(client)
        while len(tasks) < AHEAD * threads and (chunk := plan.next(AHEAD * threads)):
            future = client.submit(work, dataset.address, identity, chunk, until, policies or None, pure=False, retries=2)
            tasks[future] = chunk
            stream.add(future)

    try:
        hand_out()
        while tasks:
            future = next(stream)
            chunk = tasks.pop(future)
            if future.status == "finished":
                seconds, table = future.result()
                plan.measured(chunk, seconds)
                finished += chunk[2] - chunk[1]
                if judge:
                    judge.finish(sweep.runs_from(table, chunk[0], chunk[1]))
                if watcher:
                    watcher(finished, sweep.cells * sweep.seeds)
            else:
                finished += lost(sweep, dataset, plan, judge, chunk, future)
            future.release()
            hand_out()
    finally:
        client.cancel(list(tasks))


def threads_of(client: Any) -> int:
    """Of all workers; 1 while a scheduler that is being restarted does not answer."""
    try:
        return sum(client.nthreads().values()) or 1
    except OSError:
        return 1


def lost(
    sweep: _core.Sweep, dataset: Dataset, plan: Plan, judge: _core.Judge | None, chunk: Chunk, future: Any
) -> int:
    """A task ended without a result; how many runs are finished by that. A chunk that ended several workers is halved
    until the run is found that does it, and that run is kept as failed. What a restarted scheduler forgot is handed
    out again."""
    import pyarrow

    cell, first, end = chunk
    if future.status != "error":
        plan.again.append(chunk)
        return 0
    error = future.exception()
    if type(error).__name__ != "KilledWorker":
        raise error
    if end - first > 1:
        middle = (first + end) // 2
        plan.again += [(cell, middle, end), (cell, first, middle)]
        return 0
    failed = sweep.failed(cell, first, f"the worker ended: {error}")
    dataset.write(chunk, pyarrow.table(sweep.table(failed)))
    if judge:
        judge.finish(failed)
    return 1
