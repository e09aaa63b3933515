"""`python -m anabranch sweep FILE`: sweeps from a shell, also on the workers of Dask."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import ssl
import sys
from typing import Any

import anabranch
from anabranch._table import half_interval

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

TLS = "DASK_DISTRIBUTED__COMM__TLS__"
CERTIFICATES = f"{TLS}CA_FILE, {TLS}CLIENT__CERT and {TLS}CLIENT__KEY"
"""The environment variables that Dask reads for connections with TLS."""


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(
        prog="python -m anabranch",
        description="Sweeps on the workers of Dask. For all other commands there is the program `anabranch`.",
    )
    parser.add_argument("--version", action="version", version=anabranch.__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    sweep = commands.add_parser(
        "sweep",
        help="run a sweep",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python -m anabranch sweep study.toml --out results/\n"
        "  python -m anabranch sweep study.toml --out results/ --dask tcp://head:8786\n"
        "  python -m anabranch sweep study.toml --out results/ --dask 4      # four processes on this machine\n\n"
        "A scheduler at tls://… needs certificates, in files that these environment variables name:\n"
        f"  {CERTIFICATES}\n\n"
        "Exit status: 0 done, 1 runs failed or are missing, 2 the input was wrong, 130 interrupted.",
    )
    sweep.add_argument("file", metavar="FILE", help="the sweep: a TOML file (docs/sweeps.md)")
    sweep.add_argument("--out", metavar="DIR", required=True, help="a directory, with --dask also an address of fsspec; goes on where it was")
    sweep.add_argument("--dask", metavar="ADDRESS", type=cluster, help="the scheduler, or a number of processes on this machine")
    sweep.add_argument("--task-seconds", metavar="S", type=seconds, default=2.0, help="with --dask: how long a task takes, about (2)")
    sweep.add_argument("--threads", metavar="N", type=whole, help="without --dask: threads instead of one a core")
    sweep.add_argument("--json", action="store_true", help="print the summaries as JSON")
    sweep.add_argument("--no-progress", action="store_true", help="show no progress")
    return parser


def whole(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """A time above zero."""
    try:
        time = float(text)
    except ValueError:
        time = 0.0
    if not 0.0 < time < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds above zero")
    return time


def cluster(text: str) -> str:
    """The address of a scheduler, or a number of processes."""
    if not text or text.isdecimal() and int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is neither the address of a scheduler nor a number of processes from 1 on")
    return text


def connect(address: str) -> Any:
    """A client of the scheduler at `address`, or of so many processes of one thread on this machine."""
    from distributed import Client, LocalCluster

    # A call of Dask that Ctrl-C interrupts can leave a callback that fails, and tornado writes the trace of that.
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
    if not address.isdecimal():
        try:
            return Client(address)
        except (TypeError, FileNotFoundError, ssl.SSLError) as error:
            raise ValueError(unusable(address, error)) from error
    # A terminal sends Ctrl-C to every process. The workers, which inherit this, leave it to this one, which ends them.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # The port of Dask's dashboard may be another cluster's. This one has no dashboard, but an HTTP server all the same.
        without_dashboard = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
        cluster = LocalCluster(n_workers=int(address), threads_per_worker=1, scheduler_kwargs=without_dashboard)
    finally:
        signal.signal(signal.SIGINT, before)
    client = Client(cluster)
    client.register_worker_callbacks(silence)
    return client


def unusable(address: str, error: Exception) -> str:
    """Why there is no connection to `address`. Dask raises a TypeError if it has no settings for this kind of address."""
    if not address.startswith(("tls://", "wss://")):
        return f"--dask {address}: {error}"
    why = "" if isinstance(error, TypeError) else f": {error}"
    return f"--dask {address} needs certificates, in files that {CERTIFICATES} name{why}"


def silence() -> None:
    """A worker that is ended in the middle of a heartbeat writes the trace of that. What its tasks have to say, they return."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


def main(given: list[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    asked = arguments().parse_args(given)
    client = None
    try:
        client = connect(asked.dask) if asked.dask else None
        result = anabranch.sweep(
            asked.file,
            out=asked.out,
            threads=asked.threads,
            client=client,
            task_seconds=asked.task_seconds,
            progress=False if asked.no_progress else None,
        )
    except anabranch.ScenarioError as error:
        print(error, file=sys.stderr)
        return 2
    except (FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"error: --dask needs the package `{error.name or error}`: pip install distributed pyarrow", file=sys.stderr)
        return 2
    except (OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except anabranch.Interrupted as interrupt:
        kept = len(interrupt.result.runs)
        print(f"interrupted: {kept} runs are kept in {asked.out}; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        if client is not None:
            client.close()
            if client.cluster is not None:
                client.cluster.close()
    print(json.dumps(result.cells, indent=2) if asked.json else printable(text(result)))
    if result.failed:
        print(f"{len(result.failed)} runs failed; failed.json in {asked.out} has them", file=sys.stderr)
    return 1 if result.failed or not result.complete else 0


def text(result: anabranch.SweepResult) -> str:
    """A line a cell."""
    lines = []
    for cell in result.cells:
        varied = " ".join(f"{key}={value}" for key, value in cell["varied"].items())
        means = " ".join(f"{name}={mean(summary)}" for name, summary in cell["measures"].items())
        lines.append(f"{varied or 'all'}: {means}")
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text without what a terminal would obey: names come from files."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def mean(summary: dict[str, Any]) -> str:
    """The mean, and half of its 95 % interval; one value has none."""
    if summary["mean"] is None:
        return "-"
    width = half_interval(summary)
    return f"{summary['mean']:.6g}" + ("" if width is None else f"±{width:.2g}")


if __name__ == "__main__":
    sys.exit(main())
