"""Progress bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watcher = Callable[[int, int], object]
"""Gets how many runs are finished, and how many there will be."""
RunWatcher = Callable[[float, int, int | None], object]
"""Gets virtual seconds, bytes delivered, and bytes expected (or None)."""
LATE = 1.0
"""Seconds after which a run gets a bar."""


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


def is_seen() -> bool:
    """Whether this is a notebook, or a terminal."""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


def tqdm(wanted: bool, what: str, unit: str = " runs", unit_scale: bool = False, total: int | None = None) -> Any:
    """A bar, or None where nobody would see it."""
    try:
        from tqdm.auto import tqdm as bar
    except ImportError:
        return None
    return bar(desc=what, unit=unit, unit_scale=unit_scale, total=total, leave=False) if wanted or is_seen() else None


class RunBar:
    """The bar of one run: the bytes that were delivered, as soon as the run has taken `LATE` seconds."""

    def __init__(self, wanted: bool, what: str) -> None:
        self.wanted, self.what = wanted, what
        self.begun = time.monotonic()
        self.bar: Any = None

    def __call__(self, now: float, delivered: int, expected: int | None) -> None:
        if self.bar is None:
            if time.monotonic() - self.begun < LATE:
                return
            self.bar = tqdm(self.wanted, self.what, unit="B", unit_scale=True, total=expected)
        if self.bar is not None:
            self.bar.set_postfix_str(f"{now:.3g} s", refresh=False)
            self.bar.update(delivered - self.bar.n)

    def close(self) -> None:
        """The run has ended."""
        if self.bar is not None:
            self.bar.close()


@contextmanager
def of_run(progress: bool | RunWatcher | None, what: str) -> Iterator[RunWatcher | None]:
    """What shows the progress of one run: `progress` itself if it is a function; otherwise a bar, as in `bar`."""
    if callable(progress):
        yield progress
        return
    if progress is False or not (progress or is_seen()):
        yield None
        return
    made = RunBar(progress is True, what)
    try:
        yield made
    finally:
        made.close()
