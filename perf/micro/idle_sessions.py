"""python -m shmbroker.perf.micro.idle_sessions: what idle programs on other hosts cost a broker.

    1,000 programs ══ heartbeats of 5 s, nothing to say ══ broker

The broker is an instance, a process of its own; the programs share another process, where each has
its own socket, link and session.  Counted are the broker's processor time and its memory, against a
broker with one session.  Then as many heartbeats go to and fro as in an hour, because the queues of
a connection take their memory when they are first filled.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.client.connecting import Learns, nothing
from shmbroker.netbridge.client.link import ProgramLink
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.uri import Single
from shmbroker.netbridge.remote.action import Action, Say
from shmbroker.netbridge.remote.action import Event as Loss
from shmbroker.netbridge.remote.client import Client
from shmbroker.netbridge.remote.options import SessionOptions
from shmbroker.netbridge.remote.phase import Phase
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import Frame
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.usage import memory, processor_s
from shmbroker.perf.server.instance import PASSWORD, USER, is_served, serving
from shmbroker.perf.server.server import HOST, Place

SESSIONS = 1_000
SECONDS = 20.0
BEAT_S = 5.0
SHARE_MAX = 0.05
"""Of a core."""
MEMORY_MAX = 64 << 10
"""Of a session, in the broker."""
PATIENCE_S = 120
POLL_S = 0.05
SETTLE_S = 2.0
AGED = 100
QUICK_S = 0.02
HOUR_BEATS = 720
"""Of 5 seconds."""
AT_ONCE = 50
"""Handshakes that go on at the same time."""


class IdleProgram:
    """The session of a program that asks for nothing."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.link: ProgramLink | None = None
        self.learns: Learns = nothing

    def link_is_up(self, node: bytes, process: bytes) -> None:
        self._does(self.client.connected(time.monotonic()))

    def link_is_lost(self, kind: Loss, detail: str) -> None:
        self._does(self.client.lost(time.monotonic()))

    def heard(self, frame: Frame) -> None:
        self._does(self.client.received(frame, time.monotonic()))

    def invited(self, uri: str, former: str) -> None:
        raise ConnectionError(uri)

    def found_none(self, said: Mapping[Single, str]) -> None:
        raise ConnectionError(str(said))

    def _does(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Say) and self.link is not None:
                self.link.say(action.frame)


@dataclass(frozen=True, slots=True)
class Programs:
    """All in one process, which writes what they have come to."""

    port: int
    count: int
    times: LinkTimes
    up: Path

    def live(self) -> int:
        os.nice(1)  # what is measured is the other process
        secret = Stretched(USER, PASSWORD)
        credential = Credential(USER, USER, (Role.CLIENT,), (secret,))
        with NetworkThread() as thread:
            programs: list[IdleProgram] = []
            for number in range(self.count):
                while number - _up(programs) >= AT_ONCE:
                    time.sleep(0.001)
                programs.append(self._connected(thread, credential, number))
            while (up := _up(programs)) < self.count:
                self.up.write_text(str(up))
                time.sleep(POLL_S)
            self.up.write_text(str(up))
            Event().wait()
        return 0

    def _connected(self, thread: NetworkThread, credential: Credential, number: int) -> IdleProgram:
        client = Client(secrets.token_bytes(16), SessionOptions())
        program = IdleProgram(client)
        thread.ask(lambda: client.start(time.monotonic()))
        ours = Identity(
            secrets.token_bytes(16), secrets.token_bytes(16), f"idle-{number}", Standing.NONE, 0
        )
        ProgramLink(
            thread, client.session.hex(), f"failover:(tcp://{HOST}:{self.port})", credential, ours,
            self.times, program,
        )  # fmt: skip
        return program


def _up(programs: list[IdleProgram]) -> int:
    return sum(each.client.phase is Phase.UP for each in programs)


@contextmanager
def connected(count: int, times: LinkTimes) -> Iterator[int]:
    """So many programs are there: the pid of their broker."""
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="shmbperf-idle-"))
        place = Place(Path(folder), free_port())
        given = {
            "link-defaults.heartbeat-interval": f"{times.heartbeat_interval * 1000:.0f}ms",
            "link-defaults.heartbeat-misses": int(times.heartbeat_misses),
        }
        broker = serving(place, opened, given)
        _until(lambda: is_served(place), "the broker listens")
        up, errors = place.folder / "up", place.folder / "errors"
        up.write_text("0")
        programs = Process(Programs(place.port, count, times, up).live, errors)
        opened.callback(programs.kill)
        _until(lambda: int(up.read_text() or 0) == count, "all programs are connected", errors)
        yield broker.pid


def _until(is_so: Callable[[], bool], what: str, errors: Path | None = None) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        said = errors.read_text() if errors is not None and errors.exists() else ""
        if said or time.monotonic() > until:
            raise TimeoutError(f"not within {PATIENCE_S} s: {what} {said}")
        time.sleep(POLL_S)


def idle(count: int, seconds: float, times: LinkTimes) -> tuple[float, int]:
    """The broker's share of a core, and its bytes."""
    with connected(count, times) as broker:
        time.sleep(SETTLE_S)  # what the handshakes have left is dealt with
        before, began = processor_s(broker), time.perf_counter()
        time.sleep(seconds)
        return (processor_s(broker) - before) / (time.perf_counter() - began), memory(broker)


def told(count: int, seconds: float, aged: int) -> bool:
    """In words: whether it is as it is to be."""
    times = LinkTimes(heartbeat_interval=BEAT_S)
    (_, base), (share, size) = idle(1, 0, times), idle(count, seconds, times)
    good = _tell(f"{count:,} idle sessions", share, (size - base) / max(1, count - 1))
    if aged:
        quick = LinkTimes(heartbeat_interval=QUICK_S, heartbeat_misses=100)
        _, size = idle(aged, HOUR_BEATS * QUICK_S, quick)
        good &= _tell(f"{aged:,} after {HOUR_BEATS} beats", None, (size - base) / max(1, aged - 1))
    return good


def _tell(what: str, share: float | None, each: float) -> bool:
    missed = (share or 0) > SHARE_MAX or each > MEMORY_MAX
    shown = "" if share is None else f"{share:6.1%} of a core,"
    sys.stdout.write(f"{what:22} {shown:22} {each / 1024:6,.1f} KiB each"
                     f"{'  MISSED' if missed else ''}\n")  # fmt: skip
    return not missed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shmbroker.perf.micro.idle_sessions",
        description="What idle programs on other hosts cost a broker.",
    )
    parser.add_argument("--sessions", type=int, default=SESSIONS, help=f"default {SESSIONS:,}")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"default {SECONDS:g}")
    parser.add_argument("--aged", type=int, default=AGED, help=f"default {AGED}; 0: none")
    asked = parser.parse_args(arguments)
    return 0 if told(asked.sessions, asked.seconds, asked.aged) else 1


if __name__ == "__main__":
    sys.exit(main())
