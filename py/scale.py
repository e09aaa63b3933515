"""What Dask's scheduler costs: `python py/scale.py 2 8 32 100`, a number of worker processes each.

Every task takes the arguments of a sweep's task and does nothing. Scheduler and client are processes of their own, and each worker is a
process of one thread without a nanny, so that processor time, bytes and memory are the scheduler's alone and hardly depend on what else
the machine does. A worker takes about 60 MB; the script ends before it starts more than the memory can hold.
"""

import asyncio
import contextlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anabranch import _dask
from distributed import Client, Worker, as_completed

TASKS = 3000
IDLE = 10.0
"""Seconds for which an idle cluster is watched."""
WORKER = 100e6
"""Bytes that a worker may need."""


def nothing(address: str, identity: str, chunk: tuple[int, int, int], values: bool, policies: None) -> tuple[float, None]:
    """The signature of `_dask.work`."""
    return 0.0, None


def work(address: str) -> None:
    """The process of a worker."""

    async def serve() -> None:
        async with Worker(address, nthreads=1, memory_limit=0) as worker:
            await worker.finished()

    os.chdir(tempfile.gettempdir())
    asyncio.run(serve())


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[int, Client]]:
    """The scheduler's process id and a client, with so many workers."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as end:
        note = f"{place}/scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        log = end.enter_context(open(f"{place}/log", "w", encoding="utf-8"))
        scheduler = subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", note], cwd=place, stdout=log, stderr=log)
        end.callback(scheduler.wait)
        end.callback(scheduler.terminate)
        client = end.enter_context(Client(scheduler_file=note, timeout=120))
        # Forked from one process that has loaded Dask: a hundred starts of Python would take minutes.
        fork = multiprocessing.get_context("forkserver")
        fork.set_forkserver_preload(["distributed"])
        for _ in range(workers):
            process = fork.Process(target=work, args=(client.scheduler.address,), daemon=True)
            process.start()
            end.callback(process.join)
            end.callback(process.terminate)
        client.wait_for_workers(workers, timeout=600)
        yield scheduler.pid, client


def spent(process: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> float:
    """Resident, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    [kilobytes] = re.findall(r"VmRSS:\s+(\d+)", status)
    return int(kilobytes) / 1024


def carried(client: Client) -> int:
    """Bytes that the scheduler's connections have carried in both directions."""
    port = client.scheduler.address.rsplit(":", 1)[1]
    listed = subprocess.run(["ss", "-Htin", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return sum(int(count) for count in re.findall(r"bytes_(?:acked|received):(\d+)", listed))


def tasks(client: Client, ahead: int, count: int) -> None:
    """Runs so many tasks, of which `ahead` are in flight, as a sweep does."""
    given = ("/data/sweep", "0" * 64, (12, 1000, 2000), False, None)

    def submit() -> Any:
        return client.submit(nothing, *given, pure=False, retries=2)

    left = count - ahead
    stream = as_completed([submit() for _ in range(ahead)])
    for future in stream:
        future.release()
        if left > 0:
            left -= 1
            stream.add(submit())


def overhead(workers: int) -> None:
    """Prints what a task and an idle worker cost."""
    with cluster(workers) as (scheduler, client):
        ahead = _dask.AHEAD * workers
        tasks(client, ahead, 2 * ahead)
        begun, cpu = time.perf_counter(), spent(scheduler)
        time.sleep(IDLE)
        idle = (spent(scheduler) - cpu) / (time.perf_counter() - begun)
        before, begun, cpu, own, bytes_before = memory(scheduler), time.perf_counter(), spent(scheduler), time.process_time(), carried(client)
        tasks(client, ahead, TASKS)
        seconds, cpu, own = time.perf_counter() - begun, spent(scheduler) - cpu, time.process_time() - own
        print(
            f"{workers} workers: {TASKS / seconds:.0f} tasks/s; a task: scheduler {cpu / TASKS * 1e3:.2f} ms, "
            f"client {own / TASKS * 1e3:.2f} ms, {(carried(client) - bytes_before) / TASKS:.0f} bytes at the scheduler; "
            f"scheduler: {before:.0f} MB, {memory(scheduler) - before:+.1f} MB after {TASKS} tasks, idle {idle * 1e3:.1f} ms/s",
            flush=True,
        )


def free() -> float:
    """Bytes of memory that processes can still take."""
    [kilobytes] = re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return int(kilobytes) * 1024


if __name__ == "__main__":
    for number in map(int, sys.argv[1:] or ["2", "8"]):
        if number * WORKER > free() / 2:
            sys.exit(f"{number} workers need {number * WORKER / 1e9:.0f} GB, and this machine has {free() / 1e9:.0f} GB free")
        overhead(number)
