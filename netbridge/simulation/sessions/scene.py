"""A program and a broker, each on a host, and what strikes them."""

from __future__ import annotations

from shmbroker.netbridge.link.ending import State
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.peer import Identity, Service, Wish
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.end import Secret
from shmbroker.netbridge.simulation.history import History
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.sessions.broker import Process, ServiceEnd
from shmbroker.netbridge.simulation.sessions.history import SessionHistory
from shmbroker.netbridge.simulation.sessions.program import Program, ProgramEnd
from shmbroker.netbridge.simulation.sessions.store import Store
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World, Wrong
from shmbroker.netbridge.wire.words import Role, Standing

AGAIN_SECONDS = 0.05
DOWN_SECONDS = 0.3
ALL_ROLES = frozenset(Role)


class Scene(Stage):
    """The program is on the host east, the broker on west."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.links = History()
        self.links.has_fault_of_frames = True
        self.history = SessionHistory()
        disk = Disk(world)
        self.disks = {"east": disk, "west": disk}  # only the broker has one, whatever is struck
        self.store = Store(disk)
        self.process = Process(self.west, self.store)
        self.program = Program(self.east, self.history, self.connect)

    @property
    def published(self) -> int:
        return self.program.messages

    def begin(self) -> None:
        self.program.begin()

    def connect(self) -> None:
        program = self.program
        if not program.wants_link or program.end is not None:
            return
        self.attempt += 1
        secret = Secret(b"east" * 4 + self.attempt.to_bytes(4, "little"))
        ours = Identity(b"E" * 16, b"e" * 16, "program", Standing.NONE, 0)
        wish = Wish("/", "program", Role.CLIENT, attempt=self.attempt)
        end = ProgramEnd(self.east, Near(ours, wish, secret, secret), self.links, program)
        program.end = end
        end.does([])
        delay = self.world.between(*DELAY_SECONDS)
        if not self.west.is_up:
            self.east.later(delay, end.lost)
        elif self.network.is_free(self.east, self.west):
            self.east.later(delay, lambda: self._joins(end))
        self.east.later(AGAIN_SECONDS, self._again)

    def _again(self) -> None:
        self.connect()
        if self.program.wants_link:
            self.east.later(AGAIN_SECONDS, self._again)

    def _joins(self, near: ProgramEnd) -> None:
        if self.program.end is not near or near.machine.state is not State.CONNECTING:
            return
        if not self.west.is_up:
            near.lost()
            return
        secret = Secret(b"west" * 4 + self.attempt.to_bytes(4, "little"))
        ours = Identity(
            b"W" * 16, self.west.life.to_bytes(16, "little"), "broker", Standing.LIVE, 1
        )
        service = Service(frozenset("/"), ALL_ROLES, ALL_ROLES)
        far = ServiceEnd(
            self.west, Far(ours, service, secret, secret), self.links, self.process, self.attempt
        )
        connection = self.network.connect(near, far)
        self.west.at(self.world.now, lambda: far.joined(connection))
        near.joined(connection)

    def ends(self, host: Host, loses_power: bool) -> None:
        """The broker, whichever host is struck: the program lives on."""
        if not self.west.is_up:
            return
        if not loses_power:
            self.network.killed(self.west)
        self.west.ends()
        if loses_power:
            self.store.disk.loses_power()
            self.store.loses_power()
        else:
            self.store.loses_process()
        self.world.later(self.world.between(0, DOWN_SECONDS), self._broker_starts)

    def _broker_starts(self) -> None:
        if not self.west.is_up:
            self.west.starts()
            self.process = Process(self.west, self.store)

    @property
    def is_whole(self) -> bool:
        """All calls have ended, and all messages were acknowledged."""
        return self.program.is_at_rest and not self.store.synced.messages

    def misses(self) -> str:
        program = self.program
        return (
            f"{program.client.phase.value}, calls {list(program.client.calls.sent.values())[:3]}, "
            f"waiting {list(program.client.calls.waiting)[:3]}, in hand {program.in_hand}, "
            f"tokens {len(program.tokens)}, messages {list(self.store.synced.messages)[:5]}, "
            f"taken {list(self.store.taken)[:5]}"
        )

    def check(self) -> None:
        self.history.check(self.store.memory)
        if self.program.endings and self.is_whole:
            raise Wrong(f"calls have no end: {list(self.program.endings)}")
