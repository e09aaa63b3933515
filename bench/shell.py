#!/usr/bin/env python3
"""What packets of real programs meet in `anabranch shell`, measured by real programs.

bench/shell.py [ANABRANCH]: measures delay, rate, loss, the kernel's TCP and the most that one link carries, and prints each beside what
the scenario says. With the words `probe …` it is one of these programs.
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.abspath(__file__)
SIZE = 1472  # bytes of UDP user data: 1500 with the headers


def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_000_000)
    return s


def mirror():
    """Answers every datagram."""
    s = udp()
    s.bind(("0.0.0.0", 7))
    while True:
        data, peer = s.recvfrom(2048)
        s.sendto(data, peer)


def delay(host, count):
    """Half the round trip of small datagrams, in ms: the median."""
    s = udp()
    s.settimeout(1)
    times = []
    for _ in range(int(count)):
        begun = time.perf_counter()
        s.sendto(b"x", (host, 7))
        try:
            s.recv(10)
        except TimeoutError:
            continue
        times.append((time.perf_counter() - begun) * 500)
        time.sleep(0.02)
    print(json.dumps({"delay_ms": statistics.median(times[2:])}))


def sink():
    """Counts datagrams until one says `end`; then answers with the count, and the rate between the first and the last."""
    s = udp()
    s.bind(("0.0.0.0", 9))
    count, first, last = 0, None, None
    while True:
        data, peer = s.recvfrom(2048)
        if data == b"end":
            rate = (count - 1) * (SIZE + 28) * 8 / (last - first) if count > 1 else 0
            s.sendto(json.dumps({"received": count, "rate": rate}).encode(), peer)
            continue
        last = time.perf_counter()
        first = first or last
        count += 1


def flood(host, packets, rate):
    """Sends datagrams at this rate, bit/s, and prints what arrived."""
    s = udp()
    data, apart = bytes(SIZE), (SIZE + 28) * 8 / float(rate)
    begun = time.perf_counter()
    for number in range(int(packets)):
        s.sendto(data, (host, 9))
        ahead = begun + (number + 1) * apart - time.perf_counter()
        if ahead > 0.001:
            time.sleep(ahead)
    s.settimeout(1)
    for _ in range(10):
        time.sleep(0.3)
        s.sendto(b"end", (host, 9))
        try:
            answer = json.loads(s.recv(200))
            break
        except TimeoutError:
            continue
    print(json.dumps({"sent": int(packets), **answer}))


def tcp_sink():
    """Reads what comes over TCP, until the sender resets the connection."""
    s = socket.create_server(("0.0.0.0", 5001))
    while True:
        connection, _ = s.accept()
        try:
            while connection.recv(1 << 20):
                pass
        except ConnectionResetError:
            pass
        connection.close()


def tcp_source(host, seconds):
    """Sends over the kernel's TCP (Reno) for so long; prints its goodput in bit/s."""
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    s.connect((host, 5001))
    begun, data = time.perf_counter(), bytes(1 << 16)
    s.settimeout(1)
    while time.perf_counter() - begun < float(seconds):
        try:
            s.send(data)
        except TimeoutError:
            pass
    info = s.getsockopt(socket.IPPROTO_TCP, 11, 240)  # TCP_INFO: tcpi_bytes_acked at 120
    acked = int.from_bytes(info[120:128], "little")
    print(json.dumps({"goodput": acked * 8 / (time.perf_counter() - begun)}))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))


def session(program, scenario, here, there):
    """The JSON that the program at `here` printed, and the session's summary."""
    with tempfile.TemporaryDirectory() as directory:
        file, summary = directory + "/scenario.toml", directory + "/summary.json"
        with open(file, "w") as f:
            f.write(scenario)
        command = [program, "shell", file, "--at", "a", "--at", f"b={sys.executable} {HERE} probe {there}"]
        command += ["--quiet", "--summary", summary, "--", "sh", "-c", f"sleep 0.3; exec {sys.executable} {HERE} probe {here}"]
        output = subprocess.run(command, capture_output=True, text=True, timeout=200)
        if output.returncode != 0:
            sys.exit(output.stderr)
        with open(summary) as f:
            return json.loads(output.stdout), json.load(f), output.stderr.strip()


def link(rate, delay, more=""):
    return f'[[link]]\nname = "wire"\nbetween = ["a", "b"]\nrate = "{rate}"\ndelay = "{delay}"\n{more}\n'


def tell(what, asked, got, summary, said):
    late = summary["lateness"]
    late = ", ".join(f"{name} {late[name] * 1e3:.3f} ms" for name in ("p50", "p99", "max"))
    print(f"{what}: {got} ({asked}); late by {late}; not read in time: {summary['overrun']} {said}", flush=True)


def measure(program):
    b = "10.0.0.2"
    found, summary, said = session(program, link("100 Mbit/s", "20 ms"), f"delay {b} 200", "mirror")
    tell("delay of an unloaded link of 20 ms", "within 0.3 ms", f"{found['delay_ms']:.3f} ms", summary, said)
    scenario = link("10 Mbit/s", "5 ms", 'queue = "40 packets"')
    found, summary, said = session(program, scenario, f"flood {b} 6000 12e6", "sink")
    tell("rate of a link of 10 Mbit/s", "within 1 %", f"{found['rate'] / 1e6:.4f} Mbit/s", summary, said)
    found, summary, said = session(program, link("100 Mbit/s", "5 ms", 'loss = "1 %"'), f"flood {b} 20000 50e6", "sink")
    lost = found["sent"] - found["received"]
    tell("packets of 20,000 that a loss of 1 % loses", "172 to 228: 95 %", lost, summary, said)
    scenario = link("100 Mbit/s", "5 ms", 'queue = "400 packets"')
    found, summary, said = session(program, scenario, f"flood {b} 60000 120e6", "sink")
    tell("rate of a link of 100 Mbit/s", "within 1 %, p99 under 1 ms", f"{found['rate'] / 1e6:.3f} Mbit/s", summary, said)
    scenario = link("10 Mbit/s", "50 ms", 'loss = ["1 %", "0 %"]\nqueue = "100 packets"')
    found, summary, said = session(program, scenario, f"tcp_source {b} 60", "tcp_sink")
    tell("goodput of the kernel's TCP, 10 Mbit/s, 50 ms, 1 %", "within 15 % of ours", f"{found['goodput'] / 1e6:.3f} Mbit/s", summary, said)
    scenario = link("10 Gbit/s", "1 ms", 'queue = "4000 packets"')
    found, summary, said = session(program, scenario, f"tcp_source {b} 10", "tcp_sink")
    tell("the most that one link carries (TCP)", "1 Gbit/s", f"{found['goodput'] / 1e6:.0f} Mbit/s", summary, said)


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        globals()[sys.argv[2]](*sys.argv[3:])
    else:
        measure(sys.argv[1] if len(sys.argv) > 1 else "target/release/anabranch")
