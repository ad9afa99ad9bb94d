"""The fleet: producers, consumers and visitors of one vhost; who is killed is replaced at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from tempfile import TemporaryDirectory

from shmbroker.perf.machine.process import Process
from tests.crash import consumers, producers, visitors
from tests.crash.journal import read
from tests.crash.part import Part, Stage
from tests.crash.verdict import Life
from tests.support.compiler import compile_program

PRODUCERS: dict[str, Callable[[Stage], int] | str] = {
    "producer": producers.one_by_one,
    "batch-producer": producers.batches,
    "topic-producer": producers.by_topic,
    "c-producer": "producer",
}
CONSUMERS: dict[str, Callable[[Stage], int] | str] = {
    "consumer": consumers.one_by_one,
    "batch-consumer": consumers.batches,
    "single-consumer": consumers.alone,
    "pair-consumer": consumers.pair,
    "c-consumer": "consumer",
}
VISITORS: dict[str, Callable[[Stage], int] | str] = {
    "visitor": visitors.passing,
    "other-visitor": visitors.passing,
    "watcher": visitors.watching,
    "repairer": visitors.repairing,
}
ROLES = PRODUCERS | CONSUMERS | VISITORS
NATIVE = Path(__file__).parent / "native"
END_SECONDS = 30.0


@cache
def programs() -> TemporaryDirectory[str]:
    """A folder with the roles that are written in C; it goes when we do."""
    folder = TemporaryDirectory(prefix="shmbroker-crash-")
    for name in ("producer", "consumer"):
        compile_program(NATIVE / f"{name}.c", Path(folder.name) / name)
    return folder


@dataclass
class Member:
    part: Part
    process: Process
    was_killed: bool = False

    def records(self) -> int:
        """How much it has noted: it grows as long as it goes on."""
        return self.part.journal.stat().st_size if self.part.journal.exists() else 0


class Fleet:
    def __init__(self, vhost: str, folder: Path, random: Random) -> None:
        self.vhost = vhost
        self.folder = folder
        self.random = random
        self.faults: list[str] = []
        self.members: list[Member] = []
        self.former: list[Member] = []
        self.incarnations = 0

    def start(self, role: str) -> None:
        self.incarnations += 1
        seed = self.random.getrandbits(48)
        part = Part(self.vhost, role, self.incarnations, self.folder, seed)
        process = Process(_work_of(part), part.errors)
        self.members.append(Member(part, process))

    def kill(self, member: Member) -> None:
        """kill -9: it was alive until then, or something had gone wrong with it."""
        self._ended(member, member.process.kill(), -SIGKILL)

    def replace(self, member: Member) -> None:
        self.kill(member)
        self.start(member.part.role)

    def look(self) -> None:
        """Nobody has ended by itself."""
        for member in list(self.members):
            if member.process.has_ended() and member.process.status is not None:
                self._ended(member, member.process.status, -SIGKILL)
                self.start(member.part.role)

    def end(self, roles: dict[str, Callable[[Stage], int] | str]) -> None:
        """Ask these to end, and wait until they have."""
        asked = [member for member in self.members if member.part.role in roles]
        for member in asked:
            member.process.go_on()
            member.process.send(SIGTERM)
        for member in asked:
            if member.process.has_ended(END_SECONDS) and member.process.status is not None:
                self._ended(member, member.process.status, 0)
            else:
                self.faults.append(f"{member.part.role} did not end within {END_SECONDS} s")
                self._ended(member, member.process.kill(), -SIGKILL)

    def end_all(self) -> None:
        """Producers first: so consumers go on as long as somebody waits for room."""
        for roles in (PRODUCERS, VISITORS, CONSUMERS):
            self.end(roles)

    def kill_all(self) -> None:
        for member in self.members:
            member.process.send(SIGKILL)
        for member in list(self.members):
            self.kill(member)

    def _ended(self, member: Member, status: int, wanted: int) -> None:
        self.members.remove(member)
        self.former.append(member)
        member.was_killed = status == -SIGKILL
        if status != wanted:
            said = member.part.errors.read_text() if member.part.errors.exists() else ""
            self.faults.append(
                f"{member.part.role} {member.part.identity} ended with {status}: {said.strip()}"
            )

    def lives(self) -> list[Life]:
        return [
            Life(
                member.part.role, member.part.identity, member.was_killed, read(member.part.journal)
            )
            for member in self.former
        ]


def _work_of(part: Part) -> Callable[[], int]:
    """What the child does: a function of ours, or another program."""
    role = ROLES[part.role]
    if not isinstance(role, str):
        return lambda: role(Stage(part))
    program = str(Path(programs().name) / role)
    arguments = [part.vhost, str(part.identity), str(part.journal), str(part.seed)]

    def become() -> int:
        os.execv(program, [part.role, *arguments])

    return become
