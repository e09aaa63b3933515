"""Progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watcher = Callable[[int, int], object]
"""Gets how many runs are finished, and how many there will be."""


@contextmanager
def bar(progress: bool | Watcher | None, what: str) -> Iterator[Watcher | None]:
    """What shows progress: `progress` itself if it is a function; a bar of tqdm, if it is installed, when `progress` is
    True, or None in a notebook or on a terminal."""
    if callable(progress):
        yield progress
        return
    made = None if progress is False else tqdm(progress is True, what)
    if made is None:
        yield None
        return

    def show(done: int, all: int) -> None:
        made.total = all
        made.update(done - made.n)

    with made:
        yield show


def tqdm(wanted: bool, what: str) -> Any:
    """A bar, or None where nobody would see it."""
    try:
        from tqdm.auto import tqdm as bar
    except ImportError:
        return None
    seen = wanted or "ipykernel" in sys.modules or sys.stderr.isatty()
    return bar(desc=what, unit=" runs", leave=False) if seen else None
