"""Witnesses in processes of their own, and members that talk to them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Self

from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.broker.witness import WitnessProcess, configured
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.election.candidate import Ask, Candidate, Electorate, Patience, Phase, Won
from shmbroker.netbridge.election.question import (
    Answer,
    Ballot,
    Copy,
    FromMember,
    FromVoter,
    Grant,
    Question,
    Release,
    Renew,
    Renewed,
    Step,
)
from shmbroker.netbridge.engine.voters import EngineVoters
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.text import single
from shmbroker.netbridge.security.credential import Credential
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.netbridge.witness.voters import Witnesses
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.support.until import until

NODE = b"N" * 16
PASSWORD = "correct horse battery"
PATIENCE_SECONDS = 60.0
KEYS = Stretched("votes", PASSWORD)
CREDENTIAL = Credential("votes", "votes", (Role.WITNESS,), (KEYS,))
BOTH = Grant(1, "a", (Copy("a"), Copy("b")))
HOUR_MS = 3_600_000


@dataclass
class Place:
    """Of a witness."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: Process | None = None
    address: str = "127.0.0.1"

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True)
        (self.folder / FILE).write_text(
            f'[credentials.votes]\npassword = "{PASSWORD}"\nrole = "witness"\n'
        )
        (self.folder / FILE).chmod(0o600)

    @property
    def uri(self) -> str:
        return f"tcp://{self.address}:{self.port}"

    @property
    def settings(self) -> dict[str, object]:
        """Of a member that asks it."""
        return {
            "ha.replication.witnesses": [self.uri],
            "ha.replication.vote-retry-wait": "200ms",
            "credentials.votes.password": PASSWORD,
            "credentials.votes.role": "witness",
        }

    def begin(self, before: Callable[[], None] = lambda: None) -> Process:
        """Forked, because it is there at once; `before` runs in it."""

        def live() -> int:
            before()
            ends = (signal.SIGTERM,)
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            options = configured(self.folder, self.uri)
            fails = lambda: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
            with WitnessProcess(options, fails) as running:
                signal.sigwait(ends)
            return 1 if running.failure else 0

        self.process = Process(live, self.folder.parent / f"{self.folder.name}.errors")
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()


class Asker:
    """It says what a test wants, and keeps what it hears, of whatever voters it has."""

    voters: Witnesses | EngineVoters

    def __init__(self, name: str) -> None:
        self.name = name
        self.up: set[str] = set()
        self.said: SimpleQueue[tuple[str, FromVoter]] = SimpleQueue()
        self.lines: list[dict[str, object]] = []
        self.thread = NetworkThread()
        self.attempt = 0
        self.serial = 0

    def tell(self, line: Mapping[str, object]) -> None:
        self.lines.append(dict(line))

    @property
    def names(self) -> tuple[str, ...]:
        return self.voters.electorate.voters

    # --- what it hears ------------------------------------------------------------------------

    def voters_are(self, electorate: Electorate) -> None:
        """Witnesses do not come and go."""

    def voter_up(self, voter: str) -> None:
        self.up.add(voter)

    def voter_down(self, voter: str) -> None:
        self.up.discard(voter)

    def voter_said(self, voter: str, what: FromVoter) -> None:
        self.said.put((voter, what))

    # --- what it says -------------------------------------------------------------------------

    def wait(self, *names: str) -> Self:
        until(lambda: set(names or self.names) <= self.up)
        return self

    def say(self, what: FromMember, *names: str) -> None:
        for name in names or self.names:
            self.thread.ask(lambda name=name: self.voters.ask(name, what))  # type: ignore[misc]

    def question(self, grant: Grant, step: Step = Step.WOULD, round: int = 1) -> Question:
        self.attempt += 1
        ballot = None if step is Step.WOULD else Ballot(round, f"{self.name} life")
        return Question(NODE, step, self.attempt, self.name, grant, "", ballot)

    def ask(self, grant: Grant, step: Step = Step.WOULD, round: int = 1, voter: str = "") -> Answer:
        """Of one witness."""
        question = self.question(grant, step, round)
        self.say(question, voter or self.names[0])
        return self.answer(question.attempt)

    def answer(self, attempt: int, patience: float = PATIENCE_SECONDS) -> Answer:
        late = time.monotonic() + patience
        while True:
            _, found = self.said.get(timeout=max(0.0, late - time.monotonic()))
            if isinstance(found, Answer) and found.attempt == attempt:
                return found

    def renew(self, grant: Grant = BOTH, version: int = 1, lease_ms: int = HOUR_MS) -> Renewed:
        """Of the first witness."""
        self.serial += 1
        self.say(Renew(NODE, grant, version, self.serial, lease_ms), self.names[0])
        while True:
            _, found = self.said.get(timeout=PATIENCE_SECONDS)
            if isinstance(found, Renewed) and found.serial == self.serial:
                return found

    def release(self, epoch: int) -> None:
        self.say(Release(NODE, epoch))

    def hears_nothing(self, seconds: float) -> bool:
        try:
            self.said.get(timeout=seconds)
        except Empty:
            return True
        return False

    def elected(self, grant: Grant, life: str = "1") -> bool:
        """By a candidate as a member has it."""
        electorate = self.voters.electorate
        candidate = Candidate(NODE, self.name, grant, electorate, Patience(retries=0), life=life)
        candidate.attempt = self.attempt
        actions = list(candidate.begin(0.0))
        while True:
            self.attempt = candidate.attempt
            for action in actions:
                if not isinstance(action, Ask):
                    return isinstance(action, Won)
                self.say(action.question, action.voter)
            if candidate.phase is Phase.PAUSE:
                return False
            voter, said = self.said.get(timeout=PATIENCE_SECONDS)
            if isinstance(said, Answer):
                actions = list(candidate.answered(voter, said, 0.0))

    def close(self) -> None:
        """As one that ends in good order."""
        self.voters.close()
        self.thread.close()


class Member(Asker):
    """Of witnesses."""

    def __init__(
        self,
        name: str,
        places: list[Place],
        *,
        credential: Credential = CREDENTIAL,
        times: LinkTimes | None = None,
    ) -> None:
        super().__init__(name)
        ours = Identity(bytes(16), os.urandom(16), name, Standing.NONE, 0)
        uris = tuple(single(each.uri) for each in places)
        self.voters = Witnesses(self.thread, uris, credential, ours, times=times, tell=self.tell)
        self.voters.begin(self)


def alone(epoch: int, holder: str) -> Grant:
    return Grant(epoch, holder, (Copy(holder),))
