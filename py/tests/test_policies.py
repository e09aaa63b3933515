"""Policies that are Python classes."""

import anabranch
import pytest

from conftest import SCENARIO

LOSSY = SCENARIO.replace('delay = "5 ms"', 'delay = "5 ms"\nloss = "2 %"')


class Same:
    """The route `same`: retransmissions take the path that lost them."""

    def choose(self, ask, paths):
        return ask.last if ask.last is not None else paths[0]


def test_a_route_in_python_does_as_the_same_route_in_rust() -> None:
    mine = anabranch.run(LOSSY + '[flow.sctp]\nretransmit = "mine"\n', policies={"mine": Same})
    built_in = anabranch.run(LOSSY + '[flow.sctp]\nretransmit = "same"\n')
    assert mine["flows"][0]["retransmissions"] == built_in["flows"][0]["retransmissions"]
    assert mine["flows"][0]["completion"] == built_in["flows"][0]["completion"]


class Fixed:
    """A window that never changes."""

    def __init__(self, unit, initial, threshold, packets=4):
        self.window = unit * packets
        self.ssthresh = None
        self.calls = []

    def acked(self, acked, all):
        assert acked.cumulative + acked.gap >= 0 and any(sibling.own for sibling in all)

    def lost(self, how, outstanding, all):
        assert how in ("missing", "timeout") and outstanding > 0


def test_a_window_in_python_says_how_much_is_in_flight() -> None:
    text = SCENARIO + '[flow.sctp]\nwindow = { name = "fixed", packets = %d }\n'
    slow, fast = (anabranch.run(text % packets, policies={"fixed": Fixed}) for packets in (2, 20))
    assert slow["flows"][0]["completion"] > 2 * fast["flows"][0]["completion"]


def test_faults_of_a_policy_are_exceptions() -> None:
    class Nowhere:
        def choose(self, ask, paths):
            return 77

    text = LOSSY + '[flow.sctp]\nnew = "mine"\n'
    with pytest.raises(TypeError, match="no such path"):
        anabranch.run(text, policies={"mine": Nowhere})
    with pytest.raises(TypeError, match="no policy"):
        anabranch.run(text, policies={"mine": object})
    with pytest.raises(anabranch.ScenarioError, match="unexpected keyword argument 'far'") as raised:
        anabranch.run(LOSSY + '[flow.sctp]\nwindow = { name = "mine", far = 1 }\n', policies={"mine": Fixed})
    assert raised.value.line and raised.value.key
    with pytest.raises(TypeError, match="`policies` is a dict of names and classes"):
        anabranch.run(text, policies=[Same])  # type: ignore[arg-type]
    with pytest.raises(anabranch.ScenarioError, match="takes no arguments"):
        anabranch.run(LOSSY + '[flow.sctp]\nnew = { name = "mine", far = 1 }\n', policies={"mine": Same})


@pytest.mark.parametrize(
    ("attribute", "value", "error", "says"),
    [
        ("window", float("nan"), ValueError, "`window` is NaN: expected bytes"),
        ("window", -5, ValueError, "`window` is -5: expected bytes"),
        ("window", "4 kB", TypeError, "`window` is a number of bytes, and was given as str"),
        ("ssthresh", float("nan"), ValueError, "`ssthresh` is NaN"),
    ],
)
def test_a_window_that_is_no_number_of_bytes_is_refused(attribute, value, error, says) -> None:
    """With such a window nothing is sent, and a run without `stop` never ends."""

    class Odd(Fixed):
        def acked(self, acked, all):
            setattr(self, attribute, value)

    with pytest.raises(error, match=says):
        anabranch.run(SCENARIO, set={"flow.upload.sctp.window": "odd", "stop": "10 s"}, policies={"odd": Odd})


class Alternating:
    """New data takes one path after the other."""

    def __init__(self):
        self.turn = 0

    def choose(self, ask, paths):
        if ask.last is not None:
            return ask.last
        return paths[self.turn % len(paths)]

    def sent(self, ask, path):
        self.turn += 1


def test_a_route_in_python_carries_data_over_real_sockets() -> None:
    alone = anabranch.loopback(300_000)
    both = anabranch.loopback(300_000, policies={"alternating": Alternating}, new="alternating", retransmit="alternating")
    assert alone[0] >= 300_000 and alone[1] == 0
    assert min(both) > 50_000 and sum(both) >= 300_000


def test_a_window_in_python_limits_a_real_sender() -> None:
    calls = []

    class Watched(Fixed):
        def acked(self, acked, all):
            super().acked(acked, all)
            calls.append(acked.flight_before)

    sent = anabranch.loopback(300_000, policies={"watched": Watched}, window="watched")
    assert sent[0] >= 300_000 and calls
    # Four packets; a packet more may begin while a byte is free.
    assert max(calls) <= 5 * 1500


def test_a_fault_of_a_policy_ends_a_real_transfer() -> None:
    class Broken:
        def choose(self, ask, paths):
            raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design"):
        anabranch.loopback(1000, policies={"broken": Broken}, new="broken")
    with pytest.raises(RuntimeError, match="nowhere"):
        anabranch.loopback(1000, new="nowhere")


class Knowing(Same):
    """The route `same`, which asks for every estimate and keeps what it last saw."""

    needs = ("bandwidth", "packet_pair", "round_trip")
    seen: list[anabranch.Path] = []

    def acked(self, path, acked):
        Knowing.seen[:] = [path]


def test_a_route_in_python_gets_the_estimates_that_it_needs() -> None:
    text = SCENARIO.replace("100 kB", "5 MB") + '[flow.sctp]\nnew = "mine"\nretransmit = "mine"\n'
    anabranch.run(text, policies={"mine": Knowing})
    [path] = Knowing.seen
    assert path.saturated and abs(path.bandwidth / 10e6 - 1) < 0.1, path.bandwidth
    assert 0.01 < path.base_rtt < 0.02 and 0 <= path.queueing <= path.most_queueing
    rate, low, high = path.loss_rate
    assert 0 <= low <= rate <= high < 0.1 and path.remote != path.local
    anabranch.run(text, policies={"mine": type("Plain", (Knowing,), {"needs": ()})})
    assert Knowing.seen[0].bandwidth is None and Knowing.seen[0].base_rtt is None
    for wrong in ("bandwidth", ("speed",)):
        with pytest.raises(anabranch.ScenarioError, match="needs"):
            anabranch.run(text, policies={"mine": type("Wrong", (Knowing,), {"needs": wrong})})


class Estimating(Fixed):
    """A window that is told what is estimated of its path."""

    told: list[tuple[float | None, float | None, float | None]] = []

    def estimated(self, rate, base_rtt, queueing):
        Estimating.told.append((rate, base_rtt, queueing))


def test_a_window_in_python_is_told_the_estimates() -> None:
    anabranch.run(SCENARIO + '[flow.sctp]\nwindow = { name = "mine", packets = 20 }\n', policies={"mine": Estimating})
    rate, base_rtt, queueing = Estimating.told[-1]
    assert rate > 1e6 and 0.01 < base_rtt < 0.02 and queueing >= 0
