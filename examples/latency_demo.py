"""make demo-latency: two brokers write a spool, Spark streams it, a report shows who was slow when.

paced_load.py ──► orders of vhost 1 ── shmbroker run --spool ──┐
                                                               ├─► spool ─► latency follow
paced_load.py ──► orders of vhost 2 ── shmbroker run --spool ──┘              │
(its consumer is slow for a while)                        latency-demo.html ◄─┘ tables
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import shmbroker
from shmbroker import vhost

HERE = Path(__file__).parent
COMMAND = str(Path(sys.executable).parent / "shmbroker")
QUEUE = "orders"
PATIENCE_S = 300
SPOOL_S = 1


class Play:
    def __init__(self, folder: Path) -> None:
        self.spool, self.tables = folder / "spool", folder / "tables"
        self.processes: list[subprocess.Popen[str]] = []
        self.vhosts = [f"demo-latency-{number}-{os.getpid()}" for number in (1, 2)]

    def start(self, *command: str) -> subprocess.Popen[str]:
        made = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, text=True, start_new_session=True
        )
        self.processes.append(made)
        return made

    def end(self) -> None:
        for each in self.processes:
            self.kill(each)
        for name in self.vhosts:
            if vhost.exists(name):
                vhost.delete(name, force=True)

    @staticmethod
    def kill(process: subprocess.Popen[str]) -> None:
        """With all that it has started: Spark is another process."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def latency(*words: str) -> str:
    return subprocess.check_output([COMMAND, "latency", *words], text=True, timeout=PATIENCE_S)


def perform(play: Play, seconds: float, output: Path) -> bool:
    brokers = []
    with ExitStack() as connections:
        for name in play.vhosts:
            broker = connections.enter_context(shmbroker.connect(f"shm://{name}", create=True))
            broker.declare_queue(QUEUE, slots=65536).latency(True)
            spool = ["--spool", str(play.spool), "--spool-interval", f"{SPOOL_S}s"]
            brokers.append(play.start(
                COMMAND, "run", "--vhost", name, *spool, "--spool-rotate", f"{2 * SPOOL_S}s"
            ))  # fmt: skip
        while not (play.spool.exists() and list(play.spool.iterdir())):
            time.sleep(0.1)  # there is nothing to wait for: a folder that others fill
        follow = play.start(
            COMMAND, "latency", "follow", str(play.spool), "--into", str(play.tables),
            "--window", f"{SPOOL_S}s", "--every", "2s",
        )  # fmt: skip
        print(f"two brokers write a spool, Spark follows it; {seconds:g} s of load", flush=True)
        script = [sys.executable, str(HERE / "paced_load.py")]
        begun = datetime.now(UTC).timestamp()
        slow = [str(seconds / 2), str(seconds / 2 + seconds / 6)]
        loads = [
            play.start(*script, f"shm://{name}", QUEUE, str(seconds), *(slow if is_slow else []))
            for name, is_slow in zip(play.vhosts, (False, True), strict=True)
        ]
        for each in loads:
            each.wait(PATIENCE_S)
        for each in brokers:
            each.send_signal(signal.SIGINT)  # the last interval is written
            each.wait(PATIENCE_S)
    play.kill(follow)  # anywhere: what it has not taken is taken now
    words = [str(play.spool), "--into", str(play.tables), "--window", f"{SPOOL_S}s"]
    latency("follow", *words, "--once")
    report = ["report", str(play.tables), "--output", str(output), "--bound", "10ms"]
    for path in latency(*report, "--title", "Two brokers, one slow consumer").split():
        print(path)
    rows = json.loads(latency(
        "percentiles", str(play.tables), "--by", "vhost,kind,window", "--at", "99", "--json"
    ))  # fmt: skip
    return tell(rows, play.vhosts, begun + float(slow[0]), begun + float(slow[1]))


def tell(rows: list[dict[str, object]], names: list[str], slow: float, over: float) -> bool:
    """p99 in each window; true if the worst is when, and where, the consumer was slow."""
    waits = {
        (str(row["vhost"]), moment_of(row["window"])): float(str(row["p99"]))
        for row in rows
        if row["kind"] == "publish-take"
    }
    first = min(at for _, at in waits)
    print(f"\np99 from publish to take; the consumer of 2 was slow from {slow - first:.0f} s to "
          f"{over - first:.0f} s")  # fmt: skip
    for at in sorted({at for _, at in waits}):
        figures = (waits.get((name, at)) for name in names)
        texts = ("-" if each is None else f"{each / 1e6:,.2f} ms" for each in figures)
        print(f"{at - first:5.0f} s  {'  '.join(f'{text:>12}' for text in texts)}")
    where, when = max(waits, key=lambda key: waits[key])
    print(f"worst: vhost {where[-1 - len(str(os.getpid())) - 1 :][0]}, at {when - first:.0f} s")
    # what was published while it was slow waits longest when it has just become fast again
    return where == names[1] and slow - SPOOL_S <= when <= over + SPOOL_S + 1


def moment_of(window: object) -> float:
    return datetime.fromisoformat(str(window)).replace(tzinfo=UTC).timestamp()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=18, help="of load; default 18")
    parser.add_argument("--output", type=Path, default=Path("latency-demo.html"))
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="shmbroker-latency-"))
    play = Play(folder)
    try:
        found = perform(play, asked.seconds, asked.output)
    finally:
        play.end()
        shutil.rmtree(folder)
    print("\nthe slow consumer was found" if found else "\nTHE SLOW CONSUMER WAS NOT FOUND")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
