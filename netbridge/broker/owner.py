"""Owns the network of a broker: it is there while its tables ask for it, and somebody is live.

One thread does all of it, one order after the other, because closing and listening may take time
that the instance has not.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from shmbroker.ipc.base.errors import Error, InvalidArgument, NotFound
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.connection.broker import connect
from shmbroker.ipc.instance.config.config import FILE, Config
from shmbroker.ipc.instance.leaving import Left
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.moving import Parts
from shmbroker.ipc.instance.process import memory
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.store import history_of
from shmbroker.ipc.instance.whole import write_whole
from shmbroker.ipc.latency.latency import Counts
from shmbroker.netbridge.broker import table, whereabouts
from shmbroker.netbridge.broker.former import FormerBridges
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.group import Group, OfStore
from shmbroker.netbridge.broker.invitation import INVITE, invited
from shmbroker.netbridge.broker.lines import Lines
from shmbroker.netbridge.broker.operators import Operators
from shmbroker.netbridge.clustered.former import forget
from shmbroker.netbridge.config.config import Network as Wanted
from shmbroker.netbridge.discovered.broadcasts import Broadcasts, signed
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.remote.topology import Node
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.serving.programs import PROGRAMS
from shmbroker.netbridge.transferred import former
from shmbroker.netbridge.wire.words import Standing

if TYPE_CHECKING:
    from shmbroker.netbridge.broker.network import Network, Place
    from shmbroker.netbridge.cluster.programs import Other
    from shmbroker.netbridge.queue_replicated.replicas import QueueReplicas

T = TypeVar("T")
RETRY_SECONDS: Final = 0.2
"""An address that another process has: nobody tells when it is free."""
PASSIVE_RETRY_SECONDS: Final = 1.0
"""A live says where it is soon after it is live, and with a lease nobody tells when it has."""
ROOM_RETRY_SECONDS: Final = 1.0
"""What bridges of before have left, and their queues have no room for."""
ROOT: Final = "/"
BEGIN_SECONDS: Final = 8.0
"""Until then a queue that is to follow has begun, or whoever has asked is told why not."""
REPLICAS: Final = "replicas"
"""A noun of orders, as PROGRAMS is one."""


class Owner:
    def __init__(
        self,
        config: Config,
        wanted: Wanted,
        credentials: Credentials,
        log: Log,
        group: Group | None = None,
    ) -> None:
        """`group`: None, that of its store."""
        self._config, self._log = config, log
        self._group = group or OfStore(config)
        self._wanted, self._credentials = wanted, credentials
        self._is_in_cluster = bool(wanted.between)
        self._incarnation = os.urandom(16)
        self._ours: Identity | None = None
        """Who the broker is that is live, or waits for a live that is there."""
        self._network: Network | None = None
        self._live: whereabouts.Whereabouts | None = None
        """Of the live, while this broker is passive."""
        self._others: tuple[Other, ...] = ()
        self._is_held = False
        self._holding = threading.Lock()
        """What is said last of that counts."""
        self.drains = False
        self.fails: Callable[[str], None] = lambda why: None
        """Told from another thread when this broker has no network any more, and was to have it."""
        self._stopped: set[str] = set()
        self._watches = False
        self._untold: Callable[[], None] | None = None
        """What its group is to know, and could not be written yet."""
        self._lines = Lines(log.write, time.monotonic)
        self._bridges_before = FormerBridges(config.vhost, self._lines.tell)
        self._broadcasts = Broadcasts(config.name, self._lines.tell)
        self._broadcasts.wants(signed(wanted.broadcasts, credentials))
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="network owner", daemon=True).start()

    # --- of the instance ----------------------------------------------------------------------

    def begin(self, node: bytes, epoch: int) -> None:
        """The broker is live."""
        if (network := self._network) is not None and network.has_vhost:
            self._hold(network)  # who has shaken hands by now waits for nothing else
        ours = self._identity(node, Standing.LIVE, epoch)
        self._orders.put(lambda: self._begin(ours))

    def prepare(self, node: bytes, epoch: int) -> None:
        """The broker is about to be live, and its vhost is there."""
        ours = self._identity(node, Standing.LIVE, epoch)
        self._orders.put(lambda: self._prepare(ours))

    def waits(self, node: bytes, epoch: int) -> None:
        """It is passive, and another one of its group is live with this epoch."""
        ours = self._identity(node, Standing.BACKUP, epoch)
        self._orders.put(lambda: self._wait(ours))

    def _identity(self, node: bytes, standing: Standing, epoch: int) -> Identity:
        history = history_of(self._config.store)
        return Identity(node, self._incarnation, self._config.name, standing, epoch, history)

    def leaves(self) -> None:
        """It waits no more, and does not serve: programs find nobody here."""
        self._orders.put(lambda: self._end(at_once=True))

    def gives_away(self, parts: Parts) -> Left | None:
        """Only a member of a cluster does."""
        return None

    def moves(self, uri: str) -> None:
        """Programs on other hosts are told that they go on at this broker."""
        self._asked(lambda: self._move(uri))

    def gives_back(self) -> None:
        """The same, at the original of its store; if that has not said where it is, they are told
        that this broker stops."""

        def step() -> None:
            ours = self._ours
            if ours is not None and (uri := self._group.original(ours.epoch)):
                self._move(uri)

        self._asked(step)

    def _move(self, uri: str) -> None:
        if self._network is not None:
            self._network.move_programs(uri)

    def end(self, *, at_once: bool) -> None:
        """It is live no more; returns when nothing of its network is left."""
        self._asked(lambda: self._end(at_once))

    def counts(self) -> dict[str, dict[str, Counts]]:
        """Of the queues that are shipped, how long it took until the far end had confirmed."""
        found = table.read(self._config.vhost)
        return {} if found is None else table.counted(found)

    def reload(self, wanted: Wanted, credentials: Credentials) -> None:
        self._orders.put(lambda: self._reload(wanted, credentials))

    def settles(self) -> None:
        """Returns when all that it was told before is carried out."""
        self._asked(lambda: None)

    def order(self, given: Mapping[str, object]) -> str:
        """`link stop` or `link start`, of queue replicas or programs; an Error says why not."""
        if given.get("noun") == REPLICAS:
            self._of_replicas(given)
        elif given.get("noun") == PROGRAMS:
            self._asked(lambda: self._of_programs(given))
        else:
            self._asked(lambda: self._order(str(given.get("verb")), str(given.get("name"))))
        return ""

    def _asked(self, step: Callable[[], T]) -> T:
        answer: Future[T] = Future()

        def answered() -> None:
            try:
                answer.set_result(step())
            except Exception as error:  # noqa: BLE001  # the caller's to deal with
                answer.set_exception(error)

        self._orders.put(answered)
        return answer.result()

    def _carry_out(self, given: Mapping[str, Any]) -> list[dict[str, object]]:
        """An order of a program: of an operator, or of queue replicas."""
        if given.get("noun") is not None:
            return Operators(self._config, self._log, self.order).carry_out(given)
        if given.get("verb") == INVITE:
            self._log.write("audit", verb=INVITE, user=given.get("user"))
            return [invited(self._config.folder, self._credentials, given)]
        if given.get("verb") != "show":  # that comes anyway
            self._of_replicas(given)
        shown: list[dict[str, object]] = []
        self._asked(lambda: shown.extend(self._replicas().show()))
        return shown

    def _of_replicas(self, given: Mapping[str, object]) -> None:
        """An Error says why not; to follow, it has begun, or cannot."""
        verb, name = given.get("verb"), str(given.get("queue", ""))
        begun: list[Future[None]] = []
        self._asked(lambda: self._to_replicas(given, begun))
        for each in begun:
            if wait([each], BEGIN_SECONDS).not_done:
                self._asked(partial(self._abandon, name, each))
            each.result(0)
        if verb == "follow":
            self._log.write("audit", verb="replicate", queue=name, of=given.get("of"),
                            user=given.get("user"))  # fmt: skip

    # --- in the thread ------------------------------------------------------------------------

    def _replicas(self) -> QueueReplicas:
        if not self._wanted.queue_replication:
            raise InvalidArgument(
                f"ha.queue-replication is false on {self._config.name}: set it in "
                f"{self._config.folder / FILE}, and restart the broker"
            )
        network = self._network
        if network is None or network.replicas is None:
            raise InvalidArgument(f"{self._config.name} is not live yet")
        return network.replicas

    def _abandon(self, name: str, begun: Future[None]) -> None:
        self._replicas().abandon(name, begun)

    def _to_replicas(self, given: Mapping[str, object], begun: list[Future[None]]) -> None:
        replicas, name = self._replicas(), str(given.get("queue", ""))
        settings = given.get("settings")
        match given.get("verb"):
            case "follow":
                known = settings if isinstance(settings, dict) else None
                begun.append(replicas.follow(name, self._address(str(given.get("of"))), known))
            case "detach":
                replicas.detach(name)
                self._log.write("audit", verb="detach", queue=name, user=given.get("user"))
            case "show":
                replicas.show()
            case other:
                raise InvalidArgument(f"a queue replica is not {other!r}")

    def _of_programs(self, given: Mapping[str, object]) -> None:
        """Show them, when the one that is named was disconnected."""
        network = self._network
        programs = None if network is None else network.programs
        if (session := given.get("session")) is not None:
            if programs is None:
                raise NotFound(f"{self._config.name} serves no programs on other hosts")
            programs.disconnect(str(session))
            self._log.write("audit", verb="disconnect", session=session, user=given.get("user"))
        self._show_programs()

    def _address(self, peer: str) -> str:
        """Of one of our connectors, if it is the name of one."""
        connector = self._wanted.connectors.get(peer)
        return peer if connector is None else str(connector)

    def _run(self) -> None:
        while True:
            try:
                order = self._orders.get(timeout=self._patience)
            except Empty:
                order = self._try_again
            try:
                order()
            except (Error, OSError) as error:
                self._lines.tell({"event": "network", "level": "error", "what": told(error)})
            except Exception as error:  # noqa: BLE001  # ours; who ends the broker is answered yet
                trace = traceback.format_exception(error)
                self.fails(f"its network could not be changed: {''.join(trace[-2:])}")

    @property
    def _patience(self) -> float | None:
        """Until something is tried again; None: nothing is to be."""
        until_whole = self._until_whole
        is_left = until_whole is None and self._bridges_before.waits
        return ROOM_RETRY_SECONDS if is_left else until_whole

    def _try_again(self) -> None:
        if self._until_whole is not None:
            self._go_on()
        self._bridges_before.tries()

    @property
    def _until_whole(self) -> float | None:
        """None: it has all that it wants."""
        ours, network = self._ours, self._network
        if ours is None or not self._has_tables(ours):
            return None
        if self._untold is not None:
            return PASSIVE_RETRY_SECONDS
        if ours.standing is Standing.BACKUP:
            is_there = self._live is not None and network is not None and not network.unbound
            return None if is_there else PASSIVE_RETRY_SECONDS
        is_whole = network is not None and network.is_live and not network.unbound
        return None if is_whole else RETRY_SECONDS

    def _has_tables(self, ours: Identity) -> bool:
        is_live = ours.standing is Standing.LIVE
        wanted = self._wanted
        dials = wanted.bridges or wanted.links or wanted.agents or wanted.queue_replication
        return bool(wanted.acceptors or (dials and is_live))

    def _go_on(self) -> None:
        ours, network = self._ours, self._network
        if ours is None:
            return
        if ours.standing is Standing.BACKUP:
            self._wait(ours)
        elif network is not None and network.is_live:
            network.listen()
            if self._untold is not None:
                self._tells(self._untold)
        else:
            self._begin(ours)

    def _made(self, ours: Identity) -> Network:
        """With the listeners of a broker that was passive."""
        if self._network is None:
            from shmbroker.netbridge.broker.network import Place

            named = self._config.network_vhost
            served = frozenset({named} if named else {ROOT, self._config.vhost})
            place = Place(self._config.vhost, self._config.folder, served, ours)
            given = Given(self._wanted, self._credentials)
            self._network = self._network_of(place, given)
            self._network.carry_out = self._carry_out
            self._network.former = self._bridges_before
            self._network.tell_failure(self.failed)
        return self._network

    def failed(self, why: str) -> None:
        """A network thread."""
        self.fails(why)

    def _network_of(self, place: Place, given: Given) -> Network:
        from shmbroker.netbridge.broker.network import Network

        return Network(place, given, self._stopped, self._lines.tell, self._orders.put)

    @property
    def uri(self) -> str:
        """Of this broker, for programs; empty if they are not told."""
        return whereabouts.of(0, self._wanted).uri

    def uri_by(self, wanted: Wanted) -> str:
        """What it is once that is reloaded."""
        return whereabouts.of(0, wanted.listening_as(self._wanted)).uri

    def _announce(self, ours: Identity) -> None:
        if any(ours.node):  # a member that has not met its live yet knows no node
            is_live = ours.standing is Standing.LIVE
            self._broadcasts.becomes(ours.node, ours.epoch, is_live=is_live)

    def _prepare(self, ours: Identity) -> None:
        if self._has_tables(ours) and (self._network is None or not self._network.has_vhost):
            self._made(ours).prepare(ours)

    def _begin(self, ours: Identity) -> None:
        self._ours = ours
        if not self._is_in_cluster:
            self._forget_cluster()  # before programs on other hosts come
        if self._has_tables(ours) and (self._network is None or not self._network.is_live):
            self._serve(ours)
        elif ours.standing is Standing.LIVE and not self._has_tables(ours):
            self._drop()
        self._announce(ours)  # whoever hears it comes at once

    def _forget_cluster(self) -> None:
        """Of a former file.  They come also if it fails."""
        try:
            network = self._network
            if network is not None and network.has_vhost:  # another one takes a millisecond
                forget(network.broker)
                return
            with connect(f"shm://{self._config.vhost}", name="former cluster") as broker:
                forget(broker)
        except Error as error:
            self._lines.tell({"event": "network", "level": "error", "what": told(error)})

    def _drop(self) -> None:
        """What bridges and agents of a former file have left; with a network, that drops gates."""
        with connect(f"shm://{self._config.vhost}", name="former links") as broker:
            former.unbind(broker)
            if self._network is None:
                self._bridges_before.drop(broker, ())

    def _serve(self, ours: Identity) -> None:
        network = self._made(ours)
        network.serve(ours)
        self._hold(network)
        self._tells(lambda: self._tell_group(ours))
        self._tell_topology()
        self._show_programs()

    def _tells(self, what: Callable[[], None]) -> None:
        """Now, or when there is room on the disk: the broker serves without."""
        self._untold = None
        try:
            what()
        except OSError as error:
            self._untold = what
            self._lines.tell({"event": "network", "level": "error", "what": told(error)})

    def _tell_group(self, ours: Identity) -> None:
        self._group.serves(whereabouts.of(ours.epoch, self._wanted))
        if not self._watches:
            self._group.watch(lambda: self._orders.put(self._tell_topology))
            self._watches = True
            self._tell_topology()

    def _show_programs(self) -> None:
        """For people, when they ask.  Nothing if no acceptor admits any."""
        network, place = self._network, self._config.folder / RUN / PROGRAMS
        programs = None if network is None else network.programs
        if programs is not None or place.exists():
            found = [] if programs is None else programs.listed()
            with suppress(OSError):  # what it says is no reason to end
                write_whole(place, {PROGRAMS: found})

    # --- what programs are told ---------------------------------------------------------------

    def _tell_topology(self) -> None:
        ours, network = self._ours, self._network
        if ours is None or ours.standing is not Standing.LIVE or network is None:
            return
        backups = self._group.backups(ours.epoch)
        node = Node(
            ours.node, ours.epoch, ours.name, self.uri, backups, memory(), self._config.vhost
        )  # fmt: skip
        network.tell_topology((node,), self._others)

    def others_are(self, others: tuple[Other, ...]) -> None:
        """The other nodes of its cluster; from any thread."""
        self._orders.put(lambda: self._others_are(others))

    def holds(self, is_held: bool) -> None:
        """Programs that come wait, or do so no more; from any thread, and at once."""
        with self._holding:
            self._is_held = is_held
            network = self._network
            if network is not None and network.is_live:  # before that they wait anyway
                network.hold(is_held)

    def _hold(self, network: Network) -> None:
        with self._holding:
            network.hold(self._is_held)

    def _others_are(self, others: tuple[Other, ...]) -> None:
        self._others = others
        self._tell_topology()

    def _wait(self, ours: Identity) -> None:
        """As soon as the live has said where it is; it may never do."""
        self._ours = ours
        self._announce(ours)
        self._live = self._group.live(ours.epoch)
        if self._live is not None and self._has_tables(ours):
            self._made(ours).wait(self._live)
            self._tells(lambda: self._group.waits(ours.epoch, self.uri))

    def _end(self, at_once: bool) -> None:
        network, self._network, self._ours = self._network, None, None
        self._live = self._untold = None
        self._bridges_before.waits.clear()
        self._stopped = set()  # whoever serves next makes all links, this one too if it is that
        self._broadcasts.close()
        if network is not None:
            with suppress(OSError):  # a file that says that it waits is left, as by who is killed
                self._group.leaves()
            network.close(at_once=at_once)

    def _reload(self, wanted: Wanted, credentials: Credentials) -> None:
        # where it listens needs a restart
        self._wanted = wanted.listening_as(self._wanted)
        self._credentials = credentials
        self._broadcasts.wants(signed(wanted.broadcasts, credentials))
        if self._network is None:
            self._go_on()
            return
        self._network.reload(Given(self._wanted, credentials))
        if self._network.is_live:
            self._hold(self._network)  # also programs that no acceptor has admitted before
        self._tell_address()

    def _tell_address(self) -> None:
        """By which others reach this broker: a connector may be another one."""
        ours, network = self._ours, self._network
        if ours is None or network is None:
            return
        if network.is_live:
            self._tells(lambda: self._tell_group(ours))
            self._tell_topology()
        elif ours.standing is Standing.BACKUP and self._live is not None:
            self._tells(lambda: self._group.waits(ours.epoch, self.uri))

    def _order(self, verb: str, name: str) -> None:
        network = self._network
        if network is None or name not in network.bridges:
            raise InvalidArgument(f"there is no link {name!r}: shmbroker link list")
        if verb == "stop":
            network.stop_link(name)
        elif verb == "start":
            network.start_link(name)
        else:
            raise InvalidArgument(f"a link is not {verb!r}")
