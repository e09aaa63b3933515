#!/usr/bin/env python3
"""Runs ns-2 with the settings of a folder and compares what it sends with the folder's sends.csv.

    sim/tests/cmt_drop_lists/replay.py first further asap
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
POLICIES = {"ASAP": 0, "SAME": 1, "SSTHRESH": 2, "LOSSRATE": 3, "CWND": 4}
# ns-2 counts packets of all kinds from 0; so many come before the first DATA packet, or the first SACK, of a path.
BEFORE = {"1": 3, "2": 1}


def arguments(setting):
    """The keys of droplist.tcl and their values."""
    keys = {
        "policy": POLICIES[setting["policy"]],
        "rwnd": setting["receive_buffer"],
        "bw2": setting["rate2"],
        "d1": setting["delay1"],
        "d2": setting["delay2"],
        "q": setting["queue"],
        "bytes": 1045440,
    }
    keys |= {key: setting[key] for key in ("ssthresh", "sfr", "cuc", "dac", "pf")}
    for path, before in BEFORE.items():
        for ours, theirs in (("data_lost", "fdrop"), ("sacks_lost", "rdrop")):
            lost = [int(number) - 1 + before for number in setting[ours + path].split()]
            keys[theirs + path] = " ".join(map(str, lost))
        keys["lr" + path] = setting["lossrate" + path] or "0"
    if setting["down_path"]:
        first = float(setting["first_data_ns2"])
        keys["down"] = setting["down_path"]
        keys["down_at"] = first + float(setting["down_after"])
        keys["up_at"] = first + float(setting["up_after"])
    return keys


def sends(setting):
    """What ns-2 sends until all has arrived: seconds from the first DATA packet, TSN, path."""
    with tempfile.NamedTemporaryFile() as trace:
        keys = arguments(setting) | {"trace": trace.name}
        words = [str(word) for pair in keys.items() for word in pair]
        subprocess.run(["ns", HERE / "droplist.tcl", *words], check=True, capture_output=True)
        lines = [line.split() for line in Path(trace.name).read_text().splitlines()]
    data = [(line[0], float(line[1]), (line[2], line[3]), int(line[11])) for line in lines if line[6][-1] == "D"]
    path = {("2", "6"): "1", ("4", "8"): "2"}
    sent = [(time, tsn, path[link]) for event, time, link, tsn in data if event == "+" and link in path]
    first, done = sent[0][0], float(setting["done"])
    return [(time - first, str(tsn), path) for time, tsn, path in sent if time - first <= done + 1e-6]


def main():
    for folder in sys.argv[1:]:
        with open(HERE / folder / "settings.csv") as settings, open(HERE / folder / "sends.csv") as sent:
            settings, recorded = list(csv.DictReader(settings)), list(csv.DictReader(sent))
        equal = 0
        for setting in settings:
            theirs = [row for row in recorded if row["setting"] == setting["setting"]]
            again = sends(setting)
            pairs = zip(again, theirs)
            same = all(
                abs(a[0] - float(b["time"])) < 2e-6 and a[1:] == (b["tsn"], b["path"]) for a, b in pairs
            )
            equal += same and len(again) == len(theirs)
        print(f"{folder}: {equal} of {len(settings)} as recorded")


main()
