"""Multipath transport: simulate it, compare its policies, reproduce its publications.

>>> import anabranch
>>> result = anabranch.run("scenarios/headline.toml", seed=7)
>>> result["flows"][0]["completion"]  # doctest: +SKIP
17.88
"""

from anabranch._core import Acked, Ask, Path, ScenarioError, Sibling, __version__, papers
from anabranch._policies import Policy, RoutePolicy, WindowPolicy
from anabranch._results import Interrupted, Model, Reproduction, Result, SweepResult
from anabranch._run import content_key, loopback, model, reproduce, run
from anabranch._sweep import sweep
from anabranch._table import Table

__all__ = [
    "Acked",
    "Ask",
    "Interrupted",
    "Model",
    "Path",
    "Policy",
    "Reproduction",
    "Result",
    "RoutePolicy",
    "ScenarioError",
    "Sibling",
    "SweepResult",
    "Table",
    "WindowPolicy",
    "__version__",
    "content_key",
    "loopback",
    "model",
    "papers",
    "reproduce",
    "run",
    "sweep",
]
