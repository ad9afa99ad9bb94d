"""One round: a fleet on a vhost of its own, so many kills and stops, an end, and the verdict."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import shmbroker
from shmbroker import Broker, Empty, vhost
from tests.crash.consumers import deal_with
from tests.crash.fleet import ROLES, Fleet, Member, programs
from tests.crash.journal import read
from tests.crash.leaks import leaks, names
from tests.crash.part import BINDINGS, NAMES, QUEUES, TOPIC, Part, Stage
from tests.crash.verdict import Life, Tally, faults, tally
from tests.crash.visitors import SCRATCH, TEMPORARY

ARENA_BYTES = 64 << 20
PAUSE_SECONDS = 0.03
STOP_SHARE = 0.25
STOP_SECONDS = 0.3
GOES_ON_SECONDS = 30.0
LAPS = 2


class Fault(AssertionError):
    """Something that should not have happened, and how to see it again."""


@dataclass
class Outcome:
    kills: int = 0
    stops: int = 0
    rounds: int = 0
    tally: Tally = field(default_factory=Tally)

    def add(self, other: Outcome) -> None:
        self.kills += other.kills
        self.stops += other.stops
        self.rounds += other.rounds
        self.tally += other.tally

    def __str__(self) -> str:
        moved = self.tally
        return (
            f"{self.kills} kills and {self.stops} stops in {self.rounds} rounds: "
            f"{moved.confirmed:,} messages confirmed, {moved.delivered:,} deliveries, "
            f"{moved.redelivered:,} of them again, {moved.unknown} unknown, none lost"
        )


def play(seed: int, kills: int) -> Outcome:
    """Play one round; Fault if anything is wrong."""
    name = f"test-crash-{os.getpid()}-{seed}"
    programs()
    folder = Path(tempfile.mkdtemp(prefix="shmbroker-crash-"))
    played = Round(name, seed, folder)
    try:
        played.play(kills)
    finally:
        played.clear()
    found = played.faults
    if found:
        raise Fault(
            "\n".join(
                [
                    f"round {seed} ended with {len(found)} faults:",
                    *(f"  {each}" for each in found[:20]),
                    f"what everybody noted is in {folder}",
                    f"replay: python -m tests.crash --seed {seed} --kills {kills}",
                ]
            )
        )
    shutil.rmtree(folder)
    return played.outcome


class Round:
    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.vhost = name
        self.random = Random(seed)
        self.folder = folder
        self.faults: list[str] = []
        self.outcome = Outcome(rounds=1)
        self.fleet = Fleet(name, folder, self.random)

    def play(self, kills: int) -> None:
        self._declare()
        roles = list(ROLES)
        if self.random.random() < 0.5:
            roles.remove("repairer")  # then those who wait, and those who join, repair
        for role in roles:
            self.fleet.start(role)
        self._disturb(kills)
        self._goes_on()
        if self.random.random() < 0.5:
            self.fleet.end_all()
        else:
            self.fleet.kill_all()
        self.faults += self.fleet.faults
        lives = [*self.fleet.lives(), self._drain()]
        self.faults += faults(lives)
        self.outcome.tally = tally(lives)
        # killed ones leave their place to the next: twice as many as there are at a time is plenty
        self.faults += leaks(self.vhost, 2 * len(ROLES))
        vhost.delete(self.vhost)
        if names(self.vhost):
            self.faults.append(f"after its deletion, {names(self.vhost)} of the vhost are left")

    def clear(self) -> None:
        """Leave nothing behind, whatever happened."""
        self.fleet.kill_all()
        with suppress(shmbroker.NotFound):
            vhost.delete(self.vhost, force=True)

    def _declare(self) -> None:
        vhost.create(self.vhost, arena_bytes=ARENA_BYTES)
        with shmbroker.connect(f"shm://{self.vhost}") as broker:
            for queue, slots in QUEUES.items():
                broker.declare_queue(queue, slots=slots)
            broker.declare_exchange(TOPIC, "topic")
            for queue, pattern in BINDINGS.items():
                broker.bind(TOPIC, queue, pattern)

    # --- the disturbance --------------------------------------------------------------------------

    def _disturb(self, kills: int) -> None:
        stopped: list[tuple[float, Member]] = []
        while self.outcome.kills < kills and not self.fleet.faults:
            time.sleep(self.random.expovariate(1 / PAUSE_SECONDS))
            now = time.monotonic()
            for until, member in list(stopped):
                if until <= now:
                    stopped.remove((until, member))
                    member.process.go_on()
            victim = self.random.choice(self.fleet.members)
            stops = self.random.random() < STOP_SHARE
            lasting = self.random.random() * STOP_SECONDS
            if not stops:
                self.fleet.replace(victim)  # also one that is stopped
                stopped = [each for each in stopped if each[1] is not victim]
                self.outcome.kills += 1
            elif not victim.process.is_stopped:
                victim.process.stop()
                stopped.append((now + lasting, victim))
                self.outcome.stops += 1
            self.fleet.look()
        for _, member in stopped:
            member.process.go_on()

    def _goes_on(self) -> None:
        """Left alone, everybody gets on with its work: nobody waits for what the dead have left."""
        before = {member.part.identity: member.records() for member in self.fleet.members}
        deadline = time.monotonic() + GOES_ON_SECONDS
        while time.monotonic() < deadline and not self.fleet.faults:
            waiting = [
                member
                for member in self.fleet.members
                if member.records() <= before.get(member.part.identity, 0)
            ]
            if not waiting:
                return
            time.sleep(0.02)
            self.fleet.look()
        if not self.fleet.faults:
            stuck = ", ".join(f"{each.part.role} {each.part.identity}" for each in waiting)
            self.fleet.faults.append(f"nothing happens any more for {stuck}")

    # --- afterwards -------------------------------------------------------------------------------

    def _drain(self) -> Life:
        """Take what is left, as somebody who comes after all, and see that nothing is stuck."""
        part = Part(self.vhost, "drainer", self.fleet.incarnations + 1, self.folder, 0)
        stage = Stage(part)
        try:
            with stage.connect() as broker:
                self._look_through(stage, broker)
        except shmbroker.Error as error:
            self.faults.append(f"the one who came after all: {type(error).__name__}: {error}")
        stage.close()
        return Life(part.role, part.identity, False, read(part.journal))

    def _look_through(self, stage: Stage, broker: Broker) -> None:
        broker.repair()
        self.faults += self._strangers(broker)
        for name in TEMPORARY:
            with suppress(shmbroker.NotFound):
                broker.delete_queue(name)
        with suppress(shmbroker.NotFound):
            broker.delete_exchange(SCRATCH)  # InUse, if a binding has outlived its queue
        for number, name in enumerate(NAMES):
            self._drain_one(stage, broker, number, name)
            self.faults += self._recycle(broker, name)

    def _strangers(self, broker: Broker) -> Iterator[str]:
        if others := [each for each in broker.participants() if each.id != broker.participant]:
            yield f"everybody is gone, and yet there are {others[:3]}"

    def _drain_one(self, stage: Stage, broker: Broker, number: int, name: str) -> None:
        queue = broker.queue(name)
        with suppress(Empty):
            while True:
                deal_with(stage, number, queue.get_nowait())
        told = queue.statistics()
        if told.depth or told.bytes:
            self.faults.append(f"queue {name!r} is drained, and still holds {told}")

    def _recycle(self, broker: Broker, name: str) -> Iterator[str]:
        """Every slot can be used again."""
        queue = broker.queue(name)
        for lap in range(LAPS):
            for slot in range(queue.slots):
                try:
                    queue.publish_nowait(b"%d.%d" % (lap, slot))
                except shmbroker.Error as error:
                    yield f"slot {slot} of queue {name!r} is not free: {error}"
                    return
            got = queue.receive_many(1, timeout=0)
            while len(got) < queue.slots:
                got += queue.receive_many(timeout=0)
            if got != [b"%d.%d" % (lap, slot) for slot in range(queue.slots)]:
                yield f"queue {name!r} did not return what was published last"


def crash(kills: int, seed: int | None = None, *, kills_a_round: int = 100) -> Outcome:
    """Rounds until there were so many kills; the seed of each follows from the first."""
    first = seed if seed is not None else int.from_bytes(os.urandom(3), "little")
    outcome = Outcome()
    while outcome.kills < kills:
        played = play(first + outcome.rounds, min(kills_a_round, kills - outcome.kills))
        outcome.add(played)
        sys.stderr.write(f"{outcome}\n")
    return outcome
