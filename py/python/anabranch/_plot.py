"""Figures of plotly."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch._results import Reproduction, Series, SweepResult

LABELS = {
    "windows": {"cwnd": "congestion window (bytes)"},
    "rto": {"rto": "retransmission timeout (s)"},
    "peer_window": {"bytes": "peer's window (bytes)"},
    "queue": {"bytes": "queue (bytes)"},
    "sent": {"tsn": "TSN", "sequence": "first byte of the segment"},
    "marked": {"tsn": "TSN", "sequence": "first byte of the segment"},
    "acked": {"cumulative_tsn": "highest TSN acknowledged without a gap", "acknowledged": "acknowledged without a gap (bytes)"},
    "held": {"bytes": "held beyond the first gap (bytes)"},
    "reordering": {"depth": "TSNs below the highest one received (Multipath TCP: bytes)"},
    "throughput": {"throughput": "user data read (bit/s)"},
    "drops": {"packet": "number of the packet"},
}
"""By series, which column is drawn and what the axis says: the first column that the series has. SCTP counts in TSNs, TCP in bytes."""

EVENTS = {"sent", "marked", "reordering", "drops"}
"""The series whose rows are events: no value holds until the next."""

COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]
"""The colours of the pages that `--report` writes: Okabe and Ito's palette."""


def figure(x: str, y: str) -> Any:
    """An empty figure with the titles of its axes."""
    import plotly.graph_objects

    made = plotly.graph_objects.Figure()
    made.update_layout(template="plotly_white", colorway=COLORS, xaxis_title=x, yaxis_title=y, legend_title_text="")
    made.update_xaxes(exponentformat="SI")
    made.update_yaxes(exponentformat="SI")
    made.update_yaxes(rangemode="tozero")
    return made


def written(value: Any) -> str:
    """A value that was varied, as `runs.csv` has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def places(key: str, values: list[str]) -> tuple[list[Any], str, str | None]:
    """Where the values of a key stand on an axis, the title of the axis, and its type: numbers of one unit are numbers, and
    other values are words."""
    parts = [re.fullmatch(r"([-+]?\d[\d.]*(?:e[-+]?\d+)?)\s*(.*)", value) for value in values]
    numbers = [part for part in parts if part]
    if values and len(numbers) == len(values) and len({part[2] for part in numbers}) == 1:
        unit = numbers[0][2]
        return [float(part[1]) for part in numbers], f"{key}, {unit}" if unit else key, None
    return list(values), key, "category"


def series(all: Series, wanted: str) -> Any:
    """The series `wanted` of everything that has it: a line each, and each path."""
    names = [name for name in all if name == wanted or name.endswith(f".{wanted}")]
    if not names:
        kinds = sorted({name.rsplit(".", 1)[-1] for name in all})
        hint = f"there are: {', '.join(kinds)}" if kinds else "ask for them: run(…, series=True)"
        raise KeyError(f"{wanted}: there is no such series; {hint}")
    drawn = {column: label for name in names for column, label in LABELS.get(wanted, {}).items() if column in all[name].columns}
    if not drawn:
        columns = ", ".join(all[names[0]].columns)
        raise ValueError(f"{wanted}: it has no numbers to draw; `series[{names[0]!r}]` is its table, with the columns {columns}")
    made = figure("time (s)", ", ".join(drawn.values()))
    if not drawn.keys().isdisjoint(("tsn", "cumulative_tsn")):
        # TSNs begin anywhere.
        made.update_yaxes(rangemode="normal")
    for name in names:
        table = all[name].to_dict()
        column = next(column for column in LABELS[wanted] if column in table)
        times, values = table["time"], table[column]
        paths = table.get("path", [""] * len(times))
        for path in dict.fromkeys(paths):
            chosen = [number for number, known in enumerate(paths) if known == path]
            made.add_scatter(
                x=[times[number] for number in chosen],
                y=[values[number] for number in chosen],
                name=" ".join(part for part in (name.rsplit(".", 1)[0], str(path)) if part),
                mode="markers" if wanted in EVENTS else "lines",
                line_shape="hv",
            )
    return made


def sweep(result: SweepResult, measure: str) -> Any:
    """The mean of `measure` over the first key that is varied, a line for each combination of the others."""
    if measure not in result.measures:
        raise KeyError(f"{measure}: there is no such measure; there are: {', '.join(result.measures)}")
    first, *others = result.keys or ["cell"]
    values = list(dict.fromkeys(written(cell["varied"].get(first, 0)) for cell in result.cells))
    x, title, kind = places(first, values)
    place = dict(zip(values, x, strict=True))
    made = figure(title, result.headings[measure])
    made.update_xaxes(type=kind)
    lines: dict[str, list[dict[str, Any]]] = {}
    for cell in result.cells:
        lines.setdefault(", ".join(f"{key} = {written(cell['varied'][key])}" for key in others), []).append(cell)
    for name, cells in lines.items():
        summaries = [cell["measures"][measure] for cell in cells]
        made.add_scatter(
            x=[place[written(cell["varied"].get(first, 0))] for cell in cells],
            y=[summary["mean"] for summary in summaries],
            error_y={"array": [summary["ci95"] for summary in summaries]},
            name=name or measure,
            mode="lines+markers",
        )
    return made


def claims(reproduction: Reproduction) -> Any:
    """Every claim about one value: what the references say, and what comes out, relative to the first reference that says something."""
    made = figure("claim", "relative to the first reference")
    columns: dict[str, tuple[list[str], list[float]]] = {}
    for claim in reproduction["claims"]:
        known = numbers(claim)
        base = next(iter(known.values()), None)
        if not base or len(known) < 2:
            continue
        for name, value in known.items():
            ids, values = columns.setdefault(name, ([], []))
            ids.append(claim["id"])
            values.append(value / base)
    for name, (ids, values) in columns.items():
        made.add_scatter(x=ids, y=values, name=name, mode="markers")
    return made


def numbers(claim: dict[str, Any]) -> dict[str, float]:
    """The single values of a claim: those of the references by name, and "anabranch", which comes last."""
    plain = {name: value for name, value in claim.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    return {name: float(plain[name]) for name in sorted(plain, key=lambda name: name == "anabranch")}
