"""Owns the network of a broker that is in a cluster, and is not replicated."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.base.errors import Error, InvalidArgument, SystemRefused
from shmbroker.ipc.base.refusal import told
from shmbroker.ipc.instance.config.config import Config
from shmbroker.ipc.instance.leaving import Left
from shmbroker.ipc.instance.log import Log
from shmbroker.ipc.instance.moving import Parts
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.broker.owner import Owner
from shmbroker.netbridge.clustered import options
from shmbroker.netbridge.config.config import Network as Wanted
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.remote.topology import Node as Told
from shmbroker.netbridge.security.credential import Credentials

if TYPE_CHECKING:
    from shmbroker.netbridge.carrier.thread import NetworkThread
    from shmbroker.netbridge.cluster.programs import Other
    from shmbroker.netbridge.clustered.members import Members

Row = dict[str, Any]
CLUSTER: Final = "cluster"
"""The noun of orders."""
STAY: Final = "stay"
"""The verb of `stop --no-scale-down`."""
VOTES: Final = "votes"
"""In the store: what this live has granted to members of other nodes."""


class ClusterOwner(Owner):
    def __init__(self, config: Config, wanted: Wanted, credentials: Credentials, log: Log) -> None:
        self._whole = wanted
        assert wanted.cluster is not None, "it is in one"
        self._credential = credentials.named(wanted.cluster.credentials)
        """By which it knows the others; it may have another name in the file by now."""
        self._members: Members | None = None
        self._thread: NetworkThread | None = None
        self._stays = False
        """What is here stays here when it is stopped."""
        super().__init__(config, options.without_cluster(wanted), credentials, log)
        leaves = wanted.scale_down is not None and wanted.scale_down.is_enabled
        self.drains = leaves and config.role == "backup"

    # --- of the instance ----------------------------------------------------------------------

    def begin(self, node: Node, epoch: int) -> None:
        if not self.drains:
            super().begin(node, epoch)
        self._orders.put(lambda: self._is(node, epoch, is_live=True))

    def waits(self, node: Node, epoch: int) -> None:
        super().waits(node, epoch)
        self._orders.put(lambda: self._is(node, epoch, is_live=False))

    def gives_away(self, parts: Parts) -> Left | None:
        """None: [ha.scale-down] does not say so, or whoever stops it does not want it."""
        wanted = self._whole.scale_down
        if wanted is None or not wanted.is_enabled or self._stays:
            return None
        self._asked(lambda: None)  # what was said before is done: that it is live
        members = self._members
        if members is None:
            return Left(is_whole=False, why="not scaled down: it is in no cluster yet")
        from shmbroker.netbridge.clustered.departure import Departure
        from shmbroker.netbridge.clustered.setup import show

        assert self._whole.cluster is not None, "the configuration was checked"
        departure = Departure(
            members, self._whole.cluster.name, wanted, self._lines.tell,
            partial(show, self._config), drains=self.drains,
        )  # fmt: skip
        return departure.run(parts, self._programs_end)

    def _programs_end(self, node: Node, name: str, uri: str) -> list[Row]:
        """Sessions are told who has their queues from now on, and nobody else comes; what that one
        is told of their transactions."""
        rows: list[Row] = []

        def step() -> None:
            network = self._network
            if network is not None:
                if uri:
                    rows.extend(network.hands_over())
                network.tell_topology((Told(node, 0, name, uri),) if uri else ())
                if uri:
                    network.move_programs(uri)
            Owner._end(self, at_once=False)

        self._asked(step)
        return rows

    def order(self, given: Mapping[str, object]) -> str:
        """Of the cluster, and those of links."""
        if given.get("noun") != CLUSTER:
            return super().order(given)
        if given.get("verb") == STAY:
            self._stays = True
            return ""
        return self._asked(lambda: self._of_cluster(given))

    # --- in the thread ------------------------------------------------------------------------

    def _is(self, node: Node, epoch: int, *, is_live: bool) -> None:
        from shmbroker.netbridge.clustered.members import Standing
        from shmbroker.netbridge.witness.state import State

        place = self._config.store / VOTES
        members = self._members or self._joined()
        members.becomes(
            Standing(node, epoch, is_live), lambda: State(place, secrets.token_bytes(16))
        )

    def _joined(self) -> Members:
        from shmbroker.netbridge.carrier.thread import NetworkThread
        from shmbroker.netbridge.clustered.members import Members
        from shmbroker.netbridge.clustered.setup import setup, show

        given = Given(self._whole, self._credentials)
        found = setup(self._config, given, self.uri, self._credential)
        assert found is not None, "it is in a cluster"
        self._thread = NetworkThread()
        self._thread.admit(given.credentials.known_keys)
        self._thread.tell_failure(self.failed)
        shows = partial(show, self._config)
        self._members = Members(
            self._thread, found, self._lines.tell, shows, others_are=self.others_are,
            holds=self.holds,
        )  # fmt: skip
        return self._members

    def _end(self, at_once: bool) -> None:
        members, self._members = self._members, None
        thread, self._thread = self._thread, None
        if members is not None and thread is not None:
            members.close()
            thread.close()
        self._is_held, self._others = False, ()  # as these members have said
        super()._end(at_once)

    def _others_are(self, others: tuple[Other, ...]) -> None:
        if self._members is not None:  # else it was said while that ended
            super()._others_are(others)

    def _reload(self, wanted: Wanted, credentials: Credentials) -> None:
        """What is said of the cluster needs a restart, but for how its members are found, and know
        each other."""
        assert wanted.cluster is not None, "that needs a restart"
        self._whole = wanted.listening_as(self._whole)
        self._credential = credentials.named(wanted.cluster.credentials) or self._credential
        others = options.without_cluster(wanted)
        if self._members is not None and self._thread is not None:
            given = Given(wanted, credentials)
            self._thread.learns(credentials)
            self._members.reload(given, self.uri_by(others))
        super()._reload(others, credentials)

    def _of_cluster(self, given: Mapping[str, object]) -> str:
        if self._members is None:
            raise InvalidArgument(f"{self._config.name} is in no cluster yet: it is not live")
        return order(self._members, given, self._log)


def order(members: Members, given: Mapping[str, object], log: Log) -> str:
    """What came of it, if there is more to say; InvalidArgument: why it is not done."""
    verb = given.get("verb")
    if verb == "show":
        members.show()
    elif verb == "queues":
        members.show_queues()
    elif verb == "groups":
        members.show_groups()
    elif verb == "forget":
        return _forget(members, str(given.get("node", "")), given.get("user"), log)
    else:
        raise InvalidArgument(f"a member of a cluster does not {verb!r}")
    return ""


def _forget(members: Members, name: str, user: object, log: Log) -> str:
    node, known = members.forget(name)
    log.write("audit", verb="forget", node=node.hex(), name=known, user=user)
    who = f"{known} ({node.hex()})" if known else node.hex()
    try:
        members.keeps_forgotten(node)
    except (Error, OSError) as error:
        why = f"{who} is forgotten, and that is not kept yet: {told(error)}"
        raise SystemRefused(why) from error
    return who
