"""Two brokers with a link between them: east ships two queues to west, whose consumers are slow."""

from __future__ import annotations

from functools import partial

from shmbroker.netbridge.link.action import Action, Became
from shmbroker.netbridge.link.ending import OF_REASON, Reason, Retry, State
from shmbroker.netbridge.link.handshake import Far, Near
from shmbroker.netbridge.link.peer import Identity, Place, Service, Wish
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.end import Secret, SourceEnd, TargetEnd
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.history import History
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.record import Message
from shmbroker.netbridge.simulation.ring import SourceRing, Store, TargetRing
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World
from shmbroker.netbridge.wire.frame import Hello
from shmbroker.netbridge.wire.words import Role, Standing

QUEUES = ("orders", "events")
ROOM = 12
PUBLISH_SECONDS = 0.02, 0.3
BURSTS = (1, 2, 10)
CONSUME_SECONDS = 0.01, 0.1
AGAIN_SECONDS = {Retry.AT_ONCE: 0.01, Retry.BACK_OFF: 0.1}
REFUSED_EACH = 25
LARGE_EACH = 40
DOWN_SECONDS = 0.3
NODES = {"east": b"E" * 16, "west": b"W" * 16}
ALL_ROLES = frozenset(Role)


class Scene(Stage):
    published = 0

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.history = History()
        self.disks = {"east": Disk(world), "west": Disk(world)}
        self.rings = [SourceRing(name, self.disks["east"]) for name in QUEUES]
        self.targets = {name: TargetRing(name, self.disks["west"], ROOM) for name in QUEUES}
        self.copies: list[Store] = []
        self.publishes_until = 0.0
        self.consumes_slowly_until = 0.0
        self.sent: dict[int, int] = {}
        self.source: SourceEnd | None = None
        self.sinks: list[Accepted] = []

    def begin(self, publishes_until: float) -> None:
        self.publishes_until = publishes_until
        for ring in self.rings:
            self._publish(ring)
        self._consume()
        self.east.later(0, self.connect)

    # --- programs -----------------------------------------------------------------------------

    def _publish(self, ring: SourceRing) -> None:
        if self.world.now >= self.publishes_until:
            return
        is_running = self.east.is_up and self.world.now >= self.east.stands_until
        random = self.world.random
        for _ in range(random.choice(BURSTS) if is_running else 0):
            self.published += 1
            size = 8 * random.randint(0, 30)
            if random.randrange(LARGE_EACH) == 0:
                size = random.choice((70 << 10, 140 << 10))
            refused = random.randrange(REFUSED_EACH) == 0
            message = Message(self.published, size, refused)
            self.history.publishes(ring.name, message)
            gap = random.randrange(10) // 9
            ring.publish(message, gap, partial(self.history.confirms, ring.name, message))
        self.world.later(self.world.between(*PUBLISH_SECONDS), lambda: self._publish(ring))

    def _consume(self) -> None:
        if self.west.is_up:
            for number, target in enumerate(self.targets.values()):
                if number or self.world.now >= self.consumes_slowly_until:
                    target.consume(self.world.random.randint(0, 8))
        self.world.later(self.world.between(*CONSUME_SECONDS), self._consume)

    # --- owners of the link -------------------------------------------------------------------

    def connect(self) -> None:
        """East makes the link, again and again."""
        self.attempt += 1
        host, world = self.east, self.world
        ours = self._identity(host)
        secret = Secret(b"east" * 4 + self.attempt.to_bytes(4, "little"))
        wish = Wish("/", "east-west", Role.CLUSTER, attempt=self.attempt)
        near = Near(ours, wish, secret, secret)
        end = SourceEnd(host, near, self.history, self.rings, self.sent, self._again)
        self.source = end
        end.does([])
        delay = world.between(*DELAY_SECONDS)
        if not self.west.is_up:
            host.later(delay, end.lost)
        elif self.network.is_free(host, self.west):
            host.later(delay, lambda: self._joins(end))

    def _joins(self, near: SourceEnd) -> None:
        if near is not self.source or near.machine.state is not State.CONNECTING:
            return
        if not self.west.is_up:
            near.lost()
            return
        far = Accepted(self)
        self.sinks.append(far)
        connection = self.network.connect(near, far)
        self.west.at(self.world.now, lambda: far.joined(connection))
        near.joined(connection)

    def _identity(self, host: Host) -> Identity:
        incarnation = host.life.to_bytes(16, "little")
        return Identity(NODES[host.name], incarnation, host.name, Standing.LIVE, 1)

    def _again(self, reason: Reason) -> None:
        retry = OF_REASON[reason][1]
        self.east.later(AGAIN_SECONDS.get(retry, AGAIN_SECONDS[Retry.BACK_OFF]), self.connect)

    def west_synced(self) -> None:
        for end in list(self.sinks):
            end.has_confirmed()

    # --- processes ----------------------------------------------------------------------------

    def ends(self, host: Host, loses_power: bool) -> None:
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        if host is self.east:
            self.source = None
            self.sent.clear()
            for ring in self.rings:
                ring.changed = lambda: None
        else:
            self.sinks.clear()
        if loses_power:
            self.disks[host.name].loses_power()
            rings = self.rings if host is self.east else self.targets.values()
            for each in rings:
                each.loses_power()
        self.world.later(self.world.between(0, DOWN_SECONDS), lambda: self._starts(host))

    def _starts(self, host: Host) -> None:
        if host.is_up:
            return
        host.starts()
        if host is self.east:
            host.later(0, self.connect)

    def strike(self, fault: Fault) -> None:
        super().strike(fault)
        world, kind = self.world, fault.kind
        host = self.east if fault.host == "east" else self.west
        if kind == "drop":
            self.history.has_fault_of_frames = True
        elif kind == "day":
            host.day_jumped += fault.seconds * 3600
        elif kind == "slow-consumer":
            self.consumes_slowly_until = world.now + fault.seconds
        elif kind == "stop":
            self.east.at(world.now, self._stops)
        elif kind == "copy-restored":
            self.copies_the_store()
            world.later(fault.seconds, self.restores_a_copy)

    def _stops(self) -> None:
        """Whoever has the link then: an end of a process that is dead by now stops nothing."""
        if self.source is not None:
            self.source.does(self.source.machine.stop(self.east.clock, "stopped"))

    def restores_a_copy(self) -> None:
        """The operator of east puts an older copy of the store in place."""
        if not self.copies or not self.east.is_up:
            return
        self.ends(self.east, loses_power=True)
        for ring, copy in zip(self.rings, self.copies, strict=True):
            kept = {message.number for message in copy.messages.values()}
            self.history.excused_loss |= self.history.confirmed.get(ring.name, set()) - kept
            self.history.excused_twice |= kept
            ring.restore(copy)

    def copies_the_store(self) -> None:
        self.copies = [ring.synced.copy() for ring in self.rings]


class Accepted(TargetEnd):
    """West's end of one connection."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        newest: dict[Place, tuple[bytes, int]] = {}
        for each in scene.sinks:
            hello = each.hello
            if hello is not None:
                key = (hello.node, hello.link, hello.role)
                if hello.attempt > newest.get(key, (b"", 0))[1]:
                    newest[key] = (hello.incarnation, hello.attempt)
        host = scene.west
        service = Service(frozenset("/"), ALL_ROLES, ALL_ROLES, newest=newest)
        secret = Secret(b"west" * 4 + scene.attempt.to_bytes(4, "little"))
        far = Far(scene._identity(host), service, secret, secret)
        super().__init__(host, far, scene.history, scene.targets)
        self.far = far
        for ring in scene.targets.values():
            ring.changed = self._changed

    @property
    def hello(self) -> Hello | None:
        return self.far.hello

    def _changed(self) -> None:
        self.host.at(self.host.world.now, self.scene.west_synced)

    def carry_out(self, action: Action) -> None:
        if isinstance(action, Became) and action.state is State.SYNCING:
            for each in list(self.scene.sinks):
                if each is not self:
                    each.does(each.machine.supersede(each.host.clock))
        super().carry_out(action)

    def has_ended(self, reason: Reason) -> None:
        if self in self.scene.sinks:
            self.scene.sinks.remove(self)
