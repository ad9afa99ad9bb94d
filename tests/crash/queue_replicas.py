"""Queues that follow others: brokers at both ends are killed, taken over, and cut off.

    program ──► live, backup ═══ link ═══ live, backup ◄── a browser, all the while
                 originals                  replicas

Two queues in memory and two durable ones get and lose messages in transactions over both; one has
messages that expire, one the last values of keys.  While the replicas are cut off they must show
whole transactions, also if their host has lost its memory and the durable ones come from its disk;
when it is quiet they must be as the originals are, message by message.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import shmbroker
from shmbroker import Broker, Empty, Queue, QueueFull
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.status import NotRunning
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.hosts import Host, has_hosts, wired
from tests.support.runs import Run

PASSWORD: Final = "correct horse battery staple"
PATIENCE: Final = 60.0
SLOTS: Final = 512
DEPTH_MAX: Final = 120
KEYS: Final = 8
SHORT_TTL: Final = 0.02
HALF_SECONDS: Final = 1.0
"""A moment is shown in microseconds, and in more if who shows it has no processor: nobody who
looks sees a half for so long."""
LOAD_SECONDS: Final = 0.05, 0.4
CUT_SECONDS: Final = 0.2, 1.6
"""Some are shorter than the silence that ends a link."""
LOOKS: Final = 200
PAIRS: Final = (("first", "second"), ("third", "fourth"))
"""What is in one of both is in the other one."""
DURABLE: Final = (PAIRS[1],)
"""Their replicas are durable, too."""
OF_ALL: Final[dict[str, Any]] = {"slots": SLOTS, "max_deliveries": None}
"""However often a transaction gives a message back, it is not dropped by itself."""
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "first": {"priorities": True},
    "second": {"priorities": True},
    "third": {"durable": True},
    "fourth": {"durable": True},
    "expiring": {},
    "latest": {"last_value": True},
}
Content = list[tuple[Any, ...]]


def content(queue: Queue) -> Content:
    """With positions."""
    return [(each.position, each.body, each.key, each.priority) for each in queue.browse()]


def bodies(queue: Queue) -> set[bytes]:
    return {each.body for each in queue.browse()}


@dataclass
class Outcome:
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    """What was done to it, by name."""
    faults: list[str] = field(default_factory=list)
    published: int = 0
    compared: int = 0
    """Messages of replicas with those of originals."""
    cut_off: int = 0
    """Pairs of queues that were looked at while they were cut off."""
    looks: int = 0
    restored: int = 0
    """Messages of replicas that were looked at after their host had lost its memory."""

    @property
    def kills(self) -> int:
        return sum(self.done.values())

    def __str__(self) -> str:
        done = ", ".join(f"{many} {name}" for name, many in sorted(self.done.items()))
        told = "; ".join(self.faults) or "never half, and equal in the end"
        return (
            f"seed {self.seed}: {done}; {self.published} messages published, {self.compared} "
            f"compared, {self.restored} restored; {self.cut_off} pairs of queues looked at while "
            f"cut off, and {self.looks} times while they followed: {told}"
        )


# --- brokers ----------------------------------------------------------------------------------


class Group:
    """A live and a backup with one store; or a live alone."""

    def __init__(
        self, folder: Path, name: str, vhost: str, host: Host | None, *, has_backup: bool
    ) -> None:
        self.name, self.vhost = name, vhost
        address = host.address if host is not None else "127.0.0.1"
        self.peers: list[str] = []
        runs = []
        for role in ("live", "backup") if has_backup else ("live",):
            port = free_port()
            self.peers.append(f"tcp://{address}:{port}")
            given: dict[str, object] = {
                "store.path": str(folder / f"store of {name}"),
                "ha.queue-replication": True,
                "ha.allow-failback": False,
                "credentials.copies.password": PASSWORD,
                "credentials.copies.role": "replica",
                "acceptors.copies.uri": self.peers[-1],
                "acceptors.copies.roles": ["replica"],
            }
            runs.append(Run(folder / f"{name} {role}", vhost, role, given))
            if host is not None:
                runs[-1].before = host.enter
        self.live, *self.backups = runs

    @property
    def service(self) -> str:
        """As it is followed."""
        return self.peers[0] if len(self.peers) == 1 else f"failover:({','.join(self.peers)})"

    def start(self) -> None:
        self.live.start().becomes("live")
        for each in self.backups:
            each.start().becomes("passive")

    def take_over(self) -> None:
        """The live is killed, its backup serves, and the killed one is the backup from now on."""
        killed = self.live
        killed.kill()
        (self.live,) = self.backups
        self.live.becomes("live")
        self.backups = [killed.start().becomes("passive")]

    def kill(self) -> None:
        for each in (*self.backups, self.live):
            each.kill()

    def forget(self) -> None:
        """What is in memory of its host; no broker runs."""
        for segment in Path("/dev/shm").glob(f"shmbroker.{self.vhost}.*"):
            segment.unlink()

    def said(self) -> str:
        of_each = [(each.folder.name, each.said()[-12:]) for each in (self.live, *self.backups)]
        return f"{of_each} {self.live.stacks()}"

    def follows(self, name: str, of: str, settings: dict[str, Any]) -> None:
        wanted = {"noun": "replicas", "verb": "follow", "user": "test", "queue": name, "of": of,
                  "settings": settings}  # fmt: skip
        answer = ordering.asked(self.live.folder, wanted, PATIENCE)
        assert answer is not None, self.said()
        assert not answer.get("why"), answer

    def rows(self) -> dict[str, dict[str, Any]]:
        """As `ha replicas` shows them, by queue."""
        wanted = {"noun": "replicas", "verb": "show", "user": "test"}
        try:
            answer = ordering.asked(self.live.folder, wanted, PATIENCE)
        except NotRunning as error:
            raise AssertionError(self.said()) from error
        assert answer is not None, self.said()
        path = self.live.folder / status.RUN / "replicas"
        return {each["queue"]: each for each in json.loads(path.read_text())["replicas"]}


# --- programs ---------------------------------------------------------------------------------


class Program:
    """Uses the originals, in one process with who strikes."""

    def __init__(self, broker: Broker, random: Random) -> None:
        self._broker, self._random = broker, random
        self.queues = {name: broker.declare_queue(name, **OF_ALL, **settings)
                       for name, settings in QUEUES.items()}  # fmt: skip
        self.published = 0

    def run(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._random.choice((self._transact, self._transact, self._expire, self._latest))()

    def _next(self) -> bytes:
        self.published += 1
        return b"%d" % self.published

    def _transact(self) -> None:
        """Over both of a pair: a message for each, or one of each."""
        names = self._random.choice(PAIRS)
        depth = self.queues[names[0]].statistics().depth
        publishes = depth < DEPTH_MAX and self._random.random() < 0.55
        body, priority = self._next(), self._random.randrange(10)
        with self._broker.transaction() as transaction:
            try:
                for name in names:
                    if publishes:
                        transaction.queue(name).publish(body, priority=priority)
                    else:
                        transaction.queue(name).get(timeout=0).ack()
                transaction.commit(timeout=0, confirm="shm")
            except (Empty, QueueFull):  # the journaler may be dead
                transaction.rollback()

    def _expire(self) -> None:
        """Some expire at once, others stay until somebody takes them."""
        queue = self.queues["expiring"]
        with suppress(QueueFull):
            queue.publish(self._next(), ttl=self._random.choice((SHORT_TTL, 3600)), timeout=0)
        if self._random.random() < 0.4 or queue.statistics().depth > DEPTH_MAX:
            with suppress(Empty):
                queue.get(timeout=0).ack()

    def _latest(self) -> None:
        with suppress(QueueFull):
            key = f"k{self._random.randrange(KEYS)}"
            self.queues["latest"].publish(self._next(), key=key, timeout=0)

    def rest(self) -> None:
        """Nothing changes any more."""
        time.sleep(2 * SHORT_TTL)
        self.queues["expiring"].expire()


# --- who looks --------------------------------------------------------------------------------


def is_half(looked: Queue, between: Queue) -> bool:
    """What one of both has before and after the other one was looked at, that one has too."""
    before, there, after = bodies(looked), bodies(between), bodies(looked)
    return not before & after <= there


class Browser:
    """A process that looks at the replicas all the while, and notes each half that lasts."""

    def __init__(self, vhost: str, folder: Path) -> None:
        self._vhost, self._halves = vhost, folder / "halves"
        self._looks = folder / "looks"
        self._errors = folder / "browser.errors"
        self.process = self.begin()

    def begin(self) -> Process:
        """Again, if the vhost is another one by now."""
        self.process = Process(self._live, self._errors)
        return self.process

    def _live(self) -> int:
        with (
            shmbroker.connect(f"shm://{self._vhost}", name="browser") as broker,
            self._looks.open("ab", buffering=0) as told,
        ):
            while True:
                for names in PAIRS:
                    for looked, between in (names, names[::-1]):
                        self._look(broker, looked, between)
                        told.write(b".")

    def _look(self, broker: Broker, looked: str, between: str) -> None:
        began = time.monotonic()
        while is_half(broker.queue(looked), broker.queue(between)):
            now = time.monotonic()
            if now - began > HALF_SECONDS:
                with self._halves.open("a") as file:
                    file.write(f"{began} {now} {looked}\n")
                return

    def halves(self) -> Iterator[tuple[float, float, str]]:
        for line in self._halves.read_text().splitlines() if self._halves.exists() else ():
            began, ended, name = line.split()
            yield float(began), float(ended), name

    @property
    def looks(self) -> int:
        return self._looks.stat().st_size if self._looks.exists() else 0


# --- the play ---------------------------------------------------------------------------------


class Stage:
    def __init__(
        self,
        groups: tuple[Group, Group],
        program: Program,
        random: Random,
        hosts: tuple[Host, Host] | None,
        outcome: Outcome,
        opened: ExitStack,
    ) -> None:
        self.originals, self.replicas = groups
        self.program, self._opened = program, opened
        self.here = self._connected()
        self.browser: Browser | None = None
        self._random, self._hosts, self.outcome = random, hosts, outcome
        self.parts: list[tuple[float, float]] = []
        """When a replica may have shown a part of a moment, because its broker was killed."""
        self.strikes: list[Callable[[], str]] = [
            self.kill_original, self.kill_replica, self.forget_replica
        ]  # fmt: skip
        if self.originals.backups:
            self.strikes.append(self.take_over_original)
        if self.replicas.backups:
            self.strikes.append(self.take_over_replica)
        if hosts is not None:
            self.strikes += [self.cut, self.close_sockets]

    def _connected(self) -> Broker:
        made = shmbroker.connect(f"shm://{self.replicas.vhost}", name="test")
        return self._opened.enter_context(made)

    def begin(self) -> None:
        self._replicate()
        self.follow()

    def _replicate(self) -> None:
        """All that does not follow: durable as its original is."""
        known = self.replicas.rows()
        for name, settings in QUEUES.items():
            if name not in known:
                of_copy = {key: value for key, value in settings.items() if key != "durable"}
                self.replicas.follows(name, self.originals.service, OF_ALL | of_copy)

    def follow(self) -> None:
        """Until all of them do."""
        until = time.monotonic() + PATIENCE
        while True:
            rows = self.replicas.rows()
            if all(rows[name]["state"] == "following" for name in QUEUES):
                return
            if time.monotonic() > until:
                raise AssertionError(f"{rows} {self.replicas.said()} {self.originals.said()}")
            time.sleep(0.01)

    def load(self) -> None:
        self.program.run(self._random.uniform(*LOAD_SECONDS))

    # --- strikes ------------------------------------------------------------------------------

    def kill_original(self) -> str:
        self.originals.kill()
        self.is_never_half()
        self.load()
        self.originals.start()
        return "kills of originals"

    def take_over_original(self) -> str:
        self.originals.take_over()
        return "takeovers of originals"

    @contextmanager
    def _shows_parts(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.load()
        self.follow()
        self.parts.append((began, time.monotonic()))

    def kill_replica(self) -> str:
        with self._shows_parts():
            self.replicas.kill()
            self.load()
            self.replicas.start()
        return "kills of replicas"

    def forget_replica(self) -> str:
        """Until the originals are back, what is shown is what was on disk."""
        assert self.browser is not None
        with self._shows_parts():
            self.browser.process.kill()
            for each in (self.replicas, self.originals):
                each.kill()
            self.replicas.forget()
            self.replicas.start()
            self.here = self._connected()
            self.is_never_half(DURABLE)
            self.outcome.restored += sum(len(bodies(self.here.queue(n))) for n in DURABLE[0])
            self.load()
            self.originals.start()
            self._replicate()
            self.browser.begin()
        return "losses of the memory of replicas"

    def take_over_replica(self) -> str:
        with self._shows_parts():
            self.replicas.take_over()
        return "takeovers of replicas"

    def _cut_by(self, fault: Callable[[Host], None]) -> None:
        assert self._hosts is not None
        for host in self._hosts:
            fault(host)
        time.sleep(0.1)  # what was on its way before is shown
        self.is_never_half()
        self.program.run(self._random.uniform(*CUT_SECONDS))
        for host in self._hosts:
            host.heal()

    def cut(self) -> str:
        self._cut_by(Host.hears_nothing)
        return "silent cuts"

    def close_sockets(self) -> str:
        self._cut_by(Host.resets)
        return "cuts that close"

    # --- what is true -------------------------------------------------------------------------

    def is_never_half(self, pairs: tuple[tuple[str, str], ...] = PAIRS) -> None:
        """While nothing comes; a moment that is being shown is shown soon."""
        for names in pairs:
            until = time.monotonic() + HALF_SECONDS
            one, other = (self.here.queue(name) for name in names)
            while bodies(one) != bodies(other):
                if time.monotonic() > until:
                    more = bodies(one) ^ bodies(other)
                    self.outcome.faults.append(f"{names} differ by {sorted(more)} while cut off")
                    break
            self.outcome.cut_off += 1

    def compare(self) -> None:
        """When it is quiet."""
        self.program.rest()
        self.follow()
        for name, original in self.program.queues.items():
            until = time.monotonic() + PATIENCE
            while content(self.here.queue(name)) != content(original):
                if time.monotonic() > until:
                    difference = set(content(self.here.queue(name))) ^ set(content(original))
                    self.outcome.faults.append(f"{name} differs by {sorted(difference, key=str)}")
                    break
                time.sleep(0.005)
            self.outcome.compared += len(content(original))

    def judge(self, browser: Browser) -> None:
        for began, ended, name in browser.halves():
            if not any(start <= ended and began <= end for start, end in self.parts):
                self.outcome.faults.append(f"{name}: half of a transaction for {ended - began} s")
        self.outcome.looks = browser.looks


def play(folder: Path, kills: int, seed: int, *, has_backups: bool = True) -> Outcome:
    outcome, random = Outcome(seed), Random(seed)
    with ExitStack() as opened:
        hosts = opened.enter_context(wired() if has_hosts() else nullcontext())
        vhosts = [opened.enter_context(vhost_for_a_while()) for _ in range(2)]
        ends = hosts if hosts is not None else (None, None)
        groups = [
            Group(folder, name, vhost, host, has_backup=has_backups)
            for name, vhost, host in zip(("originals", "replicas"), vhosts, ends, strict=True)
        ]
        for each in groups:
            opened.callback(each.kill)
            each.start()
        there = opened.enter_context(shmbroker.connect(f"shm://{vhosts[0]}", name="test"))
        program = Program(there, random)
        stage = Stage((groups[0], groups[1]), program, random, hosts, outcome, opened)
        stage.begin()
        browser = stage.browser = Browser(vhosts[1], folder)
        opened.callback(lambda: browser.process.kill())
        for number in range(kills):
            stage.load()
            strike = stage.strikes[number % len(stage.strikes)]
            outcome.done[strike()] += 1
            stage.load()
            stage.compare()
            if outcome.faults:
                break
        if browser.process.has_ended():
            outcome.faults.append(f"the browser ended: {browser.process.errors.read_text()}")
        stage.judge(browser)
        outcome.published = program.published
    return outcome
