"""What a task costs under HyperQueue, beside `py/scale.py`: `python py/scale_hyperqueue.py` (needs `pip install hyperqueue`).

Each task of HyperQueue is a process of its own: the program `true`, or a Python interpreter that does nothing.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def nothing() -> None:
    """A task in Python."""


def children() -> float:
    """Seconds of processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(what: str, add: Callable[[Job], object], tasks: int) -> None:
    """So many tasks on two cores. Server and worker are threads of this process."""
    with tempfile.TemporaryDirectory() as place, LocalCluster() as cluster:
        os.chdir(place)
        cluster.start_worker(WorkerConfig(cores=2))
        client = cluster.client()
        job = Job()
        for _ in range(tasks):
            add(job)
        begun, own, theirs = time.perf_counter(), time.process_time(), children()
        client.wait_for_jobs([client.submit(job)])
        seconds, own, theirs = time.perf_counter() - begun, time.process_time() - own, children() - theirs
        print(
            f"{what}: {tasks / seconds:.0f} tasks/s, {own / tasks * 1e3:.2f} ms of server and worker a task, "
            f"{theirs / tasks * 1e3:.2f} ms of the task's process",
            flush=True,
        )


if __name__ == "__main__":
    measure("true", lambda job: job.program(["true"], stdout=None, stderr=None), 1000)
    measure("python", lambda job: job.function(nothing, stdout=None, stderr=None), 100)
