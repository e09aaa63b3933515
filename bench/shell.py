#!/usr/bin/env python3
"""What packets of real programs meet in `anabranch shell`, measured by real programs.

Delay, rate, loss, the kernel's TCP, ten transfers over two traces and the most that one link carries, each beside what the scenario, the
simulation or the model says. With `probe …` instead of ANABRANCH it is one of the real programs.
"""
import argparse
import datetime
import json
import math
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


def transfer(program, file, addresses):
    """Sends a file with `anabranch send --cmt` one second after the session began; prints when: from then, and since 1970."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    zero = ticks / os.sysconf("SC_CLK_TCK")  # this program started with the session
    time.sleep(max(0, zero + 1 - time.clock_gettime(time.CLOCK_BOOTTIME)))
    begun = {"start": time.clock_gettime(time.CLOCK_BOOTTIME) - zero, "at": time.time()}
    output = subprocess.run([program, "send", "--cmt", "--json", file, "--to", addresses], capture_output=True, text=True)
    if output.returncode != 0:
        sys.exit(output.stderr)
    print(json.dumps(begun))


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


B = "10.0.0.2"


def delay_of_a_link(program):
    found, summary, said = session(program, link("100 Mbit/s", "20 ms"), f"delay {B} 200", "mirror")
    tell("delay of an unloaded link of 20 ms", "within 0.3 ms", f"{found['delay_ms']:.3f} ms", summary, said)


def rate_of_a_link(program):
    scenario = link("10 Mbit/s", "5 ms", 'queue = "40 packets"')
    found, summary, said = session(program, scenario, f"flood {B} 6000 12e6", "sink")
    tell("rate of a link of 10 Mbit/s", "within 1 %", f"{found['rate'] / 1e6:.4f} Mbit/s", summary, said)
    scenario = link("100 Mbit/s", "5 ms", 'queue = "400 packets"')
    found, summary, said = session(program, scenario, f"flood {B} 60000 120e6", "sink")
    tell("rate of a link of 100 Mbit/s", "within 1 %, p99 under 1 ms", f"{found['rate'] / 1e6:.3f} Mbit/s", summary, said)


def loss_of_a_link(program):
    found, summary, said = session(program, link("100 Mbit/s", "5 ms", 'loss = "1 %"'), f"flood {B} 20000 50e6", "sink")
    lost = found["sent"] - found["received"]
    tell("packets of 20,000 that a loss of 1 % loses", "172 to 228: 95 %", lost, summary, said)


def pftk(size, rtt, loss, timeout, acked=2):
    """The goodput that Padhye et al. allow, bit/s: the full approximation without a limit of the window (SIGCOMM 1998, eq. 30)."""
    rounds = rtt * math.sqrt(2 * acked * loss / 3)
    waits = timeout * min(1, 3 * math.sqrt(3 * acked * loss / 8)) * loss * (1 + 32 * loss**2)
    return size * 8 / (rounds + waits)


def tcp_of_the_kernel(program):
    wire = link("10 Mbit/s", "50 ms", 'loss = ["1 %", "0 %"]\nqueue = "100 packets"')
    found, summary, said = session(program, wire, f"tcp_source {B} 60", "tcp_sink")
    flow = '[[flow]]\nname = "ours"\nprotocol = "tcp"\nfrom = "a"\nto = "b"\n'
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
        f.write('stop = "60 s"\n' + wire + flow)
        f.flush()
        runs = simulated(program, f.name, "--seeds", "20")
    ours = statistics.mean(run["flows"][0]["goodput"] for run in runs)
    model = pftk(1448, 0.102, 0.01, 0.302)
    asked = f"ours {ours / 1e6:.3f} Mbit/s, the mean of 20 seeds: within 15 %; PFTK allows {model / 1e6:.3f} Mbit/s"
    apart = (found["goodput"] / ours - 1) * 100
    tell("goodput of the kernel's TCP, 10 Mbit/s, 50 ms, 1 %", asked, f"{found['goodput'] / 1e6:.3f} Mbit/s, {apart:+.1f} %", summary, said)


def most_of_a_link(program):
    scenario = link("10 Gbit/s", "1 ms", 'queue = "4000 packets"')
    found, summary, said = session(program, scenario, f"tcp_source {B} 10", "tcp_sink")
    tell("the most that one link carries (TCP)", "1 Gbit/s", f"{found['goodput'] / 1e6:.0f} Mbit/s", summary, said)


def simulated(program, *arguments):
    output = subprocess.run([program, "run", *arguments, "--json"], capture_output=True, text=True)
    if output.returncode != 0:
        sys.exit(output.stderr)
    return json.loads(output.stdout)


def transfers_over_traces(program):
    """Ten transfers of 5 MB over scenarios/traces.toml, and the simulation of each from the moment at which it began."""
    program, apart = os.path.abspath(program), []
    scenario = os.path.join(os.path.dirname(HERE), "../scenarios/traces.toml")
    # In memory: the listener says that it has a file when it is on the disk, and a simulation has no disk.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for seed in range(1, 11):
        with tempfile.TemporaryDirectory(dir=memory) as directory:
            with open(directory + "/file", "wb") as f:
                f.write(bytes(5_000_000))
            # In a simulation both ends have the settings of `cmt`: the receiver delays its SACKs, also while TSNs are missing (DAC).
            serve = f"{program} serve --cmt --listen 10.0.0.1,10.0.0.5 --public --receive-into {directory}/inbox"
            command = [program, "shell", scenario, "--set", f"seed={seed}", "--at", "s", "--at", f"r={serve}", "--without", "all"]
            command += ["--quiet", "--", sys.executable, HERE, "probe", "transfer", program, directory + "/file", "10.0.0.1,10.0.0.5"]
            os.mkdir(directory + "/inbox")
            output = subprocess.run(command, capture_output=True, text=True, timeout=200)
        if output.returncode != 0:
            sys.exit(output.stderr)
        found = json.loads(output.stdout)
        # The listener says when it had the last byte, as the simulation does.
        received = next(line for line in output.stderr.splitlines() if ": received " in line).split()[0]
        seconds = datetime.datetime.fromisoformat(received.replace("Z", "+00:00")).timestamp() - found["at"]
        warnings = " ".join(line for line in output.stderr.splitlines() if line.startswith("warning"))
        keys = {"seed": seed, "flow.upload.send": "5 MB", "flow.upload.start": f"{found['start']:.6f} s"}
        # What `anabranch send` sets: UDP around each packet, packets filled, their size found by probes.
        keys |= {"flow.upload.udp": "true", "flow.upload.message_size": "64 KiB"}
        keys |= {f"flow.upload.sctp.{key}": "true" for key in ("fill_packets", "mtu_discovery", "rehome")}
        [run] = simulated(program, scenario, *(word for key, value in keys.items() for word in ("--set", f"{key}={value}")))
        wanted = run["flows"][0]["completion"]
        apart.append((seconds / wanted - 1) * 100)
        print(f"seed {seed}: {seconds:.3f} s, simulated {wanted:.3f} s, {apart[-1]:+.1f} % {warnings}", flush=True)
    median = statistics.median(abs(percent) for percent in apart)
    print(f"transfers over two traces: {median:.1f} % from the simulation, the median of ten (within 5 %)", flush=True)


MEASUREMENTS = {
    "delay": delay_of_a_link,
    "rate": rate_of_a_link,
    "loss": loss_of_a_link,
    "tcp": tcp_of_the_kernel,
    "most": most_of_a_link,
    "traces": transfers_over_traces,
}


def measure(words):
    head, body = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(description=head, epilog=body, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", metavar="ANABRANCH", default="target/release/anabranch", help="default: %(default)s")
    parser.add_argument("--only", choices=MEASUREMENTS, help="measure only this")
    chosen = parser.parse_args(words)
    for name, measurement in MEASUREMENTS.items():
        if chosen.only in (None, name):
            measurement(chosen.program)


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        globals()[sys.argv[2]](*sys.argv[3:])
    else:
        measure(sys.argv[1:])
