"""The programs on other hosts that have a session: who they are, what has gone over their links,
and how an operator disconnects one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc.base.errors import NotFound
from shmbroker.netbridge.link.handshake import Far

if TYPE_CHECKING:
    from shmbroker.netbridge.carrier.end import End
    from shmbroker.netbridge.remote.session import Session
    from shmbroker.netbridge.serving.service import Service

PROGRAMS: Final = "programs"
"""The noun of orders, and in run/ the file that shows them."""
Row = dict[str, Any]
BY_OPERATOR: Final = "disconnected by an operator"
"""What the program hears of the end of its link."""


class Programs:
    """From any thread but the network's."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def listed(self) -> list[Row]:
        """In the order in which their sessions began."""
        service = self._service
        return service.ask(lambda: [_row(service, each) for each in service.sessions])

    def disconnect(self, session: str) -> None:
        """End it: what it has in hand goes back to its queues.  Its program may come again.
        NotFound."""
        service = self._service

        def end() -> bool:
            found = next((each for each in service.sessions if each.name == session), None)
            if found is not None:
                service.ends(found, BY_OPERATOR)
            return found is not None

        if not service.ask(end):
            raise NotFound(f"no program has session {session}: it has left meanwhile")


def _row(service: Service, session: Session) -> Row:
    end, served = service.end_of(session), service.served_of(session)
    return {
        "session": session.name,
        "participant": None if served is None else served.participant,
        "name": "" if served is None else served.program,
        "role": None if served is None else served.role.value,
        "attached": end is not None,
        **_of_link(end),
    }


def _of_link(end: End | None) -> Row:
    """Nothing of a session whose program has lost its link, and may come again."""
    if end is None:
        return dict.fromkeys(
            ("user", "address", "connected_at", "received_frames", "received_bytes",
             "sent_frames", "sent_bytes")
        )  # fmt: skip
    shaken = end.machine.handshake
    hello = shaken.hello if isinstance(shaken, Far) else None
    return {
        "user": None if hello is None else hello.user,
        "address": end.address,
        "connected_at": end.began_at,
        "received_frames": end.received_frames,
        "received_bytes": end.received_bytes,
        "sent_frames": end.sent_frames,
        "sent_bytes": end.sent_bytes,
    }
