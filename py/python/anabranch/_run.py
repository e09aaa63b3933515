"""Runs, publications and models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from anabranch import _core, _progress
from anabranch._policies import Policy, by_name
from anabranch._results import Model, Reproduction, Result
from anabranch._text import Source, edits, read


def run(
    scenario: Source,
    *,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    series: bool = False,
    policies: Mapping[str, Policy] | None = None,
    progress: bool | _progress.RunWatcher | None = None,
) -> Result:
    """Run a scenario: a path, a text of TOML, or a dict with the keys of docs/scenario.md.

    `seed` stands instead of the scenario's own. `set` edits it: `{"flow.download.sctp.retransmit": "same"}`.
    `series` keeps what changes during the run. `policies` are classes of your own by the name that the scenario uses.
    `progress`, if it is a function, is called every 65,536 events with virtual seconds, bytes delivered, and bytes expected (or
    None). Otherwise a notebook and a terminal show a bar if the run takes longer than a second and tqdm is installed; not if it is False.

    Raises ScenarioError if anything in the scenario is wrong. Ctrl-C ends the run. The GIL is released meanwhile.
    """
    file, text = read(scenario, "scenario")
    own = by_name(policies)
    with _progress.of_run(progress, "run") as watch:
        return Result(_core.run(file, text, edits(set), seed, series, own, watch))


def loopback(
    size: int,
    *,
    policies: Mapping[str, Policy] | None = None,
    new: str = "primary",
    retransmit: str = "same",
    window: str = "standard",
    within: float = 30.0,
) -> list[int]:
    """Send `size` bytes in real time over UDP between two endpoints of this process, on two paths of the loopback interface.

    The endpoints are those of `anabranch send` and `serve`. `policies` are classes of your own; `new`, `retransmit` and `window` name
    what the sender uses, as in a scenario. Returns the bytes that were acknowledged on each path, those of chunk headers included.

    Raises TimeoutError after `within` seconds, and NotImplementedError on systems other than Linux. An exception in a policy ends the transfer.
    """
    if not hasattr(_core, "loopback"):
        raise NotImplementedError("anabranch.loopback needs Linux; runs and sweeps do not")
    own = by_name(policies)
    return _core.loopback(size, own, new, retransmit, window, within)


def content_key(scenario: Source, *, seed: int | None = None, set: Mapping[str, Any] | None = None) -> str:
    """The content key of a run: equal for scenarios that say the same, however they are written."""
    file, text = read(scenario, "scenario")
    return _core.content_key(file, text, edits(set), seed)


def reproduce(
    paper: str | os.PathLike[str],
    *,
    claims: str | Sequence[str] | None = None,
    seeds: int | None = None,
    threads: int | None = None,
    progress: bool | _progress.Watcher | None = None,
) -> Reproduction:
    """Run what a publication's claims need and judge them. `paper` is a folder or one of `anabranch.papers()`.

    `claims` are ids of claims, or what ids begin with before a `/`. `seeds` stands instead of the experiments' own
    number. Ctrl-C ends it after the runs that are under way.
    """
    wanted = [claims] if isinstance(claims, str) else None if claims is None else list(claims)
    with _progress.bar(progress, os.fspath(paper)) as watcher:
        return Reproduction(_core.Reproduction(paper, wanted, seeds, threads, watcher))


def model(name: str, **inputs: Any) -> Model:
    """What a published model gives: `model("receive-buffer-blocking", primary="10 Mbit/s", secondary="36 kbit/s",
    receive_buffer="1 MB")`."""
    return Model(*_core.model(name, [(key, f"{key}={value}") for key, value in inputs.items()]))
