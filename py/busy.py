"""Whether two local workers of Dask keep two cores busy: `python py/busy.py [RUNS]`, a sweep of 100,000 short runs if nothing is said.

Prints how long the sweep took, the processor time of each part of it, the share of both cores that was busy with it, and for how long the
workers had no task by Dask's own record. The first is to be read on a machine that does nothing else; processor times and waits without a task
hold on any machine.
"""

import sys
import tempfile
import time
from typing import Any

import anabranch
from bench import scenario
from distributed import Client, LocalCluster

WORKERS = 2


def sweep(runs: int, place: str, **given: Any) -> anabranch.SweepResult:
    measure = {"time": "flows.upload.completion"}
    text = scenario("100 kB", "primary")
    return anabranch.sweep(text, measure=measure, seeds=runs, out=place, progress=False, **given)


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        begun = time.process_time()
        alone = sweep(runs, f"{place}/alone", threads=1)
        one = time.process_time() - begun
        with (
            LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            client.run(__import__, "pyarrow.parquet")
            client.get_task_stream()  # the first question begins the record

            def cpu() -> float:
                return sum(client.run(time.process_time).values())

            workers, own, begun, clock = cpu(), time.process_time(), time.perf_counter(), time.time()
            spread = sweep(runs, f"{place}/spread", client=client)
            seconds, own, workers = time.perf_counter() - begun, time.process_time() - own, cpu() - workers
            record = client.get_task_stream(start=clock)
        assert spread.runs.to_dict() == alone.runs.to_dict(), "the same rows"
        spans = [part for task in record for part in task["startstops"] if part["action"] == "compute"]
        computing = sum(part["stop"] - part["start"] for part in spans)
        handing = max(part["stop"] for part in spans) - min(part["start"] for part in spans)
        print(
            f"{runs} runs in {seconds:.2f} s; processor time: workers {workers:.2f} s, scheduler and client {own:.2f} s; "
            f"one process without Dask {one:.2f} s\n"
            f"busy: {(workers + own) / (WORKERS * seconds):.1%} of {WORKERS} cores, {workers / (WORKERS * seconds):.1%} by the workers\n"
            f"{len(spans)} tasks in {handing:.2f} s: workers were without a task {1 - computing / (WORKERS * handing):.1%} of this time; "
            f"{seconds - handing:.2f} s before the first and after the last"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
