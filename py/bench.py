"""What the package costs: `python py/bench.py`. Times are processor times. What is compared runs in turns, and the least of fifteen counts."""

import json
import time
from collections.abc import Callable

import anabranch
from anabranch import _core

SHORT = """
[[link]]
name = "wifi"
between = ["s", "r"]
rate = "10 Mbit/s"
delay = "5 ms"
loss = "1 %"
[[link]]
name = "wimax"
between = ["s", "r"]
rate = "5 Mbit/s"
delay = "20 ms"
[[flow]]
name = "upload"
from = "s"
to = "r"
send = "SIZE"
[flow.sctp]
new = "ROUTE"
"""


def scenario(size: str, route: str) -> str:
    return SHORT.replace("SIZE", size).replace("ROUTE", route)


def best(*work: Callable[[], object]) -> list[float]:
    """Of each, the least seconds; they take turns, so that what else the machine does meets all of them."""
    times: list[list[float]] = [[] for _ in work]
    for _ in range(15):
        for taken, each in zip(times, work, strict=True):
            begun = time.process_time()
            each()
            taken.append(time.process_time() - begun)
    return [min(taken) for taken in times]


def runs(count: int) -> None:
    """What Python adds to the compiled call, which reads, checks and runs the scenario; and the same run in a sweep."""
    text = scenario("10 kB", "primary")
    every = range(count)
    measure = {"time": "flows.upload.completion"}

    def compiled(seed: int) -> _core.Run:
        return _core.run("scenario", text, [], seed, False, None, None)

    def sweep(seeds: int) -> object:
        return anabranch.sweep(text, measure=measure, seeds=seeds, threads=1, progress=False)

    whole, by_json, rust, few, many = best(
        lambda: [anabranch.run(text, seed=seed)["flows"] for seed in every],
        lambda: [json.loads(compiled(seed).json())["flows"] for seed in every],
        lambda: [compiled(seed) for seed in every],
        lambda: sweep(1),
        lambda: sweep(count + 1),
    )
    micros = [f"{seconds / count * 1e6:.0f} us" for seconds in (whole, whole - rust, by_json - rust, many - few)]
    print("a run: {}, of which Python {} (results as JSON: {}); within a sweep {}".format(*micros))


class Primary:
    """Always the first path."""

    decisions = 0

    def choose(self, ask: anabranch.Ask, paths: list[anabranch.Path]) -> int:
        return 0


class Counting(Primary):
    def choose(self, ask: anabranch.Ask, paths: list[anabranch.Path]) -> int:
        Primary.decisions += 1
        return 0


def routes() -> None:
    """A decision in Python, above the same one in Rust."""
    anabranch.run(scenario("20 MB", "mine"), policies={"mine": Counting})
    rust, python = best(
        lambda: anabranch.run(scenario("20 MB", "primary")),
        lambda: anabranch.run(scenario("20 MB", "mine"), policies={"mine": Primary}),
    )
    each = (python - rust) / Primary.decisions
    print(f"a route: {Primary.decisions} decisions, {each * 1e6:.2f} us each above the route in Rust")


if __name__ == "__main__":
    runs(200)
    routes()
