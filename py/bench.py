"""What the package costs: `python py/bench.py`. Times are those of the process (CPU), the best of five rounds."""

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


def best(work: Callable[[], object]) -> float:
    """Seconds."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def runs(count: int) -> None:
    """What Python adds to the compiled call, which reads, checks and runs the scenario; and the same run in a sweep."""
    text = scenario("10 kB", "primary")
    every = range(count)
    whole = best(lambda: [anabranch.run(text, seed=seed)["flows"] for seed in every]) / count
    name, source = "scenario", text
    compiled = best(lambda: [_core.run(name, name, source, [], seed, False, None, None) for seed in every]) / count
    measure = {"time": "flows.upload.completion"}
    few, many = (
        best(lambda: anabranch.sweep(text, measure=measure, seeds=seeds, threads=1, progress=False))
        for seeds in (1, count + 1)
    )
    micros = [f"{seconds * 1e6:.0f} us" for seconds in (whole, whole - compiled, (many - few) / count)]
    print("a run: {}, of which Python {}; within a sweep {}".format(*micros))


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
    rust = best(lambda: anabranch.run(scenario("20 MB", "primary")))
    python = best(lambda: anabranch.run(scenario("20 MB", "mine"), policies={"mine": Primary}))
    each = (python - rust) / Primary.decisions
    print(f"a route: {Primary.decisions} decisions, {each * 1e6:.2f} us each above the route in Rust")


if __name__ == "__main__":
    runs(500)
    routes()
