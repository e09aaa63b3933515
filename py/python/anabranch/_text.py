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
    if source == "":
        raise ValueError(f"the {called} is empty: expected a path, a text of TOML or a dict")
    try:
        return os.fspath(source), Path(source).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(source)}: this is not text: {error}") from error


def edits(set: Mapping[str, Any] | None) -> list[str]:
    """Edits of a scenario, each `KEY=VALUE` as `--set` takes them.

    A str stays as it is: the reader takes it for a string if it is nothing else. Other values become TOML.
    """
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"`set` is a dict of keys and values, such as {{'era': 'rfc4960'}}, not {type(set).__name__}")
    written = {key: value if isinstance(value, str) else _core.to_toml_value(key, value) for key, value in (set or {}).items()}
    return [f"{key}={value}" for key, value in written.items()]
