#!/usr/bin/env python3
"""The Linux kernel's Multipath TCP, `anabranch send --cmt`, and the simulator of each, over the same two links.

Each setting is one scenario. `anabranch shell` carries the packets of the real programs over its links, `anabranch run` simulates
them. All send the same number of bytes; goodput counts from the first SYN or INIT to the last byte that is read. For a failure the
first link goes down in the middle.

For root, with a kernel that has Multipath TCP. What cannot run here is skipped with one line; with ANABRANCH_REQUIRE=all that is
a failure. Exit status: 0 all is within the bounds, 1 something is not, 2 the command line is wrong.
"""
import argparse
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.abspath(__file__)
PROJECT = os.path.dirname(os.path.dirname(HERE))
MPTCP = 262
SOL_MPTCP, MPTCP_INFO = 284, 1
PORT = 5001
# The kernel's windows, and what they are called in a scenario.
WINDOWS = {"cubic": '{ name = "cubic", alpha = "constant" }', "reno": '"standard"'}
# Links are numbered by name, and of each link `a` has the first address.
FIRST, SECOND = "10.0.0.2", "10.0.0.6"

# Name, links as (Mbit/s, milliseconds), loss in per cent of packets to the receiver, bytes.
SETTINGS = [
    ("equal", [(5, 10), (5, 10)], 0, 8_000_000),
    ("rates", [(8, 10), (2, 10)], 0, 8_000_000),
    ("delays", [(5, 10), (5, 50)], 0, 8_000_000),
    ("both", [(8, 10), (2, 50)], 0, 8_000_000),
    ("equal-loss", [(5, 10), (5, 10)], 1, 8_000_000),
    ("rates-loss", [(8, 10), (2, 10)], 1, 8_000_000),
    ("delays-loss", [(5, 10), (5, 50)], 1, 6_000_000),
    ("both-loss", [(8, 10), (2, 50)], 1, 6_000_000),
]
# Name, and whether the second subflow is a backup. The first link goes down so long after the beginning of the transfer.
FAILURES = [("fails", False), ("fails-backup", True)]
DOWN_AFTER = 3.0
# The transfer begins so long after the programs start.
STARTS = 1.0
# A reader that gets nothing for longer waits for what the dead link held.
PAUSE = 0.1
BOUNDS = {False: 0.10, True: 0.15}
"""Of goodput, without and with loss."""
FAILURE_BOUND = 0.30


def links(paths, loss, more=("", "")):
    def link(name, path, more):
        lost = f'loss = ["{loss} %", "0 %"]\n' if loss else ""
        return (
            f'[[link]]\nname = "{name}"\nbetween = ["a", "b"]\nrate = "{path[0]} Mbit/s"\ndelay = "{path[1]} ms"\n'
            f'queue = "50 packets"\n{lost}{more}'
        )

    return link("one", paths[0], more[0]) + link("two", paths[1], more[1])


def multipath(size, window, more=""):
    """The flow with the kernel's parameters. Each of its segments has 12 bytes of timestamps, which count as IP header here. It gives
    a subflow up after four expirations of a timer of its own (`stale_loss_cnt`), which is about two of the subflow's timeouts."""
    return (
        f'[[flow]]\nname = "f"\nfrom = "a"\nto = "b"\nprotocol = "mptcp"\nsend = "{size} B"\nip_header = "32 B"\n'
        f'start = "{STARTS} s"\n[flow.mptcp]\nwindow = {WINDOWS[window]}\nrto_min = "200 ms"\nrto_min_bounds = "variation"\n'
        'ack_delay = "40 ms"\nreceive_buffer = "4 MiB"\nsend_buffer = "4 MiB"\npf_max_retrans = 1\n' + more
    )


def cmt(size):
    """The flow with the parameters of `anabranch send --cmt`, in UDP."""
    return (
        f'[[flow]]\nname = "f"\nfrom = "a"\nto = "b"\nsend = "{size} B"\nip_header = "28 B"\nmessage_size = "64 KiB"\n'
        '[flow.sctp]\ncmt = true\nfill_packets = true\nreceive_buffer = "1 MiB"\n'
    )


# The programs of the two ends.


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def prepare():
    """This node takes further subflows. The receiver announces its second address."""
    run(["ip", "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"])


class Watch(threading.Thread):
    """When data passes each interface of this node, by its data sequence number."""

    def __init__(self, outgoing):
        super().__init__(daemon=True)
        self.outgoing, self.seen = outgoing, []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))

    def run(self):
        while True:
            packet, (device, _, kind, *_) = self.socket.recvfrom(2048)
            if (kind == socket.PACKET_OUTGOING) == self.outgoing:
                number = data_number(packet)
                if number is not None:
                    self.seen.append((time.monotonic(), device, *number))


def data_number(packet):
    """The data sequence number of an IPv4 packet with data, and its length; `None` without."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    tcp = packet[(packet[0] & 15) * 4 : struct.unpack("!H", packet[2:4])[0]]
    header = (tcp[12] >> 4) * 4
    options, length = tcp[20:header], len(tcp) - header
    while length > 0 and options and options[0] != 0:
        if options[0] == 1:
            options = options[1:]
            continue
        if options[0] == 30 and options[2] >> 4 == 2 and options[3] & 4:
            at = 4 + (0 if not options[3] & 1 else 8 if options[3] & 2 else 4)
            wide = options[3] & 8
            return int.from_bytes(options[at : at + (8 if wide else 4)], "big"), length
        options = options[options[1] :]
    return None


def serve():
    """Reads what comes over one connection, and answers with when the last byte was read and the longest pause."""
    prepare()
    run(["ip", "mptcp", "endpoint", "add", SECOND, "signal"])
    watch = Watch(outgoing=False)
    watch.start()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.bind(("0.0.0.0", PORT))
    listener.listen()
    connection, _ = listener.accept()
    reads, count = [], 0
    while data := connection.recv(1 << 16):
        count += len(data)
        reads.append(time.monotonic())
    answer = {"read": count, "reads": reads, "last_by_device": {device: at for at, device, *_ in watch.seen}}
    connection.sendall(json.dumps(answer).encode())
    connection.close()


def send(size, window, backup):
    """Sends so many bytes, and prints what became of them."""
    prepare()
    if backup == "backup":
        # The subflow to the announced address begins at this one.
        run(["ip", "mptcp", "endpoint", "add", "10.0.0.5", "dev", "two", "subflow", "fullmesh", "backup"])
    watch = Watch(outgoing=True)
    watch.start()
    connection, begun = connected(window)
    left, data = int(size), bytes(1 << 16)
    while left:
        left -= connection.send(data[:left])
    info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 64)
    connection.shutdown(socket.SHUT_WR)
    answer = b""
    while more := connection.recv(1 << 16):
        answer += more
    answer = json.loads(answer)
    reads, last = answer["reads"], answer["last_by_device"].get("one", 0)
    seconds = reads[-1] - begun
    resumed = [after for before, after in zip(reads, reads[1:]) if after > last and after - before > PAUSE]
    print(
        json.dumps(
            {
                "goodput": answer["read"] * 8 / seconds,
                "subflows": info[0],
                "resumed": resumed[0] - last if resumed else 0.0,
                "new_data": new_elsewhere(watch.seen, last),
            }
        )
    )


def connected(window):
    """A connection, and when it was begun. On a busy machine the receiver may not listen yet."""
    for _ in range(100):
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, window.encode())
        begun = time.monotonic()
        try:
            connection.connect((FIRST, PORT))
            return connection, begun
        except ConnectionRefusedError:
            connection.close()
            time.sleep(0.1)
    raise SystemExit("nothing listens at the other node")


def new_elsewhere(sent, last):
    """Seconds from `last`, the last arrival by the first link, to the first new data by the second, when it is sent."""
    highest = 0
    for at, device, number, length in sent:
        is_new, highest = number >= highest, max(highest, number + length)
        if is_new and device == "two" and at > last:
            return at - last
    return None


# What is measured, and what is simulated.


class Failed(Exception):
    """A session did not work."""


def session(program, scenario, here, there):
    """The JSON that the program at `a` printed, and the summary of the session."""
    with tempfile.TemporaryDirectory() as directory:
        file, summary = directory + "/scenario.toml", directory + "/summary.json"
        with open(file, "w") as f:
            f.write(scenario)
        os.mkdir(directory + "/inbox")
        command = [program, "shell", file, "--at", "a", "--at", f"b={there.format(directory=directory)}", "--without", "all"]
        command += ["--quiet", "--summary", summary, "--", "sh", "-c", f"sleep {STARTS}; exec {here.format(directory=directory)}"]
        output = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if output.returncode != 0:
            said = (output.stderr.strip() or output.stdout.strip()).splitlines()
            raise Failed(said[-1] if said else f"exit status {output.returncode}")
        with open(summary) as f:
            return json.loads(output.stdout), json.load(f)


def carried(summary):
    """The part of the bytes towards `b` that each link has carried."""
    there = {link["name"]: link["bytes"] for link in summary["run"]["links"] if link["direction"] == "a>b"}
    return {name: count / sum(there.values()) for name, count in there.items()}


def kernel(program, scenario, size, window, backup=False):
    me = f"{sys.executable} {HERE} probe"
    measured, summary = session(program, scenario, f"{me} send {size} {window} {'backup' if backup else 'regular'}", f"{me} serve")
    if measured["subflows"] < 1:
        raise Failed("the kernel used one subflow only")
    return {**measured, "carried": carried(summary), "late": summary["lateness"]["p99"]}


def real_cmt(program, scenario, size):
    there = f"{program} serve --listen {FIRST},{SECOND} --public --receive-into {{directory}}/inbox > /dev/null"
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(size)
        here = f"{program} send --cmt {file.name} --to {FIRST},{SECOND} --json"
        measured, summary = session(program, scenario, here, there)
    seconds = measured["seconds"]
    return {"goodput": size * 8 / seconds, "carried": carried(summary), "late": summary["lateness"]["p99"]}


def simulate(program, scenario, seeds):
    """The flow's results, one for each seed."""
    with tempfile.TemporaryDirectory() as directory:
        file = directory + "/scenario.toml"
        with open(file, "w") as f:
            f.write("stop = \"600 s\"\n" + scenario)
        flows = []
        for seed in range(1, seeds + 1):
            output = subprocess.run([program, "run", file, "--seed", str(seed), "--json"], capture_output=True, text=True)
            if output.returncode != 0:
                raise Failed(output.stderr.strip())
            flows.append(json.loads(output.stdout)[0]["flows"][0])
        return flows


def goodput(flows):
    return statistics.mean(flow["goodput"] for flow in flows)


def tries(number, measure):
    """The results of so many sessions. A session that did not work is repeated once."""
    results = []
    for _ in range(number):
        try:
            results.append(measure())
        except Failed as why:
            print(f"repeated: {why}", file=sys.stderr)
            results.append(measure())
    return results


def compare(program, setting, options):
    """A row: goodput of all four, in bit/s."""
    name, paths, loss, size = setting
    scenario = links(paths, loss)
    seeds = options.seeds if loss else 1
    real = tries(options.tries, lambda: kernel(program, scenario, size, options.window))
    row = {
        "name": name,
        "paths": paths,
        "loss": loss,
        "bytes": size,
        "kernel": statistics.median(one["goodput"] for one in real),
        "kernel_all": sorted(one["goodput"] for one in real),
        "simulated": goodput(simulate(program, scenario + multipath(size, options.window), seeds)),
        "carried": real[0]["carried"],
        "late": max(one["late"] for one in real),
    }
    row["difference"] = row["simulated"] / row["kernel"] - 1
    row["within"] = abs(row["difference"]) <= BOUNDS[loss > 0]
    if not options.without_cmt:
        real = tries(options.tries, lambda: real_cmt(program, scenario, size))
        row["cmt"] = statistics.median(one["goodput"] for one in real)
        row["cmt_simulated"] = goodput(simulate(program, scenario + cmt(size), seeds))
    return row


def failed_over(measured):
    """What was measured of a failure, if the second link was used after it."""
    if measured["new_data"] is None:
        raise Failed("after the failure of the first link the kernel sent nothing new by the second")
    return measured


def compare_failure(program, setting, options):
    """A row: how long after the failure new data goes by the other link, and the reader gets something again, in seconds."""
    name, backup = setting
    size, real, simulated = 8_000_000, [], []
    for turn in range(options.tries):
        down = STARTS + DOWN_AFTER + 0.05 * turn
        scenario = links([(5, 10), (5, 10)], 0, (f'down = [["{down} s"]]\n', ""))
        real += tries(1, lambda: failed_over(kernel(program, scenario, size, options.window, backup)))
        more = 'backup = ["two"]\n' if backup else ""
        simulated.append(simulate(program, scenario + multipath(size, options.window, more), 1)[0]["outages"][0])
    row = {
        "name": name,
        "backup": backup,
        "kernel": statistics.median(one["new_data"] for one in real),
        "kernel_all": sorted(one["new_data"] for one in real),
        "simulated": statistics.median(one["new_data"] for one in simulated),
        "kernel_resumed": statistics.median(one["resumed"] for one in real),
        "simulated_resumed": statistics.median(one["delivered"] for one in simulated),
        "late": max(one["late"] for one in real),
    }
    # Without a backup both send new data by the second link all the time: there is nothing to be late with.
    row["difference"] = row["simulated"] / row["kernel"] - 1 if backup else None
    row["within"] = not backup or abs(row["difference"]) <= FAILURE_BOUND
    return row


# What is printed.


def per_cent(part):
    return "" if part is None else f"{part * 100:+.1f} %".replace("-", "−")


def table(rows):
    """The rows as Markdown: a table of the settings, and one of the failures."""
    mega = lambda row, key: f"{row[key] / 1e6:.2f}" if key in row else ""
    settings, failures = [], []
    for row in rows:
        if "paths" in row:
            paths = ", ".join(f"{rate} Mbit/s {delay} ms" for rate, delay in row["paths"])
            settings.append(
                f"| `{row['name']}` | {paths} | {row['loss']} % | {mega(row, 'kernel')} | {mega(row, 'simulated')} | "
                f"{per_cent(row['difference'])} | {mega(row, 'cmt')} | {mega(row, 'cmt_simulated')} |"
            )
        else:
            times = [row[key] for key in ("kernel", "simulated", "kernel_resumed", "simulated_resumed")]
            new, ours, resumed, our = (f"{time:.2f} s" for time in times)
            failures.append(f"| `{row['name']}` | {new} | {ours} | {per_cent(row['difference'])} | {resumed} | {our} |")
    settings_head = [
        "| setting | links | loss | kernel | simulated | difference | `send --cmt` | simulated |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    failures_head = [
        "| failure | new data elsewhere: kernel | simulated | difference | reading goes on: kernel | simulated |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    tables = [head + lines for head, lines in ((settings_head, settings), (failures_head, failures)) if lines]
    return "\n\n".join("\n".join(lines) for lines in tables)


def impossible(program):
    """Why nothing can be measured here; `None` if it can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP).close()
    except OSError:
        return "this kernel has no Multipath TCP"
    with_multipath = subprocess.run(["sh", "-c", "ip mptcp limits show"], capture_output=True)
    return "`ip mptcp` does not work (package iproute2)" if with_multipath.returncode != 0 else None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=PROJECT + "/target/release/anabranch", help="anabranch [target/release/anabranch]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the setting of this name, or all whose name contains it")
    parser.add_argument("--tries", type=int, default=5, help="transfers of the real programs for each setting; the median counts [5]")
    parser.add_argument("--seeds", type=int, default=20, help="simulations of each setting with loss; the mean counts [20]")
    parser.add_argument("--window", choices=list(WINDOWS), default="cubic", help="the window of each subflow [cubic]")
    parser.add_argument("--without-cmt", action="store_true", help="leave CMT out")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each setting instead of tables")
    parser.add_argument("--page", metavar="FILE", help="write the tables between the marks of this page")
    return parser, parser.parse_args()


MARKS = ("<!-- measured -->\n", "<!-- end -->\n")


def main():
    parser, options = arguments()
    options.program = os.path.abspath(options.program)
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program}: no such program; build it with `cargo build --release -p anabranch`")
    why = impossible(options.program)
    if why:
        print(f"skipped: interop/mptcp.py: {why}", file=sys.stderr)
        return 1 if os.environ.get("ANABRANCH_REQUIRE") == "all" else 0
    plan = [(compare, one) for one in SETTINGS] + [(compare_failure, one) for one in FAILURES]
    exact = [(measure, one) for measure, one in plan if options.only == one[0]]
    plan = exact or [(measure, one) for measure, one in plan if options.only in one[0]]
    if not plan or options.tries < 1 or options.seeds < 1:
        names = ", ".join(one[0] for one in SETTINGS + FAILURES)
        parser.error(f"nothing to be measured; the settings are {names}, and numbers are at least 1")
    rows = []
    for measure, one in plan:
        try:
            rows.append(measure(options.program, one, options))
        except Failed as why:
            print(f"interop/mptcp.py: {one[0]}: {why}", file=sys.stderr)
            return 1
        if options.json:
            print(json.dumps(rows[-1]), flush=True)
    if not options.json:
        print(table(rows))
    if options.page:
        with open(options.page) as f:
            before, rest = f.read().split(MARKS[0])
        with open(options.page, "w") as f:
            f.write(before + MARKS[0] + table(rows) + "\n" + MARKS[1] + rest.split(MARKS[1])[1])
    return 0 if all(row["within"] for row in rows) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        globals()[sys.argv[2]](*sys.argv[3:])
    else:
        sys.exit(main())
