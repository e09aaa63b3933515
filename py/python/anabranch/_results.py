"""What runs, sweeps and publications return."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from anabranch import _core
from anabranch._table import Table


class Result(Mapping[str, Any]):
    """The result of a run: a mapping with the entries of `anabranch run --json`, and tables of its parts."""

    def __init__(self, run: _core.Run) -> None:
        self._run = run
        self._read: dict[str, Any] | None = None

    @property
    def _entries(self) -> dict[str, Any]:
        # Made when they are first read; a `cached_property` would take a lock each time.
        if self._read is None:
            self._read = self._run.entries()
        return self._read

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def to_dict(self) -> dict[str, Any]:
        """The entries as a dict of its own."""
        return self._run.entries()

    def to_json(self) -> str:
        """The entries as JSON, on one line."""
        return self._run.json()

    @property
    def flows(self) -> Table:
        """One row a flow."""
        return Table(self._run.table("flows"))

    @property
    def paths(self) -> Table:
        """One row a path of a flow."""
        return Table(self._run.table("paths"))

    @property
    def links(self) -> Table:
        """One row a direction of a link."""
        return Table(self._run.table("links"))

    @property
    def traffic(self) -> Table:
        """One row an entry of cross traffic."""
        return Table(self._run.table("traffic"))

    @property
    def stations(self) -> Table:
        """One row a radio."""
        return Table(self._run.table("stations"))

    @cached_property
    def series(self) -> Series:
        """What changed during the run, by name (`download.windows`); empty without `run(…, series=True)`."""
        return Series(self._run)

    @property
    def scenario(self) -> str | None:
        """The scenario that was run as canonical TOML; None if it names policies that no document can."""
        return self._run.scenario()

    def plot(self, series: str = "windows") -> Any:
        """A figure of plotly with this series of all flows or links over the time of the run."""
        from anabranch import _plot

        return _plot.series(self.series, series)

    def __repr__(self) -> str:
        return f"Result({self['scenario']!r}, seed={self['seed']}, ended={self['ended']:.6g} s)"

    def _repr_html_(self) -> str:
        return self.flows._repr_html_()


class Series(Mapping[str, Table]):
    """The series of a run by name: what has it, a dot, and which of its series."""

    def __init__(self, run: _core.Run) -> None:
        self._run = run
        self._names = run.series_names()

    def __getitem__(self, name: str) -> Table:
        columns = self._run.series(name)
        if columns is None:
            known = ", ".join(self._names) or "none; ask for them: run(…, series=True)"
            raise KeyError(f"{name}: there is no such series; there are: {known}")
        return Table(columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class SweepResult:
    """The result of a sweep: its runs, and the summaries of its cells."""

    def __init__(self, sweep: _core.Sweep, out: Path, complete: bool) -> None:
        self.complete = complete
        """Whether no run is missing."""
        self.runs = Table(sweep.table(sweep.runs_in(out)))
        """One row a run, by cell and seed: what was varied, the measures, and `error` of a run that failed."""
        self.cells: list[dict[str, Any]] = load(out / "summary.json") if complete else []
        """The summaries as `anabranch sweep --json` prints them; empty if runs are missing."""
        self.failed: list[dict[str, Any]] = load(out / "failed.json") if complete else []
        """The runs that failed: what was varied, `seed`, `error`, and `scenario` as TOML that repeats it."""
        self.keys = sweep.keys
        """What was varied."""
        self.measures = sweep.measures
        """The names of the measures."""
        self.headings = dict(zip(sweep.measures, sweep.headings, strict=True))
        """By measure, its name with its unit."""

    def means(self) -> list[dict[str, Any]]:
        """A row a cell: what was varied, and of each measure the mean, half its 95 % interval (`…_ci95`), and the number of runs
        (`…_n`).

        Raises ValueError if two of these would have one name, as with measures `a` and `a_n`; `cells` has all of them apart.
        """
        columns = [*self.keys, *(column for name in self.measures for column in (name, f"{name}_ci95", f"{name}_n"))]
        if twice := next((name for name in columns if columns.count(name) > 1), None):
            raise ValueError(f"two columns would be called `{twice}`: give a measure another name, or read `cells`")
        rows = []
        for cell in self.cells:
            row = dict(cell["varied"])
            for name, summary in cell["measures"].items():
                row |= {name: summary["mean"], f"{name}_ci95": summary["ci95"], f"{name}_n": summary["n"]}
            rows.append(row)
        return rows

    def plot(self, measure: str | None = None) -> Any:
        """A figure of plotly: the mean of a measure with its 95 % interval over the first key that is varied."""
        from anabranch import _plot

        return _plot.sweep(self, measure or self.measures[0])

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        return f"SweepResult({len(self.runs)} runs of {', '.join(self.measures)}{state})"

    def _repr_html_(self) -> str:
        from anabranch._table import half_interval, shown

        if not self.cells:
            return self.runs._repr_html_()
        headings = [self.headings[name] for name in self.measures]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in [*self.keys, *headings])

        def mean(summary: dict[str, Any]) -> str:
            width = half_interval(summary)
            return shown(summary["mean"]) + (f" ± {width:.3g}" if width else "")

        def row(cell: dict[str, Any]) -> str:
            varied = [shown(cell["varied"][key]) for key in self.keys]
            means = [mean(cell["measures"][name]) for name in self.measures]
            return "".join(f"<td>{html.escape(text)}</td>" for text in varied + means)

        body = "".join(f"<tr>{row(cell)}</tr>" for cell in self.cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def load(file: Path) -> list[dict[str, Any]]:
    """The list in a file of JSON; empty if there is no such file."""
    if not file.exists():
        return []
    entries: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return entries


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a sweep; `result` has the runs that are finished."""

    def __init__(self, result: SweepResult) -> None:
        super().__init__(f"interrupted; {len(result.runs)} runs are in `result` of this exception")
        self.result = result


class Reproduction(Mapping[str, Any]):
    """A publication with its claims judged: a mapping with the entries of `anabranch reproduce --json`."""

    def __init__(self, reproduction: _core.Reproduction) -> None:
        self._entries: dict[str, Any] = json.loads(reproduction.json())
        self.claims = Table(reproduction.table())
        """One row a claim."""

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def as_expected(self) -> bool:
        """Whether every claim came as it was expected to."""
        return all(claim["as_expected"] for claim in self["claims"])

    def plot(self) -> Any:
        """A figure of plotly: every claim about one value beside what the publication says."""
        from anabranch import _plot

        return _plot.claims(self)

    def __repr__(self) -> str:
        held = sum(claim["holds"] for claim in self["claims"])
        return f"Reproduction({self['paper']!r}: {held} of {len(self['claims'])} claims hold)"

    def _repr_html_(self) -> str:
        return self.claims._repr_html_()


class Model(Mapping[str, Any]):
    """What a model gives: its terms by name, in SI units; None where there is none."""

    def __init__(self, text: str, terms: _core.Table) -> None:
        self._values: dict[str, Any] = json.loads(text)
        self.terms = Table(terms)
        """One row a term, with its symbol, unit and meaning."""

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Model({self._values})"

    def _repr_html_(self) -> str:
        return self.terms._repr_html_()
