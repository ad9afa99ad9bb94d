"""ZooKeeper as a lock manager.

    NAMESPACE/NODE           the ledger, as JSON; changed only at the version that was seen
    NAMESPACE/NODE/holder    who is live, as JSON: ephemeral, of the session of that member

A change of both is one transaction.  A renewal writes to `holder`, so it goes through a majority of
the servers, and shows that the session was there.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.netbridge.election.codec import ledger_of, text_of
from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.engine.engine import EngineFailed, Lease, LeaseStep, Seen
from shmbroker.netbridge.wire.malformed import Malformed

RETRY: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0}
SHORTER: Final = 0.99
"""The servers count in whole milliseconds."""


def kazoo() -> Any:
    """Imported by who needs it."""
    try:
        import kazoo.client
        import kazoo.exceptions
        import kazoo.protocol.states
        import kazoo.security
    except ImportError:
        raise EngineFailed(
            'lock-manager = "zookeeper" needs kazoo: pip install "shmbroker[zookeeper]"'
        ) from None
    return kazoo


@dataclass(frozen=True, slots=True)
class Tag:
    version: int | None
    """Of the ledger; None: it is not there."""
    holder: int | None = None
    """The version of that node; None: it is not there."""
    owner: int = 0
    """Its session."""


class ZooKeeper:
    """`engine.Engine`."""

    ends_leases = True
    file = None
    """kazoo has a thread of its own, which wakes us."""

    def __init__(
        self,
        connect: str,
        namespace: str,
        me: str,
        timeout: float,
        *,
        digest: tuple[str, str] | None = None,
        **options: Any,
    ) -> None:
        """`timeout`: of the session, in seconds.  `digest`: user and password, if there are any.
        `options`: of kazoo's client, for TLS."""
        self.place = f"ZooKeeper {connect}{namespace}"
        self.shared = f"ZooKeeper, namespace {namespace}"
        self._namespace, self._me, self._timeout = namespace.rstrip("/"), me, timeout
        self._options = options | {"hosts": connect, "timeout": timeout}
        self._digest = digest
        self._client: Any = None
        self._kazoo: Any = None
        self._connected = threading.Event()
        self._was_lost = False
        self._granted_ms = 0.0
        self._wake: Callable[[], None] = lambda: None

    # --- reaching it --------------------------------------------------------------------------

    def open(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        if self._client is None:
            self._begin()
        if not self._connected.wait(self._timeout):
            raise EngineFailed(f"{self.place} was not reached within {self._timeout:g} s")
        self._was_lost = False
        if self._granted_ms < SHORTER * 1000 * self._timeout:
            raise EngineFailed(
                f"{self.place} gives sessions of {self._granted_ms / 1000:g} s, and "
                f"session-timeout is {self._timeout:g} s: raise maxSessionTimeout there, or lower "
                "session-timeout at all members"
            )
        self._call(self._client.ensure_path_async(self._namespace or "/"))

    def _begin(self) -> None:
        self._kazoo = kazoo()
        quiet = logging.getLogger("shmbroker.zookeeper")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        options = self._options
        if self._digest is not None:
            options = options | {
                "auth_data": [("digest", ":".join(self._digest))],
                "default_acl": self._kazoo.security.CREATOR_ALL_ACL,
            }
        self._client = client = self._kazoo.client.KazooClient(
            connection_retry=RETRY, logger=quiet, **options
        )
        connect = client._connection._connect

        def noting(*given: Any, **named: Any) -> Any:
            # two thirds of the time-out that the servers grant; kazoo keeps it to itself
            times = connect(*given, **named)
            self._granted_ms = times[0] * 1.5
            if client.connected:  # it has told the listener already
                self._connected.set()
            return times

        client._connection._connect = noting
        client.add_listener(self._became)
        client.start_async()

    def _became(self, state: Any) -> None:
        """In a thread of kazoo."""
        if state == self._kazoo.protocol.states.KazooState.CONNECTED:
            if self._granted_ms:  # else it is known in a moment
                self._connected.set()
        else:
            self._connected.clear()
            self._was_lost = True
        self._wake()

    def take_word(self) -> bool:
        if self._was_lost:
            raise EngineFailed(f"the connection to {self.place} was lost")
        return False

    def close(self) -> None:
        """The session ends, and the holder with it."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.stop()
                client.close()

    # --- a node -------------------------------------------------------------------------------

    def _path(self, node: Node) -> str:
        return f"{self._namespace}/{node.hex()}"

    def look(self, node: Node) -> Seen:
        client, path = self._reached, self._path(node)
        self._call(client.sync_async(self._namespace or "/"))
        found = self._found(client.get_async(path))
        if found is None:
            return Seen(None, None, Tag(None))
        told, stat = found
        try:
            ledger = ledger_of(told.decode())
        except (ValueError, Malformed) as error:
            raise EngineFailed(f"{self.place} has {told[:80]!r} of a node: {error}") from None
        holder = self._found(client.get_async(f"{path}/holder", watch=self._changed))
        if holder is None:
            return Seen(ledger, None, Tag(stat.version))
        of, its = holder
        tag = Tag(stat.version, its.version, its.ephemeralOwner)
        return Seen(ledger, Lease(_member(of), its.version), tag)

    def _changed(self, _: Any) -> None:
        """In a thread of kazoo."""
        self._wake()

    def change(self, node: Node, seen: Seen, ledger: Ledger, lease: LeaseStep) -> bool:
        path, tag = self._path(node), seen.tag
        steps = self._reached.transaction()
        told = text_of(ledger).encode()
        if tag.version is None:
            steps.create(path, told)
        elif ledger == seen.ledger:
            steps.check(path, tag.version)
        else:
            steps.set_data(path, told, version=tag.version)
        self._lease(steps, f"{path}/holder", tag, lease, self._session)
        done = self._call(steps.commit_async())
        errors = [each for each in done if isinstance(each, Exception)]
        for each in errors:
            if not isinstance(each, self._others):
                raise EngineFailed(f"{self.place}: {_why(each)}")
        return not errors

    def _lease(self, steps: Any, path: str, tag: Tag, lease: LeaseStep, session: int) -> None:
        told = json.dumps({"member": self._me}).encode()
        is_ours = tag.holder is not None and tag.owner == session
        if lease is LeaseStep.TAKEN and is_ours:
            steps.set_data(path, told, version=tag.holder)
        elif lease is LeaseStep.TAKEN:
            if tag.holder is not None:
                steps.delete(path, version=tag.holder)
            steps.create(path, told, ephemeral=True)
        elif lease is LeaseStep.FREED and tag.holder is not None:
            steps.delete(path, version=tag.holder)
        elif lease is LeaseStep.IS_FREE:  # there is no other way to ask for it in a transaction
            steps.create(path, told, ephemeral=True)
            steps.delete(path, version=0)

    def nodes(self) -> list[Node]:
        names = self._call(self._reached.get_children_async(self._namespace or "/"))
        return [bytes.fromhex(name) for name in sorted(names) if _is_node(name)]

    # --- calls that end -----------------------------------------------------------------------

    @property
    def _reached(self) -> Any:
        if self._client is None:
            raise EngineFailed(f"{self.place} is not connected")
        return self._client

    @property
    def _others(self) -> tuple[type[Exception], ...]:
        """What a transaction answers if somebody else was first, and of its other steps then."""
        of = self._kazoo.exceptions
        return (
            of.BadVersionError, of.NodeExistsError, of.NoNodeError, of.RolledBackError,
            of.RuntimeInconsistency,
        )  # fmt: skip

    @property
    def _session(self) -> int:
        found = self._reached.client_id
        if found is None:  # until kazoo has another one
            raise EngineFailed(f"the session at {self.place} has ended")
        return int(found[0])

    def _found(self, call: Any) -> Any:
        """None: there is no such node."""
        return self._call(call, absent=self._kazoo.exceptions.NoNodeError)

    def _call(self, call: Any, absent: type[Exception] | tuple[()] = ()) -> Any:
        try:
            return call.get(timeout=self._timeout)
        except absent:
            return None
        except (
            self._kazoo.exceptions.KazooException,
            self._client.handler.timeout_exception,
        ) as error:
            raise EngineFailed(f"{self.place}: {_why(error)}") from None


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


def _member(told: bytes) -> str:
    try:
        return str(json.loads(told)["member"])
    except (ValueError, TypeError, KeyError):
        return "?"


def _is_node(name: str) -> bool:
    return len(name) == 32 and set(name) <= set("0123456789abcdef")
