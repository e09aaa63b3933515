"""What Dask's scheduler costs: `python py/scale.py 2 8 32`, a number of worker processes each.

Every task takes the arguments of a sweep's task and does nothing, so that the time is the scheduler's and the workers'
own. The last line is a sweep of short runs with two workers: how busy they are.
"""

import pickle
import sys
import tempfile
import time

import anabranch
from anabranch import _dask
from bench import scenario

TASKS = 2000


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
        begun, left = time.perf_counter(), TASKS
        stream = as_completed([client.submit(nothing, *given, pure=False) for _ in range(_dask.AHEAD * workers)])
        left -= _dask.AHEAD * workers
        for future in stream:
            future.release()
            if left > 0:
                left -= 1
                stream.add(client.submit(nothing, *given, pure=False))
        seconds = time.perf_counter() - begun
        size = len(pickle.dumps((nothing, given)))
        print(
            f"{workers} workers: {TASKS / seconds:.0f} tasks/s, {seconds / TASKS * 1e3:.2f} ms a task, "
            f"{size} bytes of arguments, scheduler and client {before:.0f} MB, {memory() - before:+.0f} MB after {TASKS} tasks",
            flush=True,
        )


def busy(runs: int) -> None:
    """The share of the time in which two workers were running simulations."""
    from distributed import Client, LocalCluster

    measure = {"time": "flows.upload.completion"}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

        def cpu() -> float:
            return sum(client.run(time.process_time).values())

        before, begun = cpu(), time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            anabranch.sweep(
                scenario("10 kB", "primary"), measure=measure, seeds=runs, client=client, out=f"{place}/s", progress=False
            )
        seconds = time.perf_counter() - begun
        spent = cpu() - before
        print(f"{runs} runs: {seconds:.1f} s, the two workers' processor time {spent:.1f} s, {spent / seconds / 2:.0%} of two cores")


if __name__ == "__main__":
    for number in sys.argv[1:]:
        overhead(int(number))
    busy(100_000)
