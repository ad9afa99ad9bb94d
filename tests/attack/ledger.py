"""The ledger: what each worker did, written before and after each call, and read when all is over.

A line is `TIME CODE NAME`, appended by one write to a file of the worker's own, so that what was
written outlives its writer.  Times are monotonic nanoseconds.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

TRIED, CONFIRMED, UNKNOWN, REFUSED = "t", "c", "u", "f"
"""Of a publish: about to, confirmed, nobody knows, refused (so it must never be seen)."""
SEEN, ACKED, REVOKED = "s", "a", "r"
"""Of a delivery: in hand, acknowledged, the acknowledgement came too late."""


class Writer:
    """The ledger of one worker."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def note(self, code: str, *names: str) -> None:
        now = time.monotonic_ns()
        os.write(self._file, "".join(f"{now} {code} {name}\n" for name in names).encode())


@dataclass
class Account:
    """What became of every message of one queue."""

    tried: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    seen: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    acked: dict[str, int] = field(default_factory=dict)

    def faults(self, forgets: list[int]) -> list[str]:
        """What must not be.  `forgets`: moments of cold starts, which may forget late acks."""
        wrong = []
        lost = self.confirmed - self.seen.keys()
        if lost:
            wrong.append(f"{len(lost)} confirmed messages are lost: {sorted(lost)[:5]}")
        foreign = self.seen.keys() - self.tried
        if foreign:
            wrong.append(f"{len(foreign)} messages that nobody sent: {sorted(foreign)[:5]}")
        refused = self.seen.keys() & self.refused
        if refused:
            wrong.append(f"{len(refused)} refused messages are there: {sorted(refused)[:5]}")
        again = [
            name
            for name, when in self.acked.items()
            if self.seen[name][-1] > when
            and not any(when < forgot < self.seen[name][-1] for forgot in forgets)
        ]
        if again:
            wrong.append(f"{len(again)} messages came again after their ack: {again[:5]}")
        return wrong


def disorder(account: Account) -> list[str]:
    """Of a queue with one consumer at a time, who gives nothing back: each producer's order."""
    last: dict[str, int] = {}
    wrong = []
    for name, _ in sorted(account.seen.items(), key=lambda item: item[1][0]):
        producer, _, number = name.rpartition(":")
        if int(number) < last.get(producer, 0):
            wrong.append(f"{name} came after {producer}:{last[producer]}")
        last[producer] = int(number)
    return wrong[:5]


def read(folder: Path) -> dict[str, Account]:
    """The accounts of all queues; a ledger's file is QUEUE.WORKER."""
    accounts: dict[str, Account] = defaultdict(Account)
    for path in folder.iterdir():
        account = accounts[path.name.split(".")[0]]
        whole, _, _torn = path.read_text().rpartition("\n")
        for line in whole.splitlines():
            when, code, name = line.split(" ", 2)
            if code == TRIED:
                account.tried.add(name)
            elif code == CONFIRMED:
                account.confirmed.add(name)
            elif code == REFUSED:
                account.refused.add(name)
            elif code == SEEN:
                account.seen[name].append(int(when))
            elif code == ACKED:
                account.acked[name] = int(when)
    for account in accounts.values():
        for when in account.seen.values():
            when.sort()
    return accounts
