"""Sweeps."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch import _core, _progress
from anabranch._policies import Policy, by_name
from anabranch._results import Interrupted, SweepResult
from anabranch._text import Source, edits, is_text, read


def sweep(
    scenario: Source,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    measure: Mapping[str, str] | None = None,
    seeds: int | None = None,
    until: Mapping[str, str] | None = None,
    compare: str | None = None,
    set: Mapping[str, Any] | None = None,
    policies: Mapping[str, Policy] | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    client: Any = None,
    task_seconds: float = 2.0,
    progress: bool | _progress.Watcher | None = None,
) -> SweepResult:
    """Run a grid of scenarios with many seeds each (docs/sweeps.md).

    With `measure`, `scenario` is a scenario and the keyword arguments say the rest; `seeds` is 1 if it is left out.
    Without, `scenario` is a sweep: a path, a text, or a dict, whose entry `scenario` may be a dict itself.

    `out` is a directory that keeps every finished run, so that the same call goes on where it was ended. `threads`: one
    a core if left out. `client`: a `distributed.Client`, whose workers run the sweep (docs/scale.md); `out` is then a
    directory or an address of fsspec that all workers can write, and a task takes about `task_seconds`.

    Raises ScenarioError if anything is wrong, before the first run. Ctrl-C raises Interrupted with what is finished.
    """
    if measure is not None and not isinstance(measure, Mapping):
        raise TypeError(f"`measure` is a dict of names and quantities, such as {{'time': 'flows.upload.completion'}}, not {type(measure).__name__}")
    if measure is not None:
        checked = over(scenario, described(vary, measure, seeds, until, compare), set, policies)
    elif any(entry is not None for entry in (vary, seeds, until, compare)):
        raise TypeError("`vary`, `seeds`, `until` and `compare` need `measure`; without it `scenario` is a sweep")
    else:
        checked = of_sweep(scenario, set, policies)
    if client is None and out is not None and "://" in str(out):
        raise ValueError(f"`out`: {out} is an address; without a client of Dask a sweep writes to a directory (--dask, `client`: docs/scale.md)")
    if client is not None:
        from anabranch import _dask

        return _dask.sweep(checked, client, out, by_name(policies) or {}, progress, task_seconds)
    with tempfile.TemporaryDirectory(prefix="anabranch-") as place:
        directory = Path(out) if out is not None else Path(place) / "sweep"
        try:
            with _progress.bar(progress, "sweep") as watcher:
                complete = checked.execute(directory, threads, watcher)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(SweepResult(checked, directory, False)) from interrupt
        return SweepResult(checked, directory, complete)


def described(
    vary: Mapping[str, Sequence[Any]] | None,
    measure: Mapping[str, str],
    seeds: int | None,
    until: Mapping[str, str] | None,
    compare: str | None,
) -> dict[str, Any]:
    """A sweep's file as a dict, but for its scenario."""
    entries = {"seeds": 1 if seeds is None else seeds, "vary": vary, "measure": dict(measure), "until": until, "compare": compare}
    return {key: dict(entry) if isinstance(entry, Mapping) else entry for key, entry in entries.items() if entry is not None}


def over(
    scenario: Source, sweep: dict[str, Any], set: Mapping[str, Any] | None, policies: Mapping[str, Policy] | None
) -> _core.Sweep:
    """The sweep `sweep` over a scenario."""
    file, text = read(scenario, "scenario")
    described = _core.to_toml({"scenario": file, **sweep})
    return _core.Sweep.over(("sweep", described), (file, text), edits(set), by_name(policies))


def of_sweep(
    source: Source, set: Mapping[str, Any] | None, policies: Mapping[str, Policy] | None
) -> _core.Sweep:
    """A sweep that says itself which scenario it is over."""
    if isinstance(source, Mapping):
        scenario = source.get("scenario")
        if not isinstance(scenario, (str, Mapping)):
            raise TypeError("the entry `scenario` of a sweep is a path, a text or a dict")
        return over(scenario, {key: entry for key, entry in source.items() if key != "scenario"}, set, policies)
    if not is_text(source) and not set and not policies:
        return _core.Sweep.open(str(source))
    name, text = read(source, "sweep")
    scenario = _core.string_at(name, text, "scenario")
    folder = Path() if is_text(source) else Path(name).parent
    # Without the key the strict reader says so, with its line.
    scenario_text = read(folder / scenario, "scenario") if scenario else ("scenario", "")
    return _core.Sweep.over((name, text), scenario_text, edits(set), by_name(policies))
