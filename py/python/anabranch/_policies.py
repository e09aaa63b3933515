"""What a policy written in Python is."""

from collections.abc import Mapping
from typing import Any, Protocol

from anabranch._core import Acked, Ask, Path, Sibling


class RoutePolicy(Protocol):
    """A route: which path carries what is to be sent.

    The class is called once for each association and place (new data, fast retransmissions, retransmissions after a
    timeout), with the settings of the scenario as keyword arguments. `sent(ask, path_id)`, `acked(path, acked)` and
    `lost(path_id, how)` are called too if the class has them.

    `needs`, if the class has it, names estimates that the paths are to have: "bandwidth", "packet_pair", "round_trip"
    (docs/advice.md).
    """

    def choose(self, ask: Ask, paths: list[Path]) -> Path | int | None:
        """A path, its `id`, or None to send nothing now. May be asked twice: it changes nothing."""
        ...


class WindowPolicy(Protocol):
    """A congestion window.

    The class is called once for each path with `unit` (the size by which windows grow), `initial` and `threshold`, all
    in bytes, and the settings of the scenario. After each call the attributes `window` and, if there is one, `ssthresh`
    are read, in bytes. `reopen(packets)`, `idle(times)`, `restart(most)` (the window becomes `most` bytes at most),
    `set_unit(unit)` (packets have another size) and `estimated(rate, base_rtt, queueing)` (bit/s and seconds, each None
    before its first sample) are called too if the class has them.
    """

    window: float

    def acked(self, acked: Acked, all: list[Sibling]) -> None:
        """Data of this path was acknowledged; `all` are the windows of the connection, this one included."""
        ...

    def lost(self, how: str, outstanding: int, all: list[Sibling]) -> None:
        """Data of this path was lost: `how` is "missing" or "timeout", `outstanding` the bytes not acknowledged."""
        ...


Policy = Any
"""A class that follows [`RoutePolicy`] or [`WindowPolicy`]."""


def by_name(policies: Mapping[str, Policy] | None) -> dict[str, Policy] | None:
    """Policies by name as a dict; None if there are none."""
    if policies is not None and not isinstance(policies, Mapping):
        raise TypeError(f"`policies` is a dict of names and classes, such as {{'mine': Mine}}, not {type(policies).__name__}")
    return dict(policies) if policies else None
