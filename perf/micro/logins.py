"""python -m shmbroker.perf.micro.logins: what a million failed logins do to a console.

    guesser 127.0.1.1   ──┐
    guesser 127.0.1.2   ──┼──► console ◄── somebody who knows his password, from 127.0.9.9
    ...                 ──┘        └──► log

Each guesser has a connection, and sends the next requests as soon as the last ones are answered;
every second one names a user who is there.  In the midst of it, and behind it, somebody logs in
from elsewhere.  It fails if a guess gets in, if somebody who knows his password does not, or if
the log or the memory grows with the guesses.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from shmbroker.perf.machine.usage import memory, processor_s
from shmbroker.perf.micro.console import console_of, tell
from shmbroker.perf.micro.instance import Broken, Instance

USER, PASSWORD = "operator", "correct horse battery staple"
PATIENCE_S: Final = 300.0
KNOWS: Final = "127.0.9.9"
AT_ONCE: Final = 10
"""Requests that a guesser sends without waiting."""
STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LOG_LINES_MAX: Final = 100
"""In a minute, of all kinds."""
MEMORY_MAX: Final = 200 << 20
"""What stretching passwords takes, and no more."""


class Guesser:
    """From an address of this host that is nobody else's."""

    def __init__(self, place: tuple[str, int], number: int) -> None:
        self._place, self._number = place, number
        self._from = f"127.0.{1 + number // 250}.{1 + number % 250}"
        self._connection = self._connected()
        self._buffer = b""

    def _connected(self) -> socket.socket:
        made = socket.socket()
        made.bind((self._from, 0))
        made.settimeout(PATIENCE_S)
        made.connect(self._place)
        return made

    def sends(self, count: int, first: int) -> None:
        """Each with another password."""
        host = "{}:{}".format(*self._place)
        requests = []
        for number in range(first, first + count):
            user = USER if number % 2 else f"user-{number}"
            body = json.dumps({"user": user, "password": f"guess {number}"}).encode()
            requests.append(
                f"POST /api/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
        with suppress(OSError):  # it was closed, because others took long: `answers` sees it
            self._connection.sendall(b"".join(requests))

    def answers(self, count: int, first: int) -> Iterator[int]:
        """Their status; those of a connection that was closed are sent again by another one."""
        while count:
            chunk = b""
            with suppress(ConnectionError):
                chunk = self._connection.recv(1 << 16)
            if not chunk:
                self._connection.close()
                self._connection, self._buffer = self._connected(), b""
                self.sends(count, first)
                continue
            rest = self._buffer + chunk
            found = list(STATUS.finditer(rest))
            self._buffer = (rest[found[-1].end() :] if found else rest)[-16:]  # half a line
            count, first = count - len(found), first + len(found)
            yield from (int(each[1]) for each in found)

    def close(self) -> None:
        self._connection.close()


def seconds_to_log_in(place: tuple[str, int]) -> float:
    """For somebody who waits as long as he is told."""
    began = time.monotonic()
    body = json.dumps({"user": USER, "password": PASSWORD})
    while time.monotonic() - began < PATIENCE_S:
        connection = http.client.HTTPConnection(
            *place, timeout=PATIENCE_S, source_address=(KNOWS, 0)
        )
        connection.request("POST", "/api/login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status == 200:
            return time.monotonic() - began
        if answer.status != 429:
            raise Broken(f"the right password is answered with {answer.status}")
        time.sleep(float(answer.headers["Retry-After"]))
    raise Broken(f"the right password has not been let in for {PATIENCE_S:g} s")


def guessed(place: tuple[str, int], given: argparse.Namespace) -> Iterator[Counter[int] | float]:
    """The seconds of logins from elsewhere, and what all guesses were answered."""
    guessers = [Guesser(place, number) for number in range(given.addresses)]
    done, answers, is_due = 0, Counter[int](), True
    try:
        while done < given.logins:
            if is_due and done >= given.logins / 2:
                is_due = False
                yield seconds_to_log_in(place)
            share = min(AT_ONCE, -(-(given.logins - done) // len(guessers)))
            for number, each in enumerate(guessers):
                each.sends(share, done + number * share)
            for number, each in enumerate(guessers):
                answers.update(each.answers(share, done + number * share))
            done += share * len(guessers)
    finally:
        for each in guessers:
            each.close()
    yield seconds_to_log_in(place)
    yield answers


def measured(instance: Instance, given: argparse.Namespace) -> Iterator[str]:
    with instance.runs():
        console, url = console_of(instance.folder)
        parts = urlsplit(url)
        place = str(parts.hostname), int(parts.port or 0)
        seconds_to_log_in(place)
        log = instance.folder / "log" / "shmbroker.log"
        lines, size = log.read_bytes().count(b"\n"), log.stat().st_size
        began, used, resident = time.monotonic(), processor_s(console), memory(console)
        logins, answers = list[float](), Counter[int]()
        for each in guessed(place, given):
            if isinstance(each, float):
                logins.append(each)
            else:
                answers = each
        passed, used = time.monotonic() - began, processor_s(console) - used
        grown = memory(console) - resident
        lines = log.read_bytes().count(b"\n") - lines
        count = answers.total()
        each_us = used / count * 1e6
        yield f"take {passed:,.0f} s, {used:,.0f} s of a processor ({each_us:.0f} us each)"
        told = ", ".join(f"{answers[each]:,} with {each}" for each in sorted(answers))
        yield f"are answered: {told}"
        yield f"leave {lines:,} lines ({log.stat().st_size - size:,} bytes) in the log"
        yield f"let the console grow by {grown / 2**20:,.1f} MiB"
        yield (
            f"let somebody from elsewhere log in after {logins[0]:.1f} s, and behind them after "
            f"{logins[1]:.1f} s"
        )
        if not answers.keys() <= {401, 429}:
            raise Broken("a guess was let in, or broke something")
        if lines > LOG_LINES_MAX * (passed / 60 + 2):
            raise Broken("the log grows with the guesses")
        if grown > MEMORY_MAX:
            raise Broken("the memory grows with the guesses")


def configured(folder: Path) -> Instance:
    instance = Instance(
        folder, "one", console__listen="127.0.0.1:0", console__credentials=[USER],
        credentials__operator__role="admin", credentials__operator__password=PASSWORD,
    )  # fmt: skip
    instance.create({})
    return instance


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logins", type=int, default=1_000_000)
    parser.add_argument("--addresses", type=int, default=50, help="from which they come")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        instance = configured(Path(folder))
        tell(instance, measured(instance, given), f"{given.logins:,} failed logins ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
