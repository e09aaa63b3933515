"""Tables in Arrow's memory."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from anabranch import _core

SHOWN = 20
"""Rows that a notebook shows."""


class Table:
    """A table that polars, pandas, pyarrow and DuckDB take without a copy: it has `__arrow_c_stream__`."""

    def __init__(self, columns: _core.Table) -> None:
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._columns.columns

    def __getitem__(self, column: str) -> list[Any]:
        return self._columns.column(column)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict."""
        columns = self.columns
        for values in zip(*(self[column] for column in columns), strict=True):
            yield dict(zip(columns, values, strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """By column, its values."""
        return {column: self[column] for column in self.columns}

    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`; numbers are not copied where pandas can hold them so."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """As a `polars.DataFrame`, without a copy."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        rows = zip(*self._columns.head(SHOWN), strict=True)
        cells = ("".join(f"<td>{html.escape(shown(value))}</td>" for value in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = f"<p>{SHOWN} of {len(self)} rows</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def half_interval(summary: dict[str, Any]) -> float | None:
    """Half of the 95 % interval of a mean; 0 if it is only what rounding leaves between equal values."""
    width: float | None = summary["ci95"]
    return 0.0 if width is not None and width <= 1e-9 * abs(summary["mean"]) else width


def shown(value: object) -> str:
    """A value as a cell of a table shows it."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
