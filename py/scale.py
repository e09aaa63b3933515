"""What Dask's scheduler costs: `python py/scale.py 2 8 32`, a number of worker processes each.

Every task takes the arguments of a sweep's task and does nothing, so that the time is the scheduler's and the workers'
own. The first line is a sweep of short runs with two workers.
"""

import pickle
import sys
import tempfile
import time
from typing import Any

import anabranch
from anabranch import _dask
from bench import scenario

TASKS = 500


def nothing(address: str, identity: str, chunk: tuple[int, int, int], values: bool, policies: None) -> tuple[float, list[None]]:
    """The signature of `_dask.work`."""
    return 0.0, []


def memory() -> float:
    """Of this process, in MB."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def overhead(workers: int) -> None:
    """Tasks a second, with as many in flight as a sweep has, and the memory of the scheduler."""
    from distributed import Client, LocalCluster, as_completed

    given = ("/data/sweep", "0" * 64, (12, 1000, 2000), False, None)
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather([client.submit(nothing, *given, pure=False) for _ in range(2 * workers)])
        before = memory()
        begun, spent, left = time.perf_counter(), time.process_time(), TASKS
        stream = as_completed([client.submit(nothing, *given, pure=False) for _ in range(_dask.AHEAD * workers)])
        left -= _dask.AHEAD * workers
        for future in stream:
            future.release()
            if left > 0:
                left -= 1
                stream.add(client.submit(nothing, *given, pure=False))
        seconds, spent = time.perf_counter() - begun, time.process_time() - spent
        size = len(pickle.dumps((nothing, given)))
        print(
            f"{workers} workers: {TASKS / seconds:.0f} tasks/s, {spent / TASKS * 1e3:.2f} ms of scheduler and client a task, "
            f"{size} bytes of arguments, {before:.0f} MB, {memory() - before:+.0f} MB after {TASKS} tasks",
            flush=True,
        )


def busy(runs: int) -> None:
    """Of a sweep with two workers: how much of all processor time went into the simulations."""
    from distributed import Client, LocalCluster

    def sweep(**given: Any) -> float:
        begun = time.process_time()
        with tempfile.TemporaryDirectory() as place:
            measure = {"time": "flows.upload.completion"}
            anabranch.sweep(
                scenario("10 kB", "primary"), measure=measure, seeds=runs, out=f"{place}/s", progress=False, **given
            )
        return time.process_time() - begun

    alone = sweep(threads=1)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

        def cpu() -> float:
            return sum(client.run(time.process_time).values())

        before, begun = cpu(), time.perf_counter()
        spent = sweep(client=client)
        seconds, workers = time.perf_counter() - begun, cpu() - before
        print(
            f"{runs} runs: {seconds:.1f} s; processor time: workers {workers:.1f} s, scheduler and client {spent:.1f} s, "
            f"one process without Dask {alone:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    busy(100_000)
    for number in sys.argv[1:]:
        overhead(int(number))
