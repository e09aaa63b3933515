"""What the tests share."""

import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCENARIO = """
seed = 40
[[link]]
name = "wifi"
between = ["s", "r"]
rate = "10 Mbit/s"
delay = "5 ms"
[[link]]
name = "wimax"
between = ["s", "r"]
rate = "5 Mbit/s"
delay = "20 ms"
[[flow]]
name = "upload"
from = "s"
to = "r"
send = "100 kB"
"""

SWEEP = """
scenario = "scenario.toml"
seeds = 15
until = { time = "3 %" }
compare = "era"
[vary]
"link.wifi.loss" = ["0 %", "1 %", "5 %"]
era = ["rfc4960", "rfc9260"]
[measure]
time = "flows.upload.completion"
lost = "links.wifi s>r.drops.loss"
"""


# A shell starts what it puts in the background with SIGINT ignored, and Python keeps it so: the tests of Ctrl-C need the handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="sweeps of clusters with many runs")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> int:
    """Of each cell of a sweep on a cluster."""
    return 400 if request.config.getoption("--long") else 100


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a scenario and a sweep over it."""
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path
