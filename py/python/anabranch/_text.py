"""Scenarios and sweeps as files, texts or dicts: each becomes a name and a text of TOML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anabranch import _core

Source = str | os.PathLike[str] | Mapping[str, Any]
"""A path, a text of TOML (a str with a line end or `=`), or a dict."""


def is_text(source: Source) -> bool:
    """Whether a str is TOML and not a path."""
    return isinstance(source, str) and ("\n" in source or "=" in source)


def read(source: Source, called: str) -> tuple[str, str]:
    """The name and the text; `called` is the name of what comes from no file."""
    if isinstance(source, Mapping):
        return called, _core.to_toml(dict(source))
    if is_text(source):
        return called, str(source)
    try:
        return os.fspath(source), Path(source).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(source)}: this is not text: {error}") from error


def edits(set: Mapping[str, Any] | None) -> list[str]:
    """Edits of a scenario, each `KEY=VALUE` as `--set` takes them."""
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"`set` is a dict of keys and values, such as {{'era': 'rfc4960'}}, not {type(set).__name__}")
    return [f"{key}={literal(key, value)}" for key, value in (set or {}).items()]


def literal(key: str, value: Any) -> str:
    """The value of a key as TOML; a str as it is, which the reader takes for a string if it is nothing else."""
    if isinstance(value, str):
        return value
    try:
        return _core.to_toml({"value": {"value": value}} if isinstance(value, Mapping) else {"value": value}).split("=", 1)[1].strip()
    except TypeError as error:
        raise TypeError(f"`{key}`: {error}") from error
