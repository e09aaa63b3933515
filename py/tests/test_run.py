"""Runs: what goes in, what comes out, and what goes wrong."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import anabranch
import numpy
import pytest

from conftest import ROOT, SCENARIO

DICT = {
    "seed": 40,
    "link": [
        {"name": "wifi", "between": ["s", "r"], "rate": "10 Mbit/s", "delay": "5 ms"},
        {"name": "wimax", "between": ["s", "r"], "rate": "5 Mbit/s", "delay": "20 ms"},
    ],
    "flow": [{"name": "upload", "from": "s", "to": "r", "send": "100 kB"}],
}


def test_a_file_a_text_and_a_dict_say_the_same(place: Path) -> None:
    file = anabranch.run(place / "scenario.toml")
    assert file["flows"] == anabranch.run(SCENARIO)["flows"] == anabranch.run(DICT)["flows"]
    keys = {anabranch.content_key(source) for source in (place / "scenario.toml", SCENARIO, DICT)}
    assert len(keys) == 1 and len(keys.pop()) == 64
    assert anabranch.content_key(SCENARIO, seed=41) != anabranch.content_key(SCENARIO)


def test_seeds_and_edits_are_applied() -> None:
    lossy = {"link.wifi.loss": "5 %"}
    one, same, other = (anabranch.run(SCENARIO, seed=seed, set=lossy) for seed in (1, 1, 2))
    assert one["seed"] == 1 and one.to_dict() == same.to_dict() and one["flows"] != other["flows"]
    assert 'loss = ' in (one.scenario or "")


RED = '{ red = { limit = "60 packets", min = "5 packets", max = "15 packets" } }'
VALUES: list[tuple[str, object, str]] = [
    ("link.wifi.loss", {"every": 50}, "{ every = 50 }"),
    ("link.wifi.loss", {"packets": [5, 9]}, "{ packets = [5, 9] }"),
    ("link.wifi.queue", {"red": {"limit": "60 packets", "min": "5 packets", "max": "15 packets"}}, RED),
    ("flow.upload.sctp", {}, "{}"),
    ("flow.upload.sctp", {"era": "rfc4960", "max_burst": 8}, '{ era = "rfc4960", max_burst = 8 }'),
    ("change", [{"at": "10 ms", "link": "wifi", "rate": "1 Mbit/s"}], '[{ at = "10 ms", link = "wifi", rate = "1 Mbit/s" }]'),
    ("change", [], "[]"),
    ("measure", ("10 ms", "50 ms"), '["10 ms", "50 ms"]'),
    ("link.wifi.loss", {"bits": numpy.float64(1e-6)}, "{ bits = 1e-6 }"),
    ("link.wifi.loss", {"every": numpy.int64(50)}, "{ every = 50 }"),
    ("flow.upload.sctp.max_burst", numpy.int64(3), "3"),
    ("flow.upload.sctp.max_burst", numpy.array(3), "3"),
]


@pytest.mark.parametrize(("key", "value", "text"), VALUES, ids=[text for _, _, text in VALUES])
def test_an_edit_is_the_same_as_a_value_and_as_text(key: str, value: object, text: str) -> None:
    by_value, by_text = (anabranch.run(SCENARIO, set={"flow.upload.send": "1 MB", key: each}) for each in (value, text))
    assert by_value.scenario == by_text.scenario and by_value.to_dict() == by_text.to_dict()


def test_numbers_of_numpy_stand_in_dicts_and_sweeps() -> None:
    by_numpy, plain = (
        anabranch.sweep(
            DICT | {"seed": number(40)},
            vary={"flow.upload.sctp.max_burst": [number(2), number(8)]},
            set={"link.wifi.loss": {"every": number(50)}},
            measure={"time": "flows.upload.completion"},
            seeds=number(2),
        )
        for number in (numpy.int64, int)
    )
    assert by_numpy.cells == plain.cells and len(plain.cells) == 2


def test_entries_are_those_of_json() -> None:
    for set in ({}, {"measure": ["10 ms", "50 ms"], "link.wifi.loss": "5 %"}):
        result = anabranch.run(SCENARIO, set=set)
        assert json.loads(result.to_json()) == result.to_dict() == dict(result)
        # Also the types: 1 and 1.0 are equal, and are written differently.
        assert repr(json.loads(result.to_json())) == repr(result.to_dict())


def test_a_column_or_edit_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(KeyError, match="packet: there is no such column; there are: name, .*packets"):
        anabranch.run(SCENARIO).flows["packet"]
    with pytest.raises(TypeError, match="`set` is a dict"):
        anabranch.run(SCENARIO, set=["era=rfc4960"])  # type: ignore[arg-type]


def test_columns_stand_in_the_order_of_json() -> None:
    def names(entries: dict, prefix: str = "") -> list[str]:
        inner = [names(v, f"{prefix}{k}.") if isinstance(v, dict) else [f"{prefix}{k}"] for k, v in entries.items()]
        return [name for part in inner for name in part]

    result = anabranch.run(SCENARIO, set={"measure": ["10 ms", "50 ms"]})
    flow = json.loads(result.to_json())["flows"][0]
    for table, row in ((result.flows, flow), (result.paths, {"flow": flow["name"], **flow["paths"][0]})):
        assert table.columns == [name for name in names(row) if name in table.columns]
        assert table.columns[0] != sorted(table.columns)[0] and len(table.columns) > 10
        first = next(table.rows())
        assert all(type(first[name]) is type(row[name]) for name in row if name in first and row[name] is not None)
    terms = anabranch.model("receive-buffer-blocking", primary="10 Mbit/s", secondary="36 kbit/s", receive_buffer="1 MB").terms
    assert terms.columns == ["term", "symbol", "value", "unit", "meaning"]


def test_an_error_shows_line_and_key() -> None:
    with pytest.raises(anabranch.ScenarioError) as raised:
        anabranch.run(SCENARIO.replace("delay", "dealy"))
    error = raised.value
    assert (error.line, error.key, error.hint) == (7, "link.wifi.dealy", "did you mean `delay`?")
    assert 'dealy = "5 ms"' in str(error) and isinstance(error, ValueError)
    with pytest.raises(anabranch.ScenarioError, match="no route policy"):
        anabranch.run(DICT | {"flow": [DICT["flow"][0] | {"sctp": {"retransmit": "nearest"}}]})
    with pytest.raises(anabranch.ScenarioError, match="this is a sweep; `anabranch.sweep` runs it") as raised:
        anabranch.run('scenario = "one.toml"\n[measure]\ntime = "duration"\n')
    assert (raised.value.line, raised.value.key) == (1, "scenario")
    with pytest.raises(TypeError, match="flow.send"):
        anabranch.run(DICT | {"flow": [DICT["flow"][0] | {"send": None}]})
    with pytest.raises(FileNotFoundError):
        anabranch.run("nowhere.toml")


def test_a_dict_that_contains_itself_has_an_end() -> None:
    table: dict[str, object] = {}
    table["link"] = table
    items: list[object] = []
    items.append(items)
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"link": deep}
    for endless in (table, {"link": items}, {"link": [{"rate": items}]}, deep):
        with pytest.raises(ValueError, match="nested more than"):
            anabranch.run(endless)


def test_numbers_of_a_dict_go_up_to_the_largest_seed() -> None:
    assert anabranch.run(DICT | {"seed": 2**64 - 1})["seed"] == 2**64 - 1
    with pytest.raises(ValueError, match="`seed`"):
        anabranch.run(DICT | {"seed": 2**64})


def test_tables_reach_polars_and_pandas_without_a_copy() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    result = anabranch.run(SCENARIO, series=True)
    windows = result.series["upload.windows"]
    one, other = pyarrow.table(windows), pyarrow.table(windows)
    addresses = [table.column("cwnd").chunk(0).buffers()[1].address for table in (one, other)]
    assert addresses[0] == addresses[1], "the same memory"
    assert windows.to_pandas()["cwnd"].tolist() == windows["cwnd"]
    assert windows.to_polars()["cwnd"].to_list() == windows["cwnd"]
    assert result.flows["completion"] == [result["flows"][0]["completion"]]
    assert set(result.paths["flow"]) == {"upload"} and len(result.links) == 4


def test_notebooks_show_tables_and_figures() -> None:
    pytest.importorskip("plotly")
    result = anabranch.run(SCENARIO, series=True)
    assert "<table>" in result._repr_html_() and "upload" in result._repr_html_()
    figure = result.plot()
    assert len(figure.data) >= 1 and figure.layout.yaxis.title.text == "congestion window (bytes)"
    assert figure.layout.yaxis.exponentformat == "SI"
    with pytest.raises(KeyError, match="there are"):
        result.plot("nothing")


def test_every_series_is_drawn_with_its_numbers_or_refused() -> None:
    pytest.importorskip("plotly")
    result = anabranch.run(SCENARIO, set={"flow.upload.send": "1 MB", "link.wifi.loss": "5 %"}, series=True)
    for kind in {name.rsplit(".", 1)[-1] for name in result.series} - {"blocked"}:
        figure = result.plot(kind)
        assert figure.layout.yaxis.title.text not in (None, "", "why", "tsns"), kind
        assert all(not isinstance(y, str) for line in figure.data for y in line.y), kind
    sent = result.plot("sent")
    assert (sent.layout.yaxis.title.text, sent.data[0].mode) == ("TSN", "markers")
    with pytest.raises(ValueError, match="blocked: it has no numbers to draw.*time, by, path"):
        result.plot("blocked")


@pytest.mark.parametrize("names", [("1", "2"), ("inf", "nan")])
def test_names_in_series_are_texts(names: tuple[str, str]) -> None:
    pandas = pytest.importorskip("pandas")
    links = [link | {"name": name} for link, name in zip(DICT["link"], names, strict=True)]
    result = anabranch.run(DICT | {"link": links}, set={"flow.upload.sctp.new": "round-robin"}, series=True)
    windows = result.series["upload.windows"]
    assert set(windows["path"]) == set(names) and "new" in set(result.series["upload.sent"]["why"])
    merged = windows.to_pandas().merge(result.paths.to_pandas(), left_on="path", right_on="name")
    assert isinstance(merged, pandas.DataFrame) and len(merged) == len(windows)


LONG = SCENARIO.replace("100 kB", "10 GB")


def test_ctrl_c_ends_a_run_at_once() -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        anabranch.run(LONG)
    assert time.monotonic() - begun < 60, "a run of hours"


def test_a_run_releases_the_gil() -> None:
    ended = threading.Event()
    turns = 0

    def other() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=other)
    thread.start()
    before = turns
    anabranch.run(SCENARIO.replace("100 kB", "1 GB"))
    during = turns - before
    ended.set()
    thread.join()
    assert during > 3, "another thread goes on meanwhile"


def test_a_long_run_shows_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr("anabranch._progress.LATE", 0.0)
    big = SCENARIO.replace("100 kB", "300 MB")
    anabranch.run(big, progress=True)
    assert "/300M" in capsys.readouterr().err
    anabranch.run(big)
    anabranch.run(big, progress=False)
    assert capsys.readouterr().err == "", "nobody looks"


def test_progress_can_end_a_run() -> None:
    class Enough(Exception):
        pass

    def watch(now: float, delivered: int, expected: int | None) -> None:
        assert now > 0 and expected == 10_000_000_000
        raise Enough

    with pytest.raises(Enough):
        anabranch.run(LONG, progress=watch)


def test_publications_and_models() -> None:
    assert "receive-buffer-blocking" in anabranch.papers()
    made = anabranch.model("receive-buffer-blocking", primary="10 Mbit/s", secondary="36 kbit/s", receive_buffer="1 MB")
    assert made["pause"] > 0 and len(made.terms) == len(made)
    judged = anabranch.reproduce(ROOT / "papers" / "receive-buffer-blocking", claims="model")
    assert judged["paper"] == "receive-buffer-blocking" and judged.as_expected
    assert "<table>" in judged._repr_html_()
    with pytest.raises(ValueError, match="there are"):
        anabranch.reproduce("nothing")
    with pytest.raises(ValueError, match="`modle`: did you mean `model`"):
        anabranch.reproduce("receive-buffer-blocking", claims=["model", "modle"])
    with pytest.raises(ValueError, match="seeds: 0"):
        anabranch.reproduce("receive-buffer-blocking", claims="model", seeds=0)
    with pytest.raises(anabranch.ScenarioError):
        anabranch.model("receive-buffer-blocking", primary="much")


def test_claims_are_shown_relative_to_the_first_reference() -> None:
    pytest.importorskip("plotly")
    judged = anabranch.reproduce("receive-buffer-blocking", claims="table1", seeds=1)
    claim = judged["claims"][0]
    known = [name for name in claim if name in ("paper", "ns2", "anabranch")]
    assert known == ["paper", "ns2", "anabranch"]
    figure = judged.plot()
    assert [line.name for line in figure.data] == known
    assert [line.y[0] for line in figure.data] == pytest.approx([claim[name] / claim["paper"] for name in known])
    # Also where JSON sorts the names.
    from anabranch._plot import numbers

    assert list(numbers({"anabranch": 2, "paper": 1, "holds": True})) == ["paper", "anabranch"]
    table = judged.claims
    assert all(isinstance(value, float) for value in table["anabranch"] if value is not None)
    assert all(isinstance(value, float) for value in table["paper"] if value is not None)


def test_lists_of_claims_have_columns_of_their_own() -> None:
    judged = anabranch.reproduce("receive-buffer-blocking", seeds=1)
    lists = [claim["anabranch"] for claim in judged["claims"] if isinstance(claim["anabranch"], list) and len(claim["anabranch"]) > 1]
    assert lists and [json.loads(text) for text in judged.claims["anabranch.list"] if text] == lists
    for name in ("paper", "ns2", "anabranch"):
        assert {type(value) for value in judged.claims[name]} == {float, type(None)}, name


def test_an_error_names_the_file_or_the_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the scenario is empty: expected a path"):
        anabranch.run("")
    (tmp_path / "old.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ValueError, match="old.toml: this is not text"):
        anabranch.run(tmp_path / "old.toml")
    with pytest.raises(TypeError, match="`link.wifi.loss`"):
        anabranch.run(LONG, set={"link.wifi.loss": None})
    with pytest.raises(TypeError, match="`link.wifi.loss`: the keys of a dict must be strings"):
        anabranch.run(LONG, set={"link.wifi.loss": {1: 2}})
    with pytest.raises(TypeError, match="`link.wifi.loss`: a scenario has no ndarray"):
        anabranch.run(LONG, set={"link.wifi.loss": numpy.array([0.1])})
